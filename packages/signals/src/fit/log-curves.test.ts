import { parseProfile, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { fitProfile } from "./fit-profile.ts";
import type { LoadCurve, LoadCurves } from "./load-curve.ts";
import { curvesOfLog } from "./log-curves.ts";
import { readRequestLog } from "./read-log.ts";

const HEAD = "start_ms,prompt_tokens,output_tokens,ttft_ms,e2e_ms,run";

interface Row {
  readonly startMs: number;
  readonly prompt: number;
  readonly output: number;
  readonly ttftMs: number;
  readonly e2eMs: number;
}

async function curvesOf(rows: readonly Row[], stated: "open" | "closed" | null = null): Promise<LoadCurves> {
  const lines = rows.map(({ startMs, prompt, output, ttftMs, e2eMs }) =>
    [startMs, prompt, output, ttftMs, e2eMs, ""].join(),
  );
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield Buffer.from([HEAD, ...lines].join("\n"));
  }
  return curvesOfLog(await readRequestLog([{ name: "log", chunks: chunks() }]), stated);
}

/**
 * A server whose times follow a law, 50 + 4·n + 0.02 ms a prompt token and 10 + 0.5·n ms a token, with n clients that ask
 * again at once.
 */
function stage(clients: number, fromMs: number, forMs: number, draw: () => number = () => 0.5): Row[] {
  const rows: Row[] = [];
  for (let client = 0; client < clients; client++) {
    let startMs = fromMs + (client * 100) / clients;
    while (startMs < fromMs + forMs) {
      const [prompt, output] = [Math.round(500 + 1000 * draw()), Math.round(50 + 100 * draw())];
      const ttftMs = 50 + 4 * clients + 0.02 * (prompt - 1000);
      const e2eMs = ttftMs + (output - 1) * (10 + 0.5 * clients);
      rows.push({ startMs, prompt, output, ttftMs, e2eMs });
      startMs += e2eMs + 0.5;
    }
  }
  return rows.sort((a, b) => a.startMs - b.startMs);
}

function sweep(levels: readonly number[], draw?: () => number): Row[] {
  return levels.flatMap((clients, at) => stage(clients, at * 120_000, 120_000, draw));
}

const LEVELS = [1, 2, 4, 8, 16, 32];

describe("load levels of a log", () => {
  it("are found in a sweep of a closed loop within one file, by what overlaps", async () => {
    const { curves } = await curvesOf(sweep(LEVELS));
    const [curve] = curves as [LoadCurve];
    expect(curve.loop).toBe("closed");
    expect(curve.log).toMatchObject({ loop: "inferred", prefillMsPerTok: null });
    expect(curve.points).toHaveLength(LEVELS.length);
    for (const [at, n] of LEVELS.entries()) {
      expect(Math.abs(curve.points[at]!.inFlight / n - 1)).toBeLessThan(0.02);
      expect(curve.points[at]!.ttftMs).toBeCloseTo(50 + 4 * n, 6);
      expect(curve.points[at]!.tbotMs).toBeCloseTo(10 + 0.5 * n, 6);
    }
  });

  it("that are too short beside others in one log are named by their requests in flight, each run alone is a level", async () => {
    // Each level as many requests, so the higher ones last less.
    const lasting = [1, 2, 4, 8, 16].map((clients) => ({ clients, forMs: (210 / clients) * (1040 + 53.5 * clients) }));
    let fromMs = 0;
    const rows = lasting.flatMap(({ clients, forMs }) => {
      const some = stage(clients, fromMs, forMs);
      fromMs += forMs + 2500;
      return some;
    });
    const { curves, left } = await curvesOf(rows);
    const seen = curves[0]!.points.map(({ inFlight }) => Math.round(inFlight));
    const named = Object.keys(left).flatMap((why) => /^requests at about (\d+) in flight/.exec(why)?.[1] ?? []);
    expect(seen.length).toBeLessThan(5);
    expect([...seen, ...named.map(Number)]).toEqual([1, 2, 4, 8, 16]);
    // None is counted twice.
    const counted = Object.values(left).reduce((sum, count) => sum + count, 0);
    expect(counted + curves[0]!.log!.requests).toBe(rows.length);
    expect(fitProfile(curves[0]!, { curves, data: "log", licence: undefined }).source.saturation).toBe("extrapolated");
  });

  it("are of the mean request where prompts and answers differ, and what a prompt token takes is found", async () => {
    const { curves } = await curvesOf(sweep(LEVELS, seededRandom(3)));
    const { points, log, promptTokens, outputTokens } = curves[0]!;
    expect(Math.abs(log!.prefillMsPerTok! / 0.02 - 1)).toBeLessThan(0.1);
    expect(Math.abs(promptTokens / 1000 - 1)).toBeLessThan(0.03);
    expect(Math.abs(outputTokens / 100 - 1)).toBeLessThan(0.03);
    for (const [at, n] of LEVELS.entries()) {
      expect(Math.abs(points[at]!.ttftMs / (50 + 4 * n) - 1)).toBeLessThan(0.02);
      expect(Math.abs(points[at]!.tbotMs / (10 + 0.5 * n) - 1)).toBeLessThan(0.02);
      // Mean requests/s count work: n clients, each taking its mean time.
      const rate = (1000 * n) / (50 + 4 * n + 99 * (10 + 0.5 * n));
      expect(Math.abs(points[at]!.ratePerS / rate - 1)).toBeLessThan(0.05);
    }
  });

  it("do not depend on the order of the rows nor on where the clock begins", async () => {
    const rows = sweep(LEVELS, seededRandom(3));
    const random = seededRandom(5);
    const moved = rows.map((row) => ({ ...row, startMs: row.startMs + 1.7e12 })).sort(() => random() - 0.5);
    const [{ curves: plain }, { curves: other }] = [await curvesOf(rows), await curvesOf(moved)];
    for (const [at, { ttftMs, ratePerS }] of plain[0]!.points.entries()) {
      expect(other[0]!.points[at]!.ttftMs).toBeCloseTo(ttftMs, 1);
      expect(Math.abs(other[0]!.points[at]!.ratePerS / ratePerS - 1)).toBeLessThan(0.01);
    }
  });

  it("of arrivals that know nothing of the ends are those of an open loop; who states the loop is believed", async () => {
    const random = seededRandom(9);
    let startMs = 0;
    const rows = Array.from({ length: 2000 }, () => {
      startMs += -Math.log(1 - random()) * 200;
      return { startMs, prompt: 100, output: 51, ttftMs: 50, e2eMs: 550 };
    });
    const { curves } = await curvesOf(rows);
    expect(curves[0]).toMatchObject({ loop: "open", log: { loop: "inferred" } });
    expect(curves[0]!.points).toHaveLength(1);
    expect(Math.abs(curves[0]!.points[0]!.ratePerS / 5 - 1)).toBeLessThan(0.05);
    expect((await curvesOf(rows, "closed")).curves[0]).toMatchObject({ loop: "closed", log: { loop: "stated" } });
  });

  it("are not thinned by an idle hour, as after a clock was set forward", async () => {
    const rows = [...stage(4, 0, 60_000), ...stage(4, 3_600_000, 60_000)];
    const { curves } = await curvesOf(rows);
    expect(curves[0]!.points.map(({ inFlight }) => Math.round(inFlight))).toEqual([4]);
  });

  it.each([
    ["one request", stage(1, 0, 1)],
    [
      "requests that all begin at once",
      Array.from({ length: 500 }, () => ({ startMs: 0, prompt: 1, output: 5, ttftMs: 10, e2eMs: 20 })),
    ],
    ["nineteen requests", stage(1, 0, 19_000)],
    ["answers that come whole", stage(4, 0, 60_000).map((row) => ({ ...row, ttftMs: row.e2eMs }))],
    ["answers of one token", stage(4, 0, 60_000).map((row) => ({ ...row, output: 1 }))],
  ])("are none in %s, and that is said", async (_what, rows) => {
    const { curves, left } = await curvesOf(rows);
    expect(curves).toEqual([]);
    expect(Object.values(left).reduce((sum, count) => sum + count, 0)).toBe(rows.length);
  });

  it("of empty prompts are levels all the same", async () => {
    const { curves } = await curvesOf(sweep([1, 4, 16]).map((row) => ({ ...row, prompt: 0 })));
    const profile = fitProfile(curves[0]!, { curves, data: "log" });
    expect(parseProfile(JSON.stringify(profile), "fitted").reference.promptTokens).toBe(1);
    expect(profile.source.cachedPart).toBe(0);
  });

  it("of requests that are all equal are one", async () => {
    const rows = Array.from({ length: 500 }, (_, at) => ({
      startMs: at * 30,
      prompt: 10,
      output: 2,
      ttftMs: 10,
      e2eMs: 20,
    }));
    const { curves } = await curvesOf(rows);
    expect(curves[0]!.points).toHaveLength(1);
    expect(curves[0]!.points[0]).toMatchObject({ ttftMs: 10, tbotMs: 10, ttftP50Ms: 10, ttftP99Ms: 10 });
  });

  it("keep workloads apart, and a fit to one is tried on the other", async () => {
    const head = `${HEAD},workload`;
    const lines = ["short", "long"].flatMap((workload, at) =>
      sweep([1, 4, 16]).map(({ startMs, prompt, output, ttftMs, e2eMs }) =>
        [startMs, prompt * (1 + at), output, ttftMs * (1 + at), e2eMs + ttftMs * at, workload, workload].join(),
      ),
    );
    async function* chunks(): AsyncGenerator<Uint8Array> {
      yield Buffer.from([head, ...lines].join("\n"));
    }
    const { curves } = curvesOfLog(await readRequestLog([{ name: "log", chunks: chunks() }]));
    expect(curves.map(({ source }) => source)).toEqual(["short", "long"]);
    const { source } = fitProfile(curves[1]!, { curves, data: "log" });
    // The long one's TTFT is twice as long and its TBOT the same; the rule says 2^0.7 and 2^0.1.
    expect(source.otherWorkloadError.ttft).toBeCloseTo(1 - 2 ** -0.3, 1);
    expect(source.otherWorkloadError.tbot).toBeCloseTo(2 ** 0.1 - 1, 1);
  });

  it("keep the engines of a mixed log apart", async () => {
    const head = `${HEAD},engine`;
    const lines = ["a", "b"].flatMap((engine, at) =>
      sweep([1, 4, 16]).map(({ startMs, prompt, output, ttftMs, e2eMs }) =>
        [startMs, prompt, output, ttftMs * (1 + at), e2eMs * (1 + at), "", engine].join(),
      ),
    );
    lines.sort((x, y) => Number(x.split(",")[0]) - Number(y.split(",")[0]));
    async function* chunks(): AsyncGenerator<Uint8Array> {
      yield Buffer.from([head, ...lines].join("\n"));
    }
    const { curves } = curvesOfLog(await readRequestLog([{ name: "log", chunks: chunks() }]));
    expect(curves.map(({ deployment, points }) => [deployment.engine, Math.round(points[0]!.ttftMs)])).toEqual([
      ["a", 54],
      ["b", 108],
    ]);
  });
});

describe("a profile of a log", () => {
  it("says what it stands on and where it was measured", async () => {
    const { curves } = await curvesOf(sweep(LEVELS, seededRandom(3)));
    const profile = fitProfile(curves[0]!, { curves, data: "log" });
    expect(parseProfile(JSON.stringify(profile), "fitted").loop).toBe("closed");
    expect(profile.source).toMatchObject({
      loop: "inferred",
      workFrom: "requests",
      statistic: "mean",
      cachedPart: 0,
      measured: { inFlight: { from: expect.closeTo(1, 1), to: expect.closeTo(32, 0) } },
    });
    expect(profile.source.measured.promptTokens!.from).toBeGreaterThan(500);
    expect(profile.source.measured.outputTokens!.to).toBeLessThan(150);
    expect(Object.keys(profile.source.heldOutError)).toEqual(["ttft", "ttftP50", "ttftP99", "tbot", "e2e"]);
    for (const error of Object.values(profile.source.heldOutError)) expect(error).toBeLessThan(0.05);
  });
});

describe("a log of anything that can be", () => {
  it("gives valid profiles or none, whatever its scales", async () => {
    const random = seededRandom(11);
    const scale = (least: number, most: number): number => least * (most / least) ** random();
    let fitted = 0;
    for (let log = 0; log < 30; log++) {
      const [gapMs, ttftMs, tbotMs] = [scale(0.01, 1e5), scale(0.01, 1e6), scale(1e-6, 1e4)];
      let startMs = random() < 0.5 ? 0 : 1.7e12;
      const rows: Row[] = [];
      for (let level = 1; level <= 64; level *= 2)
        for (let at = 0; at < 120; at++) {
          const output = Math.ceil(scale(1, 1e4));
          startMs += (gapMs / level) * -Math.log(1 - random());
          const ttft = ttftMs * (1 + level * random());
          const e2eMs = Math.min(ttft + (output - 1) * tbotMs * (1 + random() * level), 8e7);
          rows.push({ startMs, prompt: Math.floor(scale(1, 1e6)), output, ttftMs: Math.min(ttft, e2eMs), e2eMs });
        }
      const { curves } = await curvesOf(rows);
      for (const curve of curves.filter(({ points }) => points.length >= 3)) {
        fitted += 1;
        parseProfile(JSON.stringify(fitProfile(curve, { curves, data: "log" })), `log ${log}`);
      }
    }
    expect(fitted).toBeGreaterThan(2);
  });
});
