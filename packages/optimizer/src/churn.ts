import type { SnapshotCell, StoredPublication } from "@guidevane/core";
import type { CellFacts, ProblemIndex } from "./build-problem.ts";
import type { Problem } from "./problem.ts";

/**
 * The price of moving traffic. The flows that moves are counted from are the published weights × the new demand,
 *
 *     ẑ_ke = v_ke·d_k,   m_ke = churnMs ÷ a_k        a request/s gained beyond x̂_ke = v_ke·D_k costs `churnMs`
 *
 * because weights are what gateways hold: demand that comes and goes at the same weights moves nothing. Of a cell that sheds
 * it is the part that was served: counted from all of it, as much as is shed could move to and fro for nothing. Only the side that
 * gains pays, so a move costs `churnMs` once. A cell without published weights has nothing to move from, and pays nothing.
 */
export function addChurn(
  problem: Problem,
  { cells, engines }: ProblemIndex,
  previous: StoredPublication | null,
  churnMs: number,
): Problem {
  if (previous === null || churnMs === 0) return problem;
  const referenceWps = new Float64Array(problem.arcEngine.length);
  const moveMs = new Float64Array(problem.arcEngine.length);
  for (const [cell, facts] of cells.entries()) {
    const found = publishedCell(previous, facts);
    if (found === undefined) continue;
    const weights = new Map(found.engines.map((id, at) => [id, found.weights[at]!]));
    const servedWps = problem.demandWps[cell]! * servedPart(found.shed);
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const weight = weights.get(engines[problem.arcEngine[arc]!]!.spec.id) ?? 0;
      referenceWps[arc] = weight * servedWps;
      moveMs[arc] = churnMs / facts.spec.work;
    }
  }
  return { ...problem, churn: { referenceWps, moveMs } };
}

/** Part of the demand that the published weights carry; of a cell that is shed whole, what they would carry. */
export function servedPart(shed: number): number {
  return shed < 1 ? 1 - shed : 1;
}

/** The publication's cell of the same cluster and class. */
export function publishedCell(
  previous: StoredPublication | null,
  { cluster, spec }: Pick<CellFacts, "cluster" | "spec">,
): SnapshotCell | undefined {
  return previous?.clusters.get(cluster.name)?.cells.find((cell) => cell.class === spec.name);
}

/** Weights by engine id; null where the publication has no such cell. */
export function publishedWeights(
  previous: StoredPublication | null,
  cell: Pick<CellFacts, "cluster" | "spec">,
): ReadonlyMap<string, number> | null {
  const found = publishedCell(previous, cell);
  return found === undefined ? null : new Map(found.engines.map((id, at) => [id, found.weights[at]!]));
}
