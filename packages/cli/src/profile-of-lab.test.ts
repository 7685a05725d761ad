import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Profile, parseProfile, valueAt } from "@guidevane/core";
import { afterAll, describe, expect, it } from "vitest";
import { LAB_PROFILE, type LabLogOptions, labLog } from "./lab-log.fixture.ts";
import { runProgram } from "./program.ts";

const folder = mkdtempSync(join(tmpdir(), "guidevane-lab-log-"));
afterAll(() => rmSync(folder, { recursive: true }));

const truth = parseProfile(LAB_PROFILE, "p");

interface Fit {
  readonly profile: Profile;
  readonly source: Record<string, unknown>;
}

/** The profile that the program makes of a log of the lab's engine. */
async function fitOf(options: LabLogOptions): Promise<Fit> {
  const log = join(folder, `log-${options.seed}-${options.spread}-${options.loads.length}.csv`);
  writeFileSync(log, await labLog(options));
  let out = "";
  const code = await runProgram(["profile", "fit", log, "--gpu", "Lab", "--json"], {
    out: (text) => (out += text),
    err: (text) => (out += text),
  });
  expect(code, out).toBe(0);
  const { curves } = JSON.parse(out);
  expect(curves).toHaveLength(1);
  const { shape, measuredPoints: _points, ...file } = curves[0];
  expect(shape).toEqual({ convex: true, nonDecreasing: true });
  return { profile: parseProfile(JSON.stringify(file), "fitted"), source: file.source };
}

const off = (said: number, is: number): number => Math.abs(said / is - 1);
/** At the same load in the lab's own units of work, whatever capacity the fit has. */
const at = (fit: Fit, of: "ttftMs" | "tbotMs", load: number): number =>
  valueAt(fit.profile[of], (load * truth.capacityWps) / fit.profile.capacityWps);

/** Means of runs at loads that no fit saw, straight from the log's rows. */
async function meansAt(load: number, spread: number): Promise<{ ttftMs: number; tbotMs: number }> {
  const rows = (await labLog({ loads: [load], seconds: 1800, seed: 77, spread })).split("\n").slice(1);
  const sums = { ttftMs: 0, decodeMs: 0, tokens: 0 };
  for (const row of rows) {
    const [, , , , output, ttftMs, e2eMs] = row.split(",").map(Number);
    sums.ttftMs += ttftMs!;
    sums.decodeMs += e2eMs! - ttftMs!;
    sums.tokens += output! - 1;
  }
  return { ttftMs: sums.ttftMs / rows.length, tbotMs: sums.decodeMs / sums.tokens };
}

describe.each([
  ["equal requests", 0],
  ["requests of many sizes", 0.6],
])("a profile fitted to the lab's log of %s", (_what, spread) => {
  const fit = fitOf({ loads: [0.1, 0.2, 0.35, 0.5, 0.65, 0.75, 0.85, 0.9], seconds: 900, seed: 1, spread });

  it("knows the loop, the split of work and what a prompt token takes", async () => {
    const { profile, source } = await fit;
    expect(profile.loop).toBe("open");
    expect(source).toMatchObject({ loop: "inferred", workFrom: spread === 0 ? "prefill-time" : "requests" });
    expect(off(profile.prefillMsPerTok, truth.prefillMsPerTok)).toBeLessThan(0.35);
  });

  it("finds the capacity within 12 %", async () => {
    expect(off((await fit).profile.capacityWps, truth.capacityWps)).toBeLessThan(0.12);
  });

  it("gives the engine's TBOT within 5 % up to 80 % load, and its TTFT within 20 % up to 70 %: nearer to saturation chance moves both", async () => {
    const known = await fit;
    for (const load of [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
      expect(off(at(known, "tbotMs", load), valueAt(truth.tbotMs, load)), `TBOT at ${load}`).toBeLessThan(0.05);
    for (const load of [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
      expect(off(at(known, "ttftMs", load), valueAt(truth.ttftMs, load)), `TTFT at ${load}`).toBeLessThan(0.2);
  });

  it("predicts runs of other loads and seeds: TBOT within 3 %, TTFT within 12 % up to 70 % load and 20 % at 80 %", async () => {
    const known = await fit;
    for (const load of [0.15, 0.4, 0.6, 0.7, 0.8]) {
      const { ttftMs, tbotMs } = await meansAt(load, spread);
      expect(off(at(known, "tbotMs", load), tbotMs), `TBOT at ${load}`).toBeLessThan(0.03);
      expect(off(at(known, "ttftMs", load), ttftMs), `TTFT at ${load}`).toBeLessThan(load < 0.8 ? 0.12 : 0.2);
    }
  });
});

describe("a profile fitted to a sweep beyond saturation", () => {
  it("has the capacity at which the engine finishes, and leaves the levels beyond out", async () => {
    const { profile, source } = await fitOf({
      loads: [0.2, 0.4, 0.6, 0.8, 1.2, 1.5],
      seconds: 600,
      seed: 2,
      spread: 0.6,
    });
    expect(source).toMatchObject({ saturation: "measured", pastSaturation: 2, points: 4, loop: "inferred" });
    expect(off(profile.capacityWps, truth.capacityWps)).toBeLessThan(0.1);
    expect(valueAt(profile.ttftMs, 0.8)).toBeLessThan(4 * valueAt(truth.ttftMs, 0.8));
  });
});

describe("a profile fitted to one log whose load goes up and down", () => {
  it("has its levels from windows, and TBOT within 5 %, TTFT within 20 % up to 70 % load", async () => {
    const hours = 3;
    const tide = (_cluster: string, atMs: number): number => 1 + 0.7 * Math.sin((atMs / 3_600_000) * 2 * Math.PI);
    const fit = await fitOf({ loads: [0.5], seconds: hours * 3600, seed: 4, spread: 0.6, shape: tide });
    expect(fit.source.points).toBeGreaterThan(8);
    for (const load of [0.2, 0.3, 0.4, 0.5, 0.6, 0.7]) {
      expect(off(at(fit, "tbotMs", load), valueAt(truth.tbotMs, load)), `TBOT at ${load}`).toBeLessThan(0.05);
      expect(off(at(fit, "ttftMs", load), valueAt(truth.ttftMs, load)), `TTFT at ${load}`).toBeLessThan(0.2);
    }
  });
});
