import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { fitProfile } from "./fit-profile.ts";
import type { LoadCurve } from "./load-curve.ts";
import { parseLoadPoints } from "./load-points.ts";
import { curvesOfLog } from "./log-curves.ts";
import { readRequestLog } from "./read-log.ts";

const DATA = process.env.GUIDEVANE_DATA ?? "../shared/data";
const POINTS = join(DATA, "profiles/engine_load_points.csv");
const LOG = join(DATA, "profiles/b200_multiturn_requests.csv.gz");

describe.skipIf(!existsSync(LOG))(`the log of a real vLLM (${LOG})`, () => {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(gunzipSync(readFileSync(LOG)).toString("utf8").replace("run,gpus,", "run,gpu_count,"));
  }

  it("gives the concurrency of each run, though no column says it to the fit", async () => {
    const { curves } = curvesOfLog(await readRequestLog([{ name: "b200", chunks: chunks() }]));
    const [one, eight] = [1, 8].map((gpus) => curves.find(({ deployment }) => deployment.gpuCount === gpus)!);
    for (const curve of [one!, eight!]) expect(curve).toMatchObject({ loop: "closed", log: { loop: "inferred" } });
    const near = (curve: LoadCurve, levels: readonly number[]): void => {
      expect(curve.points).toHaveLength(levels.length);
      for (const [at, n] of levels.entries()) expect(Math.abs(curve.points[at]!.inFlight / n - 1)).toBeLessThan(0.06);
    };
    near(one!, [16, 32, 64, 128, 256, 512]);
    near(eight!, [16, 32, 64, 128, 256]);
  });

  it.skipIf(!existsSync(POINTS))(
    "gives the means that the benchmark's own summary has: TBOT within 3 %, TTFT within 8 % up to 64 in flight",
    async () => {
      const { curves } = curvesOfLog(await readRequestLog([{ name: "b200", chunks: chunks() }]));
      const { curves: summaries } = parseLoadPoints(readFileSync(POINTS, "utf8"), "points");
      const rows = summaries.filter(
        ({ source, deployment }) => source === "inferencex-multiturn" && / off$/.test(deployment.parallel),
      );
      let compared = 0;
      for (const { deployment, points } of curves)
        for (const point of points.filter(({ inFlight }) => inFlight < 260)) {
          const summary = rows
            .filter((row) => row.deployment.gpuCount === deployment.gpuCount)
            .flatMap((row) => row.points)
            .find(({ inFlight }) => Math.abs(inFlight / point.inFlight - 1) < 0.1)!;
          // The summaries have the first prompts in them, which all come at once; past saturation they are most of it.
          const rest = deployment.gpuCount === 1 && point.inFlight > 100;
          if (!rest)
            expect(Math.abs(point.tbotMs / summary.tbotMs - 1), `TBOT at ${point.inFlight}`).toBeLessThan(0.03);
          if (point.inFlight < 70)
            expect(Math.abs(point.ttftMs / summary.ttftMs - 1), `TTFT at ${point.inFlight}`).toBeLessThan(0.08);
          compared += 1;
        }
      expect(compared).toBe(10);
    },
  );

  it("is predicted at a level left out within 5 % (TTFT mean and p50, TBOT, E2E) and 12 % (TTFT p99) on 8 GPUs, and saturates at 128 on one", async () => {
    const { curves } = curvesOfLog(await readRequestLog([{ name: "b200", chunks: chunks() }]));
    const fits = curves.map((curve) => fitProfile(curve, { curves, data: "b200" }));
    const eight = fits.find(({ sku }) => sku.startsWith("8x"))!;
    const { ttft, ttftP50, ttftP99, tbot, e2e } = eight.source.heldOutError;
    for (const error of [ttft, ttftP50, tbot, e2e]) expect(error).toBeLessThan(0.05);
    expect(ttftP99).toBeLessThan(0.12);
    expect(eight.source.saturation).toBe("extrapolated");
    const one = fits.find(({ sku }) => sku.startsWith("1x"))!;
    expect(one.source).toMatchObject({ saturation: "measured", pastSaturation: 2 });
    expect(one.capacityWps).toBeGreaterThan(3.8);
    expect(one.capacityWps).toBeLessThan(4.3);
  });
});

const OVERLOAD = join(DATA, "profiles/b200_agentic_requests.csv.gz");

describe.skipIf(!existsSync(OVERLOAD))(`the log of a real vLLM mostly beyond its load (${OVERLOAD})`, () => {
  it("gives no profile that claims to be good, and says how many requests failed", async () => {
    async function* chunks(): AsyncGenerator<Uint8Array> {
      const text = gunzipSync(readFileSync(OVERLOAD)).toString("utf8");
      yield Buffer.from(text.replace("run,gpus,", "run,gpu_count,").replace("ttlt_s", "e2e_s"));
    }
    const { curves, left } = curvesOfLog(await readRequestLog([{ name: "b200", chunks: chunks() }]));
    expect(left["failed requests"]).toBe(922);
    for (const curve of curves.filter(({ points }) => points.length >= 3))
      expect(fitProfile(curve, { curves, data: "b200" }).source.confidence).toBe("low");
  });
});
