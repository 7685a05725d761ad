import { GuidevaneError, knownNames, type Publication, type SnapshotCell } from "@guidevane/core";
import { type EngineExplanation, explainEngine, fasterThan, type Range, rangeOf } from "./explain-engine.ts";
import { arcsOf, type Facts, readFacts } from "./explain-facts.ts";
import { cellSentence, engineSentence, ms } from "./explain-words.ts";
import { shedPrice } from "./shed.ts";

/**
 * Why a weight is what it is. Per request of a cell and per engine that may serve it,
 *
 *     network + service + own wait + inflicted + capacity price + stability = demand price + r
 *
 * r = 0 where the engine is used; where it isn't, r is by how much it would have to be cheaper. Everything is read from
 * the publication: its prices, its loads, and the problem stored with it. Milliseconds a request, if not said otherwise.
 */
export interface Explanation {
  readonly cluster: string;
  readonly class: string;
  readonly version: number;
  readonly demandRps: number;
  /** Fraction of demand. */
  readonly shed: number;
  /** What one more request costs the fleet. */
  readonly demandPriceMs: number;
  /** Where the price is not unique: what one request fewer saves and what one more costs; null where they are one. */
  readonly demandPriceRangeMs: Range | null;
  /** Every engine that may serve the cell: those in use by falling weight, then the others by rising `reducedCostMs`. */
  readonly engines: readonly EngineExplanation[];
  /** Why some of the demand is shed; null where none is. */
  readonly whyShed: string | null;
  /** Weights by an operator's word, while they last. */
  readonly pinnedUntil: string | null;
  readonly sentence: string;
}

/**
 * @param engine only this one, if given
 * @throws GuidevaneError `bad_usage` for a cluster, class or engine that the publication does not have there
 */
export function explain(
  publication: Publication & { readonly version?: number },
  cluster: string,
  requestClass: string,
  engine?: string,
): Explanation {
  const whole = explainAll(publication, cluster, requestClass);
  if (engine === undefined) return whole;
  const engines = whole.engines.filter((each) => each.engine === engine);
  if (engines.length === 0) throw noSuchEngine(publication, whole, engine);
  return { ...whole, engines, sentence: engineSentence(whole, engines[0]!) };
}

function explainAll(
  publication: Publication & { readonly version?: number },
  cluster: string,
  requestClass: string,
): Explanation {
  const snapshot = publication.clusters.get(cluster);
  if (snapshot === undefined)
    throw new GuidevaneError(
      "bad_usage",
      `${cluster} is not a cluster; ${knownNames(cluster, publication.clusters.keys())}`,
    );
  const shown = snapshot.cells.find((each) => each.class === requestClass);
  if (shown === undefined) {
    const classes = snapshot.cells.map((each) => each.class);
    throw new GuidevaneError(
      "bad_usage",
      `${requestClass} is not a class of ${cluster}; ${knownNames(requestClass, classes)}`,
    );
  }
  const facts = readFacts(publication);
  const cell = facts.stored.cells.findIndex((each) => each.cluster === cluster && each.class === requestClass);
  const { low, high } = { low: facts.ranges.cellLowMs[cell]!, high: facts.ranges.cellHighMs[cell]! };
  const engines = arcsOf(facts.problem, cell).map((arc) => explainEngine(facts, snapshot, shown, arc));
  for (const [at, each] of engines.entries()) engines[at] = { ...each, faster: fasterThan(each, engines) };
  engines.sort(
    (a, b) =>
      b.weight - a.weight || (a.isUsed ? 0 : a.reducedCostMs - b.reducedCostMs) || (a.engine < b.engine ? -1 : 1),
  );
  const bare: Omit<Explanation, "sentence"> = {
    cluster,
    class: requestClass,
    version: publication.version ?? snapshot.version,
    demandRps: shown.demandRps,
    shed: shown.shed,
    demandPriceMs: shown.priceMs,
    demandPriceRangeMs: rangeOf(low * shown.work, high * shown.work),
    engines,
    whyShed: whyShed(facts, shown, cell, engines),
    pinnedUntil: shown.pin?.until ?? null,
  };
  return { ...bare, sentence: cellSentence(bare) };
}

/** It is no engine at all, or one that may not serve the cell. */
function noSuchEngine({ clusters }: Publication, { cluster, class: requestClass, engines }: Explanation, id: string) {
  const all = new Set([...clusters.values()].flatMap((snapshot) => Object.keys(snapshot.engines)));
  const able = engines.map(({ engine }) => engine);
  return new GuidevaneError(
    "bad_usage",
    all.has(id)
      ? `${id} may not serve ${requestClass} from ${cluster}; ${knownNames(id, able, "those that may")}`
      : `${id} is not an engine; ${knownNames(id, all)}`,
  );
}

function whyShed(
  { problem, stored }: Facts,
  shown: SnapshotCell,
  cell: number,
  engines: readonly EngineExplanation[],
): string | null {
  if (shown.shed <= 0) return null;
  const able = engines.filter(({ capacityWps }) => capacityWps > 0);
  const percent = `${(100 * shown.shed).toFixed(2)} % of ${shown.class} is shed`;
  if (able.length === 0) return `${percent}: no engine that may serve it has any capacity`;
  const price = shown.work * shedPrice(problem, cell, shown.shed);
  const cheapest = able.reduce((least, each) => (each.sumMs < least.sumMs ? each : least));
  const lower = stored.cells.filter((_, other) => stored.shedMs[other]! < stored.shedMs[cell]!).length;
  const first = lower > 0 ? ", after what has a lower priority" : "";
  if (able.every(({ binds }) => binds === "capacity"))
    return `${percent}${first}: every engine that may serve it is full, and making room costs more than shedding at ${ms(price)}`;
  return `${percent}${first}: serving it at ${cheapest.engine} would cost the fleet ${ms(cheapest.sumMs)}, shedding costs ${ms(price)}`;
}
