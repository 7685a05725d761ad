import { parseProfile, valueAt } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { engineParameters } from "./engine-parameters.ts";
import { trial } from "./trial.ts";

/** Fitted to a sweep of a llama.cpp server (`scripts/real/lab.ts`): 100 tokens are read in the time of ten answered. */
const profile = parseProfile(
  `
profile: 2x384-100x24
sku: unknown
reference: { promptTokens: 100, outputTokens: 24 }
work: { prefillPerKtok: 6.4, decodePerKtok: 15 }
prefillMsPerTok: 0.375676
loop: open
capacityWps: 9.538
ttftMs: [[0, 57], [0.15, 58.8], [0.3, 60.9], [0.45, 64.2], [0.6, 70.2], [0.7, 77.8], [0.8, 92.6], [0.87, 116.5], [0.92, 159.1], [1, 400]]
tbotMs: [[0, 3.4], [0.15, 3.84], [0.3, 4.69], [0.45, 6.08], [0.6, 8.25], [0.7, 10.45], [0.8, 14.09], [0.87, 18.95], [0.92, 26.7], [1, 50]]
`,
  "llama.cpp",
);

describe("an engine that reads a prompt in one step with everybody's next token", () => {
  const parameters = engineParameters(profile, profile.capacityWps, { blockTokens: 16, kvTokens: 1e6 });

  it("has steps that take as long as the reading", () => {
    const readMs = parameters.prefill.fixedMs + parameters.prefill.msPerTok * profile.reference.promptTokens;
    for (const [n, ms] of parameters.mixedStepMs.entries())
      expect(ms).toBeGreaterThanOrEqual(readMs * parameters.prefillFactor[n]! * (1 - 1e-9));
  });

  it("has steps that take no less time for more requests, and give them no fewer tokens in all", () => {
    for (let n = 2; n < parameters.stepMs.length; n++) {
      const [before, ms] = [parameters.stepMs[n - 1]!, parameters.stepMs[n]!];
      expect(ms).toBeGreaterThanOrEqual(before);
      expect(n / ms).toBeGreaterThanOrEqual(((n - 1) / before) * (1 - 1e-9));
    }
  });

  it.each([0.15, 0.3, 0.45, 0.6])("has the profile's mean TTFT and TBOT at %f of its load", (rho) => {
    const means = trial(parameters, profile.reference, (rho * profile.capacityWps) / 1000);
    expect(Math.abs(means.ttftMs / valueAt(profile.ttftMs, rho) - 1)).toBeLessThan(0.1);
    expect(Math.abs(means.tbotMs / valueAt(profile.tbotMs, rho) - 1)).toBeLessThan(0.15);
  });

  it("is found once for a profile and a capacity, whatever the memory", () => {
    const again = engineParameters(profile, profile.capacityWps, { blockTokens: 32, kvTokens: 3200 });
    expect(again.stepMs).toBe(parameters.stepMs);
    expect(again.kvBlocks).toBe(100);
  });
});
