import { type ClusterSnapshot, ineligibleFor, type Publication, type SnapshotCell } from "@guidevane/core";

/** What a plan means for the requests of one cell, one cluster, or the fleet. */
export interface TrafficFigures {
  readonly demandRps: number;
  /** Expected time of a served request; null where none is served. */
  readonly meanLatencyMs: number | null;
  /** How much longer the way to its engine is than to the nearest that may serve it; null where none is served. */
  readonly detourMs: number | null;
  /** Fraction of the demand. */
  readonly shed: number;
}

export interface ClusterFigures extends TrafficFigures {
  readonly cluster: string;
  readonly classes: readonly (TrafficFigures & {
    readonly class: string;
    /** What one more request costs the fleet. */
    readonly priceMs: number;
    readonly pinned: boolean;
  })[];
}

export interface PlanFigures {
  readonly fleet: TrafficFigures;
  readonly clusters: readonly ClusterFigures[];
}

/** Mean latency, detour and shed share of a publication, by cluster and class; by its weights. */
export function planFigures({ clusters }: Publication): PlanFigures {
  const fleet = new Sum();
  const all = [...clusters.values()].map((snapshot): ClusterFigures => {
    const cluster = new Sum();
    const classes = snapshot.cells.map((cell) => {
      const own = new Sum();
      for (const sum of [own, cluster, fleet]) sum.add(cell, detourOf(snapshot, cell));
      return { class: cell.class, ...own.figures(), priceMs: cell.priceMs, pinned: cell.pin !== undefined };
    });
    return { cluster: snapshot.cluster, ...cluster.figures(), classes };
  });
  return { fleet: fleet.figures(), clusters: all };
}

/** By engine of the cell: its round trip less the least of those that may serve the class. */
function detourOf({ engines, classes }: ClusterSnapshot, cell: SnapshotCell): number[] {
  const spec = classes[cell.class]!;
  let least = Number.POSITIVE_INFINITY;
  for (const engine of Object.values(engines))
    if (engine.rttMs < least && ineligibleFor(spec, engine, engine.rttMs) === null) least = engine.rttMs;
  return cell.engines.map((id) => engines[id]!.rttMs - least);
}

class Sum {
  #demandRps = 0;
  #servedRps = 0;
  #latency = 0;
  #detour = 0;

  add({ demandRps, shed, weights, expectedMs }: SnapshotCell, detourMs: readonly number[]): void {
    const servedRps = demandRps * (1 - shed);
    this.#demandRps += demandRps;
    this.#servedRps += servedRps;
    for (const [at, weight] of weights.entries()) {
      this.#latency += servedRps * weight * expectedMs[at]!;
      this.#detour += servedRps * weight * detourMs[at]!;
    }
  }

  figures(): TrafficFigures {
    const per = (total: number) => (this.#servedRps > 0 ? total / this.#servedRps : null);
    return {
      demandRps: this.#demandRps,
      meanLatencyMs: per(this.#latency),
      detourMs: per(this.#detour),
      shed: this.#demandRps > 0 ? 1 - this.#servedRps / this.#demandRps : 0,
    };
  }
}
