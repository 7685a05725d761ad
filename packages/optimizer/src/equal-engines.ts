import type { Problem } from "./problem.ts";

/**
 * Engines that nothing in the problem tells apart (same curve, capacity and arcs at the same costs) as groups. m of them
 * are one engine of m times the capacity, each taking 1/m of what it takes: that is how equal engines get equal shares,
 * and it makes the programme smaller.
 */
export function groupEqualEngines(problem: Problem): number[][] {
  const { curves } = problem;
  const signatures = Array.from(curves.capacityWps, (capacity, engine) => {
    const [start, end] = [curves.knotStart[engine]!, curves.knotStart[engine + 1]!];
    return [capacity, ...curves.knotRho.subarray(start, end), ...curves.knotMs.subarray(start, end)].join(" ");
  });
  for (let cell = 0; cell < problem.demandWps.length; cell++) {
    for (let arc = problem.arcStart[cell]!; arc < problem.arcStart[cell + 1]!; arc++)
      signatures[problem.arcEngine[arc]!] += `|${cell}:${problem.arcCostMs[arc]}`;
  }
  const groups = new Map<string, number[]>();
  for (const [engine, signature] of signatures.entries()) {
    const group = groups.get(signature);
    if (group === undefined) groups.set(signature, [engine]);
    else group.push(engine);
  }
  return [...groups.values()];
}
