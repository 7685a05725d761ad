//! Pricing: which arc enters next, until none has a reduced cost below −ε.
//!
//! A *row* is a cell with its arcs; only its cheapest arc min(c + w) is looked at. While more than a quarter of the nodes
//! have something to gain, every pass scans all rows and pivots as it goes. After that each row keeps its few arcs
//! nearest to its minimum and passes go over those alone; when they are exhausted all rows are scanned again, and a scan
//! that finds nothing ends the stage.

use super::Limits;
use super::grid::Grid;
use super::network::Network;
use super::pivot::{push_arc, push_sink};
use super::tree::SINK;

/// Candidates kept per row. Fewer means more full scans, more means longer passes; 10–24 were equal within noise.
const LIST: usize = 16;
/// Below one pivot for this many nodes a pass over all rows is followed by another, not by lists.
const FEW: u64 = 64;
/// Pivots between two looks at the clock or the cancel word.
const POLL_EVERY: u64 = 64;

#[derive(Debug)]
pub struct Pricing {
    /// Candidate arcs of cell k: `list[k * LIST]` …, `listed[k]` of them.
    list: Vec<u32>,
    listed: Vec<u8>,
    /// How far above its minimum a row's candidates may lie, ms: each row finds its own.
    width: Vec<f64>,
    /// Arcs with a reference, by cell, for the way back.
    held_start: Vec<u32>,
    held: Vec<u32>,
    pub pivots: u64,
    asked: u64,
}

impl Pricing {
    pub fn new(network: &Network) -> Self {
        let mut held_start = vec![0; network.cells + 1];
        let mut held = Vec::new();
        for cell in 0..network.cells {
            if let Some(churn) = &network.churn {
                held.extend(network.row(cell).filter(|&arc| churn.reference[arc] > 0.0).map(|arc| arc as u32));
            }
            held_start[cell + 1] = held.len() as u32;
        }
        Pricing {
            list: vec![0; network.cells * LIST],
            listed: vec![0; network.cells],
            width: vec![0.0; network.cells],
            held_start,
            held,
            pivots: 0,
            asked: 0,
        }
    }

    fn stopped(&mut self, limits: &mut Limits) -> bool {
        if self.pivots >= limits.pivot_limit {
            return true;
        }
        if self.pivots - self.asked < POLL_EVERY {
            return false;
        }
        self.asked = self.pivots;
        (limits.poll)()
    }

    /// Pivots until nothing is left to gain by more than ε. False when a limit ended it before.
    pub fn run(&mut self, network: &mut Network, grid: &mut Grid, epsilon: f64, limits: &mut Limits) -> bool {
        self.asked = self.pivots;
        loop {
            let before = self.pivots;
            if !self.pass(network, grid, epsilon, limits, false) {
                return false;
            }
            if self.pivots == before {
                return true;
            }
            // Many: the lists would be stale at once. A few: another scan costs less than making lists.
            let (found, nodes) = (self.pivots - before, network.root as u64);
            if 4 * found > nodes || FEW * found < nodes {
                continue;
            }
            for cell in 0..network.cells {
                self.collect(network, cell);
            }
            loop {
                let before = self.pivots;
                if !self.pass(network, grid, epsilon, limits, true) {
                    return false;
                }
                if self.pivots == before {
                    break;
                }
            }
        }
    }

    /// One pass over all rows in which arcs enter and sinks don't. False when a limit ended it before.
    pub fn enter_arcs(&mut self, network: &mut Network, grid: &mut Grid, epsilon: f64, limits: &mut Limits) -> bool {
        self.asked = self.pivots;
        for cell in 0..network.cells {
            if let Some(arc) = cheapest_below(network, cell, -epsilon) {
                self.try_arc(network, grid, arc, epsilon);
            }
            self.try_held(network, grid, cell, epsilon);
            if self.stopped(limits) {
                return false;
            }
        }
        true
    }

    fn pass(
        &mut self,
        network: &mut Network,
        grid: &mut Grid,
        epsilon: f64,
        limits: &mut Limits,
        listed: bool,
    ) -> bool {
        for cell in 0..network.cells {
            if let Some(arc) =
                if listed { self.cheapest_listed(network, cell) } else { cheapest_below(network, cell, -epsilon) }
            {
                self.try_arc(network, grid, arc, epsilon);
            }
            self.try_sink(network, grid, cell, epsilon);
            self.try_held(network, grid, cell, epsilon);
            if self.stopped(limits) {
                return false;
            }
        }
        for node in network.cells..network.root {
            self.try_sink(network, grid, node, epsilon);
            if self.stopped(limits) {
                return false;
            }
        }
        true
    }

    fn cheapest_listed(&self, network: &Network, cell: usize) -> Option<usize> {
        let first = cell * LIST;
        let mut best = None;
        let mut least = f64::INFINITY;
        for &arc in &self.list[first..first + self.listed[cell] as usize] {
            let arc = arc as usize;
            let total = network.arc_next[arc] + network.price[network.arc_node[arc] as usize];
            if total < least {
                least = total;
                best = Some(arc);
            }
        }
        best
    }

    /// Fills the row's candidates with arcs at most `width` above its minimum, and corrects the width for the next time.
    fn collect(&mut self, network: &Network, cell: usize) {
        let Some(cheap) = cheapest(network, cell) else { return };
        let least = network.arc_next[cheap] + network.price[network.arc_node[cheap] as usize];
        if self.width[cell] == 0.0 {
            self.width[cell] = (least.abs() / 16.0).max(1.0);
        }
        let within = least + self.width[cell];
        let first = cell * LIST;
        let mut count = 0;
        let mut over = false;
        for arc in network.row(cell) {
            if network.arc_next[arc] + network.price[network.arc_node[arc] as usize] <= within {
                if count < LIST {
                    self.list[first + count] = arc as u32;
                    count += 1;
                } else {
                    over = true;
                }
            }
        }
        if over {
            // The minimum itself must not be among those left out.
            self.list[first + LIST - 1] = cheap as u32;
            self.width[cell] *= 0.5;
        } else if count < LIST / 2 {
            self.width[cell] *= 1.5;
        }
        self.listed[cell] = count as u8;
    }

    fn try_arc(&mut self, network: &mut Network, grid: &mut Grid, arc: usize, epsilon: f64) {
        let cell = network.arc_cell[arc] as usize;
        let node = network.arc_node[arc] as usize;
        if network.arc_next[arc] + network.price[node] - network.price[cell] >= -epsilon {
            return;
        }
        // A tree arc's reduced cost is zero but for rounding.
        if network.in_tree(arc) {
            return;
        }
        push_arc(network, grid, arc, true, epsilon);
        self.pivots += 1;
    }

    fn try_sink(&mut self, network: &mut Network, grid: &mut Grid, node: usize, epsilon: f64) {
        if network.tree.arc[node] == SINK {
            return;
        }
        let worth = network.price[node] - network.price[network.root];
        let at = grid.at[node] as usize;
        if worth > grid.slope[at] + epsilon {
            push_sink(network, grid, node, true, epsilon);
        } else if at > grid.start[node] as usize && worth < grid.slope[at - 1] - epsilon {
            push_sink(network, grid, node, false, epsilon);
        } else {
            return;
        }
        self.pivots += 1;
    }

    /// Arcs that rest on their reference: is giving some of it back worth more than it costs?
    fn try_held(&mut self, network: &mut Network, grid: &mut Grid, cell: usize, epsilon: f64) {
        for i in self.held_start[cell] as usize..self.held_start[cell + 1] as usize {
            let arc = self.held[i] as usize;
            if network.churn.as_ref().is_none_or(|churn| churn.beyond[arc] == 0) || network.in_tree(arc) {
                continue;
            }
            let node = network.arc_node[arc] as usize;
            if network.price[cell] - network.arc_base[arc] - network.price[node] >= -epsilon {
                continue;
            }
            push_arc(network, grid, arc, false, epsilon);
            self.pivots += 1;
        }
    }
}

/// The arc of least c + w in the whole row.
fn cheapest(network: &Network, cell: usize) -> Option<usize> {
    cheapest_below(network, cell, f64::INFINITY)
}

/// The same where its reduced cost is below `limit`. Most rows have none, and finding only the minimum is faster.
fn cheapest_below(network: &Network, cell: usize, limit: f64) -> Option<usize> {
    let row = network.row(cell);
    let costs = &network.arc_next[row.clone()];
    let nodes = &network.arc_node[row.clone()];
    let least = least_total(costs, nodes, &network.price);
    if least - network.price[cell] >= limit {
        return None;
    }
    let at = costs.iter().zip(nodes).position(|(cost, &node)| cost + network.price[node as usize] == least)?;
    Some(row.start + at)
}

/// min(c + w) over a row, infinite where it is empty. Four minima side by side: one would wait for itself at every arc.
pub fn least_total(costs: &[f64], nodes: &[u32], price: &[f64]) -> f64 {
    let mut least = [f64::INFINITY; 4];
    let (costs, costs_left) = costs.as_chunks::<4>();
    let (nodes, nodes_left) = nodes.as_chunks::<4>();
    for (costs, nodes) in costs.iter().zip(nodes) {
        for lane in 0..4 {
            let total = costs[lane] + price[nodes[lane] as usize];
            least[lane] = if total < least[lane] { total } else { least[lane] };
        }
    }
    for (cost, &node) in costs_left.iter().zip(nodes_left) {
        least[0] = least[0].min(cost + price[node as usize]);
    }
    least.into_iter().fold(f64::INFINITY, f64::min)
}

/// Sink flows as the simplex left them.
pub fn take_sinks(network: &mut Network, grid: &Grid) {
    for node in 0..network.root {
        network.sink[node] =
            if network.tree.arc[node] == SINK { network.tree.flow[node] } else { grid.from[grid.at[node] as usize] };
    }
}
