//! Flows in work units/s from quanta, with what was rounded up taken off again, and what they cost.

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
    for node in 0..*root {
        if tree.arc[node] != SINK {
            flow[tree.arc[node] as usize] = tree.flow[node];
        }
    }
    if let Some(churn) = &network.churn {
        for (arc, flow) in flow.iter_mut().enumerate() {
            if churn.beyond[arc] == 1 && churn.reference[arc] > 0.0 && !network.in_tree(arc) {
                *flow = churn.reference[arc];
            }
        }
    }
    let mut shed = network.sink[..*cells].to_vec();
    let mut load = network.sink[*cells..].to_vec();
    unload(network, &mut flow, &mut shed, &mut load);
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
        let mut largest = None;
        for arc in network.row(cell) {
            if largest.is_none_or(|largest: usize| flow[arc] > flow[largest]) {
                largest = Some(arc);
            }
        }
        let Some(largest) = largest else { continue };
        flow[largest] -= surplus;
        load[network.arc_node[largest] as usize - cells] -= surplus;
    }
    let mut cost = 0.0;
    for (arc, &flow) in flow.iter().enumerate() {
        if flow == 0.0 {
            continue;
        }
        cost += network.arc_base[arc] * flow;
        if let Some(churn) = &network.churn
            && flow > churn.reference_exact[arc]
        {
            cost += churn.move_ms[arc] * (flow - churn.reference_exact[arc]);
        }
    }
    for (cell, &shed) in shed.iter().enumerate() {
        cost += shed_cost(network, cell, shed);
    }
    for (engine, &load) in load.iter().enumerate() {
        cost += engine_cost(network, engine, load);
    }
    let per_second = |mut column: Vec<f64>| {
        for value in &mut column {
            *value /= scale;
        }
        column
    };
    Flows {
        flow_wps: per_second(flow),
        shed_wps: per_second(shed),
        load_wps: per_second(load),
        objective_ms: cost / scale,
    }
}

/// Load beyond a capacity, which a solve stopped early can leave, is shed: what goes out is always feasible.
fn unload(network: &Network, flow: &mut [f64], shed: &mut [f64], load: &mut [f64]) {
    for (arc, flow) in flow.iter_mut().enumerate() {
        let engine = network.arc_node[arc] as usize - network.cells;
        let over = flow.min(load[engine] - network.pieces.capacity[engine]);
        if over > 0.0 {
            *flow -= over;
            load[engine] -= over;
            shed[network.arc_cell[arc] as usize] += over;
        }
    }
}
