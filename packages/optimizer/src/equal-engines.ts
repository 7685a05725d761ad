import type { Problem, Solution } from "./problem.ts";

/**
 * Engines that nothing in the problem tells apart (same curve, capacity and arcs at the same costs) as groups. m of them
 * are one engine of m times the capacity, each taking 1/m of what it takes: that is how equal engines get equal shares,
 * and it makes the linear programme smaller.
 */
export function groupEqualEngines(problem: Problem): number[][] {
  const cells = cellOfArcs(problem);
  const byHash = new Map<number, number[]>();
  for (const [engine, hash] of hashEngines(problem, cells).entries()) {
    const alike = byHash.get(hash);
    if (alike === undefined) byHash.set(hash, [engine]);
    else alike.push(engine);
  }
  const arcs = arcsOfEngines(problem, byHash);
  const columns = arcColumns(problem);
  // Equal hashes are only a hint: what counts is that every number is the same.
  const isEqual = (one: number, other: number): boolean => {
    const [ours, theirs] = [arcs.get(one)!, arcs.get(other)!];
    return (
      hasSameCurve(problem, one, other) &&
      ours.length === theirs.length &&
      ours.every((arc, at) => {
        const twin = theirs[at]!;
        return cells[arc] === cells[twin] && columns.every((column) => column[arc] === column[twin]);
      })
    );
  };
  const groups: number[][] = [];
  for (const alike of byHash.values()) {
    const own: number[][] = [];
    for (const engine of alike) {
      const group = own.find(([first]) => isEqual(first!, engine));
      if (group === undefined) own.push([engine]);
      else group.push(engine);
    }
    groups.push(...own);
  }
  return groups.sort((a, b) => a[0]! - b[0]!);
}

/**
 * The same plan with everything that equal engines carry divided equally among them. The cost is convex and the bound
 * concave, and neither can tell such engines apart: the mean of what they carry costs no more, and the mean of their
 * prices bounds no less.
 */
export function shareEqually<S extends Solution>(problem: Problem, solution: S): S {
  const groups = groupEqualEngines(problem).filter(({ length }) => length > 1);
  if (groups.length === 0) return solution;
  const arcs = arcsOfEngines(problem, new Map(groups.entries()));
  const flowWps = solution.flowWps.slice();
  const loadWps = solution.loadWps.slice();
  const priceMs = solution.priceMs.slice();
  for (const group of groups) {
    setToMean(loadWps, group);
    setToMean(priceMs, group);
    const lists = group.map((engine) => arcs.get(engine)!);
    for (const at of lists[0]!.keys())
      setToMean(
        flowWps,
        lists.map((list) => list[at]!),
      );
  }
  return { ...solution, flowWps, loadWps, priceMs };
}

function setToMean(column: Float64Array, places: readonly number[]): void {
  let sum = 0;
  for (const place of places) sum += column[place]!;
  for (const place of places) column[place] = sum / places.length;
}

/** Arcs of every engine that shares its entry of `sets` with another, rising in cell. */
function arcsOfEngines(problem: Problem, sets: ReadonlyMap<number, readonly number[]>): Map<number, number[]> {
  const arcs = new Map<number, number[]>();
  for (const set of sets.values()) if (set.length > 1) for (const engine of set) arcs.set(engine, []);
  if (arcs.size > 0) for (const [arc, engine] of problem.arcEngine.entries()) arcs.get(engine)?.push(arc);
  return arcs;
}

function cellOfArcs({ arcStart, arcEngine }: Problem): Uint32Array {
  const cells = new Uint32Array(arcEngine.length);
  for (let cell = 0; cell + 1 < arcStart.length; cell++) cells.fill(cell, arcStart[cell], arcStart[cell + 1]);
  return cells;
}

/** Everything of the problem that is said of one arc. */
function arcColumns({ arcCostMs, churn }: Problem): Float64Array[] {
  return churn === undefined ? [arcCostMs] : [arcCostMs, churn.referenceWps, churn.moveMs];
}

function hasSameCurve({ curves }: Problem, one: number, other: number): boolean {
  const { capacityWps, knotStart, knotRho, knotMs } = curves;
  const start = knotStart[one]!;
  const end = knotStart[one + 1]!;
  const shift = knotStart[other]! - start;
  if (capacityWps[one] !== capacityWps[other] || knotStart[other + 1]! - end !== shift) return false;
  for (let knot = start; knot < end; knot++)
    if (knotRho[knot] !== knotRho[knot + shift] || knotMs[knot] !== knotMs[knot + shift]) return false;
  return true;
}

function hashEngines(problem: Problem, cells: Uint32Array): Uint32Array {
  const { capacityWps, knotStart, knotMs } = problem.curves;
  const hashes = Uint32Array.from(capacityWps, (capacity, engine) => {
    let hash = mix(1, capacity);
    for (let knot = knotStart[engine]!; knot < knotStart[engine + 1]!; knot++) hash = mix(hash, knotMs[knot]!);
    return hash;
  });
  const columns = arcColumns(problem);
  for (const [arc, engine] of problem.arcEngine.entries()) {
    let hash = mix(hashes[engine]!, cells[arc]!);
    for (const column of columns) hash = mix(hash, column[arc]!);
    hashes[engine] = hash;
  }
  return hashes;
}

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);

/** Both halves of a double into a hash; multiplier and rotation as in MurmurHash3's mixing step (public domain). */
function mix(hash: number, value: number): number {
  double[0] = value;
  let mixed = Math.imul(hash ^ words[0]!, 0xcc9e2d51);
  mixed = ((mixed << 15) | (mixed >>> 17)) ^ words[1]!;
  mixed = Math.imul(mixed, 0x1b873593);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
