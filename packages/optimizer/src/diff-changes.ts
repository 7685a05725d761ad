import { isDeepStrictEqual } from "node:util";
import { arcCosts, curvesMovedBy, type InputKind, type Side } from "./diff-side.ts";

/** What differs between the inputs of two publications, a sentence each. */
export function changesOf(a: Side, b: Side): Record<InputKind, string[]> {
  const changed: Record<InputKind, string[]> = { eligibility: [], capacity: [], network: [], work: [], demand: [] };
  const name = (cell: string): string => cell.replace("\n", " ");
  for (const id of a.engines) if (!b.engines.includes(id)) changed.eligibility.push(`engine ${id} is gone`);
  for (const id of b.engines) if (!a.engines.includes(id)) changed.eligibility.push(`engine ${id} is new`);
  for (const cell of a.cells) if (!b.cells.includes(cell)) changed.eligibility.push(`${name(cell)} is gone`);
  const [engineAt, cellAt] = [
    new Map(a.engines.map((id, at) => [id, at])),
    new Map(a.cells.map((each, at) => [each, at])),
  ];
  for (const [engine, id] of b.engines.entries()) {
    const twin = engineAt.get(id);
    if (twin === undefined) continue;
    const [was, is] = [a.stored.capacityWps[twin]!, b.stored.capacityWps[engine]!];
    if (was !== is) changed.capacity.push(`${id} holds ${figure(is)} units/s, was ${figure(was)}`);
  }
  for (const [cell, key] of b.cells.entries()) {
    const twin = cellAt.get(key);
    if (twin === undefined) {
      changed.eligibility.push(`${name(key)} is new`);
      continue;
    }
    const [was, is] = [a.stored.cells[twin]!, b.stored.cells[cell]!];
    if (was.demandRps !== is.demandRps)
      changed.demand.push(`${name(key)}: ${figure(is.demandRps)} requests/s, was ${figure(was.demandRps)}`);
    if (was.work !== is.work)
      changed.work.push(`${name(key)}: ${figure(is.work)} units a request, was ${figure(was.work)}`);
    if (a.stored.shedMs[twin] !== b.stored.shedMs[cell]) changed.work.push(`${name(key)}: another price of shedding`);
    const [old, now] = [arcCosts(a.stored, twin), arcCosts(b.stored, cell)];
    for (const id of old.keys())
      if (!now.has(id) && b.engines.includes(id)) changed.eligibility.push(`${id} may no longer serve ${name(key)}`);
    for (const [id, cost] of now) {
      const before = old.get(id);
      if (before === undefined) {
        if (engineAt.has(id)) changed.eligibility.push(`${id} may now serve ${name(key)}`);
        continue;
      }
      const [far, near] = [b.rttMs(cell, id) ?? 0, a.rttMs(twin, id) ?? 0];
      if (far !== near) changed.network.push(`${id} is ${figure(far)} ms from ${is.cluster}, was ${figure(near)}`);
      const service = cost * is.work - far - (before * was.work - near);
      if (Math.abs(service) > 1e-9)
        changed.work.push(`${id}: ${name(key)} takes ${service.toPrecision(3)} ms more there when idle`);
    }
  }
  const { headroom, headroomMs } = b.stored;
  if (headroom !== a.stored.headroom || headroomMs !== a.stored.headroomMs) changed.work.push("the policy of headroom");
  const hasOtherCurves = ["knotRho", "knotMs"].some(
    (column) => !isDeepStrictEqual(a.stored[column as "knotRho"], b.stored[column as "knotRho"]),
  );
  if (hasOtherCurves && curvesMovedBy(a, b) === "work" && changed.eligibility.length === 0)
    changed.work.push("the curves of engines");
  return changed;
}

/** To six digits, as people read it. */
function figure(value: number): string {
  return String(Number(value.toPrecision(6)));
}
