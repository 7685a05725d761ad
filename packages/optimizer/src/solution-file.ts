import { GuidevaneError, parseBy } from "@guidevane/core";
import { z } from "zod";
import { lowerBound } from "./bound.ts";
import type { Problem, Solution } from "./problem.ts";
import type { ProblemFile } from "./problem-file.ts";
import { shedPrice } from "./shed.ts";
import { carryWarm } from "./simplex/carry-warm.ts";
import type { Warm } from "./simplex/warm.ts";

/**
 * A solution as a file: what `guidevane solve --json` prints and `--warm` reads. Indices are those of the problem file.
 * Only arcs that carry something are listed.
 */
const numbers = z.array(z.number());
const indices = z.array(z.int());

export const SOLUTION_FORMAT = "guidevane-solution-1";

const warmSchema = z.strictObject({
  parent: indices,
  price: numbers,
  part: numbers,
  load: numbers,
  heldCell: indices,
  heldEngine: indices,
});

const solutionFileSchema = z.object({
  format: z.literal(SOLUTION_FORMAT),
  status: z.enum(["solved", "capped", "timed-out"]),
  /** Says why where it is not `solved`. */
  message: z.string(),
  solver: z.enum(["native", "ts", "lp"]),
  /** The solve alone. */
  solveMs: z.number(),
  /** ms of latency per second, as is the bound. */
  objectiveMs: z.number(),
  lowerBoundMs: z.number(),
  gapMs: z.number(),
  /** gapMs ÷ lowerBoundMs. */
  gap: z.number(),
  cells: z.object({
    id: z.array(z.string()),
    demandWps: numbers,
    shedWps: numbers,
    /** What one more unit of work of this cell costs, ms. */
    priceMs: numbers,
  }),
  engines: z.object({ id: z.array(z.string()), loadWps: numbers, capacityWps: numbers, priceMs: numbers }),
  arcs: z.object({
    /** Place in the problem file's columns. */
    arc: indices,
    cell: indices,
    engine: indices,
    flowWps: numbers,
    /** Part of what the cell is served. */
    weight: numbers,
  }),
  /** What the next solve may start from; null from the linear programme. */
  warm: warmSchema.nullable(),
});

export type SolutionFile = z.infer<typeof solutionFileSchema>;

export interface SolvedBy {
  readonly solver: SolutionFile["solver"];
  readonly solveMs: number;
  readonly warm: Warm | null;
}

/** A solution with flows, under the names of its problem's file. */
export function writeSolutionFile(
  { problem, cellIds, engineIds, arcFrom }: ProblemFile,
  solution: Solution & { readonly status: SolutionFile["status"] },
  { solver, solveMs, warm }: SolvedBy,
): SolutionFile {
  const { arcStart, arcEngine, demandWps } = problem;
  const arcs: SolutionFile["arcs"] = { arc: [], cell: [], engine: [], flowWps: [], weight: [] };
  for (let cell = 0; cell < demandWps.length; cell++) {
    let served = 0;
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) served += solution.flowWps[arc]!;
    for (let arc = arcStart[cell]!; arc < arcStart[cell + 1]!; arc++) {
      const flow = solution.flowWps[arc]!;
      if (!(flow > 0)) continue;
      arcs.arc.push(arcFrom[arc]!);
      arcs.cell.push(cell);
      arcs.engine.push(arcEngine[arc]!);
      arcs.flowWps.push(flow);
      arcs.weight.push(flow / served);
    }
  }
  const gapMs = solution.objectiveMs - solution.lowerBoundMs;
  return {
    format: SOLUTION_FORMAT,
    status: solution.status,
    message: solution.message,
    solver,
    solveMs,
    objectiveMs: solution.objectiveMs,
    lowerBoundMs: solution.lowerBoundMs,
    gapMs,
    gap: solution.lowerBoundMs > 0 ? gapMs / solution.lowerBoundMs : 0,
    cells: {
      id: [...cellIds],
      demandWps: [...demandWps],
      shedWps: [...solution.shedWps],
      priceMs: cellPrices(problem, solution),
    },
    engines: {
      id: [...engineIds],
      loadWps: [...solution.loadWps],
      capacityWps: [...problem.curves.capacityWps],
      priceMs: [...solution.priceMs],
    },
    arcs,
    warm:
      warm === null
        ? null
        : {
            parent: [...warm.parent],
            price: [...warm.price],
            part: [...warm.part],
            load: [...warm.load],
            heldCell: [...warm.heldCell],
            heldEngine: [...warm.heldEngine],
          },
  };
}

/** The cheapest way for one more unit of work: through an engine, or to be shed at the cell's present step. */
function cellPrices(problem: Problem, { shedWps, priceMs }: Solution): number[] {
  const { demandPriceMs } = lowerBound(problem, priceMs);
  return Array.from(demandPriceMs, (price, cell) => {
    const demand = problem.demandWps[cell]!;
    return Math.min(price, shedPrice(problem, cell, demand > 0 ? shedWps[cell]! / demand : 0));
  });
}

/**
 * What an earlier solution leaves for this problem. Cells and engines are matched by name, so engines may have come and
 * gone in between.
 *
 * @throws GuidevaneError `bad_problem`, naming what is wrong with the solution's file
 */
export function readWarm(text: string, name: string, { cellIds, engineIds }: ProblemFile): Warm {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new GuidevaneError("bad_problem", `${name}: is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const { warm, cells, engines } = parseBy(solutionFileSchema, data, name, "bad_problem");
  if (warm === null)
    throw new GuidevaneError(
      "bad_problem",
      `${name}: warm: is null; the linear programme leaves nothing to start from`,
    );
  const [K, E] = [cells.id.length, engines.id.length];
  const lengths = [
    ["parent", warm.parent.length, K + E],
    ["price", warm.price.length, K + E],
    ["part", warm.part.length, K + E],
    ["load", warm.load.length, E],
    ["heldEngine", warm.heldEngine.length, warm.heldCell.length],
  ] as const;
  for (const [field, is, must] of lengths)
    if (is !== must)
      throw new GuidevaneError("bad_problem", `${name}: warm.${field}: ${is} entries, must have ${must}`);
  const bad = warm.parent.findIndex(
    (up, node) => !(up === K + E || (node < K ? up >= K && up < K + E : up >= 0 && up < K)),
  );
  if (bad >= 0)
    throw new GuidevaneError(
      "bad_problem",
      `${name}: warm.parent.${bad}: ${warm.parent[bad]} is no parent of this node`,
    );
  const [heldCell, heldEngine] = [Uint32Array.from(warm.heldCell), Uint32Array.from(warm.heldEngine)];
  if (heldCell.some((cell) => cell >= K) || heldEngine.some((engine) => engine >= E))
    throw new GuidevaneError("bad_problem", `${name}: warm.heldCell, warm.heldEngine: an index past the last`);
  return carryWarm(
    {
      cells: K,
      engines: E,
      parent: Int32Array.from(warm.parent),
      price: Float64Array.from(warm.price),
      part: Float64Array.from(warm.part),
      load: Float64Array.from(warm.load),
      heldCell,
      heldEngine,
    },
    numbersBefore(cells.id, cellIds),
    numbersBefore(engines.id, engineIds),
  );
}

/** The earlier number of each of today's names, or −1. */
function numbersBefore(earlier: readonly string[], now: readonly string[]): Int32Array {
  const at = new Map(earlier.map((id, number) => [id, number]));
  return Int32Array.from(now, (id) => at.get(id) ?? -1);
}
