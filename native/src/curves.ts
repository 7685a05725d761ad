import { type CurveSet, type CurveValues, evaluateCurves } from "@guidevane/core";
import { chooseTwin, type Want } from "./choose.ts";
import { loadNative, type NativeLoad } from "./load.ts";

/** φ, φ′ and φ″ of every engine at its load: core's `evaluateCurves`, by the addon or its twin, equal to the last bit. */
export interface CurveEvaluator {
  readonly kind: "native" | "ts";
  /** Why `auto` fell back to TypeScript; for one line in the log. */
  readonly degraded?: string;
  /**
   * Fills `out`, one entry per engine, without a copy.
   *
   * @throws RangeError when lengths do not fit together, an output shares memory with any other array, or threads could
   */
  evaluate(curves: CurveSet, loadWps: Float64Array, out: CurveValues): void;
}

/** @throws GuidevaneError `native_unavailable` when `want` is `native` and there is no addon */
export function createCurveEvaluator(want: Want, native: () => NativeLoad = loadNative): CurveEvaluator {
  const { binding, ...choice } = chooseTwin(want, "curves", native);
  if (binding === null) return { ...tsEvaluator, ...choice };
  return {
    kind: "native",
    evaluate(curves, loadWps, out) {
      check(curves, loadWps, out);
      const { capacityWps, knotStart, knotRho, knotMs, headroom, headroomMs } = curves;
      const { value, slope, curvature } = out;
      binding.evaluateCurves(
        capacityWps,
        knotStart,
        knotRho,
        knotMs,
        headroom,
        headroomMs,
        loadWps,
        value,
        slope,
        curvature,
      );
    },
  };
}

const tsEvaluator: CurveEvaluator = {
  kind: "ts",
  evaluate(curves, loadWps, out) {
    check(curves, loadWps, out);
    evaluateCurves(curves, loadWps, out);
  },
};

/** The same refusals for both twins: which one runs must not decide what a caller may pass. */
function check(curves: CurveSet, loadWps: Float64Array, out: CurveValues): void {
  const { capacityWps, knotStart, knotRho, knotMs } = curves;
  const { value, slope, curvature } = out;
  const engines = capacityWps.length;
  if (knotStart.length !== engines + 1)
    throw new RangeError(`knotStart has ${knotStart.length} entries, ${engines} engines need ${engines + 1}`);
  if (knotMs.length !== knotRho.length)
    throw new RangeError(`knotMs has ${knotMs.length} entries, knotRho ${knotRho.length}`);
  for (let engine = 0; engine < engines; engine++) {
    const [start, end] = [knotStart[engine]!, knotStart[engine + 1]!];
    if (start >= end || end > knotRho.length)
      throw new RangeError(`engine ${engine}: knots ${start} .. ${end} are not within ${knotRho.length}`);
  }
  if (loadWps.length !== engines) throw new RangeError(`loadWps has ${loadWps.length} entries, not ${engines}`);
  const outputs = [value, slope, curvature];
  const all = [...outputs, capacityWps, knotStart, knotRho, knotMs, loadWps];
  for (const [index, output] of outputs.entries()) {
    if (output.length !== engines) throw new RangeError(`an output has ${output.length} entries, not ${engines}`);
    // Rust holds an output as the only reference to its memory.
    for (let other = index + 1; other < all.length; other++) {
      if (overlaps(all[other]!, output)) throw new RangeError("an output shares memory with another array");
    }
  }
  // Another thread could write there while Rust reads.
  if (all.some(({ buffer }) => buffer instanceof SharedArrayBuffer))
    throw new RangeError("an array is over a SharedArrayBuffer");
}

function overlaps(a: Float64Array | Uint32Array, b: Float64Array): boolean {
  if (a.buffer !== b.buffer) return false;
  return a.byteOffset < b.byteOffset + b.byteLength && b.byteOffset < a.byteOffset + a.byteLength;
}
