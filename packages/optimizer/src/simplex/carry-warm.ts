import type { Warm } from "./warm.ts";

/**
 * What an earlier solve left, for a problem whose cells and engines have other numbers: some gone, some new, in another
 * order. `cellFrom[k]` is the earlier number of cell k, or −1 where it is new; `engineFrom` likewise. What hung below
 * something that is gone, and what is new, hangs from the root: a component of its own, without load.
 */
export function carryWarm(warm: Warm, cellFrom: Int32Array, engineFrom: Int32Array): Warm {
  const cells = cellFrom.length;
  const engines = engineFrom.length;
  const root = cells + engines;
  const earlierRoot = warm.cells + warm.engines;
  const cellNow = new Int32Array(warm.cells).fill(-1);
  for (let cell = 0; cell < cells; cell++) if (cellFrom[cell]! >= 0) cellNow[cellFrom[cell]!] = cell;
  const engineNow = new Int32Array(warm.engines).fill(-1);
  for (let engine = 0; engine < engines; engine++)
    if (engineFrom[engine]! >= 0) engineNow[engineFrom[engine]!] = engine;

  const parent = new Int32Array(root).fill(root);
  const price = new Float64Array(root);
  const part = new Float64Array(root);
  const load = new Float64Array(engines);
  for (let node = 0; node < root; node++) {
    const from = node < cells ? cellFrom[node]! : engineFrom[node - cells]!;
    if (from < 0) continue;
    const earlier = node < cells ? from : warm.cells + from;
    price[node] = warm.price[earlier]!;
    if (node >= cells) load[node - cells] = warm.load[from]!;
    const above = warm.parent[earlier]!;
    if (above === earlierRoot) continue;
    const now = node < cells ? engineNow[above - warm.cells]! : cellNow[above]!;
    if (now < 0) continue;
    parent[node] = node < cells ? cells + now : now;
    part[node] = warm.part[earlier]!;
  }
  const heldCell: number[] = [];
  const heldEngine: number[] = [];
  for (let i = 0; i < warm.heldCell.length; i++) {
    const cell = cellNow[warm.heldCell[i]!]!;
    const engine = engineNow[warm.heldEngine[i]!]!;
    if (cell < 0 || engine < 0) continue;
    heldCell.push(cell);
    heldEngine.push(engine);
  }
  return {
    cells,
    engines,
    parent,
    price,
    part,
    load,
    heldCell: Uint32Array.from(heldCell),
    heldEngine: Uint32Array.from(heldEngine),
  };
}
