import { describe, expect, it } from "vitest";
import { type Point, trend } from "./stress/memory.ts";

/** What a soak says of memory is only as good as this. */

const MINUTE_MS = 60_000;
const RUN_MS = 30 * MINUTE_MS;

/** A reading a second of a process whose memory is so much, MB. */
function readings(mbAt: (minute: number) => number, pid = 1): Point[] {
  return Array.from({ length: RUN_MS / 1000 }, (_, second) => ({
    pid,
    atMs: second * 1000,
    mb: mbAt(second / 60),
  }));
}

describe("the trend of memory over a run", () => {
  it("finds a steady growth", () => {
    expect(
      trend(
        readings((minute) => 100 + 0.5 * minute),
        RUN_MS,
      ).slopeMbPerHour,
    ).toBeCloseTo(30, 0);
  });

  it("takes no collector's sawtooth and no single peak for growth", () => {
    const sawtooth = trend(
      readings((minute) => 100 + (minute % 2.5) * 8),
      RUN_MS,
    );
    expect(Math.abs(sawtooth.slopeMbPerHour!)).toBeLessThan(30);
    const peak = trend(
      readings((minute) => (minute > 25 && minute < 27 ? 300 : 100)),
      RUN_MS,
    );
    expect(peak).toMatchObject({ slopeMbPerHour: 0, mostMb: 300, beforeMb: 100, afterMb: 100 });
  });

  it("leaves the warm-up out", () => {
    const warming = trend(
      readings((minute) => Math.min(100 + 20 * minute, 200)),
      RUN_MS,
    );
    expect(warming).toMatchObject({ slopeMbPerHour: 0, beforeMb: 200, afterMb: 200 });
  });

  it("gives no slope over the lives of several processes", () => {
    const [first, second] = [readings(() => 100, 1), readings(() => 150, 2)];
    const half = first.length * 0.7;
    expect(trend([...first.slice(0, half), ...second.slice(half)], RUN_MS).slopeMbPerHour).toBeNull();
  });
});
