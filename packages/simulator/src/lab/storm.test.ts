import { describe, expect, it } from "vitest";
import { runStorm, STORM_GATEWAYS, TRIGGERS } from "./storm.ts";

const UTILISATIONS = [0.7, 0.8, 0.85, 0.9] as const;
/** GUIDEVANE_STORM_SEEDS makes it the long form. */
const seeds = Array.from({ length: Number(process.env.GUIDEVANE_STORM_SEEDS ?? 1) }, (_, at) => at + 1);
const timeout = 60_000 * seeds.length;

describe.each(TRIGGERS)("after %s", (trigger) => {
  it.each(UTILISATIONS)(
    "a fleet at %d is back within a minute, and retries stay within their budget",
    {
      timeout,
    },
    async (utilisation) => {
      for (const seed of seeds) {
        const storm = { rule: "guidevane", trigger, utilisation, cancels: false, seed } as const;
        const { recoveryS, amplification, firstsPer10s, goodBefore } = await runStorm(storm);
        expect(goodBefore, `seed ${seed}`).toBeGreaterThanOrEqual(0.97);
        expect(recoveryS, `seed ${seed}`).toBeLessThanOrEqual(60);
        // b(ρ) of the first attempts, and what the buckets hold: ten tokens of each gateway's, and its floor of one in 10 s.
        const ratio = Math.min(0.2, Math.max(0, (0.95 - utilisation) / utilisation));
        expect(amplification).toBeLessThanOrEqual(1 + ratio + (2 * STORM_GATEWAYS * 11) / firstsPer10s);
      }
    },
  );
});

describe("half the capacity gone for 15 s at 0.85, work of clients who left done all the same", () => {
  const storm = { trigger: "half the capacity", utilisation: 0.85, cancels: false, seed: 1 } as const;

  it.each(["four attempts", "budget of 20 %"] as const)("never ends with %s", { timeout }, async (rule) => {
    expect((await runStorm({ ...storm, rule })).recoveryS).toBe(Number.POSITIVE_INFINITY);
  });

  it("ends later without any retry than with admission", { timeout }, async () => {
    const [without, behind] = [
      await runStorm({ ...storm, rule: "no retries" }),
      await runStorm({ ...storm, rule: "guidevane" }),
    ];
    expect(without.recoveryS).toBeGreaterThan(1.5 * behind.recoveryS);
  });
});
