import { describe, expect, it } from "vitest";
import { RateWindow } from "./window.ts";

const of = (value: number) => new Map([["a", value]]);

describe("the rate of a counter", () => {
  it("is not known before two readings", () => {
    const window = new RateWindow(10_000);
    expect(window.perSecond(0)).toBeNull();
    window.add(of(5), 0);
    expect(window.perSecond(1000)).toBeNull();
    window.add(of(5), 1000);
    expect(window.perSecond(1000)).toBe(0);
  });

  it("is what was counted over the time between readings, however uneven", () => {
    const window = new RateWindow(10_000);
    for (const [value, atMs] of [
      [100, 0],
      [130, 1000],
      [130, 4000],
      [180, 5000],
    ] as const)
      window.add(of(value), atMs);
    expect(window.perSecond(5000)).toBe(80 / 5);
  });

  it("B133: survives a reset: what a restarted counter shows was counted since", () => {
    const window = new RateWindow(10_000);
    window.add(of(1000), 0);
    window.add(of(1010), 1000);
    window.add(of(4), 2000);
    window.add(of(9), 3000);
    expect(window.perSecond(3000)).toBeCloseTo((10 + 4 + 5) / 3, 12);
  });

  it("sees the reset of one rank that the sum of all ranks would hide", () => {
    const window = new RateWindow(10_000);
    window.add(
      new Map([
        ["0", 100],
        ["1", 100],
      ]),
      0,
    );
    // Rank 0 counts 60, rank 1 restarts and counts 10: the sum falls from 200 to 170.
    window.add(
      new Map([
        ["0", 160],
        ["1", 10],
      ]),
      1000,
    );
    expect(window.perSecond(1000)).toBe(70);
  });

  it("adds nothing for a series that it sees for the first time", () => {
    const window = new RateWindow(10_000);
    window.add(of(10), 0);
    window.add(
      new Map([
        ["a", 12],
        ["b", 5000],
      ]),
      1000,
    );
    expect(window.perSecond(1000)).toBe(2);
  });

  it("forgets what is older than the window, and is unknown again when nothing is left", () => {
    const window = new RateWindow(10_000);
    window.add(of(0), 0);
    window.add(of(1000), 1000);
    window.add(of(1010), 11_000);
    expect(window.perSecond(11_500)).toBe(1);
    expect(window.perSecond(30_000)).toBeNull();
  });

  it("passes over readings that are empty or not later than the last", () => {
    const window = new RateWindow(10_000);
    window.add(of(0), 1000);
    window.add(new Map(), 1500);
    window.add(of(50), 1000);
    window.add(of(10), 2000);
    expect(window.perSecond(2000)).toBe(10);
  });
});
