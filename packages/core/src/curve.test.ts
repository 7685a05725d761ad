import { describe, expect, it } from "vitest";
import { type CurveSet, type CurveValues, evaluateCurves, type Knots, valueAt } from "./curve.ts";

interface EngineCurve {
  readonly capacityWps: number;
  readonly knots: Knots;
}

function curveSet(engines: readonly EngineCurve[], headroom = 0, headroomMs = 0): CurveSet {
  const knots = engines.flatMap((engine) => engine.knots);
  const starts = [0];
  for (const engine of engines) starts.push(starts.at(-1)! + engine.knots.length);
  return {
    capacityWps: Float64Array.from(engines, (engine) => engine.capacityWps),
    knotStart: Uint32Array.from(starts),
    knotRho: Float64Array.from(knots, ([rho]) => rho),
    knotMs: Float64Array.from(knots, ([, ms]) => ms),
    headroom,
    headroomMs,
  };
}

function evaluate(curves: CurveSet, loads: readonly number[]): CurveValues {
  const out = {
    value: new Float64Array(loads.length),
    slope: new Float64Array(loads.length),
    curvature: new Float64Array(loads.length),
  };
  evaluateCurves(curves, Float64Array.from(loads), out);
  return out;
}

describe("the cost of load, against closed forms", () => {
  const linear: EngineCurve = {
    capacityWps: 100,
    knots: [
      [0, 0],
      [1, 400],
    ],
  };

  it("with Q = 400ρ is 4y², with slope 8y and curvature 8", () => {
    const loads = [0, 1, 36.25, 43.75, 99, 120];
    const found = evaluate(curveSet(loads.map(() => linear)), loads);
    for (const [at, y] of loads.entries()) {
      expect(found.value[at]).toBeCloseTo(4 * y * y, 8);
      expect(found.slope[at]).toBeCloseTo(8 * y, 8);
      expect(found.curvature[at]).toBeCloseTo(8, 8);
    }
  });

  it("gives the prices 350 and 290 at the optimum 43.75 and 36.25 of two engines 60 ms apart", () => {
    const { slope, value } = evaluate(curveSet([linear, linear]), [43.75, 36.25]);
    expect([...slope]).toEqual([350, 290]);
    expect(value[0]! + value[1]! + 60 * 36.25).toBe(15_087.5);
    // Worth of one more unit of capacity: ρ·w − φ/U.
    expect(0.4375 * slope[0]! - value[0]! / 100).toBe(76.5625);
    expect(0.3625 * slope[1]! - value[1]! / 100).toBe(52.5625);
  });

  it("takes the slope to the right at a knot", () => {
    const kinked: EngineCurve = {
      capacityWps: 100,
      knots: [
        [0, 0],
        [0.5, 50],
        [1, 250],
      ],
    };
    const below = evaluate(curveSet([kinked]), [50 - 1e-9]);
    const at = evaluate(curveSet([kinked]), [50]);
    // Q + ρQ′: 50 + 0.5·100 on the left, 50 + 0.5·400 on the right.
    expect(below.slope[0]).toBeCloseTo(100, 6);
    expect(at.slope[0]).toBe(250);
    expect(at.value[0]).toBe(2500);
  });

  it("goes on with the last slope beyond the last knot", () => {
    const short: EngineCurve = {
      capacityWps: 10,
      knots: [
        [0, 0],
        [0.5, 100],
      ],
    };
    const { value, slope } = evaluate(curveSet([short]), [10]);
    expect(value[0]).toBe(10 * 200);
    expect(slope[0]).toBe(200 + 200);
  });

  it("with Q = 0 leaves the ramp: U·R/(2h)·(ρ − 1 + h)², 3,000 ms a unit at 0.97 of a 6 % ramp to 6,000", () => {
    const flat: EngineCurve = { capacityWps: 100, knots: [[0, 0]] };
    const { value, slope, curvature } = evaluate(curveSet([flat, flat, flat, flat], 0.06, 6000), [93, 94, 97, 100]);
    expect(value[0]).toBe(0);
    expect(slope[0]).toBe(0);
    expect(value[2]).toBeCloseTo(((100 * 6000) / 0.12) * 0.03 ** 2, 6);
    expect(slope[1]).toBeCloseTo(0, 6);
    expect(slope[2]).toBeCloseTo(3000, 6);
    expect(slope[3]).toBeCloseTo(6000, 6);
    expect(curvature[2]).toBeCloseTo(1000, 6);
  });

  it("is nothing for an engine without capacity, whatever its load", () => {
    const gone: EngineCurve = { ...linear, capacityWps: 0 };
    const { value, slope, curvature } = evaluate(curveSet([gone, linear], 0.06, 6000), [5, 5]);
    expect([value[0], slope[0], curvature[0]]).toEqual([0, 0, 0]);
    expect(value[1]).toBe(100);
  });

  it("is that of one engine when two of half its capacity share the load", () => {
    const half: EngineCurve = { ...linear, capacityWps: 50 };
    const one = evaluate(curveSet([linear], 0.06, 6000), [98]);
    const two = evaluate(curveSet([half, half], 0.06, 6000), [49, 49]);
    expect(two.value[0]! + two.value[1]!).toBeCloseTo(one.value[0]!, 6);
    expect(two.slope[0]).toBeCloseTo(one.slope[0]!, 6);
  });

  it("has slopes that are its differences, at 1,000 points of a measured curve", () => {
    const measured: EngineCurve = {
      capacityWps: 12.5,
      knots: [
        [0, 0],
        [0.5, 504.4],
        [0.9, 1709.6],
        [0.97, 3000],
      ],
    };
    const curves = curveSet([measured], 0.06, 6000);
    const step = 1e-6;
    for (let i = 1; i < 1000; i++) {
      const y = (i / 1000) * 13 + 1e-4;
      const left = evaluate(curves, [y]).value[0]!;
      const right = evaluate(curves, [y + step]).value[0]!;
      const slope = evaluate(curves, [y]).slope[0]!;
      // The curvature is at most R/(hU) + 2Q′/U, so over the step the slope moves by less than a hundredth of this.
      expect(Math.abs((right - left) / step - slope)).toBeLessThan(0.2);
    }
  });
});

describe("a value on a curve", () => {
  const knots: Knots = [
    [0, 42],
    [0.5, 60],
    [0.8, 105],
  ];

  it("is flat before the first knot and goes on after the last", () => {
    expect(valueAt(knots, -1)).toBe(42);
    expect(valueAt(knots, 0.25)).toBe(51);
    expect(valueAt(knots, 0.5)).toBe(60);
    expect(valueAt(knots, 1)).toBeCloseTo(135, 10);
  });

  it("of one knot is constant, and of none is nothing", () => {
    expect(valueAt([[0, 7]], 3)).toBe(7);
    expect(valueAt([], 3)).toBe(0);
  });
});
