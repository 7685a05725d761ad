import type { BenchForm } from "./case.ts";
import { type LoadCase, type LoadGroup, loadGroup, type Reading } from "./load/group.ts";
import type { Drive } from "./load/rounds.ts";
import { requestsOnTwoThreads } from "./two-threads.ts";

/**
 * `request/…`: what a whole answer costs. CPU time of the front per request with 64 clients that send as fast as they are
 * answered, bodies of 1 KB and 16 KB, answers of 1 KB; the time to the first byte at a rate that leaves every front idle
 * most of the time; and what a second thread adds.
 */
export const request: LoadGroup = loadGroup("request", casesOf, (_bench, form, print) =>
  form === "short" ? Promise.resolve({}) : requestsOnTwoThreads(print),
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
