import type { RunningFront } from "./fronts/front.ts";
import { front } from "./fronts/guidevane.ts";
import { sharedCores } from "./load/cores.ts";
import { startStub } from "./load/generator.ts";
import { type Drive, type Measured, measureFront, summarise } from "./load/rounds.ts";
import { showNs } from "./results.ts";

/**
 * What a second request thread adds where the load has the same two cores. One thread fills one core and the load has the
 * other, so it serves 1/g requests a second where one costs the gateway g; two share both cores with the load, which takes
 * l a request, so they can serve 2/(g + l) and no more: 2g/(g + l) times as many. That bound says what the ratio could be
 * with threads that cost each other nothing, and the CPU time per request with two threads over that with one says what
 * they do cost each other.
 */

const ROUNDS = 5;
const CORES = 2;

/** Requests a second and CPU time a request, closed loop, bodies of 1 KB and 16 KB. */
export async function requestsOnTwoThreads(print: (line: string) => void): Promise<Record<string, number>> {
  const saturated = (bodyBytes: number): Drive => ({ connections: 64, bodyBytes, warmMs: 1000, windowMs: 3000 });
  return orMissing(print, async () => {
    const rounds = await measure({ "1-KB": saturated(1024), "16-KB": saturated(16_384) });
    const figures: Record<string, number> = {};
    for (const [body, { one, two }] of Object.entries(rounds)) {
      const found = compare(one, two, ({ report }) => report.requests);
      figures[`request/2-threads-over-1-rps/${body}`] = found.rate;
      figures[`request/2-threads-over-1-rps-bound/${body}`] = found.bound;
      figures[`request/2-threads-over-1-cpu/${body}`] = found.cpu;
      print(`two threads, ${body}: ${found.line} a request; ${found.rate.toFixed(2)} × the requests of one thread`);
      print(`  the load on the same two cores leaves room for ${found.bound.toFixed(2)}`);
    }
    return figures;
  });
}

/** CPU time an event. At a pace that one thread keeps up with, two serve no more of them. */
export async function streamsOnTwoThreads(
  drive: Drive,
  print: (line: string) => void,
): Promise<Record<string, number>> {
  return orMissing(print, async () => {
    const { paced } = await measure({ paced: drive });
    const found = compare(paced!.one, paced!.two, ({ report }) => report.events);
    print(`two threads, paced streams: ${found.line} an event`);
    return { "stream/2-threads-over-1-cpu": found.cpu };
  });
}

type Rounds = Record<string, { readonly one: Measured[]; readonly two: Measured[] }>;

/** In turns, so that a slow minute of the machine falls on both. */
async function measure(drives: Readonly<Record<string, Drive>>): Promise<Rounds> {
  const cores = sharedCores();
  const stub = await startStub(cores?.rest ?? []);
  const running: RunningFront[] = [];
  try {
    for (const threads of [1, 2])
      running.push(await front(`guidevane-${threads}`, ["--threads", String(threads)]).start(stub.address, cores));
    const [one, two] = running;
    const rounds: Rounds = Object.fromEntries(Object.keys(drives).map((name) => [name, { one: [], two: [] }]));
    for (let round = 0; round < ROUNDS; round++)
      for (const [name, drive] of Object.entries(drives)) {
        rounds[name]!.one.push(await measureFront(one!, stub, cores, drive));
        rounds[name]!.two.push(await measureFront(two!, stub, cores, drive));
      }
    return rounds;
  } finally {
    await Promise.all(running.map((each) => each.stop()));
    await stub.stop();
  }
}

interface Comparison {
  /** Operations a second with two threads over those with one. */
  readonly rate: number;
  /** What it would be if an operation cost with two threads what it costs with one, and no core were ever idle. */
  readonly bound: number;
  /** CPU time of the gateway per operation with two threads over that with one. */
  readonly cpu: number;
  readonly line: string;
}

function compare(one: readonly Measured[], two: readonly Measured[], count: (round: Measured) => number): Comparison {
  const each = (rounds: readonly Measured[], value: (round: Measured) => number): number =>
    summarise(rounds, (round) => value(round) / count(round)).medianNs;
  const gateway = (rounds: readonly Measured[]) => each(rounds, ({ frontCpuNs }) => frontCpuNs);
  const load = (rounds: readonly Measured[]) => each(rounds, loadCpuNs);
  const elapsed = (rounds: readonly Measured[]) => each(rounds, ({ report }) => report.elapsedNs);
  const costs = (rounds: readonly Measured[]) => `gateway ${showNs(gateway(rounds))} + load ${showNs(load(rounds))}`;
  return {
    rate: elapsed(one) / elapsed(two),
    bound: (CORES * elapsed(one)) / (gateway(one) + load(one)),
    cpu: gateway(two) / gateway(one),
    line: `one ${costs(one)}, two ${costs(two)}`,
  };
}

/** Of the generator, the stub and what else runs beside the front. */
function loadCpuNs({ report: { processes, ownCpuNs } }: Measured): number {
  return processes.slice(1).reduce((sum, { cpuNs }) => sum + cpuNs, ownCpuNs);
}

async function orMissing(
  print: (line: string) => void,
  task: () => Promise<Record<string, number>>,
): Promise<Record<string, number>> {
  try {
    return await task();
  } catch (error) {
    print(`not measured: two threads: ${error instanceof Error ? error.message : error}`);
    return {};
  }
}
