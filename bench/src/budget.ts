import { readFileSync } from "node:fs";
import { median } from "./results.ts";

/** How long a case may take, in times of the yardstick, which runs beside it: a slow machine slows both. */
export interface Budget {
  /** What it was when the budget was set. */
  readonly measured: number;
  readonly budget: number;
  /** Why this much: who depends on it, or what was changed. */
  readonly why: string;
}

export type Budgets = Readonly<Record<string, Budget>>;

/**
 * A case is `over` when its median is past the budget *and* so are three of four of its rounds: what a busy machine does
 * to some rounds is noise. `unsure`: past it by median alone.
 */
export type Verdict = "within" | "unsure" | "over";

/** @param ratios one of each round */
export function verdictOn(ratios: readonly number[], { budget }: Budget): Verdict {
  if (median(ratios) <= budget) return "within";
  const past = ratios.filter((ratio) => ratio > budget).length;
  return past >= 0.75 * ratios.length ? "over" : "unsure";
}

/** Fewer cases say nothing of the machine. */
const CASES_LEAST = 8;

/**
 * How many times as long as at the time of the budgets the middle case takes, at least 1: what a machine with slower memory
 * makes of most cases and of the yardstick not. No change here slows half of them, which share no code.
 */
export function machineShift(held: ReadonlyMap<string, readonly number[]>, budgets: Budgets): number {
  if (held.size < CASES_LEAST) return 1;
  return Math.max(1, median([...held].map(([name, ratios]) => median(ratios) / budgets[name]!.measured)));
}

/** @throws Error naming what is wrong with the file */
export function readBudgets(path: string): Budgets {
  const data = JSON.parse(readFileSync(path, "utf8")) as { cases?: Record<string, Partial<Budget>> };
  if (typeof data.cases !== "object" || data.cases === null) throw new Error(`${path}: has no cases`);
  for (const [name, { measured, budget, why }] of Object.entries(data.cases)) {
    if (!(measured! > 0) || !(budget! >= measured!)) throw new Error(`${path}: ${name} needs 0 < measured ≤ budget`);
    if (typeof why !== "string" || why === "") throw new Error(`${path}: ${name} does not say why`);
  }
  return data.cases as Budgets;
}
