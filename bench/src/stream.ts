import type { BenchForm } from "./case.ts";
import { type Bench, type LoadCase, type LoadGroup, loadGroup, type Reading } from "./load/group.ts";
import { type Drive, measureFront } from "./load/rounds.ts";
import { streamsOnTwoThreads } from "./two-threads.ts";

/**
 * `stream/…`: what a stream costs. CPU time of the front per event with 256 streams of an event every 20 ms each, which no
 * front can put together; how much later than sent an event is read; the memory that each of 5,000 open streams holds; and
 * what a second thread costs.
 */
export const stream: LoadGroup = loadGroup("stream", casesOf, async (bench, form, print) => ({
  ...(await memory(bench, form, print)),
  ...(form === "short" ? {} : await streamsOnTwoThreads(paced(form), print)),
}));

const cpuPerEvent: Reading = {
  name: "stream/chunk",
  value: ({ frontCpuNs, report }) => frontCpuNs / report.events,
};
const delay = (at: "p50" | "p99"): Reading => ({
  name: `stream/chunk-delay-${at}`,
  value: ({ report }) => report.eventNs![at],
});

function casesOf(form: BenchForm): LoadCase[] {
  return [{ drive: paced(form), readings: [cpuPerEvent, delay("p50"), delay("p99")] }];
}

function paced(form: BenchForm): Drive {
  const times = form === "short" ? { warmMs: 500, windowMs: 1000 } : { warmMs: 1500, windowMs: 4000 };
  return {
    ...times,
    connections: 256,
    bodyBytes: 1024,
    // So opened the streams of a moment do not all have their events in the same one.
    ramp: 1000,
    stream: { everyMs: 20, events: 200 },
  };
}

/** Anonymous memory of each front with so many streams open less that of the same process idle and warm, a process each. */
async function memory(bench: Bench, form: BenchForm, print: (line: string) => void): Promise<Record<string, number>> {
  const connections = form === "short" ? 500 : 5000;
  const found: Record<string, number> = {};
  for (const front of bench.present) {
    try {
      const running = await front.start(bench.stub.address, bench.cores);
      try {
        const warm: Drive = { connections: 64, warmMs: 500, windowMs: 1000, stream: { everyMs: 20, events: 20 } };
        await measureFront(running, bench.stub, bench.cores, warm);
        const open: Drive = {
          connections,
          ramp: 1000,
          warmMs: 2000,
          windowMs: 3000,
          stream: { everyMs: 1000, events: 120 },
        };
        const { report } = await measureFront(running, bench.stub, bench.cores, open);
        const { idleBytes, endBytes } = report.processes[0]!;
        found[`stream/memory-of-${connections}-KiB/${front.name}`] = (endBytes - idleBytes) / connections / 1024;
      } finally {
        await running.stop();
      }
    } catch (error) {
      print(`not measured: memory of ${front.name}: ${error instanceof Error ? error.message : error}`);
    }
  }
  return found;
}
