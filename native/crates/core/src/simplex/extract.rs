//! Flows in work units/s from quanta, with what was rounded up taken off again, and what they cost.
//!
//! Only arcs that carry something are looked at: those of the tree and those that rest at their reference.

use super::certificate::{engine_cost, shed_cost};
use super::network::Network;
use super::tree::SINK;

#[derive(Debug, Default)]
pub struct Flows {
    /// z, work units/s, per arc.
    pub flow_wps: Vec<f64>,
    /// s, work units/s, per cell.
    pub shed_wps: Vec<f64>,
    /// y, work units/s, per engine.
    pub load_wps: Vec<f64>,
    /// F, ms per second.
    pub objective_ms: f64,
}

pub fn extract(network: &Network) -> Flows {
    let Network { cells, root, tree, scale, .. } = network;
    let mut flow = vec![0.0; network.arc_node.len()];
    let mut carrying = Vec::new();
    for node in 0..*root {
        if tree.arc[node] != SINK && tree.flow[node] > 0.0 {
            flow[tree.arc[node] as usize] = tree.flow[node];
            carrying.push(tree.arc[node] as usize);
        }
    }
    if let Some(churn) = &network.churn {
        for (arc, flow) in flow.iter_mut().enumerate() {
            if churn.beyond[arc] == 1 && churn.reference[arc] > 0.0 && !network.in_tree(arc) {
                *flow = churn.reference[arc];
                carrying.push(arc);
            }
        }
    }
    let mut shed = network.sink[..*cells].to_vec();
    let mut load = network.sink[*cells..].to_vec();
    let mut largest: Vec<Option<usize>> = vec![None; *cells];
    for &arc in &carrying {
        let cell = network.arc_cell[arc] as usize;
        // Load beyond a capacity, which a solve stopped early can leave, is shed: what goes out is always feasible.
        let engine = network.arc_node[arc] as usize - cells;
        let over = flow[arc].min(load[engine] - network.pieces.capacity[engine]);
        if over > 0.0 {
            flow[arc] -= over;
            load[engine] -= over;
            shed[cell] += over;
        }
        if largest[cell].is_none_or(|largest| flow[arc] > flow[largest]) {
            largest[cell] = Some(arc);
        }
    }
    for cell in 0..*cells {
        // Demand was rounded up by less than one quantum: off the shed where there is one, else off the largest flow.
        let surplus = network.demand[cell] - network.demand_exact[cell];
        if surplus <= 0.0 {
            continue;
        }
        if shed[cell] > 0.0 {
            shed[cell] -= surplus;
            continue;
        }
        let Some(arc) = largest[cell] else { continue };
        flow[arc] -= surplus;
        load[network.arc_node[arc] as usize - cells] -= surplus;
    }
    let mut cost = 0.0;
    for &arc in &carrying {
        cost += network.arc_base[arc] * flow[arc];
        if let Some(churn) = &network.churn
            && flow[arc] > churn.reference_exact[arc]
        {
            cost += churn.move_ms[arc] * (flow[arc] - churn.reference_exact[arc]);
        }
        flow[arc] /= scale;
    }
    for (cell, shed) in shed.iter_mut().enumerate() {
        cost += shed_cost(network, cell, *shed);
        *shed /= scale;
    }
    for (engine, load) in load.iter_mut().enumerate() {
        cost += engine_cost(network, engine, *load);
        *load /= scale;
    }
    Flows { flow_wps: flow, shed_wps: shed, load_wps: load, objective_ms: cost / scale }
}
