/**
 * What the addon exports, checked by nobody but `ABI`. Its functions take typed arrays only, write into arrays given
 * and throw an `Error` with a `code` on what they refuse; call them through the doors of this package, which check what
 * the addon can't (arrays that share memory).
 */
export interface NativeBinding {
  /** `ABI` of the addon; another number means an addon built from other sources. */
  abi(): number;
  /** The twin of core's `evaluateCurves`; see `createCurveEvaluator`. */
  evaluateCurves(
    capacityWps: Float64Array,
    knotStart: Uint32Array,
    knotRho: Float64Array,
    knotMs: Float64Array,
    headroom: number,
    headroomMs: number,
    loadWps: Float64Array,
    value: Float64Array,
    slope: Float64Array,
    curvature: Float64Array,
  ): void;
  /**
   * Reads a routing table's columns (selector: `Columns`), once for the process, and gives this thread's function to
   * route by it. Throws on columns that point outside themselves or outside the shared state.
   *
   * The columns are copied: they may be over shared memory that nobody writes to. The rest is the selector's
   * `SharedState`, each over a SharedArrayBuffer.
   *
   * @param cells rows of a thread in `inFlight`
   */
  loadRouter(
    words: Uint32Array,
    numbers: Float64Array,
    ring: Uint16Array,
    names: Uint8Array,
    engines: Uint32Array,
    version: Uint32Array,
    inFlight: Uint32Array,
    moves: Uint32Array,
    cells: number,
  ): RouteFunction;
  /** This thread's function to route by a table that another thread loaded; null once nobody holds that table. */
  attachRouter(
    tableId: number,
    engines: Uint32Array,
    version: Uint32Array,
    inFlight: Uint32Array,
    moves: Uint32Array,
    cells: number,
  ): RouteFunction | null;
  /** How many tables this process holds. */
  tablesHeld(): number;
  /**
   * The twin of the optimizer's `solveSimplex`; `native/crates/addon/src/solve.rs` says what the columns hold. Runs until
   * it is done: call it in a worker. A word of `cancel` (over a SharedArrayBuffer) other than 0 ends it within 64 pivots.
   */
  solveSimplex(
    demandWps: Float64Array,
    arcStart: Uint32Array,
    arcEngine: Uint32Array,
    arcCostMs: Float64Array,
    capacityWps: Float64Array,
    knotStart: Uint32Array,
    knotRho: Float64Array,
    knotMs: Float64Array,
    shedMs: Float64Array,
    numbers: Float64Array,
    reference: Float64Array,
    moveMs: Float64Array,
    warmParent: Int32Array,
    warmPrice: Float64Array,
    warmPart: Float64Array,
    warmLoad: Float64Array,
    warmHeldCell: Uint32Array,
    warmHeldEngine: Uint32Array,
    cancel: Uint32Array,
  ): SimplexResult;
}

export interface SimplexResult {
  /** 0 solved, 1 pivot limit, 2 stopped by the deadline or the cancel word, 3 no stage left. */
  readonly ending: number;
  readonly flowWps: Float64Array;
  readonly shedWps: Float64Array;
  readonly loadWps: Float64Array;
  readonly priceMs: Float64Array;
  readonly objectiveMs: number;
  readonly lowerBoundMs: number;
  readonly pivots: number;
  readonly gapHistory: Float64Array;
  readonly stages: number;
  readonly warmParent: Int32Array;
  readonly warmPrice: Float64Array;
  readonly warmPart: Float64Array;
  readonly warmLoad: Float64Array;
  readonly warmHeldCell: Uint32Array;
  readonly warmHeldEngine: Uint32Array;
}

/**
 * One request by one table, in one crossing (selector: `Router.route`). Neither allocates nor waits; throws on arguments
 * of another type or too short, and on bytes over a SharedArrayBuffer, which another thread could be writing to.
 *
 * @returns a `ROUTE_STATUS` of the selector, or 255 for a body that its scan leaves to `JSON.parse`
 */
export interface RouteFunction {
  (headWords: Uint32Array, headBytes: Uint8Array, body: Uint8Array, out: Uint32Array): number;
  /** For `attachRouter` on another thread. The table lives as long as a function of any thread does. */
  readonly tableId: number;
}

/** Rises with `native/crates/addon/src/cold.rs` when a name, an argument or a meaning changes. */
export const ABI = 5;
