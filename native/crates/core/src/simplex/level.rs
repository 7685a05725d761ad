//! The level θ of one component: Σ_v y_v(w_v + θ) = T, where y_e(w) is the load at which engine e's marginal is w
//! (clamped to 0 … U_e) and y_k(w) the shed of cell k that is worth its price w. The left side never falls in θ; it is
//! piecewise linear, with plateaus (all engines on knots or full) and jumps (a flat marginal, a step of the shed price).
//!
//! Newton from the present prices, kept inside a bracket; on a plateau the next place where anything changes. It starts
//! at θ = 0 and stops at the first θ that fits, so prices that are right as they are stay. Where the bracket closes on a
//! jump the sinks that jump take their part one after the other, engines first: at most one cell sheds part of a step.

use super::network::Network;

#[derive(Debug)]
pub struct Level {
    nodes: Vec<u32>,
    /// Sink flows on the two sides of a jump; one value in both where there is none.
    low: Vec<f64>,
    high: Vec<f64>,
    /// After [`Level::find`]: the cell that sheds part of a step.
    pub part_shed: Option<usize>,
    /// After [`Level::sum`]: the derivative, and the θ nearest below and above at which anything changes.
    rate: f64,
    below: f64,
    above: f64,
}

/// Steps of the search; bisection alone needs about 60.
const MOST_STEPS: usize = 200;
/// From here on every second step halves the bracket: Newton can crawl along a staircase.
const NEWTON_STEPS: usize = 12;
/// Prices nearer than this part of the dearest shed price are equal: 2⁻⁴⁵.
pub const PRICE_TOLERANCE: f64 = 1.0 / (1u64 << 45) as f64;
/// Stands for "without bound" and is above any flow.
const ENDLESS: f64 = (1u64 << 52) as f64;

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Low,
    High,
}

impl Level {
    pub fn new(network: &Network) -> Self {
        Level {
            nodes: vec![0; network.root],
            low: vec![0.0; network.root],
            high: vec![0.0; network.root],
            part_shed: None,
            rate: 0.0,
            below: 0.0,
            above: 0.0,
        }
    }

    /// Sets `sink` for the component whose top is `top`, and returns θ, ms.
    pub fn find(&mut self, network: &mut Network, supply: &[f64], top: usize) -> f64 {
        let cells = network.cells;
        // Engines first, cells after them.
        let end = network.tree.after(top);
        let mut engines = 0;
        let mut wanted = 0.0;
        let mut lo = f64::INFINITY;
        let mut hi = f64::NEG_INFINITY;
        let mut shed_from = f64::INFINITY;
        let mut node = top;
        loop {
            wanted += supply[node];
            if node >= cells {
                let engine = node - cells;
                self.nodes[engines] = node as u32;
                engines += 1;
                let pieces = network.pieces.range(engine);
                let first = if pieces.is_empty() { network.overflow[engine] } else { network.pieces.low[pieces.start] };
                let least = first - network.price[node];
                if least < lo {
                    lo = least;
                }
                let most = network.overflow[engine] - network.price[node];
                if most > hi {
                    hi = most;
                }
            }
            node = network.tree.next[node] as usize;
            if node == end {
                break;
            }
        }
        let mut count = engines;
        node = top;
        loop {
            if node < cells {
                self.nodes[count] = node as u32;
                count += 1;
                let least = network.shed_ms[node] - network.price[node];
                if least < shed_from {
                    shed_from = least;
                }
                if least < lo {
                    lo = least;
                }
                let most = least + network.shed_step_ms * (network.shed_steps - 1) as f64;
                if most > hi {
                    hi = most;
                }
            }
            node = network.tree.next[node] as usize;
            if node == end {
                break;
            }
        }

        self.part_shed = None;
        if wanted <= 0.0 {
            for &node in &self.nodes[..count] {
                network.sink[node as usize] = 0.0;
            }
            return lo;
        }
        let tolerance = PRICE_TOLERANCE * network.top_price + 1e-12;
        let slack = 0.5 + wanted * (1.0 / (1u64 << 47) as f64);
        lo -= tolerance;
        hi += tolerance;
        let mut theta = hi.min(lo.max(0.0));
        let mut jumps = false;
        for step in 0..MOST_STEPS {
            let among = if theta < shed_from { engines } else { count };
            let off = self.sum(network, engines, among, theta, Side::High) - wanted;
            if off <= slack && off >= -slack {
                break;
            }
            if off < 0.0 {
                lo = theta;
            } else {
                hi = theta;
            }
            if hi - lo <= tolerance {
                jumps = true;
                break;
            }
            let mut to = if self.rate > 0.0 {
                theta - off / self.rate
            } else if off < 0.0 {
                self.above.min(if shed_from > theta { shed_from } else { f64::INFINITY }) + tolerance / 4.0
            } else {
                self.below - tolerance / 4.0
            };
            if !(to > lo && to < hi) || (step >= NEWTON_STEPS && step % 2 == 0) {
                to = lo + (hi - lo) / 2.0;
            }
            theta = to;
        }
        if theta < shed_from {
            self.high[engines..count].fill(0.0);
        }
        if jumps {
            theta = hi;
            self.sum(network, engines, count, lo, Side::Low);
            self.sum(network, engines, count, hi, Side::High);
        } else {
            self.low[..count].copy_from_slice(&self.high[..count]);
        }
        self.divide(network, engines, count, wanted);
        theta
    }

    /// Σ y_v(w_v + θ) over the first `count` nodes, each y_v to that side.
    fn sum(&mut self, network: &Network, engines: usize, count: usize, theta: f64, side: Side) -> f64 {
        let pieces = &network.pieces;
        let out = if side == Side::Low { &mut self.low } else { &mut self.high };
        let mut total = 0.0;
        let mut rate = 0.0;
        let mut below = f64::NEG_INFINITY;
        let mut above = f64::INFINITY;
        for i in 0..engines {
            let node = self.nodes[i] as usize;
            let engine = node - network.cells;
            let w = network.price[node];
            let at = w + theta;
            let end = pieces.start[engine + 1] as usize;
            let mut piece = pieces.start[engine] as usize;
            let mut load = pieces.capacity[engine];
            let mut down = f64::NEG_INFINITY;
            let mut up = network.overflow[engine];
            // The first piece that ends above this price; before it lies a jump of the marginal, or the price is in it.
            while piece < end && pieces.high[piece] <= at {
                down = pieces.high[piece];
                piece += 1;
            }
            if piece < end {
                load = pieces.from[piece];
                up = pieces.low[piece];
                if up <= at {
                    let steep = (pieces.to[piece] - load) / (pieces.high[piece] - up);
                    down = up;
                    up = pieces.high[piece];
                    load += steep * (at - down);
                    rate += steep;
                }
            } else if up <= at {
                down = up;
                up = f64::INFINITY;
                load = ENDLESS;
            }
            if down - w > below {
                below = down - w;
            }
            if up - w < above {
                above = up - w;
            }
            total += load;
            out[i] = load;
        }
        for i in engines..count {
            let cell = self.nodes[i] as usize;
            let w = network.price[cell];
            let over = w + theta - network.shed_ms[cell];
            let mut load = 0.0;
            if over < 0.0 {
                if network.shed_ms[cell] - w < above {
                    above = network.shed_ms[cell] - w;
                }
            } else {
                let all = network.shed_steps as f64;
                let mut steps = all;
                if network.shed_step_ms > 0.0 {
                    steps = all.min((over / network.shed_step_ms).floor() + 1.0);
                }
                load = ((network.demand[cell] * steps) / all).floor();
                let down = network.shed_ms[cell] + network.shed_step_ms * (steps - 1.0) - w;
                if down > below {
                    below = down;
                }
                if steps < all && down + network.shed_step_ms < above {
                    above = down + network.shed_step_ms;
                }
            }
            total += load;
            out[i] = load;
        }
        self.rate = rate;
        self.below = below;
        self.above = above;
        total
    }

    /// Whole sink flows between `low` and `high` that come to `wanted`.
    fn divide(&mut self, network: &mut Network, engines: usize, count: usize, wanted: f64) {
        let Network { cells, sink, pieces, .. } = network;
        let mut rest = wanted;
        for i in 0..count {
            let node = self.nodes[i] as usize;
            let least = self.low[i].floor();
            let most = self.high[i].floor();
            // Engines stay as near as may be to what they carry; a cell's shed stands on a step.
            let mut flow = sink[node];
            if flow < least {
                flow = least;
            } else if flow > most {
                flow = most;
            } else if i >= engines && flow > least && flow < most {
                flow = least;
            }
            sink[node] = flow;
            rest -= flow;
        }
        for i in 0..count {
            if rest == 0.0 {
                break;
            }
            let node = self.nodes[i] as usize;
            let least = self.low[i].floor();
            let most = self.high[i].floor();
            let flow = most.min(least.max(sink[node] + rest));
            rest -= flow - sink[node];
            sink[node] = flow;
            if i >= engines && flow > least && flow < most {
                self.part_shed = Some(node);
            }
        }
        // What is left are roundings: by the quantum, first to loads that were cut to whole quanta, then to any with
        // room.
        for i in 0..engines {
            if rest <= 0.0 {
                break;
            }
            let node = self.nodes[i] as usize;
            if self.high[i] > sink[node] && sink[node] < pieces.capacity[node - *cells] {
                sink[node] += 1.0;
                rest -= 1.0;
            }
        }
        for i in 0..engines {
            if rest == 0.0 {
                break;
            }
            let node = self.nodes[i] as usize;
            let flow = pieces.capacity[node - *cells].max(sink[node]).min((sink[node] + rest).max(0.0));
            rest -= flow - sink[node];
            sink[node] = flow;
        }
        if rest == 0.0 {
            return;
        }
        // No engine has room for the last quanta: a cell sheds them, or, where there is none, the load is over capacity.
        let last = self.nodes[count - 1] as usize;
        sink[last] += rest;
        if last < *cells {
            self.part_shed = Some(last);
        }
    }
}
