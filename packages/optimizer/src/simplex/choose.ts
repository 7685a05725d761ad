import {
  chooseTwin,
  loadNative,
  type NativeBinding,
  type NativeLoad,
  type SimplexResult,
  type Want,
} from "@guidevane/native";
import { checkProblem } from "../check-problem.ts";
import type { Problem } from "../problem.ts";
import { checkChurn, defaultPivotLimit, endMessage, refused, type SimplexSolution, solveSimplex } from "./solve.ts";
import type { Warm } from "./warm.ts";

/**
 * The network simplex by the addon or its TypeScript twin. Both make the same pivots and give the same flows to the last
 * bit; the addon is about twice as fast. A solve keeps its thread busy: run it in a worker.
 */
export interface Simplex {
  readonly kind: "native" | "ts";
  /** Why `auto` fell back to TypeScript; for one line in the log. */
  readonly degraded?: string;
  /** Never throws on a problem: what is wrong with it is the solution's status and message. */
  solve(problem: Problem, options?: SimplexRun): SimplexSolution;
}

export interface SimplexRun {
  /** Stop at (F − LB) ÷ LB at most this. Default 1e-9. */
  readonly targetGap?: number;
  /** Pivots in all. Default 60 per node, at least 1,000. */
  readonly pivotLimit?: number;
  /** Ends after this time with the best there is, status `capped`. Looked at every 64 pivots. Default: none. */
  readonly deadlineMs?: number;
  /** One word over a SharedArrayBuffer: another thread sets it to other than 0 to end the solve. */
  readonly cancel?: Uint32Array;
  readonly warm?: Warm;
}

/** @throws GuidevaneError `native_unavailable` when `want` is `native` and there is no addon */
export function createSimplex(want: Want, native: () => NativeLoad = loadNative): Simplex {
  const choice = chooseTwin(want, "solver", native);
  if (choice.binding === null)
    return choice.degraded === undefined ? tsSimplex : { ...tsSimplex, degraded: choice.degraded };
  const { binding } = choice;
  return { kind: "native", solve: (problem, options = {}) => solveNative(binding, problem, options) };
}

const tsSimplex: Simplex = {
  kind: "ts",
  solve(problem, { deadlineMs, cancel, ...options } = {}) {
    const until = deadlineMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + deadlineMs;
    const poll = (): boolean => (cancel !== undefined && Atomics.load(cancel, 0) !== 0) || performance.now() >= until;
    return solveSimplex(problem, { ...options, poll });
  },
};

const ENDINGS = ["solved", "pivots", "stopped", "stages"] as const;
const NO_NUMBERS = new Float64Array(0);
const NO_WORDS = new Uint32Array(0);

function solveNative(binding: NativeBinding, problem: Problem, options: SimplexRun): SimplexSolution {
  const { curves, churn } = problem;
  const { targetGap = 1e-9, pivotLimit = defaultPivotLimit(problem), deadlineMs, warm } = options;
  const { headroom, headroomMs } = curves;
  // The addon looks at every number faster than this side can; only the words for a refusal come from here.
  if (!Number.isInteger(problem.shedSteps)) return refuse(problem, `shedSteps is ${problem.shedSteps}`);
  const result = attempt(() =>
    binding.solveSimplex(
      ...own(problem.demandWps, problem.arcStart, problem.arcEngine, problem.arcCostMs),
      ...own(curves.capacityWps, curves.knotStart, curves.knotRho, curves.knotMs, problem.shedMs),
      Float64Array.of(
        headroom,
        headroomMs,
        problem.shedStepMs,
        problem.shedSteps,
        targetGap,
        pivotLimit,
        // 0 would mean none; a deadline of now is the shortest there is.
        deadlineMs === undefined ? 0 : Math.max(deadlineMs, 1e-3),
      ),
      ...own(churn?.referenceWps ?? NO_NUMBERS, churn?.moveMs ?? NO_NUMBERS),
      warm?.parent ?? new Int32Array(0),
      ...own(warm?.price ?? NO_NUMBERS, warm?.part ?? NO_NUMBERS, warm?.load ?? NO_NUMBERS),
      ...own(warm?.heldCell ?? NO_WORDS, warm?.heldEngine ?? NO_WORDS),
      options.cancel ?? new Uint32Array(new SharedArrayBuffer(4)),
    ),
  );
  if (result instanceof Error) return refuse(problem, result.message);
  const gapHistory = Array.from(result.gapHistory);
  const ending = ENDINGS[result.ending] ?? "stopped";
  return {
    status: ending === "solved" ? "solved" : "capped",
    message: ending === "solved" ? "" : endMessage(ending, result.pivots, gapHistory.at(-1) ?? Number.NaN),
    flowWps: result.flowWps,
    shedWps: result.shedWps,
    loadWps: result.loadWps,
    priceMs: result.priceMs,
    objectiveMs: result.objectiveMs,
    lowerBoundMs: result.lowerBoundMs,
    warm: {
      cells: problem.demandWps.length,
      engines: curves.capacityWps.length,
      parent: result.warmParent,
      price: result.warmPrice,
      part: result.warmPart,
      load: result.warmLoad,
      heldCell: result.warmHeldCell,
      heldEngine: result.warmHeldEngine,
    },
    pivots: result.pivots,
    stages: result.stages,
    gapHistory,
  };
}

/** The addon's own refusal as a value; anything else it throws is a bug and goes on. */
function attempt(call: () => SimplexResult): SimplexResult | Error {
  try {
    return call();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "InvalidArg") return error;
    throw error;
  }
}

function refuse(problem: Problem, message: string): SimplexSolution {
  return refused(problem, checkProblem(problem) ?? checkChurn(problem) ?? { status: "invalid", message });
}

/** Copies what another thread could write to while Rust reads it. */
function own<T extends (Float64Array | Uint32Array)[]>(...columns: T): T {
  return columns.map((column) => (column.buffer instanceof SharedArrayBuffer ? column.slice() : column)) as T;
}
