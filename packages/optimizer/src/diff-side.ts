import { isDeepStrictEqual } from "node:util";
import type { Publication, SnapshotClass } from "@guidevane/core";
import { servedPart } from "./churn.ts";
import { cellKey } from "./plan-types.ts";
import { loadProblem, type StoredProblem } from "./stored-problem.ts";

/** The inputs that are told apart, in the order in which they are changed from the one publication's to the other's. */
export const INPUT_KINDS = ["eligibility", "capacity", "network", "work", "demand"] as const;
export type InputKind = (typeof INPUT_KINDS)[number];

/** By cell, then engine id. */
export type Weights = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** One of the two publications that are compared. */
export interface Side {
  readonly stored: StoredProblem;
  readonly cells: readonly string[];
  readonly engines: readonly string[];
  readonly classes: Readonly<Record<string, SnapshotClass>>;
  readonly weights: Weights;
  readonly demandRps: ReadonlyMap<string, number>;
  /** Part of the demand that the weights carry, by cell. */
  readonly served: ReadonlyMap<string, number>;
  /** By cell and engine id; undefined for an engine that the cell's cluster does not know. */
  readonly rttMs: (cell: number, engine: string) => number | undefined;
}

export function readSide(publication: Publication): Side {
  const { stored } = loadProblem(publication.problem);
  const cells = stored.cells.map((each) => cellKey(each.cluster, each.class));
  const weights = new Map<string, Map<string, number>>();
  for (const { cluster, cells: shown } of publication.clusters.values()) {
    for (const cell of shown)
      weights.set(cellKey(cluster, cell.class), new Map(cell.engines.map((engine, at) => [engine, cell.weights[at]!])));
  }
  const served = new Map(
    [...publication.clusters.values()].flatMap(({ cluster, cells: shown }) =>
      shown.map((cell) => [cellKey(cluster, cell.class), servedPart(cell.shed)] as const),
    ),
  );
  const [any] = publication.clusters.values();
  return {
    served,
    stored,
    cells,
    engines: stored.engines,
    classes: any?.classes ?? {},
    weights,
    demandRps: new Map(stored.cells.map(({ demandRps }, cell) => [cells[cell]!, demandRps])),
    rttMs: (cell, engine) => publication.clusters.get(stored.cells[cell]!.cluster)?.engines[engine]?.rttMs,
  };
}

/** c by engine id. */
export function arcCosts(stored: StoredProblem, cell: number): Map<string, number> {
  const costs = new Map<string, number>();
  for (let arc = stored.arcStart[cell]!; arc < stored.arcStart[cell + 1]!; arc++)
    costs.set(stored.engines[stored.arcEngine[arc]!]!, stored.arcCostMs[arc]!);
  return costs;
}

/** Curves follow the mix of the demand; where classes, knots or nothing else changed it is the curves themselves that did. */
export function curvesMovedBy(a: Side, b: Side): "demand" | "work" {
  const isSameShape = isDeepStrictEqual(a.classes, b.classes) && isDeepStrictEqual(a.stored.knotRho, b.stored.knotRho);
  const hasOtherDemand = b.stored.cells.some(({ demandRps }, cell) => demandRps !== a.demandRps.get(b.cells[cell]!));
  return isSameShape && hasOtherDemand ? "demand" : "work";
}
