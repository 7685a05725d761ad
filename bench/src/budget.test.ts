import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type Budgets, readBudgets, verdictOn } from "./budget.ts";
import type { BenchCase } from "./case.ts";
import { fastestNs } from "./fastest.ts";
import { holdToBudgets, showHeld, showVerdict } from "./hold-to-budgets.ts";

const BUDGET = { measured: 2, budget: 3, why: "a test" };

function caseOf(name: string, run: () => unknown = () => 0): BenchCase {
  return { name, batch: 1, question: name, run, answer: () => name };
}

describe("a verdict on rounds", () => {
  it.each([
    ["within its budget", [2, 2.1, 2.9, 3], "within"],
    ["faster than it was", [0.1, 0.1, 0.1, 0.1], "within"],
    ["within by its median, with a slow round", [2, 2, 2, 40], "within"],
    ["slow in half of its rounds", [2, 2, 40, 40], "unsure"],
    ["slow in most, not in three of four", [2, 2, 4, 4, 4], "unsure"],
    ["slow in three of four", [2, 4, 4, 4], "over"],
    ["slow in all", [4, 4, 4, 4], "over"],
  ] as const)("of a case that is %s", (_what, ratios, verdict) => {
    expect(verdictOn(ratios, BUDGET)).toBe(verdict);
  });
});

describe("holding cases to their budgets", () => {
  /** Times by name, one call after another; the last stays. */
  const timing = (times: Record<string, number[]>) => {
    const calls: Record<string, number> = {};
    return async ({ name }: BenchCase) => {
      const list = times[name]!;
      calls[name] = (calls[name] ?? 0) + 1;
      return list[Math.min(calls[name], list.length) - 1]!;
    };
  };
  const budgets: Budgets = { steady: BUDGET, slowed: BUDGET, disturbed: BUDGET };
  const cases = ["steady", "slowed", "disturbed"].map((name) => caseOf(name));

  it("repeats what is past its budget, and finds a slow-down over, a disturbance not", async () => {
    const { cases: held } = await holdToBudgets(
      cases,
      budgets,
      caseOf("yardstick"),
      timing({ yardstick: [10], steady: [20], slowed: [40], disturbed: [20, 40, 40, 40, 40, 20] }),
    );
    expect(held.map(({ name, verdict, ratios }) => [name, verdict, ratios.length])).toEqual([
      ["steady", "within", 4],
      ["slowed", "over", 16],
      ["disturbed", "within", 8],
    ]);
    expect(showHeld(held[1]!, BUDGET)).toBe("OVER   slowed: 4.00 (budget 3, was 2; 16 rounds)");
    expect(showVerdict(held, 0)).toBe("1 past budget, 2 within budget");
    expect(showVerdict([held[0]!, { ...held[1]!, verdict: "unsure" }], 2)).toBe("2 gone, 1 unsure, 1 within budget");
    expect(showVerdict([held[0]!], 0)).toBe("1 within budget");
  });

  it("asks the same of a slow machine as of a fast one", async () => {
    const slow = { yardstick: [1000], steady: [2000], slowed: [2000], disturbed: [2000] };
    const { cases: held } = await holdToBudgets(cases, budgets, caseOf("yardstick"), timing(slow));
    expect(held.every(({ verdict }) => verdict === "within")).toBe(true);
  });

  it("takes for the machine's what slows most of many cases alike, and finds the one that is slower still", async () => {
    const names = Array.from({ length: 9 }, (_, at) => `case-${at}`);
    const many: Budgets = Object.fromEntries(names.map((name) => [name, BUDGET]));
    const slow = Object.fromEntries(names.map((name) => [name, [36]]));
    const { cases: held, shift } = await holdToBudgets(
      names.map((name) => caseOf(name)),
      many,
      caseOf("yardstick"),
      timing({ yardstick: [10], ...slow, "case-4": [60] }),
    );
    expect(held.filter(({ verdict }) => verdict !== "within").map(({ name }) => name)).toEqual(["case-4"]);
    expect(shift).toBeCloseTo(1.8, 9);
  });

  it("finds a real slow-down: the same work six times over against a budget of three", async () => {
    const bytes = new Uint8Array(4096).fill(7);
    const work = (times: number) => () => {
      let sum = 0;
      for (let time = 0; time < times; time++) for (const byte of bytes) sum = Math.imul(sum ^ byte, 16777619);
      return sum;
    };
    const real = [caseOf("steady", work(1)), caseOf("slowed", work(6))];
    const { cases: held } = await holdToBudgets(real, budgets, caseOf("yardstick", work(1)), (each) =>
      fastestNs(each, 10),
    );
    expect(held.map(({ verdict }) => verdict)).toEqual(["within", "over"]);
  });
});

describe("the file of budgets", () => {
  it("says of each case what it was, what it may be and why", () => {
    const budgets = readBudgets(fileURLToPath(new URL("../budgets.json", import.meta.url)));
    expect(Object.keys(budgets).length).toBeGreaterThan(10);
  });
});
