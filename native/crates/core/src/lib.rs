#![forbid(unsafe_code)]
//! Guidevane's arithmetic and routing. Knows nothing of Node: `cargo test` needs no Node, and the addon only converts.

pub mod curve;
pub mod draw;
pub mod guard;
pub mod json;
pub mod ln;
pub mod names;
pub mod scan;
pub mod state;
pub mod xxh32;
