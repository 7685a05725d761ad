import type { ClusterSnapshot } from "./snapshot.ts";

/**
 * The numbers of a snapshot's plan in columns, for sums over thousands of pairs of a cell and one of its engines. An index
 * counts in the order of the snapshot's own `engines` and `cells`; the pairs of cell `c` are those from `pairAt[c]` to
 * `pairAt[c + 1]`, in the order of the cell's engine list.
 */
export interface PlanColumns {
  readonly engines: readonly string[];
  readonly plannedFactor: Float64Array;
  readonly loadWps: Float64Array;
  readonly capacityWps: Float64Array;
  /** NaN = no hard limit. */
  readonly maxStreams: Float64Array;
  readonly pairAt: Uint32Array;
  /** Index of each pair's engine. */
  readonly pairEngine: Uint32Array;
  readonly weights: Float64Array;
  readonly expectedMs: Float64Array;
}

const known = new WeakMap<ClusterSnapshot, PlanColumns>();

/** Columns of a checked snapshot; made once for each. */
export function planColumns(snapshot: ClusterSnapshot): PlanColumns {
  let columns = known.get(snapshot);
  if (columns === undefined) {
    columns = makeColumns(snapshot);
    known.set(snapshot, columns);
  }
  return columns;
}

/** Says what the columns of a snapshot are that was made from them. */
export function knowColumns(snapshot: ClusterSnapshot, columns: PlanColumns): void {
  known.set(snapshot, columns);
}

function makeColumns({ engines, cells }: ClusterSnapshot): PlanColumns {
  const entries = Object.entries(engines);
  const indexOf = new Map(entries.map(([id], index) => [id, index]));
  const column = (read: (engine: ClusterSnapshot["engines"][string]) => number): Float64Array =>
    sharedFloats(entries.map(([, engine]) => read(engine)));
  return {
    engines: entries.map(([id]) => id),
    plannedFactor: column((engine) => engine.plannedFactor),
    loadWps: column((engine) => engine.loadWps),
    capacityWps: column((engine) => engine.capacityWps),
    maxStreams: column((engine) => engine.maxStreams ?? Number.NaN),
    pairAt: startsOf(cells.map((cell) => cell.engines.length)),
    pairEngine: sharedWords(cells.flatMap((cell) => cell.engines.map((id) => indexOf.get(id)!))),
    weights: sharedFloats(cells.flatMap((cell) => cell.weights)),
    expectedMs: sharedFloats(cells.flatMap((cell) => cell.expectedMs)),
  };
}

/** Where each of some lists begins when they follow one another, and where the last one ends. */
export function startsOf(lengths: readonly number[]): Uint32Array {
  let at = 0;
  return sharedWords([0, ...lengths.map((length) => (at += length))]);
}

export function sharedFloats(values: ArrayLike<number>): Float64Array {
  const array = new Float64Array(new SharedArrayBuffer(values.length * Float64Array.BYTES_PER_ELEMENT));
  array.set(values);
  return array;
}

export function sharedWords(values: ArrayLike<number>): Uint32Array {
  const array = new Uint32Array(new SharedArrayBuffer(values.length * Uint32Array.BYTES_PER_ELEMENT));
  array.set(values);
  return array;
}
