import { localFactor, type PenaltyCell, type PenaltyFleet, type PenaltyWish } from "./penalty-limits.ts";

/** The limits of penalties as they are stated, everything added up anew for each wish: the oracle of `grantPenalties`. */
export function grantByScan(wishes: readonly PenaltyWish[], { engines, cells }: PenaltyFleet): Set<PenaltyWish> {
  const granted = new Set<PenaltyWish>();
  const takes = (id: string): boolean => engines.get(id)?.takes === true;
  const factorOf = (id: string, more?: PenaltyWish): number =>
    [...granted, ...(more === undefined ? [] : [more])]
      .filter(({ engine }) => engine === id)
      .reduce((product, wish) => product * localFactor(wish, engines.get(id)), 1);
  const fits = (wish: PenaltyWish, cell: PenaltyCell): boolean => {
    const takers = [...cell.keys()].filter(takes);
    if (takers.length === 1) return false;
    const healthyWps = (id: string): number =>
      engines.get(id)!.capacityWps / Math.max(engines.get(id)!.plannedFactor, 1e-9);
    const wholeWps = sum(takers.map(healthyWps));
    const removed = (id: string, more?: PenaltyWish): number =>
      cell.get(id)! * (1 - factorOf(id, more)) +
      (healthyWps(id) / wholeWps) * (1 - Math.max(engines.get(id)!.plannedFactor, 1e-9));
    const elsewhere = sum(takers.filter((id) => id !== wish.engine).map((id) => removed(id)));
    if (elsewhere > 1e-9 && elsewhere + removed(wish.engine, wish) > 0.3) return false;
    if (wish.kind === "failing") return true;
    const loadWps = sum([...cell.keys()].map((id) => engines.get(id)?.loadWps ?? 0));
    const leftWps = sum(takers.map((id) => engines.get(id)!.capacityWps * factorOf(id, wish)));
    return loadWps <= 0.95 * leftWps;
  };
  const order = { failing: 0, slow: 1 };
  const worstFirst = [...wishes].sort(
    (a, b) => order[a.kind] - order[b.kind] || b.badness - a.badness || (a.engine < b.engine ? -1 : 1),
  );
  for (const wish of worstFirst)
    if (!takes(wish.engine) || cells.every((cell) => !cell.has(wish.engine) || fits(wish, cell))) granted.add(wish);
  return granted;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
