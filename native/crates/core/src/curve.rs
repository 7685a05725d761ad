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

#[cfg(test)]
mod tests {
    use super::*;

    /// TTFT and TBOT knots of the profile in CONTRACT §3, one request and 256 output tokens per unit of work.
    fn contract_knots() -> (Vec<f64>, Vec<f64>) {
        let rho = vec![0.0, 0.5, 0.8, 0.9, 0.97];
        let ttft = [42.0, 60.0, 105.0, 190.0, 420.0];
        let per_rho = (15.2 - 11.0) / 0.4;
        let tbot = [9.1, 11.0, 11.0 + per_rho * 0.3, 15.2, 15.2 + per_rho * 0.07];
        let ms = ttft.iter().zip(tbot).map(|(t, b)| t - 42.0 + 256.0 * (b - 9.1)).collect();
        (rho, ms)
    }

    fn one(rho: &[f64], ms: &[f64], capacity: f64, ramp: (f64, f64), load: f64) -> (f64, f64, f64) {
        let (mut value, mut slope, mut curvature) = ([f64::NAN], [f64::NAN], [f64::NAN]);
        let curves = CurveSet {
            capacity_wps: &[capacity],
            knot_start: &[0, rho.len() as u32],
            knot_rho: rho,
            knot_ms: ms,
            headroom: ramp.0,
            headroom_ms: ramp.1,
        };
        let mut out = CurveValues { value: &mut value, slope: &mut slope, curvature: &mut curvature };
        evaluate(&curves, &[load], &mut out).unwrap();
        (value[0], slope[0], curvature[0])
    }

    fn close(found: f64, wanted: f64, within: f64) {
        assert!((found - wanted).abs() <= within, "{found} is not {wanted} ± {within}");
    }

    #[test]
    fn the_contract_profile_gives_its_closed_form() {
        let (rho, ms) = contract_knots();
        let q = |load: f64| one(&rho, &ms, 1.0, (0.0, 0.0), load).0 / load;
        close(q(0.5), 504.4, 1e-9);
        close(q(0.9), 1709.6, 1e-9);
        close(q(0.94), 1948.5, 0.05);
        close(one(&rho, &ms, 1.0, (0.0, 0.0), 0.9 - 1e-12).1, 4893.8, 0.05);
        close(one(&rho, &ms, 1.0, (0.0, 0.0), 0.9).1, 7085.9, 0.05);
    }

    #[test]
    fn the_ramp_costs_nothing_at_its_start_and_its_full_price_at_capacity() {
        let ramp = (0.06, 6000.0);
        let slope = |load: f64| one(&[0.0], &[0.0], 50.0, ramp, load).1;
        close(slope(46.9), 0.0, 0.0);
        close(slope(47.0), 0.0, 1e-9);
        close(slope(50.0), 6000.0, 1e-6);
        // U·R/(2h)·h² = U·R·h/2
        close(one(&[0.0], &[0.0], 50.0, ramp, 50.0).0, 50.0 * 6000.0 * 0.06 / 2.0, 1e-6);
    }

    #[test]
    fn slope_and_curvature_are_the_differences_of_value_and_slope() {
        let (rho, ms) = contract_knots();
        for step in 1..200 {
            let load = f64::from(step) * 0.06 + 0.031;
            let at = |load: f64| one(&rho, &ms, 12.5, (0.06, 6000.0), load);
            let (_, slope, curvature) = at(load);
            close((at(load + 1e-6).0 - at(load - 1e-6).0) / 2e-6, slope, 1e-3 * slope.abs().max(1.0));
            close((at(load + 1e-6).1 - at(load - 1e-6).1) / 2e-6, curvature, 1e-3 * curvature.abs().max(1.0));
        }
    }

    #[test]
    fn an_engine_without_capacity_gets_zeros() {
        for capacity in [0.0, -0.0, -1.0, f64::NAN] {
            assert_eq!(one(&[0.0, 1.0], &[1.0, 2.0], capacity, (0.06, 6000.0), 3.0), (0.0, 0.0, 0.0));
        }
    }

    #[test]
    fn columns_that_do_not_fit_together_are_refused() {
        let base = CurveSet {
            capacity_wps: &[1.0, 1.0],
            knot_start: &[0, 1, 2],
            knot_rho: &[0.0, 0.0],
            knot_ms: &[0.0, 0.0],
            headroom: 0.0,
            headroom_ms: 0.0,
        };
        assert_eq!(base.check(), Ok(()));
        for bad in [
            CurveSet { knot_start: &[0, 1], ..base },
            CurveSet { knot_start: &[0, 1, 3], ..base },
            CurveSet { knot_start: &[0, 2, 2], ..base },
            CurveSet { knot_start: &[0, 3, 2], ..base },
            CurveSet { knot_ms: &[0.0], ..base },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        let (mut a, mut b, mut c) = ([0.0; 2], [0.0; 2], [0.0; 1]);
        let mut out = CurveValues { value: &mut a, slope: &mut b, curvature: &mut c };
        assert!(evaluate(&base, &[0.0, 0.0], &mut out).is_err());
        assert!(evaluate(&base, &[0.0], &mut out).is_err());
    }
}
