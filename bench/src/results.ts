import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { arch, cpus, platform, totalmem } from "node:os";

/** Per operation. */
export interface CaseResult {
  readonly medianNs: number;
  /** Largest distance of a round's median from `medianNs`. */
  readonly spreadNs: number;
  readonly rounds: number;
  /** Rounds in which other processes took the cores, where that is looked at. */
  readonly disturbed?: number;
}

export interface Results {
  /** ISO 8601 UTC. */
  readonly at: string;
  readonly commit: string;
  readonly machine: Machine;
  readonly cases: Readonly<Record<string, CaseResult>>;
  /** Case ÷ case. */
  readonly ratios?: Readonly<Record<string, number>>;
  /** What is no time, in the unit that ends its name. */
  readonly figures?: Readonly<Record<string, number>>;
  /** What could not be timed. */
  readonly missing: readonly string[];
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly platform: string;
  readonly node: string;
}

/**
 * Cases of `before` that are slower in `after`: past the budget (0.1 = 10 %) *and* outside the noise of both runs. A case
 * that vanished counts, since it would otherwise pass as "not slower".
 */
export function regressions(before: Results, after: Results, budget: number): string[] {
  const slower: string[] = [];
  for (const [name, old] of Object.entries(before.cases)) {
    const now = after.cases[name];
    if (now === undefined) slower.push(`${name}: no result any more`);
    else if (now.medianNs > old.medianNs * (1 + budget) && now.medianNs - old.medianNs > old.spreadNs + now.spreadNs)
      slower.push(`${name}: ${showNs(old.medianNs)} before, ${showNs(now.medianNs)} after (${showChange(old, now)})`);
  }
  return slower;
}

export function showChange(old: CaseResult, now: CaseResult): string {
  const percent = (now.medianNs / old.medianNs - 1) * 100;
  return `${percent >= 0 ? "+" : ""}${percent.toFixed(1)} %`;
}

export function showNs(ns: number): string {
  if (ns < 1e3) return `${ns.toFixed(1)} ns`;
  if (ns < 1e6) return `${(ns / 1e3).toFixed(2)} µs`;
  return `${(ns / 1e6).toFixed(2)} ms`;
}

/** @throws Error when the file is not a set of results */
export function readResults(path: string): Results {
  const data = JSON.parse(readFileSync(path, "utf8")) as Partial<Results>;
  if (typeof data.cases !== "object" || data.cases === null) throw new Error(`${path}: has no cases`);
  for (const [name, each] of Object.entries(data.cases)) {
    if (!(each.medianNs > 0) || !(each.spreadNs >= 0)) throw new Error(`${path}: ${name} has no median or spread`);
  }
  return data as Results;
}

export function thisMachine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${platform()}-${arch()}`,
    node: process.version,
  };
}

/** Hash of the commit, with `+changes` when tracked files differ from it; `unknown` outside a checkout. */
export function thisCommit(): string {
  try {
    const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8", stdio: "pipe" }).trim();
    return git("rev-parse", "HEAD") + (git("status", "--porcelain", "--untracked-files=no") === "" ? "" : "+changes");
  } catch {
    return "unknown";
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
