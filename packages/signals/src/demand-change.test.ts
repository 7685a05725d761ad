import { type Random, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { DemandLevels } from "./demand-level.ts";

const SECOND = 1000;
const TICK = 5;

/** Knuth's method: exact, and slow enough for a test alone. */
function poisson(mean: number, random: Random): number {
  let count = -1;
  for (let left = mean; left > 0; count++) left += Math.log(1 - random());
  return Math.max(0, count);
}

/** A control plane that ticks every 5 s; gives its chat demand of each tick. */
class Ticks {
  readonly levels = new DemandLevels();
  second = 0;

  /** @param countsOf the second → by gateway, by class */
  run(seconds: number, countsOf: (second: number) => Record<string, number>[]): number[] {
    const rps: number[] = [];
    for (const until = this.second + seconds; this.second < until; ) {
      this.second++;
      for (const [gateway, counts] of countsOf(this.second).entries()) {
        const classes = Object.fromEntries(
          Object.entries(counts).map(([name, offered]) => [
            name,
            { offered, work: offered, retries: 0, clientRetries: 0, shed: 0 },
          ]),
        );
        const report = { gateway: `g${gateway}`, cluster: "east", seq: this.second, windowMs: SECOND, classes };
        this.levels.add({ ...report, engines: {} }, this.second * SECOND);
      }
      if (this.second % TICK === 0) rps.push(this.demand("chat").offeredRps);
    }
    return rps;
  }

  demand(name: string) {
    return this.levels.of("east", this.second * SECOND)!.get(name)!;
  }
}

describe("demand that stands still", () => {
  it.each([2, 10, 100])("is %i requests/s all the more exactly the longer it does", (rate) => {
    const random = seededRandom(5);
    const ticks = new Ticks();
    const errorOf = (rps: readonly number[]) =>
      Math.sqrt(rps.reduce((sum, each) => sum + (each / rate - 1) ** 2, 0) / rps.length);
    ticks.run(1200, () => [{ chat: poisson(rate, random) }]);
    const late = ticks.run(20_000, () => [{ chat: poisson(rate, random) }]);
    const mean = late.reduce((sum, each) => sum + each, 0) / late.length;
    expect(Math.abs(mean / rate - 1)).toBeLessThan(0.01);
    // The recent mean alone would be 1 ÷ √(60 λ) off: 9.1, 4.1 and 1.3 %.
    expect(errorOf(late)).toBeLessThan(0.5 / Math.sqrt(60 * rate));
  });

  it("tells how far off it may be by chance, and is no further off most times", () => {
    const random = seededRandom(7);
    const ticks = new Ticks();
    let within = 0;
    for (let i = 0; i < 400; i++) {
      ticks.run(60, () => [{ chat: poisson(20, random) }]);
      const { offeredRps, deviationRps } = ticks.demand("chat");
      if (Math.abs(offeredRps - 20) < deviationRps) within++;
    }
    expect(within).toBeGreaterThan(0.8 * 400);
    expect(ticks.demand("chat").deviationRps).toBeLessThan(0.3);
  });
});

describe("demand that changes", () => {
  it("is acted on within two ticks when it doubles, in one gateway or in eight", () => {
    for (const gateways of [1, 8]) {
      const random = seededRandom(3);
      const ticks = new Ticks();
      const even = (rate: number) => () =>
        Array.from({ length: gateways }, () => ({ chat: poisson(rate / gateways, random) }));
      ticks.run(900, even(40));
      const rps = ticks.run(4 * TICK, even(80));
      expect(rps[0]).toBeGreaterThan(55);
      expect(rps[1]).toBeGreaterThan(65);
      expect(rps[3]).toBeGreaterThan(70);
    }
  });

  it("falls by 63 % within 20 s when it ends, after an hour that stood still", () => {
    const ticks = new Ticks();
    ticks.run(3600, () => [{ chat: 100 }]);
    expect(ticks.run(20, () => [{ chat: 0 }]).at(-1)).toBeLessThan(100 * Math.exp(-1));
  });

  it("is followed at half a minute's distance while it goes on changing, whatever the memory", () => {
    const random = seededRandom(11);
    const ticks = new Ticks();
    const rateAt = (second: number) => 40 * (1 + 0.3 * Math.sin((2 * Math.PI * second) / 600));
    ticks.run(600, () => [{ chat: poisson(40, random) }]);
    let far = 0;
    for (let i = 0; i < 240; i++) {
      const [rps] = ticks.run(TICK, (second) => [{ chat: poisson(rateAt(second), random) }]);
      far += Math.abs(rps! - rateAt(ticks.second - 30)) / 40;
    }
    expect(far / 240).toBeLessThan(0.06);
  });

  it("is seen in the cluster as a whole where each class alone would hide it", () => {
    const random = seededRandom(2);
    const ticks = new Ticks();
    const names = Array.from({ length: 40 }, (_, at) => (at === 0 ? "chat" : `class-${at}`));
    const each = (rate: number) => () => [Object.fromEntries(names.map((name) => [name, poisson(rate, random)]))];
    ticks.run(900, each(1));
    const sum = () => names.reduce((total, name) => total + ticks.demand(name).offeredRps, 0);
    const before = sum();
    ticks.run(60, each(1.4));
    expect(sum() / before).toBeGreaterThan(1.3);
  });

  it("says the same when it is asked twice", () => {
    const random = seededRandom(4);
    const ticks = new Ticks();
    ticks.run(300, () => [{ chat: poisson(20, random) }]);
    ticks.run(7, () => [{ chat: poisson(35, random) }]);
    expect(ticks.demand("chat")).toEqual(ticks.demand("chat"));
  });
});
