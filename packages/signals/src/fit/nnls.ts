/**
 * Least squares with coefficients of 0 or more: minimises Σ weight·(row·w − 1)² by the active-set method of Lawson and Hanson on
 * the normal equations. Rows are divided by what they should come to, so that errors are relative.
 *
 * A coefficient joins those that may be above 0 where the error falls with it; they are then solved for exactly, and those that
 * would go below 0 leave again. Each round lowers the error, so no set comes twice and the end is the minimum; a ridge of 1e-9
 * of each diagonal makes it unique.
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
  // In units in which every feature has length 1: they differ by orders of magnitude.
  const scale = gram.map((row, i) => (row[i]! > 0 ? 1 / Math.sqrt(row[i]!) : 0));
  const unit = gram.map((row, i) => row.map((value, j) => value * scale[i]! * scale[j]! * (i === j ? 1 + RIDGE : 1)));
  const solution = nonNegativeSolution(
    unit,
    right.map((value, i) => value * scale[i]!),
  );
  return solution.map((value, i) => value * scale[i]!);
}

const RIDGE = 1e-9;
/** A slope of the error by less than this, of a feature of length 1, is none. */
const FLAT = 1e-10;

/** Of gram·w = right, every w 0 or more, in the sense of least squares. */
function nonNegativeSolution(gram: readonly (readonly number[])[], right: readonly number[]): number[] {
  const size = right.length;
  let w = new Array<number>(size).fill(0);
  const free: number[] = [];
  /** Would go below 0 at once, by rounding. */
  const refused = new Set<number>();
  for (let round = 0; round < ROUNDS_PER_FEATURE * size; round++) {
    let steepest = -1;
    let most = FLAT;
    for (let i = 0; i < size; i++) {
      if (free.includes(i) || refused.has(i) || gram[i]![i]! === 0) continue;
      const slope = right[i]! - dot(gram[i]!, w);
      if (slope > most) [steepest, most] = [i, slope];
    }
    if (steepest < 0) break;
    free.push(steepest);
    for (;;) {
      const solved = solve(gram, right, free);
      const below = free.filter((i) => solved[i]! <= 0);
      if (below.length === 0) {
        w = solved;
        refused.clear();
        break;
      }
      // As far towards the solution as all stay at 0 or above; who is at 0 first is held there.
      const parts = below.map((i) => w[i]! / (w[i]! - solved[i]!));
      const part = Math.min(...parts);
      w = w.map((value, i) => value + part * (solved[i]! - value));
      for (const [at, i] of below.entries()) {
        if (parts[at]! > part) continue;
        w[i] = 0;
        free.splice(free.indexOf(i), 1);
      }
      if (part > 0) refused.clear();
      else refused.add(steepest);
    }
  }
  return w;
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

/** More than the method ever needs; rounding could make two sets take turns. */
const ROUNDS_PER_FEATURE = 3;

/** gram·x = right over the free ones, the others 0, by elimination with the largest pivot. */
function solve(gram: readonly (readonly number[])[], right: readonly number[], free: readonly number[]): number[] {
  const rows = free.map((i) => [...free.map((j) => gram[i]![j]!), right[i]!]);
  const size = free.length;
  for (let column = 0; column < size; column++) {
    let pivot = column;
    for (let row = column + 1; row < size; row++)
      if (Math.abs(rows[row]![column]!) > Math.abs(rows[pivot]![column]!)) pivot = row;
    [rows[column], rows[pivot]] = [rows[pivot]!, rows[column]!];
    for (let row = column + 1; row < size; row++) {
      const factor = rows[row]![column]! / rows[column]![column]!;
      for (let j = column; j <= size; j++) rows[row]![j]! -= factor * rows[column]![j]!;
    }
  }
  const found = new Array<number>(size).fill(0);
  for (let row = size - 1; row >= 0; row--) {
    let rest = rows[row]![size]!;
    for (let j = row + 1; j < size; j++) rest -= rows[row]![j]! * found[j]!;
    found[row] = rest / rows[row]![row]!;
  }
  const all = new Array<number>(gram.length).fill(0);
  for (const [at, i] of free.entries()) all[i] = found[at]!;
  return all;
}
