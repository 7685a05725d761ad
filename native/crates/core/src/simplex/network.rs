//! The problem as a pure network with whole-number flows.
//!
//! ```text
//! minimise  Σ_a cost_a(z_a) + Σ_e φ_e(y_e) + Σ_k P_k(s_k)
//! ```
//!
//! Nodes: cells 0 … K−1, engines K … K+E−1, one root (number K+E) where all flow ends. Arcs: cell → engine, and from
//! every cell and engine one *sink arc* to the root: the shed of a cell, the load of an engine. All costs are convex.
//!
//! Flows are whole numbers of one *quantum*, 2⁻ˣ work units/s with x such that all demand together is 2⁴⁹ … 2⁵⁰ quanta,
//! held in doubles: sums are exact, so that conservation is exact and a tie in a ratio test is a tie. Costs are ms per
//! unit of work; sums over flows are in ms × quanta, and ÷ scale gives ms per second.
//!
//! φ_e is piecewise quadratic: on piece j its marginal goes in a straight line from `piece_low[j]` to `piece_high[j]`.

use std::borrow::Cow;

use super::Problem;
use super::tree::Tree;

#[derive(Debug)]
pub struct Network<'a> {
    pub cells: usize,
    pub engines: usize,
    /// Number of the root node: cells + engines.
    pub root: usize,
    pub scale: f64,
    /// Cell k's arcs are `arc_start[k]..arc_start[k + 1]`.
    pub arc_start: &'a [u32],
    pub arc_cell: Vec<u32>,
    /// Node number of the arc's engine.
    pub arc_node: Vec<u32>,
    /// c: the price of the arc's first unit where it has a reference, ms.
    pub arc_base: &'a [f64],
    /// The price of its next unit, ms: c, or c + m beyond the reference.
    pub arc_next: Cow<'a, [f64]>,
    pub churn: Option<ChurnArcs<'a>>,
    /// d_k in quanta, and before rounding.
    pub demand: Vec<f64>,
    pub demand_exact: Vec<f64>,
    pub pieces: Pieces,
    /// Price of load beyond capacity, ms, one per engine: above any price of shedding.
    pub overflow: Vec<f64>,
    pub shed_ms: &'a [f64],
    pub shed_step_ms: f64,
    pub shed_steps: usize,
    /// The largest price that shedding can have: the scale of prices.
    pub top_price: f64,
    /// Sink flow of every node in quanta. Between the phases this is the truth.
    pub sink: Vec<f64>,
    /// Price of one more unit at the node, ms, less `price[root]`.
    pub price: Vec<f64>,
    pub tree: Tree,
}

/// One-sided churn: an arc's first ẑ units cost c, those beyond c + m. In the tree its flow moves inside one of the two
/// segments; outside the tree it rests at 0 or at ẑ.
#[derive(Debug)]
pub struct ChurnArcs<'a> {
    /// ẑ in quanta, rounded down.
    pub reference: Vec<f64>,
    pub reference_exact: Vec<f64>,
    pub move_ms: &'a [f64],
    /// 1: the arc is in (or, outside the tree, at the start of) the segment beyond ẑ. Always 1 where ẑ = 0.
    pub beyond: Vec<u8>,
}

/// Every φ, cut at the knots of Q and where the ramp begins.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Largest load in quanta, one per engine.
    pub capacity: Vec<f64>,
    /// Engine e's pieces are `start[e]..start[e + 1]`; none for an engine without capacity.
    pub start: Vec<u32>,
    /// Whole quanta.
    pub from: Vec<f64>,
    pub to: Vec<f64>,
    /// φ′ at the two ends, ms.
    pub low: Vec<f64>,
    pub high: Vec<f64>,
    /// The ends before rounding, and φ at the exact start, ms × quanta: what the certificate uses.
    pub exact_from: Vec<f64>,
    pub exact_to: Vec<f64>,
    pub value: Vec<f64>,
}

impl Pieces {
    pub fn range(&self, engine: usize) -> std::ops::Range<usize> {
        self.start[engine] as usize..self.start[engine + 1] as usize
    }
}

impl<'a> Network<'a> {
    pub fn new(problem: &Problem<'a>) -> Self {
        let cells = problem.demand_wps.len();
        let engines = problem.curves.capacity_wps.len();
        let arcs = problem.arc_engine.len();
        let root = cells + engines;
        let scale = quanta_per_unit(problem);

        let mut arc_cell = vec![0; arcs];
        let mut arc_node = vec![0; arcs];
        let mut dearest = 0.0;
        for cell in 0..cells {
            for arc in problem.arc_start[cell] as usize..problem.arc_start[cell + 1] as usize {
                arc_cell[arc] = cell as u32;
                arc_node[arc] = (cells + problem.arc_engine[arc] as usize) as u32;
                if problem.arc_cost_ms[arc] > dearest {
                    dearest = problem.arc_cost_ms[arc];
                }
            }
        }
        let churn = churn_arcs(problem, scale);
        let mut arc_next = Cow::Borrowed(problem.arc_cost_ms);
        if let Some(churn) = &churn {
            let next = arc_next.to_mut();
            for arc in 0..arcs {
                let dear = problem.arc_cost_ms[arc] + churn.move_ms[arc];
                if dear > dearest {
                    dearest = dear;
                }
                if churn.beyond[arc] == 1 {
                    next[arc] = dear;
                }
            }
        }

        let mut demand = vec![0.0; cells];
        let mut demand_exact = vec![0.0; cells];
        let mut top_price = 0.0;
        for cell in 0..cells {
            demand_exact[cell] = problem.demand_wps[cell] * scale;
            demand[cell] = demand_exact[cell].ceil();
            if problem.shed_ms[cell] > top_price {
                top_price = problem.shed_ms[cell];
            }
        }
        let shed_steps = problem.shed_steps.max(1) as usize;
        top_price += problem.shed_step_ms * (shed_steps - 1) as f64;
        let pieces = cut_curves(problem, scale);
        let overflow = (0..engines)
            .map(|engine| {
                let steepest = pieces.range(engine).next_back().map_or(0.0, |last| pieces.high[last]);
                2.0 * (top_price + dearest + 1.0).max(steepest)
            })
            .collect();
        Network {
            cells,
            engines,
            root,
            scale,
            arc_start: problem.arc_start,
            arc_cell,
            arc_node,
            arc_base: problem.arc_cost_ms,
            arc_next,
            churn,
            demand,
            demand_exact,
            pieces,
            overflow,
            shed_ms: problem.shed_ms,
            shed_step_ms: problem.shed_step_ms,
            shed_steps,
            top_price,
            sink: vec![0.0; root],
            price: vec![0.0; root + 1],
            tree: Tree::new(root + 1),
        }
    }

    pub fn row(&self, cell: usize) -> std::ops::Range<usize> {
        self.arc_start[cell] as usize..self.arc_start[cell + 1] as usize
    }

    /// Whether the arc is in the tree: then one of its ends hangs by it.
    pub fn in_tree(&self, arc: usize) -> bool {
        let number = arc as u32;
        self.tree.arc[self.arc_cell[arc] as usize] == number || self.tree.arc[self.arc_node[arc] as usize] == number
    }
}

/// A power of two that makes all demand 2⁴⁹ … 2⁵⁰ quanta (all capacity, where there is no demand).
fn quanta_per_unit(problem: &Problem) -> f64 {
    let mut total = 0.0;
    for demand in problem.demand_wps {
        total += demand;
    }
    if total <= 0.0 {
        for capacity in problem.curves.capacity_wps {
            total += capacity;
        }
    }
    if total <= 0.0 {
        return 1.0;
    }
    let mut scale = 1.0;
    while total * scale < (1u64 << 49) as f64 {
        scale *= 2.0;
    }
    while total * scale >= (1u64 << 50) as f64 {
        scale /= 2.0;
    }
    scale
}

fn churn_arcs<'a>(problem: &Problem<'a>, scale: f64) -> Option<ChurnArcs<'a>> {
    let (reference_wps, move_ms) = problem.churn?;
    let reference_exact: Vec<f64> = reference_wps.iter().map(|value| value * scale).collect();
    // A free move needs no second segment.
    let reference: Vec<f64> = reference_exact
        .iter()
        .zip(move_ms)
        .map(|(exact, &price)| if price > 0.0 { exact.floor() } else { 0.0 })
        .collect();
    let beyond = reference.iter().map(|&held| u8::from(held <= 0.0)).collect();
    Some(ChurnArcs { reference, reference_exact, move_ms, beyond })
}

/// A piece that rounds to nothing is left out.
fn cut_curves(problem: &Problem, scale: f64) -> Pieces {
    let curves = &problem.curves;
    let (knot_rho, knot_ms, headroom) = (curves.knot_rho, curves.knot_ms, curves.headroom);
    let engines = curves.capacity_wps.len();
    let mut pieces = Pieces { start: vec![0; engines + 1], ..Pieces::default() };
    let ramp_rho = if headroom > 0.0 && curves.headroom_ms > 0.0 { (1.0 - headroom).max(0.0) } else { 1.0 };
    let ramp_slope = if headroom > 0.0 { curves.headroom_ms / headroom } else { 0.0 };
    for engine in 0..engines {
        let exact = curves.capacity_wps[engine] * scale;
        let whole = exact.floor();
        pieces.capacity.push(whole);
        let first = pieces.from.len();
        let knots = curves.knot_start[engine] as usize;
        let end = curves.knot_start[engine + 1] as usize;
        let mut knot = knots;
        let mut rho = 0.0;
        let mut value = 0.0;
        while rho < 1.0 && whole > 0.0 {
            let mut next_rho = 1.0;
            if knot + 1 < end && knot_rho[knot + 1] < next_rho {
                next_rho = knot_rho[knot + 1];
            }
            if rho < ramp_rho && ramp_rho < next_rho {
                next_rho = ramp_rho;
            }
            // Beyond its last knot Q keeps the slope it had.
            let right = if knot + 1 < end { knot + 1 } else { knot };
            let mut rise = 0.0;
            if right > knots {
                rise = (knot_ms[right] - knot_ms[right - 1]) / (knot_rho[right] - knot_rho[right - 1]);
            }
            if rise < 0.0 {
                rise = 0.0;
            }
            let q = knot_ms[knot] + rise * (rho - knot_rho[knot]);
            let over = if rho >= ramp_rho && ramp_slope > 0.0 { rho - 1.0 + headroom } else { 0.0 };
            let ramp = if rho >= ramp_rho { ramp_slope } else { 0.0 };
            let mut low = q + rho * rise + ramp * over;
            let mut high = low + (2.0 * rise + ramp) * (next_rho - rho);
            // Rounding must not make a marginal fall.
            let count = pieces.from.len();
            if count > first && low < pieces.high[count - 1] {
                low = pieces.high[count - 1];
            }
            if high < low {
                high = low;
            }
            let from = if count > first { pieces.to[count - 1] } else { 0.0 };
            let to = if next_rho < 1.0 { whole.min(half_up(next_rho * exact)) } else { whole };
            let length = (next_rho - rho) * exact;
            if to > from {
                pieces.from.push(from);
                pieces.to.push(to);
                pieces.low.push(low);
                pieces.high.push(high);
                pieces.exact_from.push(rho * exact);
                pieces.exact_to.push(next_rho * exact);
                pieces.value.push(value);
            }
            value += (length * (low + high)) / 2.0;
            rho = next_rho;
            if knot + 1 < end && knot_rho[knot + 1] <= rho {
                knot += 1;
            }
        }
        pieces.start[engine + 1] = pieces.from.len() as u32;
    }
    pieces
}

/// JavaScript's `Math.round`: to the nearest whole number, a half up.
pub fn half_up(value: f64) -> f64 {
    let whole = value.floor();
    if value - whole >= 0.5 { whole + 1.0 } else { whole }
}
