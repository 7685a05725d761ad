import type { BenchCase } from "./case.ts";

/** A call of some ms is disturbed more often than not: of so many one is not. */
const LEAST_CALLS = 30;

/**
 * Time of one operation in the fastest of the calls that so many ms hold, or of 30, ns. Other processes only ever make a
 * call slower, so that the fastest says on a busy machine what it says on a quiet one; a median does not.
 */
export async function fastestNs({ run, batch }: Pick<BenchCase, "run" | "batch">, forMs: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  const startMs = performance.now();
  for (let calls = 0; calls < LEAST_CALLS || performance.now() - startMs < forMs; calls++) {
    const began = process.hrtime.bigint();
    const result = run();
    if (result instanceof Promise) await result;
    best = Math.min(best, Number(process.hrtime.bigint() - began));
  }
  return best / batch;
}
