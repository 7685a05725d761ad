import { decodeRing, type Publication } from "@guidevane/core";
import type { Flows } from "./bound.ts";
import { type PriceRanges, priceRanges } from "./price-ranges.ts";
import type { Problem } from "./problem.ts";
import { loadProblem, type StoredProblem } from "./stored-problem.ts";

/** What an explanation is read from: the stored problem, its prices, and what the published weights put where. */
export interface Facts {
  readonly problem: Problem;
  readonly stored: StoredProblem;
  readonly priceMs: Float64Array;
  readonly flows: Flows;
  readonly ranges: PriceRanges;
}

/** What a weight of less than half a slot may have been dropped for, as a part of a load. */
const ROUNDING = 1e-6;

export function readFacts(publication: Publication): Facts {
  const { problem, stored, priceMs } = loadProblem(publication.problem);
  const engineAt = new Map(stored.engines.map((id, engine) => [id, engine]));
  const flowWps = new Float64Array(problem.arcEngine.length);
  const shedWps = new Float64Array(stored.cells.length);
  const loadWps = new Float64Array(priceMs.length);
  const slackWps = new Float64Array(priceMs.length);
  for (const [cell, { cluster, class: requestClass }] of stored.cells.entries()) {
    const shown = publication.clusters.get(cluster)?.cells.find((each) => each.class === requestClass);
    if (shown === undefined) continue;
    const demand = problem.demandWps[cell]!;
    shedWps[cell] = demand * shown.shed;
    const weights = new Map(shown.engines.map((id, at) => [engineAt.get(id)!, shown.weights[at]!]));
    const slots = Math.max(1, decodeRing(shown).length);
    for (const arc of arcsOf(problem, cell)) {
      const engine = problem.arcEngine[arc]!;
      flowWps[arc] = demand * (1 - shown.shed) * (weights.get(engine) ?? 0);
      loadWps[engine]! += flowWps[arc]!;
      if (flowWps[arc]! > 0) slackWps[engine]! += demand / slots;
    }
  }
  const flows = { flowWps, shedWps, loadWps };
  return {
    problem,
    stored,
    priceMs,
    flows,
    ranges: priceRanges(problem, flows, priceMs, { part: ROUNDING, slackWps }),
  };
}

export function arcsOf({ arcStart }: Problem, cell: number): number[] {
  return Array.from({ length: arcStart[cell + 1]! - arcStart[cell]! }, (_, at) => arcStart[cell]! + at);
}
