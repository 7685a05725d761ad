//! Rounds of entering arcs and equalising: what follows a stage's simplex, or comes in its place.

use super::Limits;
use super::equalise::Equaliser;
use super::grid::Grid;
use super::network::Network;
use super::pricing::{Pricing, take_sinks};

/// Rounds of a stage; few need more than 20.
const MOST_ROUNDS: u32 = 50;
/// Where more than one node in so many enters in a round the simplex is the sooner way.
const MANY: u64 = 4;

/// Rounds in which arcs enter, at most one or two a row, and all components are then equalised. An arc that enters joins
/// two components, or splits and joins them, at levels of their own; the simplex would walk them to a common level engine
/// by engine and segment by segment, which from the second stage on is nine tenths of its pivots. The equaliser finds the
/// level at once, and cuts off what does not belong. Where no arc enters any more the tree is the optimal one.
/// False when a limit ended it before.
pub fn enter_in_rounds(
    network: &mut Network,
    grid: &mut Grid,
    pricing: &mut Pricing,
    equaliser: &mut Equaliser,
    eta: f64,
    epsilon: f64,
    limits: &mut Limits,
) -> bool {
    for _ in 0..MOST_ROUNDS {
        let before = pricing.pivots;
        grid.regrid(network, eta);
        let finished = pricing.enter_arcs(network, grid, epsilon, limits);
        take_sinks(network, grid);
        if !finished {
            return false;
        }
        let entered = pricing.pivots - before;
        if entered == 0 {
            return true;
        }
        equaliser.run(network);
        if MANY * entered > network.root as u64 {
            return true;
        }
    }
    true
}
