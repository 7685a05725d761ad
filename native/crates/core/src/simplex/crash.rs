//! A first tree and first flows, without an artificial arc.
//!
//! Each engine's target is its load at the one marginal price at which all engines together carry all demand. Cells, the
//! largest first, fill the engines that are cheapest to them (c + φ′ at the present load) up to their targets. An engine
//! that fills is hung below the cell that filled it, a cell that is placed below the engine that took its last part;
//! both then stay as they are, so a spanning tree grows from its leaves. A cell that finds no engine with target left
//! sheds.
//!
//! A start, not an answer: it sheds where the targets are in the wrong place.

use super::equalise::Equaliser;
use super::network::Network;
use super::tree::SINK;

pub fn crash(network: &mut Network, state: &mut Equaliser) {
    let (cells, root) = (network.cells, network.root);
    network.tree.parent[..root].fill(root as u32);
    network.tree.arc.fill(SINK);
    let target = targets(network, state);
    network.sink.fill(0.0);
    network.tree.flow.fill(0.0);
    let mut marginal = vec![0.0; root];
    for node in cells..root {
        marginal[node] = marginal_at(network, node - cells, 0.0);
    }

    let mut order: Vec<usize> = (0..cells).collect();
    order.sort_by(|&a, &b| network.demand[b].total_cmp(&network.demand[a]).then(a.cmp(&b)));
    for cell in order {
        let mut rest = network.demand[cell];
        loop {
            let mut best = None;
            let mut least = f64::INFINITY;
            for arc in network.row(cell) {
                let node = network.arc_node[arc] as usize;
                if target[node] <= network.sink[node] {
                    continue;
                }
                let total = network.arc_next[arc] + marginal[node];
                if total < least {
                    least = total;
                    best = Some(arc);
                }
            }
            let Some(best) = best else {
                network.sink[cell] = rest;
                break;
            };
            let node = network.arc_node[best] as usize;
            let room = target[node] - network.sink[node];
            let whole = room > rest;
            let amount = if whole { rest } else { room };
            if let Some(churn) = &mut network.churn {
                let held = churn.reference[best];
                if held > 0.0 && (if whole { amount >= held } else { amount > held }) {
                    churn.beyond[best] = 1;
                    network.arc_next.to_mut()[best] = network.arc_base[best] + churn.move_ms[best];
                }
            }
            let (child, parent) = if whole { (cell, node) } else { (node, cell) };
            network.tree.parent[child] = parent as u32;
            network.tree.arc[child] = best as u32;
            network.tree.flow[child] = amount;
            network.sink[node] += amount;
            marginal[node] = marginal_at(network, node - cells, network.sink[node]);
            rest -= amount;
            if whole {
                break;
            }
        }
    }
    network.tree.order();
    for node in 0..root {
        if network.tree.arc[node] == SINK {
            network.tree.flow[node] = network.sink[node];
        }
        // The grid holds an engine at the root by the price it finds here.
        network.price[node] = marginal[node];
    }
    network.price[root] = 0.0;
}

/// φ_e⁻¹ of the common marginal price, per node.
fn targets(network: &mut Network, state: &mut Equaliser) -> Vec<f64> {
    let (cells, root) = (network.cells, network.root);
    state.supply[..cells].copy_from_slice(&network.demand);
    state.supply[cells..].fill(0.0);
    network.price.fill(0.0);
    network.sink.fill(0.0);
    let mut target = vec![0.0; root];
    if root == cells {
        return target;
    }
    // All nodes below one engine are one component whose engines share a price.
    network.tree.parent[..root].fill(cells as u32);
    network.tree.parent[cells] = root as u32;
    network.tree.order();
    state.level.find(network, &state.supply, cells);
    target[cells..].copy_from_slice(&network.sink[cells..]);
    network.tree.parent[..root].fill(root as u32);
    target
}

/// φ′ from the right at a load, ms; at the capacity the last one.
pub fn marginal_at(network: &Network, engine: usize, load: f64) -> f64 {
    let pieces = &network.pieces;
    let range = pieces.range(engine);
    if range.is_empty() {
        return 0.0;
    }
    let mut piece = range.start;
    while piece + 1 < range.end && pieces.to[piece] <= load {
        piece += 1;
    }
    let length = pieces.to[piece] - pieces.from[piece];
    pieces.low[piece] + ((pieces.high[piece] - pieces.low[piece]) * (load - pieces.from[piece])) / length
}
