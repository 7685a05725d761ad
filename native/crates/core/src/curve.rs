//! Latency against load, and the fleet cost that follows from it.
//!
//! ```text
//! φ(y) = y·Q(y/U) + U·R/(2h)·((y/U − 1 + h)⁺)²          ms of latency per second
//! ```
//!
//! y: load in work units/s; U: capacity in work units/s; Q: the ms that load adds to one unit of work, piecewise linear
//! in utilisation ρ = y/U; h, R: the headroom ramp, whose marginal cost goes from 0 at (1 − h)·U to R at U. The twin of
//! `packages/core/src/curve.ts`: the same operations in the same order, so that the two agree to the last bit.

/// The curves of many engines as columns.
#[derive(Clone, Copy, Debug)]
pub struct CurveSet<'a> {
    /// U, work units/s, one per engine. 0 = the engine takes no load.
    pub capacity_wps: &'a [f64],
    /// Engine i's knots are `knot_start[i]..knot_start[i + 1]`, at least one each. Length: engines + 1.
    pub knot_start: &'a [u32],
    /// Utilisation of each knot; each engine's first is 0 and they rise.
    pub knot_rho: &'a [f64],
    /// Q at each knot, ms per unit of work.
    pub knot_ms: &'a [f64],
    /// h, the part of the capacity that the ramp covers; 0 = no ramp.
    pub headroom: f64,
    /// R, ms: marginal cost of the ramp at full load.
    pub headroom_ms: f64,
}

/// Where [`evaluate`] writes, one entry per engine.
#[derive(Debug)]
pub struct CurveValues<'a> {
    /// φ(y), ms per second.
    pub value: &'a mut [f64],
    /// φ′(y) from the right, ms per unit of work.
    pub slope: &'a mut [f64],
    /// φ″(y) from the right, ms·s per unit of work squared.
    pub curvature: &'a mut [f64],
}

/// Columns whose lengths do not fit together, or knots outside their columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadColumns(pub &'static str);

impl CurveSet<'_> {
    /// Whether every later index lies inside its column: what [`evaluate`] relies on.
    pub fn check(&self) -> Result<(), BadColumns> {
        let engines = self.capacity_wps.len();
        if self.knot_start.len() != engines + 1 {
            return Err(BadColumns("knotStart needs one entry more than capacityWps"));
        }
        if self.knot_ms.len() != self.knot_rho.len() {
            return Err(BadColumns("knotMs and knotRho need the same length"));
        }
        if self.knot_start.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(BadColumns("knotStart must rise: each engine needs a knot"));
        }
        if engines > 0 && self.knot_start[engines] as usize > self.knot_rho.len() {
            return Err(BadColumns("knotStart ends beyond the knots"));
        }
        Ok(())
    }
}

/// φ, φ′ and φ″ of every engine at its load, work units/s. An engine without capacity gets zeros.
pub fn evaluate(curves: &CurveSet, load_wps: &[f64], out: &mut CurveValues) -> Result<(), BadColumns> {
    curves.check()?;
    let engines = curves.capacity_wps.len();
    if load_wps.len() != engines {
        return Err(BadColumns("loadWps needs one entry per engine"));
    }
    if [&out.value, &out.slope, &out.curvature].iter().any(|column| column.len() != engines) {
        return Err(BadColumns("value, slope and curvature need one entry per engine"));
    }
    for (engine, &load) in load_wps.iter().enumerate() {
        let (value, slope, curvature) = evaluate_one(curves, engine, load);
        out.value[engine] = value;
        out.slope[engine] = slope;
        out.curvature[engine] = curvature;
    }
    Ok(())
}

fn evaluate_one(curves: &CurveSet, engine: usize, load: f64) -> (f64, f64, f64) {
    let CurveSet { knot_rho, knot_ms, headroom, headroom_ms, .. } = *curves;
    let capacity = curves.capacity_wps[engine];
    // `!(capacity > 0)` also sends NaN here, as in the twin.
    if capacity.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) {
        return (0.0, 0.0, 0.0);
    }
    let rho = load / capacity;
    let start = curves.knot_start[engine] as usize;
    let end = curves.knot_start[engine + 1] as usize;
    // The last knot at or left of rho: at a knot the slope is the one to its right.
    let mut at = start;
    while at + 1 < end && knot_rho[at + 1] <= rho {
        at += 1;
    }
    let mut slope_q = 0.0;
    if end - start > 1 {
        let left = if at + 1 < end { at } else { at - 1 };
        slope_q = (knot_ms[left + 1] - knot_ms[left]) / (knot_rho[left + 1] - knot_rho[left]);
    }
    let q = knot_ms[at] + slope_q * (rho - knot_rho[at]);
    let mut value = load * q;
    let mut slope = q + rho * slope_q;
    let mut curvature = (2.0 * slope_q) / capacity;
    let over = rho - 1.0 + headroom;
    if headroom > 0.0 && over >= 0.0 {
        value += ((capacity * headroom_ms) / (2.0 * headroom)) * (over * over);
        slope += (headroom_ms / headroom) * over;
        curvature += headroom_ms / (headroom * capacity);
    }
    (value, slope, curvature)
}
