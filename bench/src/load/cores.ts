import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

/** Who runs where: what is measured alone on a core, so that nothing but itself takes its time. */
export interface Cores {
  readonly front: readonly number[];
  /** The generator, the stub and all helpers. */
  readonly rest: readonly number[];
}

/** Null where there is one core only, or no `taskset`: then everything runs anywhere. */
export function chooseCores(): Cores | null {
  const count = availableParallelism();
  if (count < 2) return null;
  try {
    execFileSync("taskset", ["--version"], { stdio: "ignore" });
  } catch {
    return null;
  }
  return { front: [0], rest: count > 2 ? [1, 2] : [1] };
}

/** Two cores that the front and its load share; null as above. */
export function sharedCores(): Cores | null {
  return chooseCores() === null ? null : { front: [0, 1], rest: [0, 1] };
}

/** The command that runs `command` on these cores; on any where there are none. */
export function pinned(cores: readonly number[], command: readonly string[]): string[] {
  return cores.length === 0 ? [...command] : ["taskset", "--cpu-list", cores.join(","), ...command];
}
