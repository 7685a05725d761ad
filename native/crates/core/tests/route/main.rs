//! Which engine takes a request: the ring, the order behind it, the reserves, the bound, and what keeps an engine out.

mod choice;
mod fleet;
mod placement;
