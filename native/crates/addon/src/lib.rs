#![deny(unsafe_code)]
// Under `cfg(test)` the macros register nothing, so nothing seems used; `clippy --all-targets` compiles it so.
#![cfg_attr(test, allow(dead_code))]
//! The Node-API door to `guidevane-core`: converts between Node's types and ours and does nothing else. Cold calls are
//! `#[napi]` functions, each catching unwinds; the hot one is a hand-written callback in `raw.rs`, the only unsafe code.

#[cfg(panic = "abort")]
compile_error!("a panic must unwind, else it ends the whole process: build with panic = \"unwind\"");

mod cold;
mod raw;
mod solve;
mod tables;
