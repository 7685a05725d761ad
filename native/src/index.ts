export { ABI, type NativeBinding, type RouteFunction, type SimplexResult } from "./binding.ts";
export { type CurveEvaluator, createCurveEvaluator, type Want } from "./curves.ts";
export { loadNative, type NativeLoad } from "./load.ts";
export { hostTriple } from "./triple.ts";
