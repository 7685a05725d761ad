import { type CurveValues, evaluateCurves } from "@guidevane/core";
import { createCurveEvaluator, loadNative } from "@guidevane/native";
import type { BenchCase, BenchGroup } from "./case.ts";
import { curveInputs } from "./inputs.ts";

const SIZES = [8, 64, 512];
const CALLS = 100;

/** What it costs to go into native code and come back: the empty call, then a batch of curves in both twins. */
export const crossing: BenchGroup = {
  name: "crossing",
  async open() {
    const load = loadNative();
    const truths = new Map<string, unknown>();
    const cases: BenchCase[] = [];
    if (load.binding !== null) {
      const { binding } = load;
      cases.push({
        name: `crossing/native/empty/×${CALLS}`,
        batch: CALLS,
        question: "the addon's ABI",
        run() {
          let sum = 0;
          for (let i = 0; i < CALLS; i++) sum += binding.abi();
          return sum;
        },
        answer: () => binding.abi(),
      });
    }
    const evaluators = [createCurveEvaluator("ts"), ...(load.binding === null ? [] : [createCurveEvaluator("native")])];
    for (const engines of SIZES) {
      const question = `curves of ${engines} engines`;
      const { curves, loadWps } = curveInputs(engines);
      const truth = emptyValues(engines);
      evaluateCurves(curves, loadWps, truth);
      truths.set(question, truth);
      for (const evaluator of evaluators) {
        const out = emptyValues(engines);
        cases.push({
          name: `crossing/${evaluator.kind}/curves/${engines}-engines/×${CALLS}`,
          batch: CALLS,
          question,
          run() {
            for (let i = 0; i < CALLS; i++) evaluator.evaluate(curves, loadWps, out);
            return out.value[0];
          },
          answer() {
            evaluator.evaluate(curves, loadWps, out);
            return out;
          },
        });
      }
    }
    const missing = load.binding === null ? [`crossing/native: ${load.reason}`] : [];
    return { cases, truths, missing, async close() {} };
  },
};

function emptyValues(engines: number): CurveValues {
  return {
    value: new Float64Array(engines),
    slope: new Float64Array(engines),
    curvature: new Float64Array(engines),
  };
}
