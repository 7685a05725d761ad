import { GuidevaneError, type InputProblem, problem as inputProblem, parseBy, refuse } from "@guidevane/core";
import { z } from "zod";
import { checkProblem } from "./check-problem.ts";
import { curveKnots, curveSchema } from "./curve-kinds.ts";
import type { Problem } from "./problem.ts";

/**
 * A problem as a file: the problem of `problem.ts` in JSON, arcs as columns. `docs/problem-file.md` says what each field
 * means; `problemFileJsonSchema` is its schema.
 */

// Columns are long, and a schema that looks at each entry takes longer than the solve: their entries are checked below.
const column = (items: Record<string, unknown>, says: string) =>
  z
    .custom<readonly number[]>((value) => Array.isArray(value), { error: "must be an array of numbers" })
    .meta({ type: "array", items, description: says });
const amounts = (says: string) => column({ type: "number", minimum: 0 }, says);
const indices = (says: string) => column({ type: "integer", minimum: 0 }, says);
const ids = z.array(z.string().min(1)).optional().describe("Names, one each; left out: the numbers from 0");

export const PROBLEM_FORMAT = "guidevane-problem-1";

const problemFileSchema = z.strictObject({
  format: z.literal(PROBLEM_FORMAT),
  cells: z.strictObject({
    id: ids,
    demandWps: amounts("Demand, work units/s"),
    shedMs: amounts("Price of the first unit of work shed, ms"),
  }),
  engines: z.strictObject({
    id: ids,
    capacityWps: amounts("Work units/s; 0 takes no load"),
    curve: indices("Index into `curves`"),
  }),
  curves: z.array(curveSchema).describe("Ms that load adds to a unit of work, against utilisation"),
  arcs: z.strictObject({
    cell: indices("Index of the cell, in any order"),
    engine: indices("Index of the engine"),
    costMs: amounts("Ms of a unit of work at the idle engine, network included"),
    referenceWps: amounts("Traffic that stands here already, work units/s").optional(),
    moveMs: amounts("Price of a unit of work gained above the reference, ms").optional(),
  }),
  headroom: z
    .strictObject({ part: z.number().min(0).max(1), ms: z.number().nonnegative() })
    .default({ part: 0, ms: 0 })
    .describe("The ramp over the last part of every engine's capacity, and its marginal cost at full load"),
  shed: z
    .strictObject({ stepMs: z.number().nonnegative(), steps: z.int().min(0).max(1000) })
    .default({ stepMs: 0, steps: 0 })
    .describe("The price of shedding rises by stepMs in each of so many equal parts of a cell's demand"),
});

/** A problem, and what its numbers are called in the file. */
export interface ProblemFile {
  readonly problem: Problem;
  readonly cellIds: readonly string[];
  readonly engineIds: readonly string[];
  /** Place in the file's columns of each of the problem's arcs, which are ordered by cell and then engine. */
  readonly arcFrom: Uint32Array;
}

/** The schema of a problem file as JSON Schema, for editors and other programs. */
export function problemFileJsonSchema(): unknown {
  return z.toJSONSchema(problemFileSchema, { io: "input", target: "draft-2020-12", unrepresentable: "any" });
}

/**
 * A problem file's text to a problem.
 *
 * @throws GuidevaneError `bad_problem`, naming each field and its value
 */
export function parseProblemFile(text: string, name: string): ProblemFile {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new GuidevaneError("bad_problem", `${name}: is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const file = parseBy(problemFileSchema, data, name, "bad_problem");
  refuse("bad_problem", name, columnProblems(file));
  const built = build(file);
  refuse("bad_problem", name, built.repeated);
  const wrong = checkProblem(built.problem);
  if (wrong !== null) throw new GuidevaneError("bad_problem", `${name}: ${wrong.message}`);
  return built;
}

/** The inverse: a problem as what `JSON.stringify` makes a file of. */
export function writeProblemFile(
  problem: Problem,
  cellIds?: readonly string[],
  engineIds?: readonly string[],
): z.input<typeof problemFileSchema> {
  const { curves, churn } = problem;
  const engines = Array.from(curves.capacityWps.keys());
  const cell = Array.from(problem.demandWps.keys()).flatMap((k) =>
    new Array<number>(problem.arcStart[k + 1]! - problem.arcStart[k]!).fill(k),
  );
  return {
    format: PROBLEM_FORMAT,
    cells: {
      ...(cellIds === undefined ? {} : { id: [...cellIds] }),
      demandWps: [...problem.demandWps],
      shedMs: [...problem.shedMs],
    },
    engines: {
      ...(engineIds === undefined ? {} : { id: [...engineIds] }),
      capacityWps: [...curves.capacityWps],
      curve: engines,
    },
    curves: engines.map((engine) => ({
      kind: "knots" as const,
      knots: Array.from(curves.knotRho.subarray(curves.knotStart[engine], curves.knotStart[engine + 1]), (rho, at) => [
        rho,
        curves.knotMs[curves.knotStart[engine]! + at]!,
      ]),
    })),
    arcs: {
      cell,
      engine: [...problem.arcEngine],
      costMs: [...problem.arcCostMs],
      ...(churn === undefined ? {} : { referenceWps: [...churn.referenceWps], moveMs: [...churn.moveMs] }),
    },
    headroom: { part: curves.headroom, ms: curves.headroomMs },
    shed: { stepMs: problem.shedStepMs, steps: problem.shedSteps },
  };
}

type FileData = z.infer<typeof problemFileSchema>;

/** One problem a column: the first entry that can't be, or a length that differs. */
function columnProblems({ cells, engines, curves, arcs }: FileData): InputProblem[] {
  const [K, E, A] = [cells.demandWps.length, engines.capacityWps.length, arcs.cell.length];
  const problems: InputProblem[] = [];
  const look = (path: string, values: readonly unknown[] | undefined, length: number, below?: number): void => {
    if (values === undefined) return;
    if (values.length !== length)
      problems.push(inputProblem("invalid_value", path, values.length, `must have ${length} entries`));
    for (let at = 0; at < values.length; at++) {
      const value = values[at];
      const fits =
        typeof value === "number" &&
        value >= 0 &&
        (below === undefined ? value < Number.POSITIVE_INFINITY : Number.isInteger(value) && value < below);
      if (fits) continue;
      const must = below === undefined ? "must be a number of 0 or more" : `must be an index below ${below}`;
      problems.push(inputProblem("invalid_value", `${path}.${at}`, value, must));
      return;
    }
  };
  look("cells.demandWps", cells.demandWps, K);
  look("cells.shedMs", cells.shedMs, K);
  look("engines.capacityWps", engines.capacityWps, E);
  look("engines.curve", engines.curve, E, curves.length);
  look("arcs.cell", arcs.cell, A, K);
  look("arcs.engine", arcs.engine, A, E);
  look("arcs.costMs", arcs.costMs, A);
  look("arcs.referenceWps", arcs.referenceWps, A);
  look("arcs.moveMs", arcs.moveMs, A);
  if ((arcs.referenceWps === undefined) !== (arcs.moveMs === undefined)) {
    const lacking = arcs.moveMs === undefined ? "moveMs" : "referenceWps";
    problems.push(inputProblem("missing_key", `arcs.${lacking}`, undefined, "referenceWps and moveMs come together"));
  }
  for (const [path, names, length] of [
    ["cells.id", cells.id, K],
    ["engines.id", engines.id, E],
  ] as const) {
    if (names === undefined) continue;
    if (names.length !== length)
      problems.push(inputProblem("invalid_value", path, names.length, `must have ${length} entries`));
    const seen = new Set<string>();
    const twice = names.findIndex((each) => seen.size === seen.add(each).size);
    if (twice >= 0) problems.push(inputProblem("duplicate_id", `${path}.${twice}`, names[twice], "stands twice"));
  }
  for (const [at, curve] of curves.entries()) problems.push(...knotProblems(`curves.${at}`, curveKnots(curve)));
  return problems;
}

/** Rounding of decimal knots must not make a straight line look concave. */
const SLOPE_TOLERANCE = 1e-9;

function knotProblems(path: string, knots: ReturnType<typeof curveKnots>): InputProblem[] {
  if (knots[0]![0] !== 0)
    return [inputProblem("invalid_value", `${path}.knots.0`, knots[0], "the first knot is at utilisation 0")];
  let last = 0;
  for (let at = 1; at < knots.length; at++) {
    const [left, right] = [knots[at - 1]!, knots[at]!];
    const slope = (right[1] - left[1]) / (right[0] - left[0]);
    if (!(right[0] > left[0]) || !(slope >= last - SLOPE_TOLERANCE * Math.max(1, last)))
      return [inputProblem("invalid_value", `${path}.knots.${at}`, right, "the curve must be convex and rising")];
    last = Math.max(last, slope);
  }
  return [];
}

function build(file: FileData): ProblemFile & { readonly repeated: InputProblem[] } {
  const { cells, engines, curves, arcs, headroom, shed } = file;
  const { arcStart, arcFrom, repeated } = orderArcs(
    arcs.cell,
    arcs.engine,
    cells.demandWps.length,
    engines.capacityWps.length,
  );
  // Loops, since `from` with a function takes ten times as long and these are the longest columns.
  const pick = <Column extends Float64Array | Uint32Array>(values: readonly number[], out: Column): Column => {
    for (let arc = 0; arc < out.length; arc++) out[arc] = values[arcFrom[arc]!]!;
    return out;
  };
  const amount = (values: readonly number[]) => pick(values, new Float64Array(arcFrom.length));
  const shapes = curves.map(curveKnots);
  const knots = engines.curve.map((shape) => shapes[shape]!);
  const knotStart = new Uint32Array(knots.length + 1);
  for (const [engine, each] of knots.entries()) knotStart[engine + 1] = knotStart[engine]! + each.length;
  const churn =
    arcs.referenceWps === undefined || arcs.moveMs === undefined
      ? {}
      : { churn: { referenceWps: amount(arcs.referenceWps), moveMs: amount(arcs.moveMs) } };
  const problem: Problem = {
    demandWps: Float64Array.from(cells.demandWps),
    arcStart,
    arcEngine: pick(arcs.engine, new Uint32Array(arcFrom.length)),
    arcCostMs: amount(arcs.costMs),
    curves: {
      capacityWps: Float64Array.from(engines.capacityWps),
      knotStart,
      knotRho: Float64Array.from(knots.flat(), ([rho]) => rho),
      knotMs: Float64Array.from(knots.flat(), ([, ms]) => ms),
      headroom: headroom.part,
      headroomMs: headroom.ms,
    },
    shedMs: Float64Array.from(cells.shedMs),
    shedStepMs: shed.stepMs,
    shedSteps: shed.steps,
    ...churn,
  };
  return {
    problem,
    cellIds: cells.id ?? cells.demandWps.map((_, at) => String(at)),
    engineIds: engines.id ?? engines.capacityWps.map((_, at) => String(at)),
    arcFrom,
    repeated,
  };
}

/** Arcs by cell, then engine, by counting: first by engine, then (stably) by cell. */
function orderArcs(
  cell: readonly number[],
  engine: readonly number[],
  cells: number,
  engines: number,
): { arcStart: Uint32Array; arcFrom: Uint32Array; repeated: InputProblem[] } {
  const inFile = new Uint32Array(cell.length);
  for (let at = 0; at < inFile.length; at++) inFile[at] = at;
  const byEngine = countingSort(inFile, engine, engines).order;
  const { order, start } = countingSort(byEngine, cell, cells);
  const repeated: InputProblem[] = [];
  for (let at = 1; at < order.length && repeated.length === 0; at++) {
    const [one, other] = [order[at - 1]!, order[at]!];
    if (cell[one] === cell[other] && engine[one] === engine[other])
      repeated.push(
        inputProblem("duplicate_id", `arcs.engine.${other}`, engine[other], `cell ${cell[other]} has this arc already`),
      );
  }
  return { arcStart: start, arcFrom: order, repeated };
}

function countingSort(items: Uint32Array, keys: readonly number[], most: number) {
  const start = new Uint32Array(most + 1);
  for (const item of items) start[keys[item]! + 1]!++;
  for (let key = 0; key < most; key++) start[key + 1]! += start[key]!;
  const next = start.slice();
  const order = new Uint32Array(items.length);
  for (const item of items) order[next[keys[item]!]!++] = item;
  return { order, start };
}
