import { setTimeout as delay } from "node:timers/promises";
import type { ClusterSnapshot } from "@guidevane/core";
import { publishedSnapshot } from "../whole.ts";
import { tally } from "./killed-engine.ts";
import { OpenLoad, type Seen } from "./open-load.ts";
import { StressFleet } from "./stress-fleet.ts";

export interface ScenarioOptions {
  /** Of each of two clusters. */
  readonly rateRps: number;
  readonly threads: number;
  /** How long something is gone, and how long each is watched after it. */
  readonly goneMs: number;
  /** The same for the control plane, whose absence is felt late. */
  readonly controlGoneMs: number;
  readonly names?: readonly string[];
}

/** What clients saw from an event to the end of its watch. */
export interface ScenarioRow {
  readonly name: string;
  readonly sent: number;
  /** Failures of answers of which no byte had come, by what was wrong. */
  readonly errorsBeforeAnswer: Readonly<Record<string, number>>;
  /**
   * Answers cut in the middle; and requests that were under way at what died: at engines by the gateways' counts a moment
   * before, at a gateway those that clients had sent to it before they could know; null = nothing died that serves.
   */
  readonly cut: number;
  readonly running: number | null;
  /** Failures of requests that did not run on what died. */
  readonly beyond: number;
  /** Of streams, before and from the event on. */
  readonly p99TtftBeforeMs: number | null;
  readonly p99TtftMs: number | null;
  /** From the event, and from its end, to the last publication that moved a weight noticeably; null = none did. */
  readonly optimumMs: number | null;
  readonly optimumAfterMs: number | null;
  /** Certified distance to the optimum at the end, ÷ the optimum. */
  readonly gap: number | null;
}

const ENGINES = { "a-one": "a", "a-two": "a", "b-one": "b", "b-two": "b" };
const BEFORE_MS = 10_000;
/** Demand before it is doubled ÷ that of the other scenarios: 2 × 1.4 is 112 % of what the region's own engines hold. */
const MORE = 1.4;
/** Requests take 0.4 s where nothing is loaded, so that there are some under way at what dies. */
const SLOWNESS = 8;
/** Half the sum of a cell's weights' differences: what is less is the noise of demand. */
const NOTICED = 0.04;

interface Stage {
  readonly fleet: StressFleet;
  readonly loads: ReadonlyMap<string, OpenLoad>;
  readonly options: ScenarioOptions;
}

interface Scenario {
  /** What must be so a while before it begins. */
  readonly prepare?: (stage: Stage) => void;
  /** Begins what is to be survived; over when what dies is dead. */
  readonly begin: (stage: Stage) => Promise<void>;
  /** Engines, or the gateway, that it ends. */
  readonly dying?: readonly string[];
  readonly end: (stage: Stage) => Promise<void>;
  readonly isOfControl?: boolean;
}

const engineDeath = (...dying: string[]): Scenario => ({
  dying,
  async begin({ fleet }) {
    await Promise.all(dying.map((id) => fleet.program(id).end("SIGKILL")));
  },
  async end({ fleet }) {
    await Promise.all(dying.map((id) => fleet.startEngine(id)));
  },
});

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "engine lost": engineDeath("a-one"),
  "region lost": engineDeath("b-one", "b-two"),
  "demand doubled": {
    // Twice so much is more than its own engines hold.
    prepare({ loads, options }) {
      loads.get("a")!.rateRps = MORE * options.rateRps;
    },
    async begin({ loads, options }) {
      loads.get("a")!.rateRps = 2 * MORE * options.rateRps;
    },
    async end({ loads, options }) {
      loads.get("a")!.rateRps = options.rateRps;
    },
  },
  "control plane gone": {
    isOfControl: true,
    async begin({ fleet }) {
      await fleet.program("control").end("SIGKILL");
    },
    end: ({ fleet }) => fleet.startControl(),
  },
  // A control plane that hangs: its connections are open, and nothing comes. Meanwhile demand moves away from the plan.
  "snapshot stale": {
    isOfControl: true,
    async begin({ fleet, loads, options }) {
      fleet.program("control").child.kill("SIGSTOP");
      loads.get("a")!.rateRps = 1.5 * options.rateRps;
    },
    async end({ fleet, loads, options }) {
      fleet.program("control").child.kill("SIGCONT");
      loads.get("a")!.rateRps = options.rateRps;
    },
  },
  "gateway restarted": {
    dying: ["a"],
    async begin({ fleet }) {
      const code = await fleet.program("a").end("SIGTERM");
      if (code !== 0) throw new Error(`a gateway that was asked to end did so with ${code}`);
    },
    end: ({ fleet }) => fleet.startGateway("a"),
  },
  "gateway killed": {
    dying: ["a"],
    async begin({ fleet }) {
      await fleet.program("a").end("SIGKILL");
    },
    end: ({ fleet }) => fleet.startGateway("a"),
  },
};

/** Two regions of two engines each, a gateway in each and a control plane, all processes; one scenario after the other. */
export async function runScenarios(options: ScenarioOptions, onRow: (row: ScenarioRow) => void): Promise<void> {
  // All of one region hold what comes to both at 80 %.
  const capacityWps = options.rateRps / 0.8;
  const times = { tickMs: 1000, slowness: SLOWNESS };
  const fleet = new StressFleet({ engines: ENGINES, capacityWps, threads: options.threads, ...times });
  let seen: Seen[] = [];
  try {
    await fleet.start();
    const loads = new Map(
      fleet.clusters.map((cluster, index) => {
        const urls = () => fleet.urlsFor(cluster);
        const onSeen = (each: Seen) => seen.push(each);
        return [cluster, new OpenLoad({ urls, rateRps: options.rateRps, seed: index + 1, onSeen })] as const;
      }),
    );
    const weights = new WeightWatch(fleet);
    for (const [name, scenario] of Object.entries(SCENARIOS)) {
      if (options.names !== undefined && !options.names.includes(name)) continue;
      const stage = { fleet, loads, options };
      scenario.prepare?.(stage);
      seen = [];
      await delay(BEFORE_MS);
      const before = seen.slice();
      const dying = new Set(scenario.dying?.map((id) => fleet.urlOf(id)) ?? []);
      const atEngines = await underWayAt(fleet, scenario.dying ?? []);
      const beganMs = performance.now();
      await scenario.begin(stage);
      const begunMs = performance.now();
      await delay(scenario.isOfControl ? options.controlGoneMs : options.goneMs);
      const endedMs = performance.now();
      await scenario.end(stage);
      await delay(options.goneMs);
      const affected = seen.filter(({ endMs }) => endMs >= beganMs);
      const failed = affected.filter(({ failure }) => failure !== null);
      // A request that was sent before it was seen to be dead ran there: the client can't know better.
      const ranThere = ({ engine, gateway, sentMs }: Seen): boolean =>
        sentMs <= begunMs && (dying.has(gateway) || (engine !== null && dying.has(fleet.urlOf(engine))));
      onRow({
        ...{ name, sent: affected.length },
        running: dying.size === 0 ? null : Math.max(atEngines, affected.filter(ranThere).length),
        beyond: failed.filter((each) => !ranThere(each)).length,
        errorsBeforeAnswer: tally(failed.filter(({ firstByteMs }) => firstByteMs === null)),
        cut: failed.filter(({ firstByteMs }) => firstByteMs !== null).length,
        p99TtftBeforeMs: p99Ttft(before),
        p99TtftMs: p99Ttft(affected),
        optimumMs: weights.settledMs(beganMs, endedMs),
        optimumAfterMs: weights.settledMs(endedMs, Number.POSITIVE_INFINITY),
        gap: weights.gap,
      });
    }
    await Promise.all([...loads.values()].map((load) => load.stop()));
    weights.stop();
    await fleet.noSlotLeft();
  } finally {
    await fleet.stop();
  }
}

/** Attempts that gateways count as under way at engines; 0 for what is no engine. */
async function underWayAt(fleet: StressFleet, engines: readonly string[]): Promise<number> {
  const counts = engines.flatMap((engine) =>
    fleet.clusters.map((cluster) => fleet.metric(cluster, "guidevane_in_flight", `engine="${engine}"`)),
  );
  return (await Promise.all(counts)).reduce((sum, each) => sum + each, 0);
}

/** Keeps what the control plane publishes, with the time at which it was seen. */
class WeightWatch {
  readonly #fleet: StressFleet;
  readonly #published: { readonly atMs: number; readonly weights: readonly Weights[] }[] = [];
  #newest: ClusterSnapshot | null = null;
  #stopped = false;

  constructor(fleet: StressFleet) {
    this.#fleet = fleet;
    void this.#watch();
  }

  /** Of the newest publication. */
  get gap(): number | null {
    return this.#newest?.certificate.churnFree.gap ?? null;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** From `fromMs` to the first publication within the time that all later ones of it are near; null where nothing moved. */
  settledMs(fromMs: number, untilMs: number): number | null {
    const known = this.#published.filter(({ atMs }) => atMs <= fromMs).at(-1);
    const within = this.#published.filter(({ atMs }) => atMs > fromMs && atMs <= untilMs);
    const final = within.at(-1);
    if (known === undefined || final === undefined || distance(known.weights, final.weights) < NOTICED) return null;
    const lastFar = within.findLastIndex(({ weights }) => distance(weights, final.weights) >= NOTICED);
    return within[lastFar + 1]!.atMs - fromMs;
  }

  async #watch(): Promise<void> {
    while (!this.#stopped) {
      // One that is gone or hangs publishes nothing.
      const all = await Promise.all(
        this.#fleet.clusters.map((cluster) => publishedSnapshot(this.#fleet.controlUrl, cluster).catch(() => null)),
      );
      const snapshots = all.filter((each) => each !== null);
      if (snapshots.length === all.length && snapshots[0]!.version !== this.#newest?.version) {
        this.#newest = snapshots[0]!;
        const weights = snapshots
          .flatMap(({ cells }) => cells)
          .map((cell) => new Map(cell.engines.map((id, at) => [id, cell.weights[at]!])));
        this.#published.push({ atMs: performance.now(), weights });
      }
      await delay(WATCH_MS);
    }
  }
}

const WATCH_MS = 200;

/** One cell's, by engine. */
type Weights = ReadonlyMap<string, number>;

/** Total variation, of the cell that has the most. */
function distance(some: readonly Weights[], others: readonly Weights[]): number {
  const ofCell = (one: Weights, other: Weights): number => {
    const names = new Set([...one.keys(), ...other.keys()]);
    return [...names].reduce((sum, name) => sum + Math.abs((one.get(name) ?? 0) - (other.get(name) ?? 0)), 0) / 2;
  };
  return Math.max(...some.map((one, cell) => ofCell(one, others[cell]!)));
}

function p99Ttft(seen: readonly Seen[]): number | null {
  const times = seen
    .filter(({ stream, failure, firstByteMs }) => stream && failure === null && firstByteMs !== null)
    .map(({ sentMs, firstByteMs }) => firstByteMs! - sentMs)
    .sort((a, b) => a - b);
  return times[Math.ceil(0.99 * times.length) - 1] ?? null;
}
