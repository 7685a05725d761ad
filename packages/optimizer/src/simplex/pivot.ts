import type { Grid } from "./grid.ts";
import type { Network } from "./network.ts";
import { rehang, SINK, shiftPrices } from "./tree.ts";

/**
 * One pivot: flow is pushed along the entering arc and back through the tree until an arc of that cycle blocks, which
 * leaves the tree.
 *
 * Reduced costs are c + price(head) − price(tail) in the direction of the push; the entering one is negative.
 *
 * *Last-blocking rule.* The tree is kept strongly feasible: from every node a positive amount can be pushed to the root.
 * Of the arcs that block first, the last one in the direction of the push, beginning where the two tree paths meet,
 * leaves. That keeps the property, and pivots that move nothing then can't repeat a tree (Cunningham 1976).
 *
 * *Long step.* A sink arc that reaches the end of its segment does not block while the reduced cost with its next slope
 * is still below −ε: the push goes on over it. So does a cell → engine arc at its reference, while what moving it costs
 * is still covered.
 */
/** What enters: a cell → engine arc (its number), pushed forwards or back. */
export function pushArc(network: Network, grid: Grid, arc: number, forwards: boolean, epsilon: number): void {
  const cell = network.arcCell[arc]!;
  const node = network.arcNode[arc]!;
  if (forwards) pivot(network, grid, cell, node, arc, true, epsilon);
  else pivot(network, grid, node, cell, arc, false, epsilon);
}

/** What enters: a node's sink arc, pushed forwards (more shed, more load) or back. */
export function pushSink(network: Network, grid: Grid, node: number, forwards: boolean, epsilon: number): void {
  if (forwards) pivot(network, grid, node, network.root, SINK, true, epsilon);
  else pivot(network, grid, network.root, node, SINK, false, epsilon);
}

/** References that one push crosses at most: each is a call within a call, and the stack has an end. */
const MOST_CROSSINGS = 256;

/** Leaving, where the entering arc itself blocks first: the tree stays. */
const ENTERING = -2;

function pivot(
  network: Network,
  grid: Grid,
  tail: number,
  head: number,
  entering: number,
  forwards: boolean,
  epsilon: number,
  begunFlow = -1,
  begunSegment = 0,
  crossed = 0,
): void {
  const { cells, tree, price, churn, arcNext, arcBase } = network;
  const { parent, arc, flow, size } = tree;
  const { from, slope, at, start, end } = grid;

  // 1. Both paths up to where they meet, and the room of the arcs that block for good.
  let room = Number.POSITIVE_INFINITY;
  let blocking = -1;
  let headBlocks = false;
  // How many block first.
  let ties = 0;
  let tailTop = -1;
  let headTop = -1;
  let a = tail;
  let b = head;
  while (a !== b) {
    if (size[a]! <= size[b]!) {
      // Away from the root: a cell's arc loses flow, an engine's gains. Strictly less: of equals the one nearest the
      // entering arc is the last in the direction of the push, and the head's side is later still.
      const on = arc[a]!;
      let left = Number.POSITIVE_INFINITY;
      if (on === SINK) {
        tailTop = a;
        if (at[a] === start[a]) left = flow[a]!;
      } else if (a < cells) {
        left = flow[a]!;
        if (churn !== null && churn.beyond[on] === 1) left -= churn.reference[on]!;
      } else if (churn !== null && churn.beyond[on] === 0) left = churn.reference[on]! - flow[a]!;
      if (left < room) {
        room = left;
        blocking = a;
        headBlocks = false;
        ties = 1;
      } else if (left === room) ties++;
      a = parent[a]!;
    } else {
      const on = arc[b]!;
      let left = Number.POSITIVE_INFINITY;
      if (on === SINK) headTop = b;
      else if (b >= cells) {
        left = flow[b]!;
        if (churn !== null && churn.beyond[on] === 1) left -= churn.reference[on]!;
      } else if (churn !== null && churn.beyond[on] === 0) left = churn.reference[on]! - flow[b]!;
      if (left <= room && left < Number.POSITIVE_INFINITY) {
        ties = left < room ? 1 : ties + 1;
        room = left;
        blocking = b;
        headBlocks = true;
      }
      b = parent[b]!;
    }
  }
  const meet = a;

  // 2. How far the push goes: over the cuts of the at most three sink arcs on the cycle while that pays.
  const own = entering === SINK ? (forwards ? tail : head) : -1;
  let ownSegment = 0;
  let ownReach = Number.POSITIVE_INFINITY;
  let ownEnds = false;
  let ownFlow = 0;
  let cost: number;
  if (own >= 0) {
    ownSegment = forwards ? at[own]! : at[own]! - 1;
    ownFlow = from[at[own]!]!;
    if (begunFlow >= 0) {
      ownSegment = begunSegment;
      ownFlow = begunFlow;
    }
    cost = forwards ? slope[ownSegment]! : -slope[ownSegment]!;
    if (!forwards) ownReach = ownFlow - from[ownSegment]!;
    else if (ownSegment + 1 < end[own]!) ownReach = from[ownSegment + 1]! - ownFlow;
    ownEnds = !forwards && ownSegment === start[own];
  } else if (forwards) {
    cost = arcNext[entering]!;
    if (churn !== null) {
      ownFlow = begunFlow >= 0 ? begunFlow : churn.beyond[entering] === 1 ? churn.reference[entering]! : 0;
      if (churn.beyond[entering] === 0) ownReach = churn.reference[entering]! - ownFlow;
      ownEnds = true;
    }
  } else {
    cost = -arcBase[entering]!;
    ownFlow = begunFlow >= 0 ? begunFlow : churn!.reference[entering]!;
    ownReach = ownFlow;
    ownEnds = true;
  }
  let tailSegment = tailTop >= 0 ? at[tailTop]! : 0;
  let headSegment = headTop >= 0 ? at[headTop]! : 0;
  let tailReach = Number.POSITIVE_INFINITY;
  let headReach = Number.POSITIVE_INFINITY;
  if (tailTop >= 0 && tailSegment > start[tailTop]!) tailReach = flow[tailTop]! - from[tailSegment]!;
  if (headTop >= 0 && headSegment + 1 < end[headTop]!) headReach = from[headSegment + 1]! - flow[headTop]!;
  let reduced = cost + price[head]! - price[tail]!;
  let moved: number;
  while (true) {
    moved = Math.min(tailReach, headReach, ownReach);
    if (moved >= room) {
      moved = room;
      break;
    }
    if (ownEnds && ownReach === moved) break;
    let jump = 0;
    if (tailReach === moved) jump += slope[tailSegment]! - slope[tailSegment - 1]!;
    if (headReach === moved) jump += slope[headSegment + 1]! - slope[headSegment]!;
    if (ownReach === moved)
      jump += forwards ? slope[ownSegment + 1]! - slope[ownSegment]! : slope[ownSegment]! - slope[ownSegment - 1]!;
    if (!(reduced + jump < -epsilon)) break;
    reduced += jump;
    if (tailReach === moved) {
      tailSegment--;
      if (tailSegment > start[tailTop]!) tailReach = flow[tailTop]! - from[tailSegment]!;
      else {
        // The last segment: its end blocks for good, unless an arc nearer the entering one does so earlier.
        tailReach = Number.POSITIVE_INFINITY;
        const left = flow[tailTop]! - from[tailSegment]!;
        if (left < room) {
          room = left;
          blocking = tailTop;
          headBlocks = false;
        }
      }
    }
    if (headReach === moved) {
      headSegment++;
      headReach = headSegment + 1 < end[headTop]! ? from[headSegment + 1]! - flow[headTop]! : Number.POSITIVE_INFINITY;
    }
    if (ownReach === moved) {
      if (forwards) {
        ownSegment++;
        ownReach = ownSegment + 1 < end[own]! ? from[ownSegment + 1]! - ownFlow : Number.POSITIVE_INFINITY;
      } else {
        ownSegment--;
        ownReach = ownFlow - from[ownSegment]!;
        ownEnds = ownSegment === start[own];
      }
    }
  }

  // An arc that alone blocks at its reference is no end while going on pays what moving it costs.
  if (
    churn !== null &&
    crossed < MOST_CROSSINGS &&
    ties === 1 &&
    room === moved &&
    Math.min(tailReach, headReach, ownReach) > moved
  ) {
    const on = arc[blocking]!;
    const grows = headBlocks === blocking < cells;
    if (on !== SINK && churn.reference[on]! > 0 && churn.beyond[on] === (grows ? 0 : 1)) {
      if (reduced + churn.moveMs[on]! < -epsilon) {
        push(network, tail, head, meet, moved);
        if (tailTop >= 0) follow(network, grid, tailTop, tailSegment);
        if (headTop >= 0) follow(network, grid, headTop, headSegment);
        churn.beyond[on] = grows ? 1 : 0;
        arcNext[on] = grows ? arcBase[on]! + churn.moveMs[on]! : arcBase[on]!;
        shiftPrices(tree, price, blocking, headBlocks ? churn.moveMs[on]! : -churn.moveMs[on]!);
        const pushed = ownFlow + (forwards ? moved : -moved);
        pivot(network, grid, tail, head, entering, forwards, epsilon, pushed, ownSegment, crossed + 1);
        return;
      }
    }
  }

  // 3. Who leaves: of those that block at `moved`, the last in the direction of the push.
  let leaving: number;
  if (headReach === moved) {
    leaving = headTop;
    headBlocks = true;
  } else if (room === moved && headBlocks) leaving = blocking;
  else if (ownReach === moved) leaving = ENTERING;
  else if (room === moved) leaving = blocking;
  else {
    leaving = tailTop;
    headBlocks = false;
  }

  // 4. Push; prices of a component follow the segment that holds it.
  if (moved > 0) push(network, tail, head, meet, moved);
  if (tailTop >= 0) {
    if (leaving === tailTop) at[tailTop] = tailSegment;
    else follow(network, grid, tailTop, tailSegment);
  }
  if (headTop >= 0) {
    if (leaving === headTop) at[headTop] = headSegment + 1;
    else follow(network, grid, headTop, headSegment);
  }

  // 5. The entering arc's new state, and the tree.
  ownFlow += forwards ? moved : -moved;
  if (own >= 0) {
    at[own] = leaving === ENTERING && forwards ? ownSegment + 1 : ownSegment;
    cost = forwards ? slope[ownSegment]! : -slope[ownSegment]!;
  } else if (churn !== null) {
    if (!forwards) {
      churn.beyond[entering] = 0;
      arcNext[entering] = arcBase[entering]!;
    } else if (leaving === ENTERING) {
      churn.beyond[entering] = 1;
      arcNext[entering] = arcBase[entering]! + churn.moveMs[entering]!;
    }
  }
  if (leaving === ENTERING) return;
  if (churn !== null) {
    const left = arc[leaving]!;
    if (left !== SINK && churn.beyond[left] === 0 && flow[leaving] === churn.reference[left]!) {
      churn.beyond[left] = 1;
      arcNext[left] = arcBase[left]! + churn.moveMs[left]!;
    }
  }
  reduced = cost + price[head]! - price[tail]!;
  if (headBlocks) {
    shiftPrices(tree, price, leaving, -reduced);
    rehang(tree, leaving, head, tail, entering, ownFlow);
  } else {
    shiftPrices(tree, price, leaving, reduced);
    rehang(tree, leaving, tail, head, entering, ownFlow);
  }
}

function push({ cells, tree }: Network, tail: number, head: number, meet: number, moved: number): void {
  const { parent, arc, flow } = tree;
  for (let a = tail; a !== meet; a = parent[a]!) {
    if (a < cells || arc[a] === SINK) flow[a] = flow[a]! - moved;
    else flow[a] = flow[a]! + moved;
  }
  for (let b = head; b !== meet; b = parent[b]!) {
    if (b < cells || arc[b] === SINK) flow[b] = flow[b]! + moved;
    else flow[b] = flow[b]! - moved;
  }
}

/** The component of `top` is held by another segment of its sink arc from now on. */
function follow({ tree, price }: Network, { slope, at }: Grid, top: number, segment: number): void {
  const shift = slope[segment]! - slope[at[top]!]!;
  at[top] = segment;
  if (shift !== 0) shiftPrices(tree, price, top, shift);
}
