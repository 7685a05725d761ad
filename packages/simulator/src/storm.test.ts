import { describe, expect, it } from "vitest";
import { CAPACITY_RPS, runStorm, TRIGGERS } from "./storm.fixture.ts";

const UTILISATIONS = [0.7, 0.8, 0.85, 0.9] as const;
/** GUIDEVANE_STORM_SEEDS makes it the long form. */
const seeds = Array.from({ length: Number(process.env.GUIDEVANE_STORM_SEEDS ?? 1) }, (_, at) => at + 1);
const timeout = 60_000 * seeds.length;

describe.each(TRIGGERS)("after %s", (trigger) => {
  it("a fleet behind the door and the retry budget is back within a minute at every load", { timeout }, async () => {
    for (const seed of seeds)
      for (const utilisation of UTILISATIONS)
        for (const cancels of [true, false]) {
          const { recoveryS, amplification } = await runStorm({
            ...{ policy: "guidevane", trigger, utilisation, cancels, seed },
          });
          expect(recoveryS, `${utilisation}, cancels: ${cancels}, seed ${seed}`).toBeLessThanOrEqual(60);
          // b(ρ) of the first attempts, and once what the bucket holds; 5 % for what arrives by chance in a window.
          const ratio = Math.min(0.2, Math.max(0, (0.95 - utilisation) / utilisation));
          const rps = utilisation * CAPACITY_RPS;
          const bucket = Math.max(10, (ratio * rps + 0.1) * 10);
          expect(amplification).toBeLessThanOrEqual(1.05 * (1 + ratio + bucket / (10 * rps)));
        }
  });
});

describe("half the capacity gone for 15 s at 0.85, work of clients who left done all the same", () => {
  const storm = { trigger: "half the capacity", utilisation: 0.85, cancels: false, seed: 1 } as const;

  it("never ends with four attempts, nor with a budget of 20 %", async () => {
    for (const policy of ["four attempts", "budget of 20 %"] as const)
      expect((await runStorm({ ...storm, policy })).recoveryS).toBe(Number.POSITIVE_INFINITY);
  });

  it("ends later without any retry than behind the door", async () => {
    const [without, behind] = [
      await runStorm({ ...storm, policy: "no retries" }),
      await runStorm({ ...storm, policy: "guidevane" }),
    ];
    expect(without.recoveryS).toBeGreaterThan(5 * behind.recoveryS);
  });
});
