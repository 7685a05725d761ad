#![forbid(unsafe_code)]
//! Guidevane's arithmetic and routing. Knows nothing of Node: `cargo test` needs no Node, and the addon only converts.

pub mod bound;
pub mod classify;
pub mod curve;
pub mod draw;
pub mod guard;
pub mod json;
pub mod key;
pub mod ln;
pub mod moves;
pub mod names;
pub mod pick;
pub mod route;
pub mod scan;
pub mod seam;
pub mod simplex;
pub mod state;
pub mod table;
pub mod xxh32;
