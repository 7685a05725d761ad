//! The spanning tree of the network simplex, hung from the root node.
//!
//! Beside each node's parent it keeps the preorder as a ring (`next`, `before`), the last node of each subtree in that
//! order and its size. A subtree is then one stretch of the ring, the rest of the tree the other, and a walk over either
//! follows one array. Hanging a subtree elsewhere costs the path from its new top to its old one.

/// In [`Tree::arc`]: the node's own arc to the root.
pub const SINK: u32 = u32::MAX;
/// In [`Tree::parent`]: the root has none.
pub const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub struct Tree {
    pub parent: Vec<u32>,
    /// The arc between node and parent: number of a cell → engine arc, or [`SINK`].
    pub arc: Vec<u32>,
    /// Flow on that arc, in quanta, in the arc's own direction.
    pub flow: Vec<f64>,
    pub next: Vec<u32>,
    pub before: Vec<u32>,
    pub last: Vec<u32>,
    pub size: Vec<u32>,
}

impl Tree {
    pub fn new(nodes: usize) -> Self {
        Tree {
            parent: vec![0; nodes],
            arc: vec![SINK; nodes],
            flow: vec![0.0; nodes],
            next: vec![0; nodes],
            before: vec![0; nodes],
            last: vec![0; nodes],
            size: vec![0; nodes],
        }
    }

    /// Fills the preorder, ends and sizes from `parent`. The root is the last node. Children come by rising number.
    pub fn order(&mut self) {
        let nodes = self.parent.len();
        let root = nodes - 1;
        let mut first_child = vec![NONE; nodes];
        let mut sibling = vec![NONE; nodes];
        for node in (0..root).rev() {
            let parent = self.parent[node] as usize;
            sibling[node] = first_child[parent];
            first_child[parent] = node as u32;
        }
        self.parent[root] = NONE;
        self.size.fill(1);
        let mut at = root;
        let mut end = root;
        loop {
            let mut to = first_child[at];
            if to == NONE {
                while at != root {
                    self.last[at] = end as u32;
                    let parent = self.parent[at] as usize;
                    self.size[parent] += self.size[at];
                    to = sibling[at];
                    if to != NONE {
                        break;
                    }
                    at = parent;
                }
                if to == NONE {
                    break;
                }
            }
            self.next[end] = to;
            self.before[to as usize] = end as u32;
            end = to as usize;
            at = end;
        }
        self.last[root] = end as u32;
        self.next[end] = root as u32;
        self.before[root] = end as u32;
    }

    /// The node after the subtree of `top` in the ring.
    pub fn after(&self, top: usize) -> usize {
        self.next[self.last[top] as usize] as usize
    }

    /// Cuts the subtree of `top` off, turns it so that `new_top` (inside it) is its top, and hangs that below `under`
    /// (outside it) by `arc` with `flow`. The arcs on the path from `new_top` to `top` keep their flows.
    pub fn rehang(&mut self, top: usize, new_top: usize, under: usize, arc: u32, flow: f64) {
        let Tree { parent, arc: arcs, flow: flows, next, before, last, size } = self;
        let moved = size[top];
        let old_end = last[top];
        let ahead = before[top];
        let behind = next[old_end as usize];
        next[ahead as usize] = behind;
        before[behind as usize] = ahead;
        let mut up = parent[top];
        while up != NONE {
            let node = up as usize;
            size[node] -= moved;
            if last[node] == old_end {
                last[node] = ahead;
            }
            up = parent[node];
        }

        let mut tail = last[new_top];
        if new_top != top {
            // Along the path each old parent follows its child, first what stood before the child's stretch, then what
            // stood after.
            let mut child = new_top;
            let mut child_end = tail;
            let mut child_ahead = before[new_top];
            let mut child_behind = next[child_end as usize];
            let mut child_size = size[new_top];
            let mut child_arc = arcs[new_top];
            let mut child_flow = flows[new_top];
            let mut node = parent[new_top] as usize;
            loop {
                let node_end = last[node];
                let node_ahead = before[node];
                let node_behind = if node_end == child_end { child_behind } else { next[node_end as usize] };
                let node_size = size[node];
                let node_arc = arcs[node];
                let node_flow = flows[node];
                let node_parent = parent[node];
                next[tail as usize] = node as u32;
                before[node] = tail;
                if node_end == child_end {
                    tail = child_ahead;
                } else {
                    next[child_ahead as usize] = child_behind;
                    before[child_behind as usize] = child_ahead;
                    tail = node_end;
                }
                parent[node] = child as u32;
                arcs[node] = child_arc;
                flows[node] = child_flow;
                size[node] = moved - child_size;
                if node == top {
                    break;
                }
                child = node;
                child_end = node_end;
                child_ahead = node_ahead;
                child_behind = node_behind;
                child_size = node_size;
                child_arc = node_arc;
                child_flow = node_flow;
                node = node_parent as usize;
            }
            node = top;
            while node != new_top {
                last[node] = tail;
                node = parent[node] as usize;
            }
            last[new_top] = tail;
            size[new_top] = moved;
        }

        let follower = next[under];
        next[under] = new_top as u32;
        before[new_top] = under as u32;
        next[tail as usize] = follower;
        before[follower as usize] = tail;
        parent[new_top] = under as u32;
        arcs[new_top] = arc;
        flows[new_top] = flow;
        let mut up = under as u32;
        while up != NONE {
            let node = up as usize;
            size[node] += moved;
            if last[node] == under as u32 {
                last[node] = tail;
            }
            up = parent[node];
        }
    }

    /// Adds `shift` to `price` over the subtree of `top`; where that is most of the tree, takes it from the rest instead.
    pub fn shift_prices(&self, price: &mut [f64], top: usize, shift: f64) {
        let end = self.after(top);
        if 2 * self.size[top] as usize <= price.len() {
            let mut node = top;
            loop {
                price[node] += shift;
                node = self.next[node] as usize;
                if node == end {
                    break;
                }
            }
        } else {
            let mut node = end;
            while node != top {
                price[node] -= shift;
                node = self.next[node] as usize;
            }
        }
    }
}
