import { type Fleet, loadFleet } from "@guidevane/core";
import { cellKey, type LiveEngine, type PlanInputs } from "./plan-types.ts";

/** A fleet file's text to a fleet; the files that it names are looked up in `files`. */
export function fleetOf(yaml: string, files: Readonly<Record<string, string>> = {}): Promise<Fleet> {
  return loadFleet(yaml, "fleet.yaml", async (path) => {
    const text = files[path];
    if (text === undefined) throw new Error("no such file");
    return text;
  });
}

/** Inputs at a fixed time: the fleet file's demand, all engines as it says, unless told otherwise. */
export function inputsOf(
  fleet: Fleet,
  change: {
    demandRps?: Readonly<Record<string, Readonly<Record<string, number>>>>;
    engines?: Readonly<Record<string, Partial<LiveEngine>>>;
  } = {},
): PlanInputs {
  const demandRps = new Map<string, number>();
  for (const [cluster, byClass] of fleet.demandRps)
    for (const [name, rps] of byClass) demandRps.set(cellKey(cluster, name), rps);
  for (const [cluster, byClass] of Object.entries(change.demandRps ?? {}))
    for (const [name, rps] of Object.entries(byClass)) demandRps.set(cellKey(cluster, name), rps);
  const engines = new Map<string, LiveEngine>();
  for (const [id, live] of Object.entries(change.engines ?? {}))
    engines.set(id, {
      readyReplicas: fleet.engines.get(id)?.replicas ?? 1,
      severity: 0,
      adminState: "active",
      ...live,
    });
  return { wallMs: 1_764_460_800_000, fleet, demandRps, engines, gateways: new Map([["a", 2]]) };
}

/** CONTRACT's example profile. */
export const EXAMPLE_PROFILE = `
profile: h100-llama-70b
reference: { promptTokens: 512, outputTokens: 256 }
work: { prefillPerKtok: 0.703125, decodePerKtok: 2.5 }
prefillMsPerTok: 0.06
loop: open
capacityWps: 12.5
ttftMs: [[0, 42], [0.5, 60], [0.8, 105], [0.9, 190], [0.97, 420]]
tbotMs: [[0, 9.1], [0.5, 11.0], [0.9, 15.2]]
`;

/** TTFT + 16 × TBOT of the reference request is 200 / 220 / 300 / 500 / 900 ms at 0 / 70 / 85 / 95 / 100 %. */
const THREE_PROFILE = `
profile: demo
reference: { promptTokens: 64, outputTokens: 16 }
work: { prefillPerKtok: 3.125, decodePerKtok: 50 }
prefillMsPerTok: 0.1
loop: open
capacityWps: 100
ttftMs: [[0, 40], [0.7, 44], [0.85, 60], [0.95, 100], [1, 180]]
tbotMs: [[0, 10], [0.7, 11], [0.85, 15], [0.95, 25], [1, 45]]
`;

/** The three-cluster example: 90, 120 and 40 requests/s over engines that hold 100, 100 and 80. */
export function threeClusters(policy = "{ headroom: 0, headroomMs: 0 }"): Promise<Fleet> {
  const engine = (place: string, capacity: number) =>
    `{ url: "http://${place}.example", region: ${place}, models: [demo], profile: demo, capacityWps: ${capacity} }`;
  return fleetOf(
    `
clusters: { a: { region: a }, b: { region: b }, c: { region: c } }
engines: { engine-a: ${engine("a", 100)}, engine-b: ${engine("b", 100)}, engine-c: ${engine("c", 80)} }
classes: { chat: { model: demo, priority: 10, work: 1.0 } }
network: { file: rtt.csv }
profiles: { demo: { file: demo.yaml } }
demandRps: { a: { chat: 90 }, b: { chat: 120 }, c: { chat: 40 } }
policy: ${policy}
`,
    { "demo.yaml": THREE_PROFILE, "rtt.csv": "from,to,rtt_ms\na,a,2\nb,b,2\nc,c,2\na,b,80\nb,c,60\na,c,140\n" },
  );
}
