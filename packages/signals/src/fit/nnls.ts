/**
 * Least squares with coefficients of 0 or more: minimises Σ weight·(row·w − 1)² by cyclic coordinate descent on the normal
 * equations, each step exact in one coordinate and clamped. Rows are divided by what they should come to, so that errors
 * are relative.
 *
 * Convex and bounded below, so the descent reaches the minimum; a ridge of 1e-9 of each diagonal makes it unique.
 *
 * @param rows features of each observation divided by its value; all of one length
 * @param weights what each observation counts; 1 where left out
 * @returns a coefficient for each feature
 */
export function nonNegativeLeastSquares(
  rows: readonly (readonly number[])[],
  weights: readonly number[] | null = null,
): number[] {
  const size = rows[0]?.length ?? 0;
  const gram = Array.from({ length: size }, () => new Array<number>(size).fill(0));
  const right = new Array<number>(size).fill(0);
  for (const [at, row] of rows.entries()) {
    const weight = weights?.[at] ?? 1;
    for (let i = 0; i < size; i++) {
      right[i]! += weight * row[i]!;
      for (let j = 0; j < size; j++) gram[i]![j]! += weight * row[i]! * row[j]!;
    }
  }
  for (let i = 0; i < size; i++) gram[i]![i]! *= 1 + RIDGE;

  const coefficients = new Array<number>(size).fill(0);
  for (let round = 0; round < ROUNDS; round++) {
    let moved = 0;
    for (let i = 0; i < size; i++) {
      const diagonal = gram[i]![i]!;
      if (!(diagonal > 0)) continue;
      let residual = right[i]!;
      for (let j = 0; j < size; j++) if (j !== i) residual -= gram[i]![j]! * coefficients[j]!;
      const next = Math.max(0, residual / diagonal);
      moved = Math.max(moved, Math.abs(next - coefficients[i]!) * Math.sqrt(diagonal));
      coefficients[i] = next;
    }
    if (moved < STILL) break;
  }
  return coefficients;
}

const RIDGE = 1e-9;
const ROUNDS = 2000;
/** A round that moves no prediction by more than this, relative, is the last. */
const STILL = 1e-7;
