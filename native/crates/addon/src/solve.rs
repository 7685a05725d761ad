//! The solver's door: columns in, one object of columns out. Cold: it runs for milliseconds, in a worker.

use std::time::{Duration, Instant};

use guidevane_core::curve::CurveSet;
use guidevane_core::simplex::{Ending, Limits, Problem, Warm, solve};
use napi::bindgen_prelude::{Float64Array, Int32Array, Uint32Array};
use napi::{Error, Result, Status};
use napi_derive::napi;

use crate::raw::SharedWords;

/// What `solveSimplex` gives back.
#[napi(object)]
pub struct SimplexResult {
    /// 0 solved, 1 pivot limit, 2 stopped by the deadline or the cancel word, 3 no stage left.
    pub ending: u32,
    pub flow_wps: Float64Array,
    pub shed_wps: Float64Array,
    pub load_wps: Float64Array,
    pub price_ms: Float64Array,
    pub objective_ms: f64,
    pub lower_bound_ms: f64,
    pub pivots: f64,
    pub gap_history: Float64Array,
    pub stages: u32,
    pub warm_parent: Int32Array,
    pub warm_price: Float64Array,
    pub warm_part: Float64Array,
    pub warm_load: Float64Array,
    pub warm_held_cell: Uint32Array,
    pub warm_held_engine: Uint32Array,
}

/// Solves the optimizer's problem (`packages/optimizer/src/problem.ts` says what the columns are).
///
/// `numbers`: headroom, headroomMs, shedStepMs, shedSteps, target gap, pivot limit, milliseconds (0 = no deadline).
/// `reference` and `move_ms` empty: no churn. `warm_parent` empty: from nothing. A word of `cancel` other than 0 ends it.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments)]
pub fn solve_simplex(
    demand_wps: &[f64],
    arc_start: &[u32],
    arc_engine: &[u32],
    arc_cost_ms: &[f64],
    capacity_wps: &[f64],
    knot_start: &[u32],
    knot_rho: &[f64],
    knot_ms: &[f64],
    shed_ms: &[f64],
    numbers: &[f64],
    reference: &[f64],
    move_ms: &[f64],
    warm_parent: &[i32],
    warm_price: &[f64],
    warm_part: &[f64],
    warm_load: &[f64],
    warm_held_cell: &[u32],
    warm_held_engine: &[u32],
    #[napi(ts_arg_type = "Uint32Array")] cancel: SharedWords,
) -> Result<SimplexResult> {
    let &[headroom, headroom_ms, shed_step_ms, shed_steps, target_gap, pivot_limit, milliseconds] = numbers else {
        return Err(Error::new(Status::InvalidArg, "numbers needs seven entries"));
    };
    let problem = Problem {
        demand_wps,
        arc_start,
        arc_engine,
        arc_cost_ms,
        curves: CurveSet { capacity_wps, knot_start, knot_rho, knot_ms, headroom, headroom_ms },
        shed_ms,
        shed_step_ms,
        shed_steps: shed_steps as u32,
        churn: (!reference.is_empty() || !move_ms.is_empty()).then_some((reference, move_ms)),
    };
    problem.check().map_err(|bad| Error::new(Status::InvalidArg, bad))?;
    let warm = Warm {
        parent: warm_parent,
        price: warm_price,
        part: warm_part,
        load: warm_load,
        held_cell: warm_held_cell,
        held_engine: warm_held_engine,
    };
    let until = (milliseconds > 0.0)
        .then(|| Duration::try_from_secs_f64(milliseconds / 1e3).ok())
        .flatten()
        .and_then(|time| Instant::now().checked_add(time));
    let mut poll = || cancel.get(0) != Some(0) || until.is_some_and(|until| Instant::now() >= until);
    let mut limits = Limits { pivot_limit: pivot_limit as u64, poll: &mut poll };
    let outcome = solve(&problem, target_gap, &mut limits, (!warm_parent.is_empty()).then_some(&warm));
    Ok(SimplexResult {
        ending: match outcome.ending {
            Ending::Solved => 0,
            Ending::Pivots => 1,
            Ending::Stopped => 2,
            Ending::Stages => 3,
        },
        flow_wps: outcome.flows.flow_wps.into(),
        shed_wps: outcome.flows.shed_wps.into(),
        load_wps: outcome.flows.load_wps.into(),
        price_ms: outcome.price_ms.into(),
        objective_ms: outcome.flows.objective_ms,
        lower_bound_ms: outcome.lower_bound_ms,
        pivots: outcome.pivots as f64,
        gap_history: outcome.gap_history.into(),
        stages: outcome.stages,
        warm_parent: outcome.kept.parent.into(),
        warm_price: outcome.kept.price.into(),
        warm_part: outcome.kept.part.into(),
        warm_load: outcome.kept.load.into(),
        warm_held_cell: outcome.kept.held_cell.into(),
        warm_held_engine: outcome.kept.held_engine.into(),
    })
}
