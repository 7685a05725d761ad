//! Exact equalisation, and the relaxation of a tree whose flows no longer fit.
//!
//! Each child subtree of the root is a *component*: inside it all prices are fixed relative to each other by the arcs,
//! and one number θ is free. The best flows on the component's arcs are those of the θ at which its sinks take exactly
//! what its cells send (`level.rs`). The flows on the tree arcs follow from the leaves. Where one is out of its segment
//! (negative, above its reference) the arc doesn't belong in the tree. On the straight way from the present flows to the
//! wanted ones the arc that comes first to the end of its segment is cut; what hangs below becomes a component of its
//! own, and both parts are equalised again from the flows at that point, so that the cost falls all along. Past a budget
//! of visits all misfits of a component are cut at once.
//!
//! Only the order of cuts needs the present flows, and they may be rough: the result follows from tree, prices and
//! demand. Where the tree is the right one it is the exact optimum.

use super::level::Level;
use super::network::Network;
use super::tree::SINK;

#[derive(Debug)]
pub struct Equaliser {
    pub level: Level,
    /// What a node itself sends into the tree: demand or nothing, less or plus what arcs at their reference carry.
    pub supply: Vec<f64>,
    /// What a node's subtree sends to its parent, and what that makes the flow on the arc.
    net: Vec<f64>,
    wanted: Vec<f64>,
    /// Tops of components still to do.
    pending: Vec<usize>,
    misfits: Vec<usize>,
    /// Segment changes left to this call: past them a cell is cut off instead, so that it ends.
    changes: i64,
}

/// Visits of nodes, per node of the tree, until components are cut at all misfits at once.
const VISITS: i64 = 60;
/// Arcs that block this near to the first one, as a part of the way, are cut with it.
const TOGETHER: f64 = 1e-9;

impl Equaliser {
    pub fn new(network: &Network) -> Self {
        Equaliser {
            level: Level::new(network),
            supply: vec![0.0; network.root],
            net: vec![0.0; network.root],
            wanted: vec![0.0; network.root],
            pending: Vec::new(),
            misfits: Vec::new(),
            changes: 0,
        }
    }

    /// Equalises every component, cutting arcs that don't fit. Prices must be those of the tree. Afterwards `sink`, the
    /// tree's flows and the prices are right, and each component hangs by an engine (by a shedding cell where one sheds
    /// part of a step).
    pub fn run(&mut self, network: &mut Network) {
        let root = network.root;
        let base = network.price[root];
        if base != 0.0 {
            for price in &mut network.price {
                *price -= base;
            }
        }
        self.fill_supply(network);
        self.changes = 4 * root as i64;
        let mut node = network.tree.next[root] as usize;
        while node != root {
            self.pending.push(node);
            node = network.tree.after(node);
        }
        let mut visits = VISITS * root as i64;
        while let Some(top) = self.pending.pop() {
            let top = self.settle(network, top);
            visits -= i64::from(network.tree.size[top]);
            self.misfits.clear();
            self.send_up(network, top);
            if self.misfits.is_empty() {
                self.accept(network, top);
                continue;
            }
            if visits > 0 {
                self.keep_first(network, top);
            }
            // From the leaves up: what hangs below a misfit has been cut off before it.
            for i in 0..self.misfits.len() {
                self.cut(network, self.misfits[i]);
            }
            self.pending.push(top);
        }
    }

    fn fill_supply(&mut self, network: &Network) {
        self.supply[..network.cells].copy_from_slice(&network.demand);
        self.supply[network.cells..].fill(0.0);
        let Some(churn) = &network.churn else { return };
        for arc in 0..churn.reference.len() {
            if churn.beyond[arc] == 0 || churn.reference[arc] == 0.0 || network.in_tree(arc) {
                continue;
            }
            self.supply[network.arc_cell[arc] as usize] -= churn.reference[arc];
            self.supply[network.arc_node[arc] as usize] += churn.reference[arc];
        }
    }

    /// Finds the component's level, sets its sinks and prices, and hangs it by a node that can hold it: that node.
    fn settle(&mut self, network: &mut Network, top: usize) -> usize {
        let shift = self.level.find(network, &self.supply, top);
        let Network { cells, root, tree, price, sink, pieces, .. } = network;
        let cells = *cells;
        let end = tree.after(top);
        let has_room = |node: usize| sink[node] < pieces.capacity[node - cells];
        let mut held = if top >= cells && has_room(top) { Some(top) } else { None };
        let mut engine = if top >= cells { Some(top) } else { None };
        let mut node = top;
        loop {
            price[node] += shift;
            if node >= cells {
                if engine.is_none() {
                    engine = Some(node);
                }
                if held.is_none() && has_room(node) {
                    held = Some(node);
                }
            }
            node = tree.next[node] as usize;
            if node == end {
                break;
            }
        }
        let held = self.level.part_shed.or(held).or(engine).unwrap_or(top);
        if held != top {
            tree.rehang(top, held, *root, SINK, 0.0);
        }
        held
    }

    /// Tree flows from the leaves; nodes whose arc to the parent is out of its segment are misfits, deepest first.
    fn send_up(&mut self, network: &Network, top: usize) {
        let tree = &network.tree;
        let end = tree.after(top);
        let mut node = top;
        loop {
            self.net[node] = self.supply[node] - network.sink[node];
            node = tree.next[node] as usize;
            if node == end {
                break;
            }
        }
        node = tree.last[top] as usize;
        while node != top {
            let sent = self.net[node];
            self.net[tree.parent[node] as usize] += sent;
            let mut from = 0.0;
            let mut to = f64::INFINITY;
            if let Some(churn) = &network.churn {
                let arc = tree.arc[node] as usize;
                if churn.beyond[arc] == 1 {
                    from = churn.reference[arc];
                } else {
                    to = churn.reference[arc];
                }
            }
            // Strictly feasible: from each node something more must be able to go towards the root.
            let (amount, good) = if node < network.cells {
                (sent, sent >= from && sent < to)
            } else {
                (-sent, -sent > from && -sent <= to)
            };
            self.wanted[node] = amount;
            if !good {
                self.misfits.push(node);
            }
            node = tree.before[node] as usize;
        }
    }

    fn accept(&self, network: &mut Network, top: usize) {
        let Network { tree, sink, .. } = network;
        let end = tree.after(top);
        tree.flow[top] = sink[top];
        let mut node = tree.next[top] as usize;
        while node != end {
            tree.flow[node] = self.wanted[node];
            node = tree.next[node] as usize;
        }
    }

    /// How far along the way from its flow to the wanted one a misfit leaves its segment, 0 … 1.
    fn blocked_at(&self, network: &Network, node: usize) -> f64 {
        let arc = network.tree.arc[node] as usize;
        let to = self.wanted[node];
        let from = network.tree.flow[node];
        let end = match &network.churn {
            Some(churn) if churn.beyond[arc] == 1 || to >= churn.reference[arc] => churn.reference[arc],
            _ => 0.0,
        };
        let part = (from - end) / (from - to);
        if part > 0.0 { part.min(1.0) } else { 0.0 }
    }

    /// Keeps the misfits that block first, and moves the component's flows to where they do.
    fn keep_first(&mut self, network: &mut Network, top: usize) {
        let mut way = 1.0;
        for &node in &self.misfits {
            way = f64::min(way, self.blocked_at(network, node));
        }
        let mut misfits = std::mem::take(&mut self.misfits);
        misfits.retain(|&node| self.blocked_at(network, node) <= way + TOGETHER);
        self.misfits = misfits;
        let tree = &mut network.tree;
        let end = tree.after(top);
        let mut node = tree.next[top] as usize;
        while node != end {
            tree.flow[node] += way * (self.wanted[node] - tree.flow[node]);
            node = tree.next[node] as usize;
        }
    }

    /// Takes the arc above `node` out of the tree, at rest at the end of its segment where its flow went out of it.
    fn cut(&mut self, network: &mut Network, node: usize) {
        let arc = network.tree.arc[node] as usize;
        let alone = node < network.cells && network.tree.size[node] == 1;
        if alone {
            // A cell alone (its engines have been cut off before it): it keeps its way out, on the segment that holds
            // its flow.
            let left = self.supply[node] - network.sink[node];
            // Shedding beyond the reference and not before it: the arc rests on it and the shed arc takes what is over.
            let between = network.churn.as_ref().is_some_and(|churn| {
                churn.beyond[arc] == 1 && network.sink[node] > 0.0 && self.supply[node] >= churn.reference[arc]
            });
            self.changes -= 1;
            if self.changes >= 0 && left >= 0.0 && !between {
                set_segment(network, node, left);
                return;
            }
        }
        self.rest(network, node);
        let top = if node < network.cells && !alone { network.tree.next[node] as usize } else { node };
        network.tree.rehang(node, top, network.root, SINK, 0.0);
        self.pending.push(top);
    }

    /// The arc above `node` comes to rest at its reference, as far as its cell's supply reaches, or at 0.
    fn rest(&mut self, network: &mut Network, node: usize) {
        let arc = network.tree.arc[node] as usize;
        let Some(churn) = &mut network.churn else { return };
        let held = churn.reference[arc];
        if held == 0.0 {
            return;
        }
        let cell = network.arc_cell[arc] as usize;
        let wants = churn.beyond[arc] == 1 || self.wanted[node] >= held;
        let beyond = wants && self.supply[cell] >= held;
        churn.beyond[arc] = u8::from(beyond);
        network.arc_next.to_mut()[arc] =
            if beyond { network.arc_base[arc] + churn.move_ms[arc] } else { network.arc_base[arc] };
        if beyond {
            self.supply[cell] -= held;
            self.supply[network.arc_node[arc] as usize] += held;
        }
    }
}

/// Puts a leaf cell's arc on the segment in which `flow` lies; its price follows.
fn set_segment(network: &mut Network, cell: usize, flow: f64) {
    let arc = network.tree.arc[cell] as usize;
    let Some(churn) = &mut network.churn else { return };
    if churn.reference[arc] == 0.0 {
        return;
    }
    let beyond = flow >= churn.reference[arc];
    let cost = if beyond { network.arc_base[arc] + churn.move_ms[arc] } else { network.arc_base[arc] };
    network.price[cell] = network.price[cell] + cost - network.arc_next[arc];
    network.arc_next.to_mut()[arc] = cost;
    churn.beyond[arc] = u8::from(beyond);
}
