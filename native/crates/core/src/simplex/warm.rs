//! What one solve leaves for the next: the tree, by node, and where prices, loads and flows stood. The equaliser makes
//! the new flows from the tree and the new demand; the old ones only say in which order arcs leave the tree. Arcs are
//! named by cell and engine, since the next problem may have others.

use super::network::Network;
use super::tree::SINK;

#[derive(Clone, Copy, Debug)]
pub struct Warm<'a> {
    /// Parent of each cell, then of each engine; cells are 0 … K−1, engines K … K+E−1, the root K+E.
    pub parent: &'a [i32],
    /// Price of each node, ms per unit of work: the place from which levels are searched.
    pub price: &'a [f64],
    /// Flow on the arc to the parent as a part of its cell's demand; of a sink arc nothing.
    pub part: &'a [f64],
    /// Load of each engine, work units/s.
    pub load: &'a [f64],
    /// Arcs outside the tree that rest at their churn reference.
    pub held_cell: &'a [u32],
    pub held_engine: &'a [u32],
}

#[derive(Debug, Default)]
pub struct Kept {
    pub parent: Vec<i32>,
    pub price: Vec<f64>,
    pub part: Vec<f64>,
    pub load: Vec<f64>,
    pub held_cell: Vec<u32>,
    pub held_engine: Vec<u32>,
}

pub fn keep(network: &Network) -> Kept {
    let Network { cells, root, tree, price, .. } = network;
    let mut kept = Kept::default();
    if let Some(churn) = &network.churn {
        for arc in 0..churn.reference.len() {
            if churn.beyond[arc] == 0 || churn.reference[arc] == 0.0 || network.in_tree(arc) {
                continue;
            }
            kept.held_cell.push(network.arc_cell[arc]);
            kept.held_engine.push(network.arc_node[arc] - *cells as u32);
        }
    }
    for node in 0..*root {
        kept.parent.push(tree.parent[node] as i32);
        kept.price.push(price[node] - price[*root]);
        let arc = tree.arc[node];
        kept.part.push(if arc == SINK {
            0.0
        } else {
            let all = network.demand[network.arc_cell[arc as usize] as usize];
            // A cell without demand will send it up when it has some.
            if all > 0.0 {
                tree.flow[node] / all
            } else if node < *cells {
                1.0
            } else {
                0.0
            }
        });
    }
    kept.load = network.sink[*cells..].iter().map(|load| load / network.scale).collect();
    kept
}

/// Sets tree, prices and loads from `warm`; false, with nothing changed, where it is of other cells or engines. An arc
/// that is gone leaves its node hanging from the root: a component of its own.
pub fn plant(network: &mut Network, warm: &Warm) -> bool {
    let (cells, root) = (network.cells, network.root);
    let fits = warm.parent.len() == root
        && warm.price.len() == root
        && warm.part.len() == root
        && warm.load.len() == network.engines
        && warm.held_cell.len() == warm.held_engine.len();
    if !fits || !is_tree(warm.parent, cells, root) {
        return false;
    }
    for node in 0..root {
        let parent = warm.parent[node] as usize;
        let arc = if parent == root {
            None
        } else if node < cells {
            find_arc(network, node, parent)
        } else {
            find_arc(network, parent, node)
        };
        network.tree.arc[node] = arc.map_or(SINK, |arc| arc as u32);
        network.tree.parent[node] = if arc.is_some() { parent } else { root } as u32;
        network.tree.flow[node] =
            arc.map_or(0.0, |arc| warm.part[node] * network.demand[network.arc_cell[arc] as usize]);
    }
    hang_leaves(network, warm);
    network.tree.order();
    for (engine, load) in warm.load.iter().enumerate() {
        network.sink[cells + engine] = (load * network.scale).floor();
    }
    if network.churn.is_some() {
        // Arcs that rest at their reference go on doing so, as far as their cell's new demand reaches.
        let mut left = network.demand.clone();
        for (&cell, &engine) in warm.held_cell.iter().zip(warm.held_engine) {
            if cell as usize >= cells {
                continue;
            }
            let Some(arc) = find_arc(network, cell as usize, cells + engine as usize) else { continue };
            if network.in_tree(arc) {
                continue;
            }
            let Some(churn) = &mut network.churn else { continue };
            let held = churn.reference[arc];
            if held == 0.0 || held > left[cell as usize] {
                continue;
            }
            left[cell as usize] -= held;
            churn.beyond[arc] = 1;
            network.arc_next.to_mut()[arc] = network.arc_base[arc] + churn.move_ms[arc];
        }
    }
    let Network { tree, price, arc_next, .. } = network;
    price[root] = 0.0;
    let mut node = tree.next[root] as usize;
    while node != root {
        let arc = tree.arc[node];
        price[node] = if arc == SINK {
            warm.price[node]
        } else if node < cells {
            price[tree.parent[node] as usize] + arc_next[arc as usize]
        } else {
            price[tree.parent[node] as usize] - arc_next[arc as usize]
        };
        node = tree.next[node] as usize;
    }
    true
}

/// A cell that is new, or whose arc is gone, and that holds nothing else goes to the engine that is cheapest to it by the
/// old prices: from its shed arc it would come back at the price of shedding, through half the tree.
fn hang_leaves(network: &mut Network, warm: &Warm) {
    let (cells, root) = (network.cells, network.root);
    let mut holds = vec![false; root + 1];
    for &parent in &network.tree.parent[..root] {
        holds[parent as usize] = true;
    }
    for cell in 0..cells {
        if network.tree.arc[cell] != SINK || holds[cell] || warm.price[cell] >= network.shed_ms[cell] {
            continue;
        }
        let mut best = None;
        let mut least = network.shed_ms[cell];
        for arc in network.row(cell) {
            let node = network.arc_node[arc] as usize;
            let total = network.arc_next[arc] + warm.price[node];
            if total < least && network.pieces.capacity[node - cells] > 0.0 {
                least = total;
                best = Some(arc);
            }
        }
        let Some(best) = best else { continue };
        network.tree.arc[cell] = best as u32;
        network.tree.parent[cell] = network.arc_node[best];
        network.tree.flow[cell] = network.demand[cell];
    }
}

/// The arc from `cell` to the engine at `node`. Rows are usually in order of engine; any order works.
fn find_arc(network: &Network, cell: usize, node: usize) -> Option<usize> {
    let row = network.row(cell);
    let nodes = &network.arc_node[row.clone()];
    let at = nodes.partition_point(|&other| (other as usize) < node);
    if nodes.get(at).is_some_and(|&other| other as usize == node) {
        return Some(row.start + at);
    }
    nodes.iter().position(|&other| other as usize == node).map(|at| row.start + at)
}

/// What comes from outside could have a loop, or an arc between two cells.
fn is_tree(parent: &[i32], cells: usize, root: usize) -> bool {
    let mut known = vec![0u8; root + 1];
    known[root] = 1;
    for node in 0..root {
        let mut at = node;
        while known[at] == 0 {
            let Ok(up) = usize::try_from(parent[at]) else { return false };
            if up > root || (up < root && (up < cells) == (at < cells)) {
                return false;
            }
            known[at] = 2;
            at = up;
        }
        if known[at] == 2 {
            return false;
        }
        at = node;
        while known[at] == 2 {
            known[at] = 1;
            at = parent[at] as usize;
        }
    }
    true
}
