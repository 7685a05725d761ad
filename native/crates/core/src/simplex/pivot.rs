//! One pivot: flow is pushed along the entering arc and back through the tree until an arc of that cycle blocks, which
//! leaves the tree.
//!
//! Reduced costs are c + price(head) − price(tail) in the direction of the push; the entering one is negative.
//!
//! *Last-blocking rule.* The tree is kept strongly feasible: from every node a positive amount can be pushed to the root.
//! Of the arcs that block first, the last one in the direction of the push, beginning where the two tree paths meet,
//! leaves. That keeps the property, and pivots that move nothing then can't repeat a tree (Cunningham 1976).
//!
//! *Long step.* A sink arc that reaches the end of its segment does not block while the reduced cost with its next slope
//! is still below −ε: the push goes on over it. So does a cell → engine arc at its reference, while what moving it costs
//! is still covered.

use super::grid::Grid;
use super::network::Network;
use super::tree::{SINK, Tree};

/// What enters: a cell → engine arc (its number), pushed forwards or back.
pub fn push_arc(network: &mut Network, grid: &mut Grid, arc: usize, forwards: bool, epsilon: f64) {
    let cell = network.arc_cell[arc] as usize;
    let node = network.arc_node[arc] as usize;
    if forwards {
        pivot(network, grid, cell, node, arc as u32, true, epsilon, None);
    } else {
        pivot(network, grid, node, cell, arc as u32, false, epsilon, None);
    }
}

/// What enters: a node's sink arc, pushed forwards (more shed, more load) or back.
pub fn push_sink(network: &mut Network, grid: &mut Grid, node: usize, forwards: bool, epsilon: f64) {
    let root = network.root;
    if forwards {
        pivot(network, grid, node, root, SINK, true, epsilon, None);
    } else {
        pivot(network, grid, root, node, SINK, false, epsilon, None);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Leaving {
    Node(usize),
    /// The entering arc itself blocks first: the tree stays.
    Entering,
}

/// References that one push crosses at most: each is a call within a call, and the stack has an end.
const MOST_CROSSINGS: u32 = 256;
const NOBODY: usize = usize::MAX;

/// `begun`: where this goes on with a push that crossed references, flow and segment of the entering arc and how many.
#[allow(clippy::too_many_arguments)]
fn pivot(
    network: &mut Network,
    grid: &mut Grid,
    tail: usize,
    head: usize,
    entering: u32,
    forwards: bool,
    epsilon: f64,
    begun: Option<(f64, usize, u32)>,
) {
    let Network { cells, tree, price, churn, arc_next, arc_base, .. } = network;
    let cells = *cells;
    let Grid { start, end, from, slope, at } = grid;

    // 1. Both paths up to where they meet, and the room of the arcs that block for good.
    let mut room = f64::INFINITY;
    let mut blocking = NOBODY;
    let mut head_blocks = false;
    // How many block first.
    let mut ties = 0;
    let mut tail_top = NOBODY;
    let mut head_top = NOBODY;
    let mut a = tail;
    let mut b = head;
    while a != b {
        if tree.size[a] <= tree.size[b] {
            // Away from the root: a cell's arc loses flow, an engine's gains. Strictly less: of equals the one nearest
            // the entering arc is the last in the direction of the push, and the head's side is later still.
            let on = tree.arc[a];
            let mut left = f64::INFINITY;
            if on == SINK {
                tail_top = a;
                if at[a] == start[a] {
                    left = tree.flow[a];
                }
            } else if a < cells {
                left = tree.flow[a];
                if let Some(churn) = churn.as_ref().filter(|churn| churn.beyond[on as usize] == 1) {
                    left -= churn.reference[on as usize];
                }
            } else if let Some(churn) = churn.as_ref().filter(|churn| churn.beyond[on as usize] == 0) {
                left = churn.reference[on as usize] - tree.flow[a];
            }
            if left < room {
                room = left;
                blocking = a;
                head_blocks = false;
                ties = 1;
            } else if left == room {
                ties += 1;
            }
            a = tree.parent[a] as usize;
        } else {
            let on = tree.arc[b];
            let mut left = f64::INFINITY;
            if on == SINK {
                head_top = b;
            } else if b >= cells {
                left = tree.flow[b];
                if let Some(churn) = churn.as_ref().filter(|churn| churn.beyond[on as usize] == 1) {
                    left -= churn.reference[on as usize];
                }
            } else if let Some(churn) = churn.as_ref().filter(|churn| churn.beyond[on as usize] == 0) {
                left = churn.reference[on as usize] - tree.flow[b];
            }
            if left <= room && left < f64::INFINITY {
                ties = if left < room { 1 } else { ties + 1 };
                room = left;
                blocking = b;
                head_blocks = true;
            }
            b = tree.parent[b] as usize;
        }
    }
    let meet = a;

    // 2. How far the push goes: over the cuts of the at most three sink arcs on the cycle while that pays.
    let own = if entering != SINK {
        NOBODY
    } else if forwards {
        tail
    } else {
        head
    };
    let mut own_segment = 0;
    let mut own_reach = f64::INFINITY;
    let mut own_ends = false;
    let mut own_flow = 0.0;
    let mut cost;
    if own != NOBODY {
        own_segment = if forwards { at[own] as usize } else { at[own] as usize - 1 };
        own_flow = from[at[own] as usize];
        if let Some((flow, segment, _)) = begun {
            own_segment = segment;
            own_flow = flow;
        }
        cost = if forwards { slope[own_segment] } else { -slope[own_segment] };
        if !forwards {
            own_reach = own_flow - from[own_segment];
        } else if own_segment + 1 < end[own] as usize {
            own_reach = from[own_segment + 1] - own_flow;
        }
        own_ends = !forwards && own_segment == start[own] as usize;
    } else if forwards {
        cost = arc_next[entering as usize];
        if let Some(churn) = churn.as_ref() {
            let reference = churn.reference[entering as usize];
            let beyond = churn.beyond[entering as usize] == 1;
            own_flow = begun.map_or(if beyond { reference } else { 0.0 }, |(flow, ..)| flow);
            if !beyond {
                own_reach = reference - own_flow;
            }
            own_ends = true;
        }
    } else {
        cost = -arc_base[entering as usize];
        let rested = churn.as_ref().map_or(0.0, |churn| churn.reference[entering as usize]);
        own_flow = begun.map_or(rested, |(flow, ..)| flow);
        own_reach = own_flow;
        own_ends = true;
    }
    let mut tail_segment = if tail_top != NOBODY { at[tail_top] as usize } else { 0 };
    let mut head_segment = if head_top != NOBODY { at[head_top] as usize } else { 0 };
    let mut tail_reach = f64::INFINITY;
    let mut head_reach = f64::INFINITY;
    if tail_top != NOBODY && tail_segment > start[tail_top] as usize {
        tail_reach = tree.flow[tail_top] - from[tail_segment];
    }
    if head_top != NOBODY && head_segment + 1 < end[head_top] as usize {
        head_reach = from[head_segment + 1] - tree.flow[head_top];
    }
    let mut reduced = cost + price[head] - price[tail];
    let mut moved;
    loop {
        moved = tail_reach.min(head_reach).min(own_reach);
        if moved >= room {
            moved = room;
            break;
        }
        if own_ends && own_reach == moved {
            break;
        }
        let mut jump = 0.0;
        if tail_reach == moved {
            jump += slope[tail_segment] - slope[tail_segment - 1];
        }
        if head_reach == moved {
            jump += slope[head_segment + 1] - slope[head_segment];
        }
        if own_reach == moved {
            jump += if forwards {
                slope[own_segment + 1] - slope[own_segment]
            } else {
                slope[own_segment] - slope[own_segment - 1]
            };
        }
        if reduced + jump >= -epsilon {
            break;
        }
        reduced += jump;
        if tail_reach == moved {
            tail_segment -= 1;
            if tail_segment > start[tail_top] as usize {
                tail_reach = tree.flow[tail_top] - from[tail_segment];
            } else {
                // The last segment: its end blocks for good, unless an arc nearer the entering one does so earlier.
                tail_reach = f64::INFINITY;
                let left = tree.flow[tail_top] - from[tail_segment];
                if left < room {
                    room = left;
                    blocking = tail_top;
                    head_blocks = false;
                }
            }
        }
        if head_reach == moved {
            head_segment += 1;
            head_reach = if head_segment + 1 < end[head_top] as usize {
                from[head_segment + 1] - tree.flow[head_top]
            } else {
                f64::INFINITY
            };
        }
        if own_reach == moved {
            if forwards {
                own_segment += 1;
                own_reach =
                    if own_segment + 1 < end[own] as usize { from[own_segment + 1] - own_flow } else { f64::INFINITY };
            } else {
                own_segment -= 1;
                own_reach = own_flow - from[own_segment];
                own_ends = own_segment == start[own] as usize;
            }
        }
    }

    // An arc that alone blocks at its reference is no end while going on pays what moving it costs.
    let crossed = begun.map_or(0, |(.., crossed)| crossed);
    if let Some(churn) = churn.as_mut()
        && crossed < MOST_CROSSINGS
        && ties == 1
        && room == moved
        && tail_reach.min(head_reach).min(own_reach) > moved
        && tree.arc[blocking] != SINK
    {
        let on = tree.arc[blocking] as usize;
        let grows = head_blocks == (blocking < cells);
        let price_ms = churn.move_ms[on];
        if churn.reference[on] > 0.0 && churn.beyond[on] == u8::from(!grows) && reduced + price_ms < -epsilon {
            push(tree, cells, (tail, head, meet), moved);
            for (top, segment) in [(tail_top, tail_segment), (head_top, head_segment)] {
                if top != NOBODY {
                    follow(tree, price, slope, at, top, segment);
                }
            }
            churn.beyond[on] = u8::from(grows);
            arc_next.to_mut()[on] = if grows { arc_base[on] + price_ms } else { arc_base[on] };
            tree.shift_prices(price, blocking, if head_blocks { price_ms } else { -price_ms });
            own_flow += if forwards { moved } else { -moved };
            let begun = Some((own_flow, own_segment, crossed + 1));
            return pivot(network, grid, tail, head, entering, forwards, epsilon, begun);
        }
    }

    // 3. Who leaves: of those that block at `moved`, the last in the direction of the push.
    let leaving = if head_reach == moved {
        head_blocks = true;
        Leaving::Node(head_top)
    } else if room == moved && head_blocks {
        Leaving::Node(blocking)
    } else if own_reach == moved {
        Leaving::Entering
    } else if room == moved {
        Leaving::Node(blocking)
    } else {
        head_blocks = false;
        Leaving::Node(tail_top)
    };

    // 4. Push; prices of a component follow the segment that holds it.
    if moved > 0.0 {
        push(tree, cells, (tail, head, meet), moved);
    }
    if tail_top != NOBODY {
        if leaving == Leaving::Node(tail_top) {
            at[tail_top] = tail_segment as u32;
        } else {
            follow(tree, price, slope, at, tail_top, tail_segment);
        }
    }
    if head_top != NOBODY {
        if leaving == Leaving::Node(head_top) {
            at[head_top] = head_segment as u32 + 1;
        } else {
            follow(tree, price, slope, at, head_top, head_segment);
        }
    }

    // 5. The entering arc's new state, and the tree.
    own_flow += if forwards { moved } else { -moved };
    if own != NOBODY {
        at[own] = own_segment as u32 + u32::from(leaving == Leaving::Entering && forwards);
        cost = if forwards { slope[own_segment] } else { -slope[own_segment] };
    } else if let Some(churn) = churn.as_mut() {
        let arc = entering as usize;
        if !forwards {
            churn.beyond[arc] = 0;
            arc_next.to_mut()[arc] = arc_base[arc];
        } else if leaving == Leaving::Entering {
            churn.beyond[arc] = 1;
            arc_next.to_mut()[arc] = arc_base[arc] + churn.move_ms[arc];
        }
    }
    let Leaving::Node(leaving) = leaving else { return };
    if let Some(churn) = churn.as_mut() {
        let left = tree.arc[leaving];
        if left != SINK {
            let left = left as usize;
            if churn.beyond[left] == 0 && tree.flow[leaving] == churn.reference[left] {
                churn.beyond[left] = 1;
                arc_next.to_mut()[left] = arc_base[left] + churn.move_ms[left];
            }
        }
    }
    reduced = cost + price[head] - price[tail];
    if head_blocks {
        tree.shift_prices(price, leaving, -reduced);
        tree.rehang(leaving, head, tail, entering, own_flow);
    } else {
        tree.shift_prices(price, leaving, reduced);
        tree.rehang(leaving, tail, head, entering, own_flow);
    }
}

/// Moves flow along the tree's side of the cycle; `ends`: tail, head, and where their paths meet.
fn push(tree: &mut Tree, cells: usize, ends: (usize, usize, usize), moved: f64) {
    let (tail, head, meet) = ends;
    let mut a = tail;
    while a != meet {
        if a < cells || tree.arc[a] == SINK {
            tree.flow[a] -= moved;
        } else {
            tree.flow[a] += moved;
        }
        a = tree.parent[a] as usize;
    }
    let mut b = head;
    while b != meet {
        if b < cells || tree.arc[b] == SINK {
            tree.flow[b] += moved;
        } else {
            tree.flow[b] -= moved;
        }
        b = tree.parent[b] as usize;
    }
}

/// The component of `top` is held by another segment of its sink arc from now on.
fn follow(tree: &Tree, price: &mut [f64], slope: &[f64], at: &mut [u32], top: usize, segment: usize) {
    let shift = slope[segment] - slope[at[top] as usize];
    at[top] = segment as u32;
    if shift != 0.0 {
        tree.shift_prices(price, top, shift);
    }
}
