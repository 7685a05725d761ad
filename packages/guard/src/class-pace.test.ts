import { describe, expect, it } from "vitest";
import { ClassPace } from "./class-pace.ts";

function paceOf(values: Readonly<Record<string, readonly number[]>>): ClassPace {
  const pace = new ClassPace();
  for (const [engine, own] of Object.entries(values)) for (const value of own) pace.add(engine, value, 0);
  return pace;
}

describe("a class's pace", () => {
  it("is the lower median of its engines' places, so that of two the better one is the measure", () => {
    expect(paceOf({ a: [0, 0, 0], b: [1, 1, 1] }).median(0)).toBe(0);
    expect(paceOf({ a: [0, 0, 0], b: [1, 1, 1], c: [2, 2, 2] }).median(0)).toBe(1);
  });

  it("is not known with one engine, from too few values, or from long ago", () => {
    expect(paceOf({ a: [0, 0, 0] }).median(0)).toBeNull();
    expect(paceOf({ a: [0, 0, 0], b: [1, 1] }).median(0)).toBeNull();
    const pace = paceOf({ a: [0, 0, 0], b: [1, 1, 1] });
    expect([pace.median(60_000), pace.median(60_001)]).toEqual([0, null]);
  });

  it("forgets an engine's old values when it is seen again", () => {
    const pace = paceOf({ a: [0, 0, 0], b: [5, 5, 5] });
    for (let i = 0; i < 3; i++) pace.add("b", 1, 100_000);
    expect(pace.place("b")).toBe(1);
  });

  it("follows all engines when they turn slow together, after half an engine's last values", () => {
    const pace = paceOf({ a: [0, 0, 0, 0, 0], b: [0, 0, 0, 0, 0] });
    for (let i = 0; i < 3; i++) for (const engine of ["a", "b"]) pace.add(engine, 1, 0);
    expect(pace.median(0)).toBe(1);
  });

  it("does not take a cold engine for a slow one because the others answer from their caches", () => {
    const pace = paceOf({ warm: [-2, -2, -2], hot: [-2, -2, -2], cold: [0, 0, 0] });
    expect(pace.judge("cold", 0, false, 0)!.x).toBeCloseTo(0.35, 9);
    expect(pace.judge("cold", Math.log(3), false, 0)!.x).toBeGreaterThan(1.4);
  });

  it("judges an engine against the others, and learns from those that nothing speaks against", () => {
    const pace = paceOf({ a: [0, 0, 0], b: [1, 1, 1], c: [0, 0, 0] });
    expect(pace.judge("b", 1, false, 0)).toEqual({ x: 1, spread: 0.5, worth: 1 });
    for (let i = 0; i < 3000; i++) pace.judge("a", 0, true, 0);
    expect(pace.judge("b", 1, true, 0)).toEqual({ x: 1, spread: 0.3, worth: 1 });
    expect(pace.judge("c", 0, true, 0)!.spread).toBeLessThan(0.35);
    expect(paceOf({ a: [0, 0, 0] }).judge("a", 0, true, 0)).toBeNull();
  });
});
