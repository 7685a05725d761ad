import type { BenchForm } from "./case.ts";
import { front } from "./fronts/guidevane.ts";
import { type Bench, type LoadCase, type LoadGroup, loadGroup, type Reading } from "./load/group.ts";
import { type Drive, type Measured, measureFront } from "./load/rounds.ts";
import { median } from "./results.ts";

/**
 * `request/…`: what a whole answer costs. CPU time of the front per request with 64 clients that send as fast as they are
 * answered, bodies of 1 KB and 16 KB, answers of 1 KB; the time to the first byte at a rate that leaves every front idle
 * most of the time; and what a second thread adds, where there is one to ask for.
 */
export const request: LoadGroup = loadGroup("request", casesOf, (bench, form, print) =>
  form === "short" ? Promise.resolve({}) : twoThreads(bench, print),
);

const cpuPerRequest = (name: string): Reading => ({
  name,
  value: ({ frontCpuNs, report }) => frontCpuNs / report.requests,
});
const firstByte = (name: string, at: "p50" | "p99"): Reading => ({
  name,
  value: ({ report }) => report.firstByteNs![at],
});

function casesOf(form: BenchForm): LoadCase[] {
  const times = form === "short" ? { warmMs: 500, windowMs: 1000 } : { warmMs: 1000, windowMs: 3000 };
  return [
    { drive: { ...times, ...saturated, bodyBytes: 1024 }, readings: [cpuPerRequest("request/1-KB")] },
    { drive: { ...times, ...saturated, bodyBytes: 16_384 }, readings: [cpuPerRequest("request/16-KB")] },
    {
      drive: { ...times, connections: 64, bodyBytes: 1024, rate: 1000 },
      readings: [
        firstByte("request/first-byte-p50-at-1000-rps", "p50"),
        firstByte("request/first-byte-p99-at-1000-rps", "p99"),
      ],
    },
  ];
}

const saturated: Pick<Drive, "connections"> = { connections: 64 };

/** Requests a second with two threads over those with one, the load sharing the same cores; nothing where there are no threads. */
async function twoThreads(bench: Bench, print: (line: string) => void): Promise<Record<string, number>> {
  const rps = async (threads: number): Promise<number> => {
    const running = await front(`guidevane-${threads}`, ["--threads", String(threads)]).start(bench.stub.address, null);
    try {
      const rounds: Measured[] = [];
      for (let round = 0; round < 5; round++)
        rounds.push(
          await measureFront(running, bench.stub, null, {
            connections: 64,
            bodyBytes: 1024,
            warmMs: 1000,
            windowMs: 3000,
          }),
        );
      return median(rounds.map(({ report }) => (report.requests / report.elapsedNs) * 1e9));
    } finally {
      await running.stop();
    }
  };
  try {
    const [one, two] = [await rps(1), await rps(2)];
    return { "request/2-threads-over-1-rps": two / one };
  } catch (error) {
    print(`not measured: two threads: ${error instanceof Error ? error.message : error}`);
    return {};
  }
}
