//! What the simplex solves, and whether it may.

use super::tree::SINK;
use crate::curve::CurveSet;

/// Rounding of decimal knots must not make a straight line look concave.
const SLOPE_TOLERANCE: f64 = 1e-9;

/// The columns of `Problem` in `packages/optimizer/src/problem.ts`, which says what each is.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    pub demand_wps: &'a [f64],
    pub arc_start: &'a [u32],
    pub arc_engine: &'a [u32],
    pub arc_cost_ms: &'a [f64],
    pub curves: CurveSet<'a>,
    pub shed_ms: &'a [f64],
    pub shed_step_ms: f64,
    pub shed_steps: u32,
    /// ẑ, work units/s, and m, ms per unit of work, per arc.
    pub churn: Option<(&'a [f64], &'a [f64])>,
}

impl Problem<'_> {
    /// Whether every later index lies inside its column and every number is finite and not negative: what [`super::solve`]
    /// relies on, and that every curve is convex and rising, without which the bound does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        let cells = self.demand_wps.len();
        self.curves.check().map_err(|bad| bad.0)?;
        if self.arc_start.len() != cells + 1 {
            return Err("arcStart needs one entry more than demandWps");
        }
        if self.arc_cost_ms.len() != self.arc_engine.len() {
            return Err("arcCostMs and arcEngine need the same length");
        }
        if self.shed_ms.len() != cells {
            return Err("shedMs and demandWps need the same length");
        }
        if self.arc_start.windows(2).any(|pair| pair[0] > pair[1])
            || self.arc_start[0] != 0
            || self.arc_start[cells] as usize != self.arc_engine.len()
        {
            return Err("arcStart must rise from 0 to the number of arcs");
        }
        let engines = self.curves.capacity_wps.len();
        // Not `any`: looking at all of them, without a way out, is many times faster.
        if !self.arc_engine.iter().fold(true, |good, &engine| good & ((engine as usize) < engines)) {
            return Err("arcEngine names an engine past the last");
        }
        if self.arc_engine.len() + cells + engines >= SINK as usize {
            return Err("more arcs than 32 bits number");
        }
        let scalars = [self.curves.headroom, self.curves.headroom_ms, self.shed_step_ms];
        let mut columns = vec![
            self.demand_wps,
            self.arc_cost_ms,
            self.shed_ms,
            self.curves.capacity_wps,
            self.curves.knot_rho,
            self.curves.knot_ms,
            &scalars,
        ];
        if let Some((reference, price)) = self.churn {
            if reference.len() != self.arc_engine.len() || price.len() != self.arc_engine.len() {
                return Err("the columns of churn need one entry per arc");
            }
            columns.extend([reference, price]);
        }
        let good = |column: &[f64]| column.iter().fold(true, |good, value| good & (0.0..f64::INFINITY).contains(value));
        if !columns.iter().all(|column| good(column)) {
            return Err("every number must be finite and not negative");
        }
        if !(0..engines).all(|engine| self.convex(engine)) {
            return Err("every curve must begin at utilisation 0, rise and be convex");
        }
        Ok(())
    }

    fn convex(&self, engine: usize) -> bool {
        let knots = self.curves.knot_start[engine] as usize..self.curves.knot_start[engine + 1] as usize;
        let (rho, ms) = (&self.curves.knot_rho[knots.clone()], &self.curves.knot_ms[knots]);
        let mut last = 0.0_f64;
        for knot in 1..rho.len() {
            let run = rho[knot] - rho[knot - 1];
            let slope = (ms[knot] - ms[knot - 1]) / run;
            if run <= 0.0 || slope < last - SLOPE_TOLERANCE * last.max(1.0) {
                return false;
            }
            last = last.max(slope);
        }
        rho[0] == 0.0
    }
}
