import type { Flows } from "./bound.ts";
import { groupEqualEngines } from "./equal-engines.ts";
import type { Problem } from "./problem.ts";

/** The problem as the linear programme sees it: equal engines folded into one, engines without capacity left away. */
export interface LpFleet {
  readonly problem: Problem;
  readonly groups: readonly Group[];
  /** Cell → its arcs to groups. */
  readonly arcs: readonly (readonly FoldedArc[])[];
}

export interface Group {
  readonly engines: readonly number[];
  /** One of them: its curve is everyone's. */
  readonly engine: number;
  /** Of one of them. */
  readonly capacityWps: number;
  /** The most that the programme lets arrive here, work units/s of the whole group: its capacity, or well past the demand. */
  readonly reachWps: number;
}

export interface FoldedArc {
  readonly group: number;
  readonly costMs: number;
  /** Up to `heldWps` a unit costs `costMs`, beyond it `moveMs` more. */
  readonly heldWps: number;
  readonly moveMs: number;
  /** Arcs of the problem that this one stands for. */
  readonly arcs: readonly number[];
}

/** What a pass found. Flows by cell and folded arc; the rest by group. */
export interface Found {
  readonly flows: Flows;
  readonly folded: readonly (readonly number[])[];
  readonly groupLoadWps: Float64Array;
  /** Ms per unit of work. */
  readonly groupPriceMs: Float64Array;
}

/** Past the demand, so that where it ends is no kink of the programme: its price would pass for that of the capacity. */
const REACH = 1.5;

export function foldFleet(problem: Problem): LpFleet {
  const groups: { engines: number[]; engine: number; capacityWps: number; reachWps: number }[] = [];
  const groupOf = new Map<number, number>();
  for (const engines of groupEqualEngines(problem)) {
    const engine = engines[0]!;
    const capacityWps = problem.curves.capacityWps[engine]!;
    if (capacityWps === 0) continue;
    for (const member of engines) groupOf.set(member, groups.length);
    groups.push({ engines, engine, capacityWps, reachWps: 0 });
  }
  const arcs = Array.from(problem.demandWps, (demand, cell) => {
    const byGroup = new Map<number, number[]>();
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++) {
      const group = groupOf.get(problem.arcEngine[arc]!);
      if (group === undefined) continue;
      const list = byGroup.get(group);
      if (list === undefined) byGroup.set(group, [arc]);
      else list.push(arc);
    }
    return Array.from(byGroup, ([group, list]): FoldedArc => {
      groups[group]!.reachWps += REACH * demand;
      return {
        group,
        costMs: problem.arcCostMs[list[0]!]!,
        heldWps: (problem.churn?.referenceWps[list[0]!] ?? 0) * list.length,
        moveMs: problem.churn?.moveMs[list[0]!] ?? 0,
        arcs: list,
      };
    });
  });
  for (const group of groups) group.reachWps = Math.min(group.reachWps, group.capacityWps * group.engines.length);
  return { problem, groups, arcs };
}

/** What the programme rounds away is neither a shed nor an overflow. */
const ROUNDING = 1e-9;

/** Sums of the folded programme to flows of the problem that conserve demand exactly; equal engines get equal parts. */
export function unfold(fleet: LpFleet, sums: readonly (readonly number[])[], groupPriceMs: Float64Array): Found {
  const { problem } = fleet;
  const total = problem.demandWps.reduce((sum, demand) => sum + demand, 0);
  const flowWps = new Float64Array(problem.arcEngine.length);
  const shedWps = new Float64Array(problem.demandWps.length);
  const loadWps = new Float64Array(problem.curves.capacityWps.length);
  const groupLoadWps = new Float64Array(fleet.groups.length);
  const folded: number[][] = sums.map(() => []);
  for (const [cell, arcs] of fleet.arcs.entries()) {
    const demand = problem.demandWps[cell]!;
    const sum = sums[cell]!.reduce((all, flow) => all + flow, 0);
    const whole = sum > 0 && Math.abs(sum - demand) <= ROUNDING * (demand + total / 1e4);
    const scale = sum > demand || whole ? demand / sum : 1;
    shedWps[cell] = whole ? 0 : Math.max(0, demand - sum * scale);
    for (const [at, { group, arcs: list }] of arcs.entries()) {
      const flow = sums[cell]![at]! * scale;
      folded[cell]!.push(flow);
      groupLoadWps[group]! += flow;
      for (const arc of list) {
        flowWps[arc] = flow / list.length;
        loadWps[problem.arcEngine[arc]!]! += flow / list.length;
      }
    }
  }
  return { flows: { flowWps, shedWps, loadWps }, folded, groupLoadWps, groupPriceMs };
}
