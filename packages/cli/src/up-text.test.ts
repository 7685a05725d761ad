import { type ClusterSnapshot, clusterSnapshotSchema } from "@guidevane/core";
import type { DriveReport } from "@guidevane/simulator";
import { describe, expect, it } from "vitest";
import { readFleet } from "./read-fleet.ts";
import { DEFAULT_FLEET } from "./up-fleet.ts";
import { UpMeasurement } from "./up-measure.ts";
import { curlLine, showLater, showUp } from "./up-text.ts";

const fleet = await readFleet(DEFAULT_FLEET);

function snapshot(cluster: string, engines: string[], weights: number[], expectedLatencyMs: number): ClusterSnapshot {
  const bound = { objectiveMs: 100, lowerBoundMs: 99, gapMs: 1, gap: 0.01 };
  return clusterSnapshotSchema.parse({
    version: 7,
    epoch: 1,
    madeAt: "2026-01-01T00:00:00Z",
    cluster,
    gateways: 1,
    engines: {},
    classes: {},
    cells: [
      {
        cluster,
        class: "chat",
        demandRps: 30,
        work: 1,
        engines,
        weights,
        expectedMs: weights.map(() => 1),
        addends: weights.map(() => [0, 0, 0, 0, 0]),
        reserves: [],
        shed: 0,
        priceMs: 1,
        streamLimit: 1,
        ring: "",
      },
    ],
    certificate: { ...bound, churnFree: bound, expectedLatencyMs },
  });
}

function report(cells: { cluster: string; engines: Record<string, number>; meanMs: number }[]): DriveReport {
  return {
    elapsedMs: 1000,
    inFlight: 0,
    lateMs: 12,
    cells: cells.map(({ cluster, engines, meanMs }) => {
      const answered = Object.values(engines).reduce((sum, count) => sum + count, 0);
      const times = { p50Ms: 1, p95Ms: 1, p99Ms: 1, firstByteMs: 1, networkMs: 1 };
      return { cluster, class: "chat", sent: answered, answered, failures: {}, engines, meanMs, ...times };
    }),
  };
}

function measured(): UpMeasurement {
  const measurement = new UpMeasurement(fleet);
  const second = (share: number, expected: number, counts: [number, number], meanMs: number) => {
    measurement.addSnapshots(
      new Map([
        ["a", snapshot("a", ["engine-a"], [1], expected)],
        ["b", snapshot("b", ["engine-b", "engine-c"], [1 - share, share], expected)],
      ]),
    );
    const b = { cluster: "b", engines: { "engine-b": counts[0], "engine-c": counts[1] }, meanMs };
    measurement.addReport(report([{ cluster: "a", engines: { "engine-a": 10 }, meanMs: 100 }, b]));
  };
  second(0.2, 300, [9, 1], 200);
  second(0.3, 400, [12, 8], 500);
  return measurement;
}

describe("what up measures", () => {
  it("is the weights, shares and latencies of the same seconds", () => {
    const result = measured().result();
    const b = result.cells.find((cell) => cell.cluster === "b")!;
    expect(b.engines.get("engine-c")!.weight).toBeCloseTo(0.25, 12);
    expect(b.engines.get("engine-c")!.share).toBeCloseTo(9 / 30, 12);
    expect(b.meanMs).toBeCloseTo((10 * 200 + 20 * 500) / 30, 12);
    expect(result).toMatchObject({ version: 7, expectedMs: 350, answered: 50, failed: 0, seconds: 2, lateMs: 12 });
    expect(result.gap).toBeCloseTo(0.01, 12);
    expect(result.measuredMs).toBeCloseTo((20 * 100 + 10 * 200 + 20 * 500) / 50, 12);
  });

  it("has every engine that took a part, also one that the newest snapshot no longer uses: shares sum to all", () => {
    const measurement = measured();
    measurement.addSnapshots(new Map([["b", snapshot("b", ["engine-b"], [1], 300)]]));
    const b = measurement.result().cells.find((cell) => cell.cluster === "b")!;
    const engines = [...b.engines.values()];
    expect(engines.reduce((sum, each) => sum + each.weight, 0)).toBeCloseTo(1, 12);
    expect(engines.reduce((sum, each) => sum + each.share!, 0)).toBeCloseTo(1, 12);
  });

  it("has no shares where nothing was driven", () => {
    const measurement = new UpMeasurement(fleet);
    measurement.addSnapshots(new Map([["a", snapshot("a", ["engine-a"], [1], 300)]]));
    const { measuredMs, cells } = measurement.result();
    expect(measuredMs).toBeNull();
    expect(cells[0]!.engines.get("engine-a")).toEqual({ weight: 1, share: null });
  });
});

describe("what up prints", () => {
  const nearest = { kind: "unbounded", over: [{ engine: "engine-b", loadWps: 120, capacityWps: 100 }] } as const;

  it("has measured shares beside planned weights, and the optimum beside nearest-only", () => {
    const lines = showUp(measured().result(), nearest, "native").split("\n");
    expect(lines.find((line) => line.startsWith("b "))).toMatch(/30\.0 +– +70\.0 \(75\.0\) +30\.0 \(25\.0\) +400$/);
    expect(lines.find((line) => line.startsWith("optimum"))).toContain("350 ms mean latency");
    expect(lines.find((line) => line.startsWith("optimum"))).toContain("280 ms measured over 50 requests in 2 s");
    expect(lines.find((line) => line.startsWith("nearest-only"))).toContain("engine-b would stand at 120 %");
    expect(lines.some((line) => line.startsWith("note"))).toBe(false);
  });

  it("says so when the machine was too busy to measure, and what failed", () => {
    const measurement = measured();
    const [cell] = report([{ cluster: "b", engines: {}, meanMs: 0 }]).cells;
    const late = { elapsedMs: 1000, inFlight: 0, lateMs: 900, cells: [{ ...cell!, failures: { "http 502": 3 } }] };
    measurement.addReport(late);
    const text = showUp(measurement.result(), nearest, "native");
    expect(text).toMatch(/^note .*up to 900 ms late/m);
    expect(text).toMatch(/^failed +3 requests: 3 × http 502 at gateway b$/m);
  });

  it("says who refused and what to do", () => {
    const measurement = measured();
    const [cell] = report([{ cluster: "b", engines: {}, meanMs: 0 }]).cells;
    measurement.addReport({
      elapsedMs: 1000,
      inFlight: 0,
      lateMs: 1,
      cells: [{ ...cell!, failures: { "http 429 busy": 3 } }],
    });
    const text = showUp(measurement.result(), nearest, "native");
    expect(text).toMatch(/^failed +3 requests: 3 × http 429 busy at gateway b$/m);
    expect(text).toMatch(/^note +a gateway refuses .*smaller --scale$/m);
  });

  it("has the spread of five seconds, and of all seconds in a later line", () => {
    const measurement = new UpMeasurement(fleet);
    measurement.addSnapshots(new Map([["a", snapshot("a", ["engine-a"], [1], 300)]]));
    for (const meanMs of [280, 290, 300, 310, 320])
      measurement.addReport(report([{ cluster: "a", engines: { "engine-a": 10 }, meanMs }]));
    // The means' deviation is √250 = 15.8 ms, of their mean 7.07, times Student's 2.776.
    expect(measurement.result().plusMinusMs).toBeCloseTo(19.63, 2);
    expect(showUp(measurement.result(), nearest, "native")).toContain(
      "300 ± 20 ms measured over 50 requests in 5 s; queues began empty",
    );
    for (const meanMs of [320, 310, 300, 290, 280])
      measurement.addReport(report([{ cluster: "a", engines: { "engine-a": 10 }, meanMs }]));
    // Batches of two seconds: 285, 305, 320, 305, 285.
    expect(showLater(measurement.result())).toBe(
      "after 10 s        300 ± 19 ms measured over 100 requests, beside the optimum's 300 ms",
    );
  });

  it("has a curl line that a shell takes as one", () => {
    expect(curlLine("http://127.0.0.1:8081", "m")).toBe(
      `curl -N -i http://127.0.0.1:8081/v1/chat/completions -H 'content-type: application/json' -d '{"model":"m","stream":true,"max_tokens":32,"messages":[{"role":"user","content":"Hello"}]}'`,
    );
  });
});
