//! Calls that are not on the request path: macros, checked arguments, unwinds caught.

use guidevane_core::curve::{self, CurveSet, CurveValues};
use napi::{Error, Result, Status};
use napi_derive::napi;

/// Rises when a name, an argument or a meaning of this binding changes; the loader refuses any other.
const ABI: u32 = 1;

/// The macro takes a mutable slice only behind a name of its own.
pub type OutF64<'a> = &'a mut [f64];

#[napi(catch_unwind)]
pub fn abi() -> u32 {
    ABI
}

/// φ, φ′ and φ″ of every engine. The arrays must not share memory; the TypeScript door refuses that before it gets here.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments)]
pub fn evaluate_curves(
    capacity_wps: &[f64],
    knot_start: &[u32],
    knot_rho: &[f64],
    knot_ms: &[f64],
    headroom: f64,
    headroom_ms: f64,
    load_wps: &[f64],
    #[napi(ts_arg_type = "Float64Array")] value: OutF64<'_>,
    #[napi(ts_arg_type = "Float64Array")] slope: OutF64<'_>,
    #[napi(ts_arg_type = "Float64Array")] curvature: OutF64<'_>,
) -> Result<()> {
    let curves = CurveSet { capacity_wps, knot_start, knot_rho, knot_ms, headroom, headroom_ms };
    curve::evaluate(&curves, load_wps, &mut CurveValues { value, slope, curvature })
        .map_err(|bad| Error::new(Status::InvalidArg, bad.0))
}
