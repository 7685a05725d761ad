//! The network simplex on adaptive cost segments, finished by exact equalisation.
//!
//! ```text
//! minimise    Σ_ke c_ke·z_ke + Σ_e φ_e(y_e) + Σ_k P_k(s_k) + Σ_ke m_ke·(z_ke − ẑ_ke)⁺
//! subject to  Σ_e z_ke + s_k = d_k,   y_e = Σ_k z_ke ≤ U_e,   z, s ≥ 0
//! ```
//!
//! A stage cuts every engine's cost into segments around its present load, finest step η·U, solves that piecewise-linear
//! network to ε, then lets go of the segments: with the arcs of the tree fixed, every component is brought to its exact
//! optimum. What little is still wrong with the tree is mended in rounds of entering arcs and equalising. Then the
//! certificate; the next stage is four times finer.
//!
//! The twin of `packages/optimizer/src/simplex/`: the same operations in the same order, hence the same pivots and, to
//! the last bit, the same flows.

// A node or arc is a number that indexes a dozen columns; an iterator over one of them would hide that.
#![allow(clippy::needless_range_loop)]

mod certificate;
mod crash;
mod equalise;
mod extract;
mod grid;
mod level;
mod network;
mod pivot;
mod pricing;
mod problem;
mod rounds;
mod stand;
mod tree;
mod warm;

pub use extract::Flows;
pub use problem::Problem;
pub use warm::{Kept, Warm};

use self::certificate::BestBound;
use self::equalise::Equaliser;
use self::grid::Grid;
use self::level::PRICE_TOLERANCE;
use self::network::Network;
use self::pricing::{Pricing, take_sinks};
use self::rounds::enter_in_rounds;

/// When to stop short of the target.
pub struct Limits<'a> {
    /// Pivots in all, over all stages.
    pub pivot_limit: u64,
    /// True = stop now. Asked every 64 pivots and between stages.
    pub poll: &'a mut dyn FnMut() -> bool,
}

/// How a solve ended. Both kinds carry feasible flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Solved,
    /// The pivot limit.
    Pivots,
    /// `poll` said so.
    Stopped,
    /// The last stage that makes sense has been done.
    Stages,
}

#[derive(Debug)]
pub struct Outcome {
    pub ending: Ending,
    pub flows: Flows,
    /// w, ms per unit of work, per engine: the prices that make the bound.
    pub price_ms: Vec<f64>,
    pub lower_bound_ms: f64,
    pub kept: Kept,
    pub pivots: u64,
    pub stages: u32,
    /// Relative gap after each stage.
    pub gap_history: Vec<f64>,
}

const COLD_ETA: f64 = 1.0 / 32.0;
const WARM_ETA: f64 = 1.0 / 128.0;
/// From references every engine moves by a little and the tree is made anew: all arcs of the last one rest on their
/// references, so that it fits nowhere. Coarser steps cost a stage or two more, finer ones more pivots at full engines.
const STAND_ETA: f64 = 1.0 / 2048.0;
const MOST_STAGES: u32 = 12;
/// Part of the target that pricing may leave: a reduced cost of −ε on every unit of demand.
const PRICING_PART: f64 = 0.15;

/// Solves to a relative gap of `target_gap`. The problem must have passed [`Problem::check`].
pub fn solve(problem: &Problem, target_gap: f64, limits: &mut Limits, warm: Option<&Warm>) -> Outcome {
    let mut network = Network::new(problem);
    let network = &mut network;
    let mut equaliser = Equaliser::new(network);
    let mut pricing = Pricing::new(network);
    let mut demand = 0.0;
    for value in problem.demand_wps {
        demand += value;
    }
    let rounding = price_rounding(network);
    // Where nothing costs anything the bound is what rounding of the prices leaves, and no part of it.
    let least = rounding * demand;
    let close = |cost: f64, bound: f64| cost - bound <= (target_gap * bound.abs()).max(least);
    let mut eta = STAND_ETA;
    // From the last tree little may be wrong: rounds come before the first simplex.
    let mut near = false;
    if !stand::stand_still(network, warm) {
        stand::let_go(network);
        eta = WARM_ETA;
        if warm.is_some_and(|warm| warm::plant(network, warm)) {
            equaliser.run(network);
            near = true;
        } else {
            eta = COLD_ETA;
            crash::crash(network, &mut equaliser);
        }
    }
    let mut grid = Grid::new(network);

    let mut bound = BestBound::new(network);
    bound.certify(network, &network.price);
    let mut cost = certificate::objective(network);
    let mut stages = 0;
    let mut gap_history = Vec::new();
    let gap = |cost: f64, best: f64| (cost - best) / best.abs().max(f64::from_bits(1));
    let mut ending = None;
    if close(cost, bound.best) {
        ending = Some(Ending::Solved);
        gap_history.push(gap(cost, bound.best));
    }
    let ending = loop {
        if let Some(ending) = ending {
            break ending;
        }
        if stages == MOST_STAGES {
            break Ending::Stages;
        }
        let mean = if demand > 0.0 { cost / demand } else { 0.0 };
        // The pricing's share of the target, but never within the rounding of the prices.
        let epsilon = (PRICING_PART * target_gap * mean).max(rounding);
        let pivots_before = pricing.pivots;
        let mut finished = true;
        if !near {
            grid.regrid(network, eta);
            finished = pricing.run(network, &mut grid, epsilon, limits);
            take_sinks(network, &grid);
            // Both sets of prices bound: those of the segments (right to within η everywhere) and the equalised ones
            // (exact, but a component that was cut off may have left the others' prices behind).
            bound.certify(network, &network.price);
            if finished {
                equaliser.run(network);
            }
            eta /= 4.0;
        }
        near = false;
        if finished {
            finished = enter_in_rounds(network, &mut grid, &mut pricing, &mut equaliser, eta, epsilon, limits);
        }
        stages += 1;
        cost = certificate::objective(network);
        bound.certify(network, &network.price);
        // Nothing enters any more: what is left of the gap is rounding of the prices.
        if !close(cost, bound.best) && pricing.pivots == pivots_before {
            bound.certify(network, &certificate::prices_at_loads(network));
        }
        gap_history.push(gap(cost, bound.best));
        if close(cost, bound.best) {
            ending = Some(Ending::Solved);
        } else if pricing.pivots >= limits.pivot_limit {
            ending = Some(Ending::Pivots);
        } else if !finished || (limits.poll)() {
            ending = Some(Ending::Stopped);
        }
    };
    Outcome {
        ending,
        flows: extract::extract(network),
        price_ms: bound.price,
        lower_bound_ms: bound.best,
        kept: warm::keep(network),
        pivots: pricing.pivots,
        stages,
        gap_history,
    }
}

/// What prices may be off by, ms per unit of work.
fn price_rounding(network: &Network) -> f64 {
    (PRICE_TOLERANCE * network.top_price).max(1e-12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::CurveSet;

    fn solve_columns(problem: &Problem, warm: Option<&Warm>) -> Outcome {
        problem.check().expect("the columns fit together");
        let mut poll = || false;
        solve(problem, 1e-9, &mut Limits { pivot_limit: 10_000, poll: &mut poll }, warm)
    }

    fn near(values: &[f64], wanted: &[f64]) {
        assert_eq!(values.len(), wanted.len());
        for (value, want) in values.iter().zip(wanted) {
            assert!((value - want).abs() <= 1e-8 * want.abs().max(1.0), "{values:?}, not {wanted:?}");
        }
    }

    const STRAIGHT: CurveSet<'static> = CurveSet {
        capacity_wps: &[100.0, 100.0],
        knot_start: &[0, 2, 4],
        knot_rho: &[0.0, 1.0, 0.0, 1.0],
        knot_ms: &[0.0, 400.0, 0.0, 400.0],
        headroom: 0.0,
        headroom_ms: 0.0,
    };

    const ONE_CELL: Problem<'static> = Problem {
        demand_wps: &[80.0],
        arc_start: &[0, 2],
        arc_engine: &[0, 1],
        arc_cost_ms: &[0.0, 60.0],
        curves: STRAIGHT,
        shed_ms: &[60_000.0],
        shed_step_ms: 0.0,
        shed_steps: 0,
        churn: None,
    };

    #[test]
    fn splits_over_a_near_and_a_far_engine() {
        let outcome = solve_columns(&ONE_CELL, None);
        assert_eq!(outcome.ending, Ending::Solved);
        near(&outcome.flows.load_wps, &[43.75, 36.25]);
        near(&outcome.price_ms, &[350.0, 290.0]);
        near(&[outcome.flows.objective_ms, outcome.lower_bound_ms], &[15_087.5, 15_087.5]);
    }

    #[test]
    fn starts_from_the_last_tree_without_a_pivot() {
        let kept = solve_columns(&ONE_CELL, None).kept;
        let warm = Warm {
            parent: &kept.parent,
            price: &kept.price,
            part: &kept.part,
            load: &kept.load,
            held_cell: &kept.held_cell,
            held_engine: &kept.held_engine,
        };
        let outcome = solve_columns(&Problem { demand_wps: &[100.0], ..ONE_CELL }, Some(&warm));
        assert_eq!(outcome.pivots, 0);
        near(&outcome.flows.load_wps, &[53.75, 46.25]);
    }

    #[test]
    fn moves_against_a_churn_price_only_as_far_as_the_gain_exceeds_it() {
        for (price, wanted) in [(80.0, [55.0, 45.0]), (200.0, [60.0, 40.0])] {
            let outcome = solve_columns(
                &Problem {
                    demand_wps: &[100.0],
                    arc_cost_ms: &[0.0, 0.0],
                    churn: Some((&[60.0, 40.0], &[price, price])),
                    ..ONE_CELL
                },
                None,
            );
            near(&outcome.flows.flow_wps, &wanted);
        }
    }

    #[test]
    fn sheds_what_no_capacity_takes() {
        let outcome = solve_columns(&Problem { demand_wps: &[230.0], ..ONE_CELL }, None);
        near(&outcome.flows.shed_wps, &[30.0]);
        near(&outcome.flows.load_wps, &[100.0, 100.0]);
    }

    #[test]
    fn refuses_columns_that_do_not_fit() {
        for bad in [
            Problem { demand_wps: &[f64::NAN], ..ONE_CELL },
            Problem { demand_wps: &[80.0, 1.0], ..ONE_CELL },
            Problem { arc_engine: &[0, 2], ..ONE_CELL },
            Problem { arc_start: &[0, 3], ..ONE_CELL },
            Problem { arc_cost_ms: &[0.0, f64::INFINITY], ..ONE_CELL },
            Problem { churn: Some((&[1.0], &[1.0])), ..ONE_CELL },
        ] {
            assert!(bad.check().is_err());
        }
    }
}
