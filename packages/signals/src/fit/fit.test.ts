import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseProfile, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { fitCurve, predictAtInFlight, predictAtRate } from "./fit-curve.ts";
import { fitProfile } from "./fit-profile.ts";
import { leaveLevelsOut, leaveWorkloadOut } from "./held-out.ts";
import type { LoadCurve } from "./load-curve.ts";
import { parseLoadPoints } from "./load-points.ts";
import { nonNegativeLeastSquares } from "./nnls.ts";
import { upToSaturation } from "./saturation.ts";

const HEAD = "gpu,model,isl,osl,load_var,load_value,ttft_ms,tpot_ms";

/** A server whose times follow a law: both grow with the requests in flight. */
function lawful(inFlight: readonly number[]): string {
  const rows = inFlight.map((n) => `H100,m,1000,100,concurrency,${n},${50 + 4 * n},${10 + 0.5 * n}`);
  return [HEAD, ...rows].join("\n");
}

describe("least squares with coefficients of 0 or more", () => {
  it("finds the coefficients that made the data, and 0 where the best would be negative", () => {
    const rows = [1, 2, 5, 9].map((x) => [1 / (3 + 2 * x), x / (3 + 2 * x)]);
    const [constant, slope] = nonNegativeLeastSquares(rows);
    expect(constant).toBeCloseTo(3, 4);
    expect(slope).toBeCloseTo(2, 4);
    // Falls: the best that may not fall is flat, at the value that is right on average.
    const falling = nonNegativeLeastSquares([1, 2, 3].map((x) => [1 / (10 - x), x / (10 - x)]));
    expect(falling[1]).toBe(0);
  });

  it("ends where no coefficient can be moved for the better: the error is flat in those above 0, and rises in the others", () => {
    const random = seededRandom(6);
    for (let problem = 0; problem < 300; problem++) {
      const size = 1 + Math.floor(random() * 11);
      const hinged = random() < 0.5;
      const rows = Array.from({ length: 3 + Math.floor(random() * 60) }, () => {
        const [at, value] = [random(), 0.5 + random()];
        const features = Array.from({ length: size }, (_, i) =>
          hinged ? (i === 0 ? 1 : Math.max(0, at - i / size)) : random() * 10 ** (i % 5),
        );
        return features.map((feature) => feature / value);
      });
      const weights = nonNegativeLeastSquares(rows);
      for (let i = 0; i < size; i++) {
        let [slope, squares] = [0, 0];
        for (const row of rows) {
          slope += (row.reduce((sum, value, j) => sum + value * weights[j]!, 0) - 1) * row[i]!;
          squares += row[i]! ** 2;
        }
        slope /= Math.sqrt(squares) || 1;
        expect(weights[i]).toBeGreaterThanOrEqual(0);
        expect(weights[i]! > 0 ? Math.abs(slope) : Math.max(0, -slope)).toBeLessThan(1e-6);
      }
    }
  });
});

describe("a fit of a lawful server", () => {
  const { curves } = parseLoadPoints(lawful([1, 2, 4, 8, 16, 32, 64]), "points");
  const curve = curves[0]!;

  it("gives its times back at the measured levels and between them", () => {
    const fitted = fitCurve(curve);
    for (const n of [1, 3, 10, 24, 48, 64]) {
      const { ttftMs, tbotMs } = predictAtInFlight(fitted, 100, n);
      expect(Math.abs(ttftMs / (50 + 4 * n) - 1)).toBeLessThan(0.03);
      expect(Math.abs(tbotMs / (10 + 0.5 * n) - 1)).toBeLessThan(0.03);
    }
  });

  it("knows where the rate levels off: n / (TTFT + 100·TBOT) rises towards 1000 / (4 + 50) a second", () => {
    const { capacityRps, measured } = fitCurve(curve);
    expect(capacityRps).toBeGreaterThan(16);
    expect(capacityRps).toBeLessThan(1000 / 54);
    expect(measured.to).toBeLessThan(1);
  });

  it("errs little at levels that were left out, also beyond the measured ones", () => {
    const { mean, each } = leaveLevelsOut(curve);
    expect(each).toHaveLength(7);
    expect(mean.tbot).toBeLessThan(0.03);
    expect(mean.ttft).toBeLessThan(0.03);
  });

  it("is a valid profile whose reference request is 1.0 unit of work", () => {
    const profile = fitProfile(curve, { curves, data: "points.csv" });
    expect(parseProfile(JSON.stringify(profile), "fitted")).toMatchObject({ sku: "h100", loop: "closed" });
    expect(profile.ttftMs.length).toBeGreaterThanOrEqual(8);
    expect(profile.source).toMatchObject({ points: 7, workFrom: "prefill-time", confidence: "high" });
  });

  it("takes an open loop's rates by Little's law", () => {
    const rows = [1, 2, 4, 8, 16, 32].map((n) => {
      const [ttft, tpot] = [50 + 4 * n, 10 + 0.5 * n];
      return `H100,m,1000,100,request_rate_rps,${(1000 * n) / (ttft + 100 * tpot)},${ttft},${tpot}`;
    });
    const open = parseLoadPoints([HEAD, ...rows].join("\n"), "points").curves[0]!;
    expect(open.points.map(({ inFlight }) => Math.round(inFlight * 1e6) / 1e6)).toEqual([1, 2, 4, 8, 16, 32]);
    expect(open.loop).toBe("open");
  });
});

describe("levels of an open loop", () => {
  /** Finishes 50 requests/s at most. */
  const rows = [10, 20, 30, 40, 80, 160].map((sent) => {
    const finished = Math.min(sent, 50);
    const ttft = sent > 50 ? 9000 : 50 + (20 * sent) / (50 - sent);
    return `H100,m,1000.${sent},100,request_rate_rps,${sent},${finished},${ttft},10`;
  });
  const { curves } = parseLoadPoints(
    ["gpu,model,isl,osl,load_var,load_value,req_per_s,ttft_ms,tpot_ms", ...rows].join("\n"),
    "points",
  );

  it("of which fewer finish than are sent are past saturation, and say the capacity", () => {
    expect(curves).toHaveLength(1);
    const { curve, saturationRps, past } = upToSaturation(curves[0]!);
    expect(saturationRps).toBe(50);
    expect(past.map(({ offeredPerS }) => offeredPerS)).toEqual([80, 160]);
    expect(curve.points.map(({ ratePerS }) => ratePerS)).toEqual([10, 20, 30, 40]);
  });

  it("are met with their queue, also between", () => {
    const { curve, saturationRps } = upToSaturation(curves[0]!);
    const fitted = fitCurve(curve, saturationRps);
    for (const sent of [10, 15, 25, 35, 40])
      expect(Math.abs(predictAtRate(fitted, 100, sent).ttftMs / (50 + (20 * sent) / (50 - sent)) - 1)).toBeLessThan(
        0.05,
      );
  });
});

describe("what a token costs", () => {
  it("is found from two workloads of one deployment: decoding 20 times a prompt token", () => {
    // At capacity a request takes 0.1 ms a prompt token and 2 ms an output token.
    const rows = [
      [1000, 100],
      [4000, 100],
      [1000, 400],
    ].flatMap(([isl, osl]) =>
      [1, 4, 16, 64, 256, 1024].map((n) => {
        const perRequestMs = 0.1 * isl! + 2 * osl!;
        const e2eMs = 100 + perRequestMs * n;
        return `H100,m,${isl},${osl},concurrency,${n},${e2eMs / 2},${e2eMs / 2 / osl!}`;
      }),
    );
    const { curves } = parseLoadPoints([HEAD, ...rows].join("\n"), "points");
    expect(curves).toHaveLength(3);
    const { work, source } = fitProfile(curves[0]!, { curves, data: "points.csv" });
    expect(source.workFrom).toBe("workloads");
    expect(work.decodePerKtok / work.prefillPerKtok).toBeCloseTo(20, 0);
    expect(source.otherWorkloadError.tbot).toBeGreaterThan(0);
  });
});

describe("a file of points", () => {
  it.each([
    ["a header without a column", "isl,osl,load_var\n1,1,concurrency", /header must name load_value/],
    ["what is no table", "# Words\n\nmore, and more, words", /no log of requests, and no points: .* name isl/],
    ["a number that is none", `${HEAD}\nH100,m,x,100,concurrency,4,50,10`, /line 2: isl: .*"x"/],
    ["NaN", `${HEAD}\nH100,m,10,100,concurrency,4,NaN,10`, /line 2: ttft_ms: .*"NaN"/],
    ["infinity", `${HEAD}\nH100,m,10,100,concurrency,1e999,50,10`, /line 2: load_value: .*"1e999"/],
    ["a quote that never ends", `${HEAD}\n"H100,m,10,100,concurrency,4,50,10`, /points: /],
    ["a negative time", `${HEAD}\nH100,m,10,100,concurrency,4,-50,10`, /line 2: ttft_ms/],
    ["a row with too few cells", `${HEAD}\nH100,m,10`, /points: /],
  ])("with %s is refused with its place and value", (_what, text, message) => {
    expect(() => parseLoadPoints(text, "points")).toThrow(message);
  });

  it.each([
    ["a byte order mark and CRLF", `\uFEFF${lawful([1, 2, 4]).replaceAll("\n", "\r\n")}\r\n`],
    ["quotes", lawful([1, 2, 4]).replaceAll(/[^,\n]+/g, '"$&"')],
    ["levels in any order", lawful([4, 1, 2])],
    ["blank lines and columns of no meaning", lawful([1, 2, 4]).replaceAll(/$/gm, ",x").replaceAll("\n", "\n\n")],
  ])("may have %s", (_what, text) => {
    const { curves } = parseLoadPoints(text, "points");
    expect(curves[0]!.points.map(({ inFlight, ttftMs }) => [inFlight, ttftMs])).toEqual([
      [1, 54],
      [2, 58],
      [4, 66],
    ]);
  });

  it("of one level, or of levels that are all one, is no curve to fit; of equal times is a flat one", () => {
    for (const levels of [[4], [4, 4, 4]]) {
      const [curve] = parseLoadPoints(lawful(levels), "points").curves;
      expect(() => fitCurve(curve!)).toThrow(/needs 3 load levels, this one has 1/);
    }
    const flat = [1, 2, 4, 8].map((n) => `H100,m,10,10,concurrency,${n},50,10`);
    const { ttftMs, tbotMs } = fitCurve(parseLoadPoints([HEAD, ...flat].join("\n"), "points").curves[0]!);
    for (const [, ms] of ttftMs) expect(ms).toBeCloseTo(50, 2);
    for (const [, ms] of tbotMs) expect(ms).toBeCloseTo(10, 2);
  });

  it("leaves out rows that no curve can be made of, and counts them by why", () => {
    const text = [
      `${HEAD},note`,
      "H100,m,10,100,all_at_once,4,50,10,",
      "H100,m,10,100,concurrency,4,50,10,suspect: two runs",
      "H100,m,10,100,concurrency,4,,10,",
      "H100,m,10,100,concurrency,4,50,10,",
      "H100,m,10,100,concurrency,4,70,10,",
    ].join("\n");
    const { curves, left } = parseLoadPoints(text, "points");
    expect(curves.map(({ points }) => points.map(({ ttftMs }) => ttftMs))).toEqual([[60]]);
    expect(left).toEqual({
      "load_var all_at_once is no steady load": 1,
      "marked suspect": 1,
      "ttft or tpot is empty": 1,
    });
  });
});

const DATA = process.env.GUIDEVANE_DATA ?? "../shared/data";
const MEASURED = join(DATA, "profiles/engine_load_points.csv");

describe.skipIf(!existsSync(MEASURED))(`real measurements (${MEASURED})`, () => {
  const steady = (): readonly LoadCurve[] => {
    const { curves } = parseLoadPoints(readFileSync(MEASURED, "utf8"), "engine_load_points.csv");
    return curves.filter(({ points, deployment }) => points.length >= 4 && deployment.mode === "agg");
  };

  it("are predicted at a level that was left out within 5 % (TBOT) and 12 % (TTFT) in the median curve", () => {
    const curves = steady();
    expect(curves.length).toBeGreaterThan(300);
    const errors = curves.map((curve) => leaveLevelsOut(upToSaturation(curve).curve).mean);
    expect(median(errors.flatMap(({ tbot }) => tbot ?? []))).toBeLessThan(0.05);
    expect(median(errors.flatMap(({ ttft }) => ttft ?? []))).toBeLessThan(0.12);
    expect(median(errors.flatMap(({ e2e }) => e2e ?? []))).toBeLessThan(0.05);
  });

  it("of other workloads of a deployment predict one that was left out within 25 % (TTFT) and 15 % (TBOT) in the median curve", () => {
    const curves = steady().map((curve) => upToSaturation(curve).curve);
    const errors = curves.map((curve) => leaveWorkloadOut(curve, curves)).filter(({ tbot }) => tbot !== null);
    expect(errors.length).toBeGreaterThan(250);
    expect(median(errors.map(({ ttft }) => ttft!))).toBeLessThan(0.25);
    expect(median(errors.map(({ tbot }) => tbot!))).toBeLessThan(0.15);
  });

  it("of open loops give the capacity that was seen, and no level beyond it is fitted", () => {
    const { curves } = parseLoadPoints(readFileSync(MEASURED, "utf8"), "engine_load_points.csv");
    const open = curves.filter(({ source }) => source === "inference-perf-kubecon2025");
    expect(open).toHaveLength(5);
    for (const curve of open) {
      const { capacityWps, source } = fitProfile(curve, { curves, data: "points" });
      const most = Math.max(...curve.points.map(({ ratePerS }) => ratePerS));
      expect(Math.abs(capacityWps / most - 1)).toBeLessThan(0.001);
      expect(source).toMatchObject({ saturation: "measured", statistic: "mean" });
      expect(source.pastSaturation).toBeGreaterThanOrEqual(2);
      expect(source.heldOutError.ttft).toBeLessThan(0.35);
    }
  });

  it("give convex and non-decreasing curves, all of them, within 50 ms each with all its held-out fits", () => {
    const tookMs = steady().map((curve) => {
      const begin = performance.now();
      const { ttftMs, tbotMs } = fitProfile(curve, { curves: [curve], data: "engine_load_points.csv" });
      const took = performance.now() - begin;
      for (const knots of [ttftMs, tbotMs]) {
        const slopes = knots.slice(1).map(([at, ms], i) => (ms - knots[i]![1]) / (at - knots[i]![0]));
        for (const [i, slope] of slopes.entries())
          expect(slope).toBeGreaterThanOrEqual((slopes[i - 1] ?? 0) * (1 - 1e-9));
      }
      return took;
    });
    expect(median(tookMs)).toBeLessThan(50);
  });
});

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}
