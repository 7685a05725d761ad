//! Memory shared by a process's routers, as the router sees it. The addon implements it over a SharedArrayBuffer.

/// Words that other threads change at any time; every read is one atomic load.
pub trait SharedState {
    /// State word of an engine's slot, see `state` in `seam`; 0 (a factor of nothing) for a slot that is not there.
    fn engine(&self, slot: usize) -> u32;
    /// Streams in flight of the cell with this row at the engine with this slot; 0 where there is no such row or slot.
    fn in_flight(&self, row: usize, slot: usize) -> u32;
}
