import { type CurveSet, type CurveValues, evaluateCurves, GuidevaneError, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { createCurveEvaluator } from "./curves.ts";
import { loadNative } from "./load.ts";

const load = loadNative();
const absent = load.binding === null ? ` (skipped: ${load.reason})` : "";
const evaluators = [createCurveEvaluator("ts"), ...(load.binding === null ? [] : [createCurveEvaluator("native")])];

const valuesOf = (engines: number): CurveValues => ({
  value: new Float64Array(engines),
  slope: new Float64Array(engines),
  curvature: new Float64Array(engines),
});

/**
 * Curve of CONTRACT §3's profile, reference 512 prompt and 256 output tokens: r = 1 request and o = 256 tokens per unit of
 * work. Knots where TTFT or TBOT has one.
 */
function contractCurve(headroom: number): CurveSet {
  const rho = [0, 0.5, 0.8, 0.9, 0.97];
  const ttft = [42, 60, 105, 190, 420];
  const tbot = [9.1, 11, 11 + (4.2 / 0.4) * 0.3, 15.2, 15.2 + (4.2 / 0.4) * 0.07];
  return {
    capacityWps: Float64Array.of(1),
    knotStart: Uint32Array.of(0, rho.length),
    knotRho: Float64Array.from(rho),
    knotMs: Float64Array.from(rho, (_, i) => ttft[i]! - ttft[0]! + 256 * (tbot[i]! - tbot[0]!)),
    headroom,
    headroomMs: 6000,
  };
}

describe.each(evaluators)("curves ($kind)", (evaluator) => {
  it("give the closed form of the contract's example profile", () => {
    const out = valuesOf(1);
    const at = (load: number) => {
      evaluator.evaluate(contractCurve(0), Float64Array.of(load), out);
      return { q: out.value[0]! / load, slope: out.slope[0]! };
    };
    expect(at(0.5).q).toBeCloseTo(504.4, 9);
    expect(at(0.9).q).toBeCloseTo(1709.6, 9);
    // Beyond .9: 230 ms of TTFT and 256 tokens of TBOT slope over the same utilisation.
    expect(at(0.94).q).toBeCloseTo(1948.5486, 3);
    expect(at(0.9).slope).toBeCloseTo(7085.9, 1);
    expect(at(0.9 - 1e-12).slope).toBeCloseTo(4893.8, 1);
  });

  it("refuse arrays that share memory, wrong lengths and shared buffers", () => {
    const curves = contractCurve(0);
    const out = valuesOf(1);
    const loads = Float64Array.of(0.5);
    const both = new Float64Array(1);
    expect(() => evaluator.evaluate(curves, loads, { ...out, value: loads })).toThrow(/shares memory/);
    expect(() => evaluator.evaluate(curves, loads, { ...out, value: both, slope: both })).toThrow(/shares memory/);
    expect(() => evaluator.evaluate(curves, loads, { ...out, curvature: curves.capacityWps })).toThrow(/shares memory/);
    expect(() => evaluator.evaluate(curves, loads, valuesOf(2))).toThrow(/has 2 entries, not 1/);
    expect(() => evaluator.evaluate(curves, new Float64Array(0), out)).toThrow(/loadWps has 0 entries/);
    expect(() => evaluator.evaluate({ ...curves, knotStart: Uint32Array.of(0, 6) }, loads, out)).toThrow(/within 5/);
    expect(() => evaluator.evaluate({ ...curves, knotStart: Uint32Array.of(2, 2) }, loads, out)).toThrow(/2 \.\. 2/);
    const shared = new Float64Array(new SharedArrayBuffer(8));
    expect(() => evaluator.evaluate(curves, shared, out)).toThrow(/SharedArrayBuffer/);
  });
});

describe("the two evaluators", () => {
  it.skipIf(load.binding === null)(`agree to the last bit on 20,000 random sets${absent}`, () => {
    const random = seededRandom(20_000);
    const native = createCurveEvaluator("native");
    let differing = 0;
    let evaluated = 0;
    for (let round = 0; round < 20_000; round++) {
      const { curves, loads } = randomSet(random);
      const expected = valuesOf(loads.length);
      const found = valuesOf(loads.length);
      evaluateCurves(curves, loads, expected);
      native.evaluate(curves, loads, found);
      for (const column of ["value", "slope", "curvature"] as const) {
        for (let i = 0; i < loads.length; i++) {
          evaluated++;
          // Tells 0 from -0, and takes any NaN for any other, whose bits are left open by both languages.
          if (!Object.is(expected[column][i], found[column][i])) differing++;
        }
      }
    }
    expect(differing).toBe(0);
    expect(evaluated).toBeGreaterThan(200_000);
  });

  it("are TypeScript with a reason where `auto` finds no addon, and an error where `native` was asked for", () => {
    const none = () => ({ binding: null, reason: "no addon for plan9-mips", tried: [] });
    expect(createCurveEvaluator("auto", none)).toMatchObject({ kind: "ts", degraded: "no addon for plan9-mips" });
    let thrown: unknown;
    try {
      createCurveEvaluator("native", none);
    } catch (error) {
      thrown = error;
    }
    expect(GuidevaneError.is(thrown) && thrown.code).toBe("native_unavailable");
    expect(createCurveEvaluator("ts", none)).not.toHaveProperty("degraded");
  });
});

/** 1–8 engines; loads on knots, beyond the last one, at zero, below it and not finite; ramps and none. */
function randomSet(random: () => number): { curves: CurveSet; loads: Float64Array } {
  const engines = 1 + Math.floor(random() * 8);
  const start = [0];
  const rho: number[] = [];
  const ms: number[] = [];
  const capacity: number[] = [];
  const loads: number[] = [];
  for (let engine = 0; engine < engines; engine++) {
    const knots = 1 + Math.floor(random() * 7);
    let [x, y] = [0, random() * 5];
    for (let knot = 0; knot < knots; knot++) {
      rho.push(x);
      ms.push(y);
      x += 0.01 + random() * 0.4;
      y += random() * 1000;
    }
    start.push(rho.length);
    const wps = [0, Number.NaN, 1e-9, random() * 200, 1e12][Math.floor(random() * 5 + random())] ?? random() * 50;
    capacity.push(wps);
    const onKnot = rho[start[engine]! + Math.floor(random() * knots)]! * wps;
    const cases = [0, -0, -1, onKnot, random() * wps, random() * 2 * wps, Number.NaN, Number.POSITIVE_INFINITY];
    loads.push(cases[Math.floor(random() * cases.length)]!);
  }
  return {
    curves: {
      capacityWps: Float64Array.from(capacity),
      knotStart: Uint32Array.from(start),
      knotRho: Float64Array.from(rho),
      knotMs: Float64Array.from(ms),
      headroom: random() < 0.3 ? 0 : random() * 0.3,
      headroomMs: random() * 10_000,
    },
    loads: Float64Array.from(loads),
  };
}
