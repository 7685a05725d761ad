//! The start where moving has a price: everything stays where it is.
//!
//! Every arc rests at its reference, every engine is a component of its own at the marginal of what then arrives, and
//! each cell hangs as a leaf below the engine where one more unit is cheapest to it, c + m + w, and sends what its
//! references leave over there. Where nothing is worth moving this is the optimum, with the right prices. A tree of an
//! earlier solve would be worse: with all its arcs on their references its prices, a step of m apart at each arc, fit
//! nowhere.

use super::crash::marginal_at;
use super::network::{ChurnArcs, Network, Pieces};
use super::tree::SINK;
use super::warm::Warm;

/// At least this part of all demand must have a reference that can be kept.
const MOST_PARTS: f64 = 0.5;

pub fn stand_still(network: &mut Network, warm: Option<&Warm>) -> bool {
    let (cells, root) = (network.cells, network.root);
    let Some(churn) = &mut network.churn else { return false };
    let row = |cell: usize| network.arc_start[cell] as usize..network.arc_start[cell + 1] as usize;
    let engine_of = |arc: usize| network.arc_node[arc] as usize - cells;
    // Whether the arc can rest at its reference while its cell has `left`.
    let rests = |churn: &ChurnArcs, arc: usize, left: f64| {
        let reference = churn.reference[arc];
        reference > 0.0 && reference <= left && network.pieces.capacity[engine_of(arc)] > 0.0
    };
    let mut all = 0.0;
    let mut rest = 0.0;
    for cell in 0..cells {
        let mut left = network.demand[cell];
        all += left;
        for arc in row(cell) {
            if rests(churn, arc, left) {
                left -= churn.reference[arc];
            }
        }
        rest += network.demand[cell] - left;
    }
    // References that say little about the demand are no place to start from.
    if rest < MOST_PARTS * all || all == 0.0 {
        return false;
    }

    network.sink.fill(0.0);
    let mut over = network.demand.clone();
    let next = network.arc_next.to_mut();
    for cell in 0..cells {
        let mut left = network.demand[cell];
        for arc in row(cell) {
            if !rests(churn, arc, left) {
                continue;
            }
            left -= churn.reference[arc];
            churn.beyond[arc] = 1;
            next[arc] = network.arc_base[arc] + churn.move_ms[arc];
            network.sink[network.arc_node[arc] as usize] += churn.reference[arc];
        }
        over[cell] = left;
    }
    let known = warm.filter(|warm| warm.parent.len() == root && warm.price.len() == root);
    // Rounding moves a load by up to one quantum for each of its arcs.
    let slack = (cells + 16) as f64;
    for node in cells..root {
        let engine = node - cells;
        let load = network.sink[node];
        network.price[node] = marginal_at(network, engine, load);
        let Some(warm) = known else { continue };
        // On a knot any price between the two marginals is right: the one it had, if that is one.
        let full = load + slack >= network.pieces.capacity[engine];
        let high = if full { network.overflow[engine] } else { marginal_at(network, engine, load + slack) };
        let low = marginal_at(network, engine, (load - slack).max(0.0));
        network.price[node] = high.min(low.max(warm.price[node]));
    }
    network.tree.parent[..root].fill(root as u32);
    network.tree.arc.fill(SINK);
    network.tree.flow.fill(0.0);
    for cell in 0..cells {
        let Some(churn) = &network.churn else { return false };
        let mut best = None;
        let mut least = f64::INFINITY;
        for arc in network.row(cell) {
            let node = network.arc_node[arc] as usize;
            let total = network.arc_base[arc] + churn.move_ms[arc] + network.price[node];
            if total < least && network.pieces.capacity[node - cells] > 0.0 {
                least = total;
                best = Some(arc);
            }
        }
        let Some(best) = best else {
            network.sink[cell] = over[cell];
            continue;
        };
        let rested = if churn.beyond[best] == 1 { churn.reference[best] } else { 0.0 };
        network.tree.parent[cell] = network.arc_node[best];
        network.tree.arc[cell] = best as u32;
        network.tree.flow[cell] = rested + over[cell];
        network.sink[network.arc_node[best] as usize] += over[cell];
    }
    for engine in 0..network.engines {
        snap(&mut network.pieces, engine, network.sink[cells + engine], slack);
    }
    network.tree.order();
    network.price[root] = 0.0;
    for node in 0..root {
        let arc = network.tree.arc[node];
        if arc == SINK {
            network.tree.flow[node] = network.sink[node];
        }
        if node < cells {
            network.price[node] = if arc == SINK {
                0.0
            } else {
                network.arc_next[arc as usize] + network.price[network.tree.parent[node] as usize]
            };
        }
    }
    true
}

/// Takes every arc off its reference again.
pub fn let_go(network: &mut Network) {
    let Some(churn) = &mut network.churn else { return };
    let next = network.arc_next.to_mut();
    for arc in 0..next.len() {
        if churn.reference[arc] > 0.0 {
            churn.beyond[arc] = 0;
            next[arc] = network.arc_base[arc];
        }
    }
}

/// Moves the end of a piece that lies within `slack` quanta of the load onto it; a capacity only down.
fn snap(pieces: &mut Pieces, engine: usize, load: f64, slack: f64) {
    let range = pieces.range(engine);
    for piece in range.clone() {
        if (pieces.to[piece] - load).abs() > slack || load <= pieces.from[piece] {
            continue;
        }
        if piece + 1 < range.end {
            if load >= pieces.to[piece + 1] {
                continue;
            }
            pieces.from[piece + 1] = load;
        } else {
            if load > pieces.to[piece] {
                continue;
            }
            pieces.capacity[engine] = load;
        }
        pieces.to[piece] = load;
        return;
    }
}
