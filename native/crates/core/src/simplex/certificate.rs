//! What the present flows cost and a bound below any flows' cost, both for the problem as given, before rounding.
//!
//! For any engine prices w and any π_k ≤ min_e(c_ke + m_ke + w_e):
//!
//! ```text
//! LB = Σ_k (d_k/J)·Σ_{j<J} min(p_k(j/J), π_k) + Σ_ke ẑ_ke·min(0, c_ke + w_e − π_k) − Σ_e φ*_e(w_e)
//! φ*_e(w) = max over 0 ≤ y ≤ U_e of w·y − φ_e(y)
//! ```
//!
//! Without churn m = ẑ = 0 and the best π_k is that minimum. With churn it is the tree's price, held to the minimum. The
//! arcs of an engine without capacity carry nothing and don't bind π.

use super::network::Network;
use super::pricing::least_total;
use super::tree::SINK;

/// The best bound so far, ms per second, and the engine prices that it was made from.
pub struct BestBound {
    pub best: f64,
    pub price: Vec<f64>,
}

impl BestBound {
    pub fn new(network: &Network) -> Self {
        BestBound { best: f64::NEG_INFINITY, price: vec![0.0; network.engines] }
    }

    pub fn certify(&mut self, network: &Network, price: &[f64]) {
        let bound = lower_bound(network, price);
        if bound <= self.best {
            return;
        }
        self.best = bound;
        let base = price[network.root];
        for (out, price) in self.price.iter_mut().zip(&price[network.cells..network.root]) {
            *out = (price - base).max(0.0);
        }
    }
}

/// LB, ms per second, from prices of the network's nodes: the tree's, or [`prices_at_loads`].
pub fn lower_bound(network: &Network, price: &[f64]) -> f64 {
    let cells = network.cells;
    let capacity = &network.pieces.capacity[..];
    let base = price[network.root];
    let all_have_capacity = capacity.iter().all(|&capacity| capacity > 0.0);
    let mut total = 0.0;
    for cell in 0..cells {
        let row = network.row(cell);
        let costs = &network.arc_base[row.clone()];
        let nodes = &network.arc_node[row.clone()];
        let mut pi = f64::INFINITY;
        if let Some(churn) = &network.churn {
            pi = price[cell] - base;
            for (arc, (cost, &node)) in row.clone().zip(costs.iter().zip(nodes)) {
                let through = cost + churn.move_ms[arc] + price[node as usize] - base;
                if through < pi && capacity[node as usize - cells] > 0.0 {
                    pi = through;
                }
            }
            for (arc, (cost, &node)) in row.zip(costs.iter().zip(nodes)) {
                let held = churn.reference_exact[arc];
                if held <= 0.0 || capacity[node as usize - cells] <= 0.0 {
                    continue;
                }
                let less = cost + price[node as usize] - base - pi;
                if less < 0.0 {
                    total += held * less;
                }
            }
        } else if all_have_capacity {
            pi = least_total(costs, nodes, price) - base;
        } else {
            for (cost, &node) in costs.iter().zip(nodes) {
                let through = cost + price[node as usize];
                if through < pi && capacity[node as usize - cells] > 0.0 {
                    pi = through;
                }
            }
            pi -= base;
        }
        total += network.demand_exact[cell] * mean_price(network, cell, pi);
    }
    for engine in 0..network.engines {
        total -= conjugate(network, engine, price[cells + engine] - base);
    }
    total / network.scale
}

/// The prices, those of engines moved into what their marginals at their present loads allow. A price that is off by
/// rounding alone costs the bound that rounding on all of a flat curve's capacity, however little of it is used; from these
/// prices it costs it on the demand only.
pub fn prices_at_loads(network: &Network) -> Vec<f64> {
    let (pieces, base) = (&network.pieces, network.price[network.root]);
    let mut prices = network.price.clone();
    for engine in 0..network.engines {
        let node = network.cells + engine;
        let load = network.sink[node];
        let range = pieces.range(engine);
        let mut piece = range.start;
        let (mut least, mut most) = (0.0_f64, f64::INFINITY);
        while piece < range.end && pieces.to[piece] <= load {
            least = pieces.high[piece];
            piece += 1;
        }
        if piece < range.end {
            let part = (load - pieces.from[piece]) / (pieces.to[piece] - pieces.from[piece]);
            most = pieces.low[piece] + part * (pieces.high[piece] - pieces.low[piece]);
            if load > pieces.from[piece] {
                least = most;
            }
        }
        prices[node] = base + (prices[node] - base).max(least).min(most);
    }
    prices
}

/// (1/J)·Σ_j min(p_k(j/J), π).
fn mean_price(network: &Network, cell: usize, pi: f64) -> f64 {
    if pi <= network.shed_ms[cell] {
        return pi;
    }
    let mut total = 0.0;
    for step in 0..network.shed_steps {
        total += pi.min(network.shed_ms[cell] + network.shed_step_ms * step as f64);
    }
    total / network.shed_steps as f64
}

/// φ*(w), ms × quanta.
fn conjugate(network: &Network, engine: usize, w: f64) -> f64 {
    let pieces = &network.pieces;
    let range = pieces.range(engine);
    if range.is_empty() || w <= pieces.low[range.start] {
        return 0.0;
    }
    // The last piece that begins below this price; the best load is in it or at its end.
    let mut piece = range.start;
    while piece + 1 < range.end && pieces.low[piece + 1] < w {
        piece += 1;
    }
    let length = pieces.exact_to[piece] - pieces.exact_from[piece];
    let rise = pieces.high[piece] - pieces.low[piece];
    let part = if w < pieces.high[piece] { (length * (w - pieces.low[piece])) / rise } else { length };
    w * (pieces.exact_from[piece] + part)
        - pieces.value[piece]
        - part * (pieces.low[piece] + (part * rise) / (2.0 * length))
}

/// φ(y), ms × quanta, at a load in (not necessarily whole) quanta; beyond the capacity the last piece goes on.
pub fn engine_cost(network: &Network, engine: usize, load: f64) -> f64 {
    let pieces = &network.pieces;
    let range = pieces.range(engine);
    if range.is_empty() {
        return 0.0;
    }
    let mut piece = range.start;
    while piece + 1 < range.end && pieces.exact_from[piece + 1] <= load {
        piece += 1;
    }
    let part = load - pieces.exact_from[piece];
    let length = pieces.exact_to[piece] - pieces.exact_from[piece];
    let rise = pieces.high[piece] - pieces.low[piece];
    pieces.value[piece] + part * (pieces.low[piece] + (part * rise) / (2.0 * length))
}

/// φ(y), and the price of overflow on what is beyond the capacity.
fn load_cost(network: &Network, engine: usize, load: f64) -> f64 {
    let capacity = network.pieces.capacity[engine];
    let over = load - capacity;
    if over <= 0.0 {
        return engine_cost(network, engine, load);
    }
    engine_cost(network, engine, capacity) + over * network.overflow[engine]
}

/// P_k(s), ms × quanta.
pub fn shed_cost(network: &Network, cell: usize, shed: f64) -> f64 {
    let mut total = network.shed_ms[cell] * shed;
    let width = network.demand_exact[cell] / network.shed_steps as f64;
    let mut step = 1;
    while step < network.shed_steps && shed > width * step as f64 {
        total += network.shed_step_ms * (shed - width * step as f64);
        step += 1;
    }
    total
}

/// F of the present flows, ms per second: tree arcs, arcs at their reference, sinks.
pub fn objective(network: &Network) -> f64 {
    let mut total = 0.0;
    for node in 0..network.root {
        if network.tree.arc[node] == SINK {
            continue;
        }
        let arc = network.tree.arc[node] as usize;
        let flow = network.tree.flow[node];
        total += network.arc_base[arc] * flow;
        if let Some(churn) = &network.churn {
            let over = flow - churn.reference_exact[arc];
            if over > 0.0 {
                total += churn.move_ms[arc] * over;
            }
        }
    }
    if let Some(churn) = &network.churn {
        for arc in 0..churn.reference.len() {
            if churn.beyond[arc] == 0 || churn.reference[arc] == 0.0 || network.in_tree(arc) {
                continue;
            }
            total += network.arc_base[arc] * churn.reference[arc];
        }
    }
    for cell in 0..network.cells {
        total += shed_cost(network, cell, network.sink[cell]);
    }
    for engine in 0..network.engines {
        total += load_cost(network, engine, network.sink[network.cells + engine]);
    }
    total / network.scale
}
