#![forbid(unsafe_code)]
//! A stub engine and a load generator, one thread each, cheap enough that what stands between them is what gets tired.
//!
//! ```text
//! guidevane-load stub
//! guidevane-load drive --to 127.0.0.1:8080 --connections 64 [--rate 1000] [--body 1024] [--stream 20x200]
//!                      [--ramp 1000] [--warm-ms 1000] [--window-ms 3000] [--watch PID,PID]
//! ```
//! `stub` prints the address it listens on and runs until its standard input ends. `drive` prints one JSON object, of what
//! happened in its window.

mod cli;
mod drive;
mod link;
mod marker;
mod message;
mod peer;
mod report;
mod request;
mod stub;
mod timer;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let run = match cli::parse(&args) {
        Ok(run) => run,
        Err(wrong) => {
            eprintln!("guidevane-load: {wrong}");
            return ExitCode::from(2);
        }
    };
    let ended = match run {
        cli::Run::Stub => stub::serve(),
        cli::Run::Drive(plan) => drive::drive(&plan).map(|report| println!("{}", report.json())),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("guidevane-load: {error}");
            ExitCode::FAILURE
        }
    }
}
