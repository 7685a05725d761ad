import { type Fleet, loadFleet } from "@guidevane/core";
import { ENDED, POLICIES, runLab, syntheticWorkload } from "@guidevane/simulator";

/** What the lab's engine is made of: TTFT and TBOT against utilisation, 10 units of work/s. */
export const LAB_PROFILE = `
profile: p
reference: { promptTokens: 512, outputTokens: 128 }
work: { prefillPerKtok: 0.9765625, decodePerKtok: 3.90625 }
prefillMsPerTok: 0.06
loop: open
capacityWps: 10
ttftMs: [[0, 40], [0.5, 58], [0.8, 105], [0.9, 190], [0.97, 420]]
tbotMs: [[0, 9], [0.5, 11], [0.9, 15]]
`;

const oneEngine: Promise<Fleet> = loadFleet(
  `
clusters: { east: { region: east } }
engines: { e1: { url: "http://a:1", region: east, models: [m], profile: p } }
classes: { chat: { model: m, work: 1, promptTokens: 512, outputTokens: 128 } }
network: { file: rtt.csv }
profiles: { p: { file: p.yaml } }
demandRps: { east: { chat: 5 } }
`,
  "one-engine",
  async (path) => (path === "rtt.csv" ? "from,to,rtt_ms\neast,east,0\n" : LAB_PROFILE),
);

export interface LabLogOptions {
  /** Utilisations, a run each. */
  readonly loads: readonly number[];
  readonly seconds: number;
  readonly seed: number;
  /** Coefficient of variation of token counts. */
  readonly spread: number;
  /** Demand over time, as a factor. */
  readonly shape?: (cluster: string, atMs: number) => number;
}

/** The log of one simulated engine under open loops, as CSV. */
export async function labLog({ loads, seconds, seed, spread, shape }: LabLogOptions): Promise<string> {
  const fleet = await oneEngine;
  const policy = POLICIES.find(({ name }) => name === "random")!;
  const rows = ["run,start_ms,prompt_tokens,cached_tokens,output_tokens,ttft_ms,e2e_ms,status"];
  for (const load of loads) {
    const sizes = { turns: 1, systemTokens: 0, spread };
    const workload = syntheticWorkload({
      fleet,
      seed,
      seconds,
      load,
      ...sizes,
      ...(shape === undefined ? {} : { shape }),
    });
    const { tally } = runLab({ fleet, workload, policy, seed });
    for (let row = 0; row < workload.size; row++) {
      const answered = tally.ended[row] === ENDED.answered;
      const cells = [load, tally.arrivedMs[row], workload.promptTokens[row], tally.cachedTokens[row]];
      // The lab's answers have a first token and then so many: one more in all.
      cells.push(workload.outputTokens[row]! + 1, tally.ttftMs[row], tally.e2eMs[row]);
      rows.push([...cells, answered ? "ok" : "failed"].join(","));
    }
  }
  return rows.join("\n");
}
