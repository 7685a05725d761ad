import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseProfile } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { GPUS, MODELS, PRECISIONS } from "./hardware-facts.ts";
import type { LoadPoint } from "./load-curve.ts";
import { parseLoadPoints } from "./load-points.ts";
import { calibrate, type Deployed, memoryHolds, rooflineTimes } from "./roofline.ts";
import { knownCurves, seedErrors } from "./seed-error.ts";
import { CALIBRATED, SEED_ERRORS, type SeedRequest, seedProfile, shrunk } from "./seed-profile.ts";

const llama: Deployed = {
  gpu: GPUS.h100!,
  gpus: 2,
  model: MODELS["llama-3.1-70b"]!,
  ...PRECISIONS.fp8!,
  promptTokens: 1024,
  outputTokens: 1024,
};
const request: SeedRequest = { deployed: llama, sku: "h100", model: "llama-3.1-70b", precision: "fp8", points: [] };
/** Coefficients of one part alone. */
const only = (part: number) => ({ tbot: [0, 0, 0, 0, 0, 0].map((_, at) => (at === part ? 1 : 0)), ttft: [0, 1, 0, 0] });

function point(inFlight: number, ttftMs: number, tbotMs: number): LoadPoint {
  const ratePerS = (1000 * inFlight) / (ttftMs + 1024 * tbotMs);
  return { inFlight, ratePerS, offeredPerS: null, ttftMs, tbotMs, ttftP50Ms: null, ttftP99Ms: null, requests: null };
}

describe("a roofline", () => {
  it("reads all weights in each step, and each request's tokens of the KV memory", () => {
    // 70.6 GB over 2 × 3.35 TB/s.
    expect(rooflineTimes(llama, only(0), 1).tbotMs).toBeCloseTo(10.537, 3);
    expect(rooflineTimes(llama, only(0), 64).tbotMs).toBeCloseTo(10.537, 3);
    // 8 × 1,536 tokens of 163,840 bytes.
    expect(rooflineTimes(llama, only(1), 8).tbotMs).toBeCloseTo(0.30049, 4);
  });

  it("multiplies each prompt token twice by each weight, in fp8 where the hardware has it", () => {
    expect(rooflineTimes(llama, only(0), 1).ttftMs).toBeCloseTo((1000 * 2 * 70.6e9 * 1024) / (2 * 1978e12), 6);
    const a100 = { ...llama, gpu: GPUS.a100! };
    expect(rooflineTimes(a100, only(0), 1).ttftMs).toBeCloseTo((1000 * 2 * 70.6e9 * 1024) / (2 * 312e12), 6);
  });

  it("of experts reads those that a batch touches: one request its own, many all", () => {
    const experts = { ...llama, model: MODELS["deepseek-v3"]!, gpus: 8 };
    const bytesPerMs = (8 * 3.35e12) / 1000;
    expect(rooflineTimes(experts, only(0), 1).tbotMs).toBeCloseTo(37e9 / bytesPerMs, 6);
    expect(rooflineTimes(experts, only(0), 500).tbotMs).toBeCloseTo(671e9 / bytesPerMs, 6);
  });

  it("finds the coefficients that made a set of curves", () => {
    const shapes = [1, 2, 4].flatMap((gpus) =>
      [256, 4096].map((promptTokens) => ({ ...llama, gpus, promptTokens, gpu: gpus === 2 ? GPUS.b200! : GPUS.h100! })),
    );
    const truth = { tbot: [1.2, 0.8, 0.03, 0.01, 0.02, 2], ttft: [0.2, 1.5, 0.1, 3] };
    const found = calibrate(
      [...shapes, ...shapes.map((each) => ({ ...each, model: MODELS["llama-3.1-8b"]! }))].map((deployed) => ({
        deployed,
        points: [1, 4, 16, 64].map((n) => {
          const { ttftMs, tbotMs } = rooflineTimes(deployed, truth, n);
          return point(n, ttftMs, tbotMs);
        }),
      })),
    );
    for (const n of [1, 8, 64]) {
      const [said, is] = [rooflineTimes(llama, found, n), rooflineTimes(llama, truth, n)];
      expect(Math.abs(said.tbotMs / is.tbotMs - 1)).toBeLessThan(0.01);
      expect(Math.abs(said.ttftMs / is.ttftMs - 1)).toBeLessThan(0.02);
    }
  });
});

describe("a seed and measured levels", () => {
  const seed = (n: number) => ({ ttftMs: 100 + n, tbotMs: 10 + n });

  it("are the seed where nothing was measured, or what was measured is the seed", () => {
    for (const n of [1, 16, 200]) {
      expect(shrunk(seed, [])(n)).toEqual(seed(n));
      const { ttftMs, tbotMs } = shrunk(seed, [point(4, 104, 14), point(64, 164, 74)])(n);
      expect(ttftMs / seed(n).ttftMs).toBeCloseTo(1, 3);
      expect(tbotMs / seed(n).tbotMs).toBeCloseTo(1, 3);
    }
  });

  it("weigh as stated: beside one level the moved seed, itself nearly there, counts a tenth", () => {
    // At 16 in flight the slope plays no part: the seed moves to 2^(1 / 1.1) of itself, and is then pulled on.
    const { tbotMs } = shrunk(seed, [point(16, 116, 2 * 26)])(16);
    expect(tbotMs).toBeLessThan(2 * 26);
    expect(tbotMs).toBeGreaterThan(2 ** (1 / 1.1) * 26);
    const heavier = Array.from({ length: 9 }, () => point(16, 116, 2 * 26));
    expect(shrunk(seed, heavier)(16).tbotMs).toBeGreaterThan(tbotMs);
  });

  it("come to what was measured where levels are many, and keep the seed's slope beyond one alone", () => {
    const points = Array.from({ length: 60 }, (_, at) => at + 1).map((n) => point(n, 3 * (100 + n), 2 * (10 + n)));
    const { ttftMs, tbotMs } = shrunk(seed, points)(30);
    expect(Math.abs(ttftMs / 390 - 1)).toBeLessThan(0.02);
    expect(Math.abs(tbotMs / 80 - 1)).toBeLessThan(0.02);
    const one = shrunk(seed, [point(4, 3 * 104, 2 * 14)]);
    expect(one(64).tbotMs / one(4).tbotMs).toBeGreaterThan(0.8 * (74 / 14));
  });
});

describe("a seeded profile", () => {
  it("is a valid profile that says that it is a guess, and how wrong such guesses were", () => {
    const profile = seedProfile(request);
    expect(parseProfile(JSON.stringify(profile), "seed")).toMatchObject({ sku: "2xh100", loop: "closed" });
    expect(profile.source).toMatchObject({ kind: "seeded", confidence: "low", measured: null, points: 0 });
    expect(profile.source.expectedError).toEqual({ ttft: SEED_ERRORS[0]!.ttft, tbot: SEED_ERRORS[0]!.tbot });
    const { work, reference } = profile;
    expect(work.prefillPerKtok * reference.promptTokens + work.decodePerKtok * reference.outputTokens).toBeCloseTo(
      1000,
      1,
    );
  });

  it("moves towards a measured level and claims less error", () => {
    const guess = seedProfile(request);
    const level = point(16, 2 * guess.ttftMs[0]![1], 2 * guess.tbotMs[0]![1]);
    const better = seedProfile({ ...request, points: [level] });
    expect(better.tbotMs[0]![1]).toBeGreaterThan(guess.tbotMs[0]![1]);
    expect(better.source.confidence).toBe("low");
    expect(better.source.measured).toEqual({ inFlight: { from: 16, to: 16 } });
    expect(better.source.expectedError.tbot.median).toBeLessThan(guess.source.expectedError.tbot.median);
  });

  it("is refused where the weights leave no room for requests", () => {
    expect(memoryHolds({ ...llama, gpus: 1, ...PRECISIONS.bf16! })).toBeLessThan(0);
    expect(() => seedProfile({ ...request, deployed: { ...llama, gpus: 1, ...PRECISIONS.bf16! } })).toThrow(
      /1 x h100: the memory beside the weights holds 0\.0 requests/,
    );
  });
});

const DATA = process.env.GUIDEVANE_DATA ?? "../shared/data";
const MEASURED = join(DATA, "profiles/engine_load_points.csv");

const HARDWARE = join(DATA, "profiles/gpu_hardware.csv");

describe.skipIf(!existsSync(HARDWARE))(`the facts of GPUs (${HARDWARE})`, () => {
  /** By the name of the collection, where it is another one. */
  const SYSTEMS: Readonly<Record<string, string>> = {
    "a100-pcie": "a100_pcie",
    a100: "a100_sxm",
    "h100-pcie": "h100_pcie",
    h100: "h100_sxm",
    h200: "h200_sxm",
    b200: "b200_sxm",
    b300: "b300_sxm",
    "rtx-pro-6000": "rtx_pro_6000_server",
  };

  it.each(Object.entries(GPUS))("of %s are those of the collection", (name, facts) => {
    const row = readFileSync(HARDWARE, "utf8")
      .split("\n")
      .map((line) => line.split(","))
      .find(([system]) => system === (SYSTEMS[name] ?? name))!;
    const [memory, bandwidth, bf16, fp8] = row.slice(1, 5).map(Number);
    expect([facts.memoryBytes, facts.bytesPerS]).toEqual([memory, bandwidth]);
    expect(facts.bf16Flops / bf16!).toBeCloseTo(1, 3);
    // The table has rounded figures; one that is empty is 0.
    expect((facts.fp8Flops ?? 0) / (fp8 || 1)).toBeCloseTo(fp8 ? 1 : 0, 3);
  });
});

describe.skipIf(!existsSync(MEASURED))(`seeds against real measurements (${MEASURED})`, () => {
  const known = () => knownCurves(parseLoadPoints(readFileSync(MEASURED, "utf8"), "points").curves);

  it("have the coefficients that these give", () => {
    const { tbot, ttft } = calibrate(known());
    for (const [at, value] of tbot.entries()) expect(CALIBRATED.tbot[at]! / value).toBeCloseTo(1, 2);
    for (const [at, value] of ttft.entries()) expect(CALIBRATED.ttft[at]! / value).toBeCloseTo(1, 2);
  });

  it("err on a SKU left out as they state, less with each level that is measured", () => {
    const { curves, byPoints } = seedErrors(known());
    expect(curves).toBeGreaterThan(250);
    for (const [at, { points, ttft, tbot }] of byPoints.entries()) {
      const stated = SEED_ERRORS[at]!;
      expect(stated.points).toBe(points);
      for (const [said, is] of [
        [stated.ttft, ttft],
        [stated.tbot, tbot],
      ] as const) {
        expect(said.median).toBeCloseTo(is.median, 2);
        expect(said.ninety).toBeCloseTo(is.ninety, 2);
      }
    }
    for (const name of ["ttft", "tbot"] as const) {
      const medians = byPoints.map((each) => each[name].median);
      expect([...medians].sort((a, b) => b - a)).toEqual(medians);
    }
  });
});
