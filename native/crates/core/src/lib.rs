#![forbid(unsafe_code)]
//! Guidevane's arithmetic and routing. Knows nothing of Node: `cargo test` needs no Node, and the addon only converts.

pub mod curve;
pub mod draw;
pub mod ln;
pub mod xxh32;
