import library from "javascript-lp-solver";

// The package's types describe its CommonJS build; the default export of its ESM build is what they call `default`.
const lp = library as unknown as typeof library.default;
type Model = InstanceType<typeof lp.Model>;

/**
 * A linear programme in the one form that needs no first phase: minimise c·x subject to A·x ≤ b with b ≥ 0 and x ≥ 0, so
 * that x = 0 is a start. Values and prices are read from the solver's tableau: its own results are rounded to 1e-8.
 */
export class LinearProgram {
  readonly #model: Model;
  readonly #rows: ReturnType<Model["smallerThan"]>[] = [];
  readonly #variables: ReturnType<Model["addVariable"]>[] = [];

  /** @param precision absolute, for values and reduced costs alike: the caller scales its numbers to 1 … 10,000 */
  constructor(precision: number) {
    this.#model = new lp.Model(precision);
    // The detector of cycles ends a solve as "infeasible"; without it the solver falls back to Bland's rule.
    this.#model.debug(false);
    this.#model.usePresolve = false;
    this.#model.minimize();
  }

  /** Σ terms ≤ `limit`; the row's number. */
  addRow(limit: number): number {
    return this.#rows.push(this.#model.smallerThan(limit)) - 1;
  }

  /** A variable with its coefficient in some rows; its number. */
  addVariable(cost: number, terms: readonly (readonly [row: number, coefficient: number])[]): number {
    const variable = this.#model.addVariable(cost);
    for (const [row, coefficient] of terms) this.#rows[row]!.addTerm(coefficient, variable);
    return this.#variables.push(variable) - 1;
  }

  /**
   * Null when the solver found no bounded optimum, which for this form means that it lost its digits.
   *
   * @param first variables to enter before the method starts, each raised as far as the rows allow: a good start costs
   *   one cheap pivot for each of its variables, where the method would take twenty dear ones
   */
  solve(first: readonly number[] = []): { readonly values: Float64Array; readonly prices: Float64Array } | null {
    const { tableau } = this.#model;
    tableau.setModel(this.#model);
    this.#model.tableauInitialized = true;
    for (const variable of first) this.#enter(this.#variables[variable]!.index);
    const solution = this.#model.solve();
    if (!solution.feasible || solution.bounded === false) return null;
    const { matrix, width, rowByVarIndex, colByVarIndex, rhsColumn } = tableau;
    const values = Float64Array.from(this.#variables, ({ index }) => {
      const row = rowByVarIndex[index]!;
      return row < 0 ? 0 : Math.max(0, matrix[row * width + rhsColumn]!);
    });
    // The cost row holds minus the reduced costs; a slack's reduced cost is minus its row's price.
    const prices = Float64Array.from(this.#rows, ({ slack }) => {
      const column = colByVarIndex[slack.index]!;
      return column < 0 ? 0 : Math.max(0, -matrix[column]!);
    });
    return { values, prices };
  }

  /** One pivot of the primal simplex method with the entering variable given: the row that blocks it first leaves. */
  #enter(variable: number): void {
    const { tableau } = this.#model;
    const column = tableau.colByVarIndex[variable]!;
    if (column < 0) return;
    let leaving = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let row = 1; row < tableau.height; row++) {
      const coefficient = tableau.matrix[row * tableau.width + column]!;
      if (coefficient < SAFE_PIVOT) continue;
      const ratio = tableau.matrix[row * tableau.width + tableau.rhsColumn]! / coefficient;
      if (ratio < least) {
        least = ratio;
        leaving = row;
      }
    }
    if (leaving > 0) tableau.pivot(leaving, column);
  }
}

/** A pivot on less would cost digits. */
const SAFE_PIVOT = 1e-3;
