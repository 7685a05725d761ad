/**
 * How much published weights move. Churn of a cell is the total-variation distance of one publication from the last, the
 * least part of its keys that had to move; a reversal is a weight that changes the other way than it did before.
 */
export class Churn {
  readonly #last = new Map<number, Float64Array>();
  readonly #direction = new Map<number, Int8Array>();
  #moved = 0;
  #reversals = 0;
  #publications = 0;

  /** Since the last `take`: sum over publications of the moved part, and how many weights turned round. */
  take(): { moved: number; reversals: number; publications: number } {
    const taken = { moved: this.#moved, reversals: this.#reversals, publications: this.#publications };
    this.#moved = 0;
    this.#reversals = 0;
    this.#publications = 0;
    return taken;
  }

  /** @param part of the fleet's demand that is the cell's, 0..1 */
  add(cell: number, weights: Float64Array, part: number): void {
    const last = this.#last.get(cell);
    this.#last.set(cell, weights.slice());
    if (last === undefined) return;
    this.#publications += 1;
    const direction = this.#direction.get(cell) ?? new Int8Array(weights.length);
    this.#direction.set(cell, direction);
    let distance = 0;
    for (let engine = 0; engine < weights.length; engine++) {
      const change = weights[engine]! - last[engine]!;
      distance += Math.abs(change) / 2;
      if (Math.abs(change) < LEAST_MOVE) continue;
      const sign = change > 0 ? 1 : -1;
      if (direction[engine] === -sign) this.#reversals += 1;
      direction[engine] = sign;
    }
    this.#moved += distance * part;
  }
}

/** A slot of 4,096 is 0.02 %: rounding is no change of mind. */
const LEAST_MOVE = 0.001;
