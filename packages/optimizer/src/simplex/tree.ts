/**
 * The spanning tree of the network simplex, hung from the root node.
 *
 * Beside each node's parent it keeps the preorder as a ring (`next`, `before`), the last node of each subtree in that
 * order and its size. A subtree is then one stretch of the ring, the rest of the tree the other, and a walk over either
 * follows one array. Hanging a subtree elsewhere costs the path from its new top to its old one.
 */
export interface Tree {
  /** −1 at the root. */
  readonly parent: Int32Array;
  /** The arc between node and parent: number of a cell → engine arc, or `SINK`. */
  readonly arc: Int32Array;
  /** Flow on that arc, in quanta, in the arc's own direction. */
  readonly flow: Float64Array;
  readonly next: Int32Array;
  readonly before: Int32Array;
  readonly last: Int32Array;
  readonly size: Int32Array;
}

/** In `Tree.arc`: the node's own arc to the root. */
export const SINK = -1;

export function createTree(nodes: number): Tree {
  return {
    parent: new Int32Array(nodes),
    arc: new Int32Array(nodes).fill(SINK),
    flow: new Float64Array(nodes),
    next: new Int32Array(nodes),
    before: new Int32Array(nodes),
    last: new Int32Array(nodes),
    size: new Int32Array(nodes),
  };
}

/** Fills the preorder, ends and sizes from `parent`. The root is the last node. Children come by rising number. */
export function orderTree(tree: Tree): void {
  const { parent, next, before, last, size } = tree;
  const nodes = parent.length;
  const root = nodes - 1;
  const firstChild = new Int32Array(nodes).fill(-1);
  const sibling = new Int32Array(nodes).fill(-1);
  for (let node = root - 1; node >= 0; node--) {
    sibling[node] = firstChild[parent[node]!]!;
    firstChild[parent[node]!] = node;
  }
  parent[root] = -1;
  size.fill(1);
  let at = root;
  let end = root;
  while (true) {
    if (firstChild[at]! >= 0) {
      const child = firstChild[at]!;
      next[end] = child;
      before[child] = end;
      end = child;
      at = child;
      continue;
    }
    while (at !== root && sibling[at]! < 0) {
      last[at] = end;
      size[parent[at]!] = size[parent[at]!]! + size[at]!;
      at = parent[at]!;
    }
    if (at === root) break;
    last[at] = end;
    size[parent[at]!] = size[parent[at]!]! + size[at]!;
    const child = sibling[at]!;
    next[end] = child;
    before[child] = end;
    end = child;
    at = child;
  }
  last[root] = end;
  next[end] = root;
  before[root] = end;
}

/**
 * Cuts the subtree of `top` off, turns it so that `newTop` (inside it) is its top, and hangs that below `under` (outside
 * it) by `arc` with `flow`. The arcs on the path from `newTop` to `top` keep their flows.
 */
export function rehang(tree: Tree, top: number, newTop: number, under: number, arc: number, flow: number): void {
  const { parent, next, before, last, size, arc: arcs, flow: flows } = tree;
  const moved = size[top]!;
  const oldEnd = last[top]!;
  const ahead = before[top]!;
  const behind = next[oldEnd]!;
  next[ahead] = behind;
  before[behind] = ahead;
  for (let node = parent[top]!; node !== -1; node = parent[node]!) {
    size[node] = size[node]! - moved;
    if (last[node] === oldEnd) last[node] = ahead;
  }

  let tail = last[newTop]!;
  if (newTop !== top) {
    // Along the path each old parent follows its child, first what stood before the child's stretch, then what stood after.
    let child = newTop;
    let childEnd = tail;
    let childAhead = before[newTop]!;
    let childBehind = next[childEnd]!;
    let childSize = size[newTop]!;
    let childArc = arcs[newTop]!;
    let childFlow = flows[newTop]!;
    let node = parent[newTop]!;
    while (true) {
      const nodeEnd = last[node]!;
      const nodeAhead = before[node]!;
      const nodeBehind = nodeEnd === childEnd ? childBehind : next[nodeEnd]!;
      const nodeSize = size[node]!;
      const nodeArc = arcs[node]!;
      const nodeFlow = flows[node]!;
      const nodeParent = parent[node]!;
      next[tail] = node;
      before[node] = tail;
      if (nodeEnd === childEnd) {
        tail = childAhead;
      } else {
        next[childAhead] = childBehind;
        before[childBehind] = childAhead;
        tail = nodeEnd;
      }
      parent[node] = child;
      arcs[node] = childArc;
      flows[node] = childFlow;
      size[node] = moved - childSize;
      if (node === top) break;
      child = node;
      childEnd = nodeEnd;
      childAhead = nodeAhead;
      childBehind = nodeBehind;
      childSize = nodeSize;
      childArc = nodeArc;
      childFlow = nodeFlow;
      node = nodeParent;
    }
    for (node = top; node !== newTop; node = parent[node]!) last[node] = tail;
    last[newTop] = tail;
    size[newTop] = moved;
  }

  const follower = next[under]!;
  next[under] = newTop;
  before[newTop] = under;
  next[tail] = follower;
  before[follower] = tail;
  parent[newTop] = under;
  arcs[newTop] = arc;
  flows[newTop] = flow;
  for (let node = under; node !== -1; node = parent[node]!) {
    size[node] = size[node]! + moved;
    if (last[node] === under) last[node] = tail;
  }
}

/** Adds `shift` to `price` over the subtree of `top`; where that is most of the tree, takes it from the rest instead. */
export function shiftPrices(tree: Tree, price: Float64Array, top: number, shift: number): void {
  const { next, last, size } = tree;
  if (2 * size[top]! <= price.length) {
    const end = next[last[top]!]!;
    let node = top;
    do {
      price[node] = price[node]! + shift;
      node = next[node]!;
    } while (node !== end);
  } else {
    for (let node = next[last[top]!]!; node !== top; node = next[node]!) price[node] = price[node]! - shift;
  }
}
