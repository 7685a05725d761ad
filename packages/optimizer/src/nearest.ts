import type { ClusterSnapshot, Publication } from "@guidevane/core";
import { addedMs, type BuildOptions, type BuiltProblem, buildProblem } from "./build-problem.ts";
import type { PlanInputs } from "./plan-types.ts";

/** What sending every cell wholly to its nearest eligible engine would do; for the comparison that people ask for. */
export type NearestOnly =
  | { readonly kind: "bounded"; readonly meanMs: number; readonly clusters: ReadonlyMap<string, number> }
  /** More work than the engine can do: its queue, and the latency, grow without bound. */
  | { readonly kind: "unbounded"; readonly over: readonly OverCapacity[] }
  /** Nothing to route: no engine may serve anything; or the inputs can't be a problem. */
  | { readonly kind: "none"; readonly message: string };

export interface OverCapacity {
  readonly engine: string;
  readonly loadWps: number;
  readonly capacityWps: number;
}

/**
 * Mean latency per request, ms, fleet-wide and by cluster, were each cell sent wholly to the eligible engine with the
 * least round trip (ties by id). The same costs as the plan's: n + ΔTTFT + tokens × ΔTBOT.
 */
export function nearestOnly(inputs: PlanInputs, options: BuildOptions = {}): NearestOnly {
  const built = buildProblem(inputs, options);
  if (!built.ok) return { kind: "none", message: built.message };
  const nearest = nearestArcs(built);
  if (nearest.length === 0) return { kind: "none", message: "no engine may serve any class" };
  const { problem, index } = built;
  const loadWps = new Float64Array(index.engines.length);
  for (const [cell, arc] of nearest.entries()) loadWps[problem.arcEngine[arc]!]! += problem.demandWps[cell]!;
  const over = index.engines.flatMap(({ spec }, engine): OverCapacity[] => {
    const capacityWps = problem.curves.capacityWps[engine]!;
    return loadWps[engine]! > capacityWps ? [{ engine: spec.id, loadWps: loadWps[engine]!, capacityWps }] : [];
  });
  if (over.length > 0) return { kind: "unbounded", over };

  const mean = new Mean();
  for (const [cell, { cluster, spec, demandRps }] of index.cells.entries()) {
    const arc = nearest[cell]!;
    const engine = problem.arcEngine[arc]!;
    const rho = loadWps[engine]! / problem.curves.capacityWps[engine]!;
    const { profile } = index.engines[engine]!;
    mean.add(cluster.name, demandRps, index.arcRttMs[arc]! + index.arcServiceMs[arc]! + addedMs(profile, spec, rho));
  }
  return { kind: "bounded", meanMs: mean.meanMs, clusters: mean.clusters };
}

/**
 * Mean expected latency of a publication's served requests, ms, fleet-wide and by cluster; null where nothing is served.
 * By its weights: the certificate's `expectedLatencyMs` is the same figure by the rings' shares.
 */
export function meanLatency(publication: Pick<Publication, "clusters">): {
  readonly meanMs: number | null;
  readonly clusters: ReadonlyMap<string, number>;
} {
  const mean = new Mean();
  for (const snapshot of publication.clusters.values()) addCluster(mean, snapshot);
  return { meanMs: Number.isNaN(mean.meanMs) ? null : mean.meanMs, clusters: mean.clusters };
}

function addCluster(mean: Mean, { cluster, cells }: ClusterSnapshot): void {
  for (const { demandRps, shed, weights, expectedMs } of cells)
    for (const [at, weight] of weights.entries()) mean.add(cluster, demandRps * (1 - shed) * weight, expectedMs[at]!);
}

/** Per cell, the arc with the least round trip; ties by engine id. */
function nearestArcs({ problem, index }: BuiltProblem & { ok: true }): number[] {
  return index.cells.map((_, cell) => {
    let best = problem.arcStart[cell]!;
    for (let arc = best + 1; arc < problem.arcStart[cell + 1]!; arc++) {
      const nearer = index.arcRttMs[arc]! - index.arcRttMs[best]!;
      const id = (each: number) => index.engines[problem.arcEngine[each]!]!.spec.id;
      if (nearer < 0 || (nearer === 0 && id(arc) < id(best))) best = arc;
    }
    return best;
  });
}

/** A mean weighted by requests/s, of the fleet and of each cluster. */
class Mean {
  readonly #sums = new Map<string, { rps: number; ms: number }>();

  add(cluster: string, rps: number, ms: number): void {
    if (!(rps > 0)) return;
    const sum = this.#sums.get(cluster) ?? { rps: 0, ms: 0 };
    sum.rps += rps;
    sum.ms += rps * ms;
    this.#sums.set(cluster, sum);
  }

  /** NaN when nothing was added. */
  get meanMs(): number {
    const sums = [...this.#sums.values()];
    return sums.reduce((total, { ms }) => total + ms, 0) / sums.reduce((total, { rps }) => total + rps, 0);
  }

  get clusters(): ReadonlyMap<string, number> {
    return new Map(Array.from(this.#sums, ([cluster, { rps, ms }]) => [cluster, ms / rps]));
  }
}
