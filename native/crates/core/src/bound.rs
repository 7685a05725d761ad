//! The bound on an engine's streams. The twin of `packages/selector/src/bound.ts`, which says why.
//!
//! ```text
//! streams > max(4, 2 × part, part + 4 × √part),  part = f × streams of the cell,
//! f = the candidate's ÷ Σ of the ring's engines that take traffic
//! ```

use crate::seam::state;
use crate::state::SharedState;
use crate::table::{Candidate, Cell};

/// So many streams are never too many.
const FREE_STREAMS: u32 = 4;
const BOUND: f64 = 2.0;
/// Standard deviations of a count that are no reason to move a conversation.
const CHANCE: f64 = 4.0;

/// A cell's sum of parts, kept until an engine's state changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveParts {
    /// The state's version that it is of.
    version: Option<u32>,
    sum: f64,
    /// No engine of the ring takes traffic: the sum is over the reserves.
    reserves_only: bool,
}

pub struct Bound<'a> {
    cell: &'a Cell,
    shared: SharedState<'a>,
    live: &'a mut LiveParts,
    /// Found when it is first asked for.
    cell_streams: Option<f64>,
}

impl<'a> Bound<'a> {
    pub fn new(cell: &'a Cell, shared: SharedState<'a>, live: &'a mut LiveParts) -> Self {
        Self { cell, shared, live, cell_streams: None }
    }

    pub fn is_over(&mut self, index: usize) -> bool {
        let candidate = &self.cell.candidates[index];
        let streams = self.streams(candidate);
        if streams <= FREE_STREAMS {
            return false;
        }
        let cell_streams = match self.cell_streams {
            Some(streams) => streams,
            None => self.find(),
        };
        let part = if index < self.cell.engines || self.live.reserves_only { candidate.part } else { 0.0 };
        // Both sides times the sum, so that nothing is divided.
        let own = f64::from(streams) * self.live.sum;
        let planned = part * cell_streams;
        let excess = own - planned;
        own > BOUND * planned && excess * excess > CHANCE * CHANCE * planned * self.live.sum
    }

    /// Whether `one` has fewer streams for its part than `other`.
    pub fn has_fewer(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|index| &self.cell.candidates[index]);
        f64::from(self.streams(one)) * other.part < f64::from(self.streams(other)) * one.part
    }

    fn find(&mut self) -> f64 {
        let streams = f64::from(self.shared.streams_of_cell(self.cell.in_flight_row));
        self.cell_streams = Some(streams);
        // Before the words: one that changes meanwhile makes the sum of an older version.
        let version = Some(self.shared.version());
        if self.live.version != version {
            let (ring, reserves) = self.cell.candidates.split_at(self.cell.engines);
            let sum = self.live_parts(ring);
            let reserves_only = sum <= 0.0;
            let sum = if reserves_only { self.live_parts(reserves) } else { sum };
            *self.live = LiveParts { version, sum, reserves_only };
        }
        streams
    }

    fn live_parts(&self, candidates: &[Candidate]) -> f64 {
        let mut sum = 0.0;
        for candidate in candidates {
            let word = self.shared.engine(candidate.slot as usize);
            if word & (state::OUT | state::DRAINING | state::OUT_BY_PROBE) == 0 {
                sum += candidate.part;
            }
        }
        sum
    }

    fn streams(&self, candidate: &Candidate) -> u32 {
        self.shared.streams(self.cell.in_flight_row, candidate.slot as usize)
    }
}
