//! The cost of every sink arc as straight segments, cut where it matters at present.
//!
//! Node v's segments are `start[v]..end[v]`: segment i goes from `from[i]` to `from[i + 1]`, the last one on for ever,
//! and costs `slope[i]` a unit. An engine is cut at its present load, at doubling distances η·U, 3η·U, 7η·U … on both
//! sides of it, at the ends of its pieces, and has one more segment beyond its capacity. On a piece the marginal is
//! straight, so the chord's slope is the marginal in the middle: no difference of large numbers. Since the present load
//! is a cut, the present tree and flows are a valid basis whatever η is.
//!
//! The engine that holds a component to the root gets one segment of a single quantum at its load, whose slope is the
//! price it has: prices pass through a new grid unchanged.

use super::network::{Network, half_up};
use super::tree::SINK;

#[derive(Debug)]
pub struct Grid {
    pub start: Vec<u32>,
    pub end: Vec<u32>,
    pub from: Vec<f64>,
    pub slope: Vec<f64>,
    /// Outside the tree the flow rests at `from[at[v]]`; in the tree it moves inside segment `at[v]`.
    pub at: Vec<u32>,
}

/// Steps of a grid finer than 2⁻⁴⁸ of the capacity say nothing new.
const MOST_DOUBLINGS: usize = 50;

impl Grid {
    pub fn new(network: &Network) -> Self {
        let mut start = Vec::with_capacity(network.root);
        let mut total = 0;
        for node in 0..network.root {
            start.push(total as u32);
            total += if node < network.cells {
                network.shed_steps
            } else {
                match network.pieces.range(node - network.cells).len() {
                    0 => 2,
                    pieces => pieces + 2 * MOST_DOUBLINGS + 4,
                }
            };
        }
        let mut grid = Grid {
            end: start.clone(),
            start,
            from: vec![0.0; total],
            slope: vec![0.0; total],
            at: vec![0; network.root],
        };
        for cell in 0..network.cells {
            grid.cut_shed(network, cell);
        }
        grid
    }

    /// The steps of a cell's shed price. A step that rounds to nothing is left out; the last one has no end.
    fn cut_shed(&mut self, network: &Network, cell: usize) {
        let mut at = self.start[cell] as usize;
        for step in 0..network.shed_steps {
            let from = ((network.demand[cell] * step as f64) / network.shed_steps as f64).floor();
            if step > 0 && (from <= self.from[at - 1] || network.shed_step_ms == 0.0) {
                continue;
            }
            self.from[at] = from;
            self.slope[at] = network.shed_ms[cell] + network.shed_step_ms * step as f64;
            at += 1;
        }
        self.end[cell] = at as u32;
    }

    /// Cuts every engine anew around its present load, puts every sink flow on its cut, and sets all prices from the
    /// tree.
    pub fn regrid(&mut self, network: &mut Network, eta: f64) {
        for node in network.cells..network.root {
            self.cut_engine(network, node, eta);
        }
        for cell in 0..network.cells {
            // A shed between two cuts is in the tree (the equaliser leaves at most one per component there).
            let mut at = self.start[cell] as usize;
            while at + 1 < self.end[cell] as usize && self.from[at + 1] <= network.sink[cell] {
                at += 1;
            }
            self.at[cell] = at as u32;
            if network.tree.arc[cell] == SINK {
                network.tree.flow[cell] = network.sink[cell];
            } else if network.sink[cell] > self.from[at] {
                // All of its demand, which is no cut: a leaf that sends nothing on. It comes to hang by its shed arc.
                network.tree.rehang(cell, cell, network.root, SINK, network.sink[cell]);
            }
        }
        self.set_prices(network);
    }

    fn cut_engine(&mut self, network: &mut Network, node: usize, eta: f64) {
        let engine = node - network.cells;
        let held = network.tree.arc[node] == SINK;
        let price = network.price[node] - network.price[network.root];
        let load = network.sink[node];
        if held {
            network.tree.flow[node] = load;
        }
        let curve = &network.pieces;
        let most = curve.capacity[engine];
        let overflow = network.overflow[engine];
        let (from, slope) = (&mut self.from, &mut self.slope);
        let start = self.start[node] as usize;
        let mut at = start;
        let mut mine = start;
        let pieces = curve.range(engine);
        if !pieces.is_empty() {
            let step = half_up(eta * most).max(1.0);
            let reach = |doublings: u32| step * ((1u64 << doublings) as f64 - 1.0);
            let mut left = 1;
            while load - reach(left) > 0.0 {
                left += 1;
            }
            left -= 1;
            let mut piece = pieces.start;
            let mut position = 0.0;
            // Rising candidates: those left of the load, the load, those right of it; each piece's end comes between.
            let mut right = 0;
            while position < most {
                let mut up_to;
                if left > 0 {
                    up_to = load - reach(left);
                } else if position < load {
                    up_to = load;
                } else if held && position == load {
                    up_to = load + 1.0;
                } else {
                    loop {
                        right += 1;
                        up_to = load + reach(right);
                        if up_to > position {
                            break;
                        }
                    }
                }
                if up_to > most {
                    up_to = most;
                }
                if left > 0 && up_to <= position {
                    left -= 1;
                    continue;
                }
                let end = curve.to[piece];
                if up_to > end {
                    up_to = end;
                }
                if position == load {
                    mine = at;
                }
                from[at] = position;
                let length = end - curve.from[piece];
                slope[at] = curve.low[piece]
                    + (curve.high[piece] - curve.low[piece])
                        * (((position + up_to) / 2.0 - curve.from[piece]) / length);
                at += 1;
                position = up_to;
                if left > 0 && position == load - reach(left) {
                    left -= 1;
                }
                if position == end && piece + 1 < pieces.end {
                    piece += 1;
                }
            }
        }
        // Beyond the capacity, with a cut at a load that lies there.
        if load == most {
            mine = at;
        }
        from[at] = most;
        slope[at] = overflow;
        at += 1;
        if load > most {
            if held {
                mine = at - 1;
            } else {
                mine = at;
                from[at] = load;
                slope[at] = overflow;
                at += 1;
            }
        }
        self.end[node] = at as u32;
        self.at[node] = mine as u32;
        if !held || load > most || most == 0.0 {
            return;
        }
        // The held engine's own segment: to the right of its load, or to the left where it is full.
        if load == most {
            mine -= 1;
            if from[mine] < load - 1.0 {
                // That one may be long: the last quantum is cut off it.
                mine += 1;
                from[mine + 1] = most;
                slope[mine + 1] = overflow;
                from[mine] = load - 1.0;
                self.end[node] = at as u32 + 1;
                self.at[node] = mine as u32;
                slope[mine] = overflow.min(slope[mine - 1].max(price));
                return;
            }
        }
        let above = if mine + 1 < at { slope[mine + 1] } else { overflow };
        let below = if mine > start { slope[mine - 1] } else { f64::NEG_INFINITY };
        self.at[node] = mine as u32;
        slope[mine] = above.min(below.max(price));
    }

    /// Prices from the tree: a component's from the segment that holds it to the root, the others' along the arcs.
    fn set_prices(&self, network: &mut Network) {
        let Network { cells, root, tree, price, arc_next, .. } = network;
        price[*root] = 0.0;
        let mut node = tree.next[*root] as usize;
        while node != *root {
            let arc = tree.arc[node];
            price[node] = if arc == SINK {
                self.slope[self.at[node] as usize]
            } else if node < *cells {
                price[tree.parent[node] as usize] + arc_next[arc as usize]
            } else {
                price[tree.parent[node] as usize] - arc_next[arc as usize]
            };
            node = tree.next[node] as usize;
        }
    }
}
