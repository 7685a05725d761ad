import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type ClusterSnapshot, seededRandom } from "@guidevane/core";
import { eventually, publishedSnapshot } from "../whole.ts";
import { type MemoryLine, MemoryWatch } from "./memory.ts";
import { OpenLoad, type Seen } from "./open-load.ts";
import { StressFleet } from "./stress-fleet.ts";

export interface SoakOptions {
  readonly minutes: number;
  /** Of all clusters together; engines hold so much that this is 70 % of it. */
  readonly rateRps: number;
  readonly threads: number;
  readonly onNote: (note: string) => void;
}

export interface Soak {
  readonly sent: number;
  readonly whole: number;
  readonly left: number;
  /** Streams cut in the middle by the death of their engine. */
  readonly cut: number;
  /** Requests that ran at an engine as it died and got no answer; and retries that budgets refused, which is why. */
  readonly lost: number;
  readonly retriesRefused: number;
  /** Refused by the gateway as too much, by what it said and whether an engine was away then or had been just before. */
  readonly refused: Readonly<Record<string, number>>;
  readonly unexplained: readonly string[];
  readonly engineDeaths: number;
  readonly controlDeaths: number;
  /** Versions published that a poll each second saw; of these, plans that shed, and the most demand ÷ capacity they went by. */
  readonly versions: number;
  readonly sheddingPlans: number;
  readonly plannedLoad: number;
  readonly memory: readonly MemoryLine[];
  /** Requests that gateways count as under way when all clients are gone. */
  readonly slotsLeft: number;
  readonly lateMs: number;
}

const ENGINES = { "a-one": "a", "a-two": "a", "b-one": "b", "b-two": "b" };
const LOAD = 0.7;
const FLAP_EVERY_MS = 20_000;
const AWAY_MS = 5000;
const CONTROL_EVERY_MS = 180_000;
/** Demand moves from one cluster to the other and back, so that each tick of 5 s has something to publish. */
const SHIFT_EVERY_MS = 5000;
const SHIFT = 0.25;
const SAMPLE_MS = 1000;
/** Requests take 0.4 s where nothing is loaded: as long ones as a model's, so that many are under way. */
const SLOWNESS = 8;
const LEAVE_WITHIN_MS = 600;
/** An engine that is back takes its share again by a ramp. */
const RETURNING_MS = 12_000;

/** Engines flap, clients leave, demand moves, the control plane dies; nothing may grow or be left behind. */
export async function soak(options: SoakOptions): Promise<Soak> {
  const capacityWps = options.rateRps / LOAD / Object.keys(ENGINES).length;
  const folder = mkdtempSync(join(tmpdir(), "guidevane-soak-"));
  const heapFile = join(folder, "heaps.jsonl");
  const times = { tickMs: 5000, slowness: SLOWNESS };
  const fleet = new StressFleet({ engines: ENGINES, capacityWps, threads: options.threads, ...times, heapFile });
  const random = seededRandom(7);
  const tally = new SoakTally();
  const versions = new Map<number, PlannedLoad>();
  try {
    await fleet.start();
    const memory = new MemoryWatch(heapFile);
    const startMs = performance.now();
    const endMs = startMs + options.minutes * 60_000;
    const loads = fleet.clusters.map((cluster, index) => {
      const urls = () => fleet.urlsFor(cluster);
      const rateRps = options.rateRps / fleet.clusters.length;
      const rest = { leavePart: 0.1, leaveWithinMs: LEAVE_WITHIN_MS, onSeen: (seen: Seen) => tally.add(seen) };
      return new OpenLoad({ urls, rateRps, seed: index + 1, ...rest });
    });
    let [engineDeaths, controlDeaths] = [0, 0];
    const every = async (ms: number, task: () => Promise<void>): Promise<void> => {
      for (let atMs = startMs + ms; atMs < endMs; atMs += ms) {
        await delay(Math.max(0, atMs - performance.now()));
        await task();
      }
    };
    const flap = async (): Promise<void> => {
      const ids = Object.keys(ENGINES);
      const id = ids[Math.floor(random() * ids.length)]!;
      engineDeaths += 1;
      tally.died(id, performance.now());
      await fleet.program(id).end("SIGKILL");
      await delay(AWAY_MS);
      await fleet.startEngine(id);
      tally.returned(performance.now());
    };
    let shifted = 1;
    const shift = async (): Promise<void> => {
      shifted = -shifted;
      const even = options.rateRps / loads.length;
      for (const [index, load] of loads.entries()) load.rateRps = even * (1 + SHIFT * shifted * (index === 0 ? 1 : -1));
    };
    const restartControl = async (): Promise<void> => {
      controlDeaths += 1;
      await fleet.program("control").end("SIGKILL");
      await delay(AWAY_MS);
      await fleet.startControl();
    };
    const sample = async (): Promise<void> => {
      for (const [name, { child }] of [...fleet.living(), ["these clients", { child: process }] as const])
        memory.sample(name, child.pid!);
      // The control plane may be away just now.
      const all = Promise.all(fleet.clusters.map((name) => publishedSnapshot(fleet.controlUrl, name)));
      const published: readonly (ClusterSnapshot | null)[] = await all.catch(() => []);
      const snapshots = published.filter((each) => each !== null);
      if (snapshots.length > 0) versions.set(snapshots[0]!.version, plannedLoad(snapshots));
    };
    const note = async (): Promise<void> => {
      const minute = Math.round((performance.now() - startMs) / 60_000);
      options.onNote(
        `minute ${minute}: ${tally.sent} sent, ${versions.size} versions, ${tally.unexplained.length} unexplained ${tally.unexplained.at(-1) ?? ""}`,
      );
    };
    await Promise.all([
      every(FLAP_EVERY_MS, flap),
      every(SHIFT_EVERY_MS, shift),
      every(CONTROL_EVERY_MS, restartControl),
      every(SAMPLE_MS, sample),
      every(60_000, note),
    ]);
    await Promise.all(loads.map((load) => load.stop()));
    return {
      ...{ sent: tally.sent, whole: tally.whole, left: tally.left, cut: tally.cut, lost: tally.lost },
      ...{ refused: tally.refused, unexplained: tally.unexplained, engineDeaths, controlDeaths },
      ...{ versions: versions.size, sheddingPlans: [...versions.values()].filter(({ sheds }) => sheds).length },
      plannedLoad: Math.max(...[...versions.values()].map(({ load }) => load)),
      memory: memory.lines(),
      retriesRefused: await sumOf(fleet, "guidevane_retries_total", 'result="refused"'),
      slotsLeft: await slotsLeft(fleet),
      lateMs: Math.max(...loads.map((load) => load.lateMs)),
    };
  } finally {
    await fleet.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface PlannedLoad {
  /** Demand ÷ capacity of all clusters and engines together, in work. */
  readonly load: number;
  readonly sheds: boolean;
}

/** What a publication was planned for. @param snapshots one a cluster, which have the same engines */
function plannedLoad(snapshots: readonly ClusterSnapshot[]): PlannedLoad {
  const cells = snapshots.flatMap((each) => each.cells);
  const demandWps = cells.reduce((sum, { demandRps, work }) => sum + demandRps * work, 0);
  const capacities = new Map(
    snapshots.flatMap(({ engines }) => Object.entries(engines).map(([id, { capacityWps }]) => [id, capacityWps])),
  );
  const capacityWps = [...capacities.values()].reduce((sum, each) => sum + each, 0);
  return { load: demandWps / capacityWps, sheds: cells.some(({ shed }) => shed > 0) };
}

/** Counts what clients saw, and tells what a death explains from what nothing does. */
class SoakTally {
  sent = 0;
  whole = 0;
  left = 0;
  cut = 0;
  lost = 0;
  readonly refused: Record<string, number> = {};
  readonly unexplained: string[] = [];
  readonly #diedMs = new Map<string, number>();
  #lastDeathMs = Number.NEGATIVE_INFINITY;
  #returnedMs = Number.NEGATIVE_INFINITY;

  died(engine: string, atMs: number): void {
    this.#diedMs.set(engine, atMs);
    this.#lastDeathMs = atMs;
  }

  returned(atMs: number): void {
    this.#returnedMs = atMs;
  }

  add({ failure, left, engine, firstByteMs, sentMs, endMs }: Seen): void {
    this.sent += 1;
    if (left) this.left += 1;
    else if (failure === null) this.whole += 1;
    else if (/^http (429|503) (shed|busy)/.test(failure)) this.#refuse(failure, sentMs);
    else if (engine !== null && sentMs <= (this.#diedMs.get(engine) ?? 0)) {
      if (firstByteMs !== null) this.cut += 1;
      else this.lost += 1;
    } else this.unexplained.push(`${failure} from ${engine} after ${(endMs - sentMs).toFixed(0)} ms`);
  }

  #refuse(failure: string, sentMs: number): void {
    const isAway = this.#lastDeathMs > this.#returnedMs;
    const isBack = sentMs < this.#returnedMs + RETURNING_MS;
    const what = `${failure}, ${isAway ? "an engine away" : isBack ? "an engine coming back" : "all engines there"}`;
    this.refused[what] = (this.refused[what] ?? 0) + 1;
  }
}

async function slotsLeft(fleet: StressFleet): Promise<number> {
  const count = (): Promise<number> => sumOf(fleet, "guidevane_in_flight");
  // An attempt whose client left ends a moment later.
  await eventually(async () => (await count()) === 0, 5000).catch(() => undefined);
  return count();
}

/** Of all gateways. */
async function sumOf(fleet: StressFleet, metric: string, labels = ""): Promise<number> {
  const counts = await Promise.all(fleet.clusters.map((cluster) => fleet.metric(cluster, metric, labels)));
  return counts.reduce((sum, each) => sum + each, 0);
}
