import { describe, expect, it } from "vitest";
import { killEngine } from "./stress/killed-engine.ts";

/** The short form of `npm run stress -- killed-engine`. */

describe("one of four engines killed with SIGKILL under load, every part a process of its own", () => {
  it("is seen by no client whose answer had not begun, moves no living engine's key, and the engine is back within 5 s, ramped", async () => {
    const seen = await killEngine({
      rateRps: 60,
      keys: 60,
      settleMs: 500,
      awayMs: 2000,
      watchMs: 4000,
      threads: 1,
      slowness: 1,
      short: true,
    });
    expect(seen.errorsBeforeAnswer).toEqual({});
    expect(seen.cut).toBeLessThanOrEqual(seen.running);
    expect(seen.attemptsFailed).toBeGreaterThan(0);
    expect(seen.quietMs).toBeLessThan(1000);
    expect(seen.victimKeys).toBeGreaterThan(5);
    expect(seen.movedKeys - seen.movedByBound - seen.movedByPlan).toBe(0);
    // A plan without it moves a slot or two between the others where its weights are not exactly thirds.
    expect(seen.movedByPlan).toBeLessThanOrEqual(0.05 * seen.livingKeys);
    expect(seen.backMs).toBeLessThan(5000);
    // An even share is a quarter; in the second of its first answer an engine has a tenth of that.
    const first = seen.shares.find((share) => share > 0)!;
    expect(first).toBeLessThan(0.2);
  }, 30_000);
});
