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
}

/** Rises with `native/crates/addon/src/cold.rs` when a name, an argument or a meaning changes. */
export const ABI = 1;
