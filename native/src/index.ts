export { ABI, type NativeBinding, type RouteFunction, type SimplexResult } from "./binding.ts";
export { type Choice, chooseTwin, type Want } from "./choose.ts";
export { type CurveEvaluator, createCurveEvaluator } from "./curves.ts";
export { loadNative, type NativeLoad } from "./load.ts";
export { hostTriple } from "./triple.ts";
