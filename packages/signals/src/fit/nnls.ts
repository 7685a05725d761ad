/**
 * Least squares with coefficients of 0 or more: minimises Σ (row·w − 1)² by cyclic coordinate descent on the normal
 * equations, each step exact in one coordinate and clamped. Rows are divided by what they should come to, so that errors
 * are relative.
 *
 * Convex and bounded below, so the descent reaches the minimum; a ridge of 1e-9 of each diagonal makes it unique.
 *
 * @param rows features of each observation divided by its value; all of one length
 * @returns a weight for each feature
 */
export function nonNegativeLeastSquares(rows: readonly (readonly number[])[]): number[] {
  const size = rows[0]?.length ?? 0;
  const gram = Array.from({ length: size }, () => new Array<number>(size).fill(0));
  const right = new Array<number>(size).fill(0);
  for (const row of rows)
    for (let i = 0; i < size; i++) {
      right[i]! += row[i]!;
      for (let j = 0; j < size; j++) gram[i]![j]! += row[i]! * row[j]!;
    }
  for (let i = 0; i < size; i++) gram[i]![i]! *= 1 + RIDGE;

  const weights = new Array<number>(size).fill(0);
  for (let round = 0; round < ROUNDS; round++) {
    let moved = 0;
    for (let i = 0; i < size; i++) {
      const diagonal = gram[i]![i]!;
      if (!(diagonal > 0)) continue;
      let residual = right[i]!;
      for (let j = 0; j < size; j++) if (j !== i) residual -= gram[i]![j]! * weights[j]!;
      const next = Math.max(0, residual / diagonal);
      moved = Math.max(moved, Math.abs(next - weights[i]!) * Math.sqrt(diagonal));
      weights[i] = next;
    }
    if (moved < STILL) break;
  }
  return weights;
}

const RIDGE = 1e-9;
const ROUNDS = 2000;
/** A round that moves no prediction by more than this, relative, is the last. */
const STILL = 1e-7;
