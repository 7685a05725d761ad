import { type Fleet, loadFleet } from "@guidevane/core";
import type { LabRun } from "./lab.ts";

const PROFILE = `
profile: p
reference: { promptTokens: 512, outputTokens: 128 }
work: { prefillPerKtok: 0.9765625, decodePerKtok: 3.90625 }
prefillMsPerTok: 0.06
loop: open
capacityWps: 10
ttftMs: [[0, 40], [0.5, 58], [0.8, 105], [0.9, 190], [0.97, 420]]
tbotMs: [[0, 9], [0.5, 11], [0.9, 15]]
`;

/** Two regions 60 ms apart with three engines of 10, 10 and 5 work units/s; the east asks for twice what the west does. */
export const twoRegions: Promise<Fleet> = loadFleet(
  `
clusters: { east: { region: east }, west: { region: west } }
engines:
  east-1: { url: "http://a:1", region: east, models: [m], profile: p }
  west-1: { url: "http://b:1", region: west, models: [m], profile: p }
  west-2: { url: "http://c:1", region: west, models: [m], profile: p, capacityWps: 5 }
classes: { chat: { model: m, work: 1, promptTokens: 512, outputTokens: 128 } }
network: { file: rtt.csv }
profiles: { p: { file: p.yaml } }
demandRps: { east: { chat: 10 }, west: { chat: 5 } }
`,
  "two-regions",
  async (path) => (path === "rtt.csv" ? "from,to,rtt_ms\neast,west,60\n" : PROFILE),
);

/** How many of the requests that arrived in a time were sent to an engine. */
export function sentTo({ tally, fleet }: LabRun, engine: string, fromMs: number, toMs: number): number {
  const place = fleet.engines.findIndex(({ id }) => id === engine);
  const arrived = [...tally.arrivedMs.keys()].filter(
    (row) => tally.arrivedMs[row]! >= fromMs && tally.arrivedMs[row]! < toMs,
  );
  return arrived.filter((row) => tally.engine[row] === place).length;
}
