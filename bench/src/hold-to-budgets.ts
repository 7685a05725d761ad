import { type Budgets, machineShift, type Verdict, verdictOn } from "./budget.ts";
import type { BenchCase } from "./case.ts";
import { median } from "./results.ts";

/** Rounds of every case, and how often those past their budget get as many again. */
const ROUNDS = 4;
const REPEATS = 3;

export interface HeldCase {
  readonly name: string;
  readonly ratios: readonly number[];
  readonly verdict: Verdict;
}

export interface HeldToBudgets {
  readonly cases: readonly HeldCase[];
  /** By how much budgets grew for the machine: `machineShift`. */
  readonly shift: number;
}

/**
 * Times cases against the yardstick, each round of a case just after one of the yardstick, and again where the budget is
 * passed: only what stays past it is `over`. Where most cases are slower alike budgets grow by as much (`machineShift`). A
 * round before the first warms all up and does not count.
 *
 * @param timeNs time of one operation
 */
export async function holdToBudgets(
  cases: readonly BenchCase[],
  budgets: Budgets,
  yardstick: BenchCase,
  timeNs: (each: BenchCase) => Promise<number>,
): Promise<HeldToBudgets> {
  const held = new Map<string, number[]>(cases.map(({ name }) => [name, []]));
  let shift = 1;
  const verdictOf = (name: string): Verdict => {
    const { budget, ...rest } = budgets[name]!;
    return verdictOn(held.get(name)!, { ...rest, budget: shift * budget });
  };
  for (const each of [yardstick, ...cases]) await timeNs(each);
  for (let repeat = 0, left = cases; repeat <= REPEATS && left.length > 0; repeat++) {
    for (let round = 0; round < ROUNDS; round++) {
      for (const each of left) {
        const measureNs = await timeNs(yardstick);
        held.get(each.name)!.push((await timeNs(each)) / measureNs);
      }
    }
    shift = machineShift(held, budgets);
    left = left.filter(({ name }) => verdictOf(name) !== "within");
  }
  return { cases: [...held].map(([name, ratios]) => ({ name, ratios, verdict: verdictOf(name) })), shift };
}

/** What the figures of `showHeld` are. */
export const HELD_HEAD =
  "times of the yardstick (src/yardstick.ts): the median of the rounds (its budget, what it was when that was set; rounds)";

/** The last line: how it ended, with what has a budget and is no case any more. */
export function showVerdict(held: readonly HeldCase[], gone: number): string {
  const count = (verdict: Verdict): number => held.filter((each) => each.verdict === verdict).length;
  const parts = [
    ...(count("over") > 0 ? [`${count("over")} past budget`] : []),
    ...(gone > 0 ? [`${gone} gone`] : []),
    ...(count("unsure") > 0 ? [`${count("unsure")} unsure`] : []),
    `${count("within")} within budget`,
  ];
  return parts.join(", ");
}

export function showHeld({ name, ratios, verdict }: HeldCase, { budget, measured }: Budgets[string]): string {
  const word = verdict === "over" ? "OVER" : verdict;
  const figures = `${median(ratios).toPrecision(3)} (budget ${budget}, was ${measured}; ${ratios.length} rounds)`;
  return `${word.padEnd(6)} ${name}: ${figures}`;
}
