//! Calls that are not on the request path: macros, checked arguments, unwinds caught.

use guidevane_core::curve::{self, CurveSet, CurveValues};
use guidevane_core::table::{Columns, Table};
use napi::{Error, Result, Status};
use napi_derive::napi;

use crate::raw::{RouteFunction, SharedColumns, SharedWords};
use crate::tables;

/// Rises when a name, an argument or a meaning of this binding changes; the loader refuses any other.
const ABI: u32 = 5;

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

/// Reads a table's columns, once for the process, and gives this thread's function to route by it.
#[napi(catch_unwind, ts_return_type = "RouteFunction")]
#[allow(clippy::too_many_arguments)]
pub fn load_router(
    words: &[u32],
    numbers: &[f64],
    ring: &[u16],
    names: &[u8],
    #[napi(ts_arg_type = "Uint32Array")] engines: SharedWords,
    #[napi(ts_arg_type = "Uint32Array")] version: SharedWords,
    #[napi(ts_arg_type = "Uint32Array")] in_flight: SharedWords,
    #[napi(ts_arg_type = "Uint32Array")] moves: SharedWords,
    cells: u32,
) -> Result<RouteFunction> {
    let shared = SharedColumns { engines, version, in_flight, moves, cells: cells as usize };
    let state = shared.state()?;
    let columns = Columns { words, numbers, ring, names };
    let table = Table::read(&columns, state.engine_slots(), state.cells())
        .map_err(|bad| Error::new(Status::InvalidArg, bad))?;
    Ok(RouteFunction::new(tables::register(table), shared))
}

/// This thread's function to route by a table that another thread loaded; null once nobody holds that table.
#[napi(catch_unwind, ts_return_type = "RouteFunction | null")]
pub fn attach_router(
    table_id: u32,
    #[napi(ts_arg_type = "Uint32Array")] engines: SharedWords,
    #[napi(ts_arg_type = "Uint32Array")] version: SharedWords,
    #[napi(ts_arg_type = "Uint32Array")] in_flight: SharedWords,
    #[napi(ts_arg_type = "Uint32Array")] moves: SharedWords,
    cells: u32,
) -> Result<Option<RouteFunction>> {
    let shared = SharedColumns { engines, version, in_flight, moves, cells: cells as usize };
    let Some(held) = tables::find(table_id) else { return Ok(None) };
    let Table { engine_slots, cell_rows, .. } = held.table;
    let state = shared.state()?;
    if state.engine_slots() != engine_slots || state.cells() != cell_rows {
        return Err(Error::new(Status::InvalidArg, "the shared state has other sizes than the table was loaded with"));
    }
    Ok(Some(RouteFunction::new(held, shared)))
}

/// How many tables this process holds: a gauge, and what shows that none leaks.
#[napi(catch_unwind)]
pub fn tables_held() -> u32 {
    tables::count()
}
