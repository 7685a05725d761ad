import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { seededRandom } from "@guidevane/core";
import { eventually, publishedSnapshot } from "../whole.ts";
import { OpenLoad, type Seen } from "./open-load.ts";
import { StressFleet } from "./stress-fleet.ts";

export interface SoakOptions {
  readonly minutes: number;
  /** Of all clusters together; engines hold so much that this is 70 % of it. */
  readonly rateRps: number;
  readonly threads: number;
  readonly onNote: (note: string) => void;
}

/** Memory of one process over the run, by least squares over its second half. */
export interface MemoryLine {
  readonly name: string;
  readonly threads: number;
  readonly firstMb: number;
  readonly lastMb: number;
  readonly mostMb: number;
  readonly slopeMbPerHour: number;
}

export interface Soak {
  readonly sent: number;
  readonly whole: number;
  readonly left: number;
  /** Streams cut in the middle by the death of their engine. */
  readonly cut: number;
  /** Refused by the gateway as too much, by what it said. */
  readonly refused: Readonly<Record<string, number>>;
  readonly unexplained: readonly string[];
  readonly engineDeaths: number;
  readonly controlDeaths: number;
  /** Versions published that a poll each second saw. */
  readonly versions: number;
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

/** Engines flap, clients leave, demand moves, the control plane dies; nothing may grow or be left behind. */
export async function soak(options: SoakOptions): Promise<Soak> {
  const capacityWps = options.rateRps / LOAD / Object.keys(ENGINES).length;
  const fleet = new StressFleet({ engines: ENGINES, capacityWps, tickMs: 5000, threads: options.threads });
  const random = seededRandom(7);
  const tally = new SoakTally();
  const memory = new Map<string, MemorySample[]>();
  const versions = new Set<number>();
  try {
    await fleet.start();
    const startMs = performance.now();
    const endMs = startMs + options.minutes * 60_000;
    const loads = fleet.clusters.map((cluster, index) => {
      const urls = () => fleet.urlsFor(cluster);
      const rateRps = options.rateRps / fleet.clusters.length;
      const rest = { leavePart: 0.1, onSeen: (seen: Seen) => tally.add(seen) };
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
        addSample(memory, name, child.pid!, performance.now() - startMs);
      // The control plane may be away just now.
      const published = await publishedSnapshot(fleet.controlUrl).catch(() => null);
      if (published !== null) versions.add(published.version);
    };
    const note = async (): Promise<void> => {
      const minute = Math.round((performance.now() - startMs) / 60_000);
      options.onNote(
        `minute ${minute}: ${tally.sent} sent, ${tally.unexplained.length} unexplained, ${versions.size} versions`,
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
      ...{ sent: tally.sent, whole: tally.whole, left: tally.left, cut: tally.cut },
      ...{ refused: tally.refused, unexplained: tally.unexplained, engineDeaths, controlDeaths },
      versions: versions.size,
      memory: [...memory].map(([name, samples]) => memoryLine(name, samples)),
      slotsLeft: await slotsLeft(fleet),
      lateMs: Math.max(...loads.map((load) => load.lateMs)),
    };
  } finally {
    await fleet.stop();
  }
}

/** Counts what clients saw, and tells what a death explains from what nothing does. */
class SoakTally {
  sent = 0;
  whole = 0;
  left = 0;
  cut = 0;
  readonly refused: Record<string, number> = {};
  readonly unexplained: string[] = [];
  readonly #diedMs = new Map<string, number>();

  died(engine: string, atMs: number): void {
    this.#diedMs.set(engine, atMs);
  }

  add({ failure, left, engine, firstByteMs, sentMs, endMs }: Seen): void {
    this.sent += 1;
    if (left) this.left += 1;
    else if (failure === null) this.whole += 1;
    else if (/^http (429|503) (shed|busy)/.test(failure)) this.refused[failure] = (this.refused[failure] ?? 0) + 1;
    else if (firstByteMs !== null && engine !== null && sentMs <= (this.#diedMs.get(engine) ?? 0)) this.cut += 1;
    else this.unexplained.push(`${failure} from ${engine} after ${(endMs - sentMs).toFixed(0)} ms`);
  }
}

async function slotsLeft(fleet: StressFleet): Promise<number> {
  const count = async (): Promise<number> => {
    const counts = await Promise.all(fleet.clusters.map((cluster) => fleet.metric(cluster, "guidevane_in_flight")));
    return counts.reduce((sum, each) => sum + each, 0);
  };
  // An attempt whose client left ends a moment later.
  await eventually(async () => (await count()) === 0, 5000).catch(() => undefined);
  return count();
}

interface MemorySample {
  readonly pid: number;
  readonly atMs: number;
  readonly mb: number;
  readonly threads: number;
}

function addSample(memory: Map<string, MemorySample[]>, name: string, pid: number, atMs: number): void {
  let status: string;
  try {
    status = readFileSync(`/proc/${pid}/status`, "latin1");
  } catch {
    // It was killed since it was listed.
    return;
  }
  const field = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? Number.NaN);
  const samples = memory.get(name) ?? [];
  // Another process under the same name begins anew.
  memory.set(name, samples.at(-1)?.pid === pid ? samples : []);
  memory.get(name)!.push({ pid, atMs, mb: field("VmRSS") / 1024, threads: field("Threads") });
}

function memoryLine(name: string, samples: readonly MemorySample[]): MemoryLine {
  const mbs = samples.map(({ mb }) => mb);
  const late = samples.slice(Math.floor(samples.length / 2));
  return {
    ...{ name, threads: samples.at(-1)!.threads },
    ...{ firstMb: mbs[0]!, lastMb: mbs.at(-1)!, mostMb: Math.max(...mbs) },
    slopeMbPerHour: slope(late.map(({ atMs, mb }) => [atMs / 3_600_000, mb])),
  };
}

/** Of the line of least squares. */
function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (at: 0 | 1): number => points.reduce((sum, point) => sum + point[at], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const across = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
  return across === 0 ? 0 : points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0) / across;
}
