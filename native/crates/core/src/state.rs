//! Memory that the threads of a process share: `packages/selector/src/shared-state.ts` says what is where. The addon takes
//! it from SharedArrayBuffers; other threads change it at any time, so every access is one atomic load or store.

use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, Copy, Debug)]
pub struct SharedState<'a> {
    /// A state word per engine slot, see `state` in `seam`.
    engines: &'a [AtomicU32],
    /// One word, which rises when a state word changes.
    version: &'a [AtomicU32],
    /// A row per thread and cell: a count per engine slot, then their sum.
    in_flight: &'a [AtomicU32],
    /// Where moved conversations are, see `moves`.
    moves: &'a [AtomicU32],
    /// Rows of a thread.
    cells: usize,
}

impl<'a> SharedState<'a> {
    /// # Errors
    /// What is wrong with the sizes, in one sentence.
    pub fn new(
        engines: &'a [AtomicU32],
        version: &'a [AtomicU32],
        in_flight: &'a [AtomicU32],
        moves: &'a [AtomicU32],
        cells: usize,
    ) -> Result<Self, String> {
        let thread = cells.saturating_mul(engines.len() + 1);
        if thread == 0 || in_flight.is_empty() || !in_flight.len().is_multiple_of(thread) {
            let (counts, slots) = (in_flight.len(), engines.len());
            return Err(format!("{counts} counts are no rows of {cells} cells and {slots} engine slots"));
        }
        if version.is_empty() {
            return Err("the state has no version".into());
        }
        if !moves.len().is_multiple_of(crate::moves::SET_WORDS)
            || !(moves.len() / crate::moves::SET_WORDS).is_power_of_two()
        {
            return Err(format!("{} words of moves are no power of two of sets", moves.len()));
        }
        Ok(Self { engines, version, in_flight, moves, cells })
    }

    pub fn engine_slots(&self) -> usize {
        self.engines.len()
    }

    pub fn cells(&self) -> usize {
        self.cells
    }

    pub fn moves(&self) -> &'a [AtomicU32] {
        self.moves
    }

    /// State word of an engine's slot; 0 (a factor of nothing) for a slot that is not there.
    pub fn engine(&self, slot: usize) -> u32 {
        self.engines.get(slot).map_or(0, load)
    }

    pub fn version(&self) -> u32 {
        // Acquire: what is summed up after it must not be older than it.
        self.version[0].load(Ordering::Acquire)
    }

    /// Streams of a cell at an engine, of all threads; 0 where there is no such row or slot.
    pub fn streams(&self, cell: usize, slot: usize) -> u32 {
        let row = self.engines.len() + 1;
        let places = self.in_flight.get(cell * row + slot..).unwrap_or_default();
        places.iter().step_by(self.cells * row).fold(0, |sum, count| sum.wrapping_add(load(count)))
    }

    /// Streams of a cell, of all threads.
    pub fn streams_of_cell(&self, cell: usize) -> u32 {
        self.streams(cell, self.engines.len())
    }
}

fn load(word: &AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}
