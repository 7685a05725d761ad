import { type Fleet, type Publication, type StoredPublication, seededRandom } from "@guidevane/core";
import { EXAMPLE_PROFILE, fleetOf } from "./fleet.fixture.ts";
import { type PlanOptions, plan } from "./plan.ts";
import { cellKey, type LiveEngine, type Plan, type PlanInputs, type PlanWarm } from "./plan-types.ts";

const PLACES = ["p", "q", "r", "s", "t", "u"];

/** Another SKU: a third slower when idle, and it holds twice as much. */
const OTHER_PROFILE = `
profile: other
reference: { promptTokens: 512, outputTokens: 256 }
work: { prefillPerKtok: 0.703125, decodePerKtok: 2.5 }
prefillMsPerTok: 0.08
loop: open
capacityWps: 25
ttftMs: [[0, 60], [0.4, 75], [0.7, 110], [0.85, 190], [0.95, 400]]
tbotMs: [[0, 12], [0.4, 13.1], [0.8, 17], [0.95, 22]]
`;

/** Six clusters in six regions, two classes, twelve engines of two SKUs; `utilisation` of what they hold is asked. */
export function sixRegions(policy: string, utilisation = 0.75, wrong = 1): Promise<Fleet> {
  const random = seededRandom(6);
  const engines = PLACES.flatMap((place, at) =>
    [1, 2].map((copy) => {
      const profile = (at + copy) % 3 === 0 ? "other" : "h100";
      return `e${place}${copy}: { url: "http://${place}${copy}.example", region: ${place}, models: [m], profile: ${profile}, replicas: ${1 + ((at * copy) % 3)} }`;
    }),
  );
  const rtt = PLACES.flatMap((from, a) =>
    PLACES.slice(a).map((to, b) => `${from},${to},${b === 0 ? 2 : Math.round(25 * b + 10 * random())}`),
  );
  // Capacity in all: see the fleet's engines; 345 units/s.
  const demand = PLACES.map((place) => {
    const [long, short] = [0.5 + random(), 0.5 + random()];
    return `c${place}: { long: ${((utilisation * 345 * long) / 6 / 2 / 3).toFixed(3)}, short: ${((utilisation * 345 * short) / 6 / 2 / 0.5).toFixed(3)} }`;
  });
  const scaled = (text: string): string =>
    text.replace(/^(ttftMs|tbotMs): (.*)$/gm, (_, name: string, knots: string) => {
      const points = JSON.parse(knots) as [number, number][];
      return `${name}: ${JSON.stringify(points.map(([rho, ms]) => [rho, ms * wrong]))}`;
    });
  return fleetOf(
    `
clusters: { ${PLACES.map((place) => `c${place}: { region: ${place} }`).join(", ")} }
engines: { ${engines.join(", ")} }
classes: { long: { model: m, work: 3, priority: 5 }, short: { model: m, work: 0.5 } }
profiles: { h100: { file: h100.yaml }, other: { file: other.yaml } }
network: { file: rtt.csv }
demandRps: { ${demand.join(", ")} }
policy: ${policy}
`,
    {
      "h100.yaml": scaled(EXAMPLE_PROFILE.replace("profile: h100-llama-70b", "profile: h100")),
      "other.yaml": OTHER_PROFILE,
      "rtt.csv": `from,to,rtt_ms\n${rtt.join("\n")}\n`,
    },
  );
}

/** A control loop without its wires: each tick plans from what the last one published. */
export class Loop {
  previous: StoredPublication | null = null;
  warm: PlanWarm | null = null;
  readonly #options: PlanOptions;

  constructor(options: PlanOptions = {}) {
    this.#options = options;
  }

  tick(inputs: PlanInputs): Plan {
    const done = plan(inputs, this.previous, this.warm, { deadlineMs: null }, this.#options);
    this.warm = done.warm;
    if (done.publication !== null)
      this.previous = { ...done.publication, version: (this.previous?.version ?? 0) + 1, epoch: 1 };
    return done;
  }

  get published(): Publication {
    return this.previous!;
  }
}

/** The fleet file's demand, each cell times `factor`. */
export function demandOf(
  fleet: Fleet,
  factor: (cluster: string, requestClass: string) => number = () => 1,
  engines: Readonly<Record<string, Partial<LiveEngine>>> = {},
): PlanInputs {
  const demandRps = new Map<string, number>();
  for (const [cluster, byClass] of fleet.demandRps)
    for (const [name, rps] of byClass) demandRps.set(cellKey(cluster, name), rps * factor(cluster, name));
  const live = new Map(
    Object.entries(engines).map(([id, each]) => [
      id,
      { readyReplicas: fleet.engines.get(id)!.replicas, severity: 0, adminState: "active" as const, ...each },
    ]),
  );
  return { wallMs: 1_764_460_800_000, fleet, demandRps, engines: live, gateways: new Map() };
}

/** Part of the requests that go elsewhere between two sets of weights. */
export function moved(before: Publication, after: Publication): number {
  let demand = 0;
  let different = 0;
  for (const [cluster, { cells }] of after.clusters) {
    for (const cell of cells) {
      const old = before.clusters.get(cluster)!.cells.find((each) => each.class === cell.class)!;
      const weights = new Map(old.engines.map((id, at) => [id, -old.weights[at]!]));
      for (const [at, id] of cell.engines.entries()) weights.set(id, (weights.get(id) ?? 0) + cell.weights[at]!);
      const sum = [...weights.values()].reduce((total, each) => total + Math.abs(each), 0);
      demand += cell.demandRps;
      different += (cell.demandRps * sum) / 2;
    }
  }
  return different / demand;
}
