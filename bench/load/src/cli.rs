//! What the command line asks for.

use crate::marker::Pace;
use std::net::SocketAddr;
use std::time::Duration;

pub enum Run {
    Stub,
    Drive(Plan),
}

/// One run of the generator.
pub struct Plan {
    pub to: SocketAddr,
    /// Closed loop: each connection sends its next request when it has its answer. Open loop: those kept to begin with.
    pub connections: usize,
    /// Open loop: requests a second at equal distances, whatever the answers do.
    pub rate: Option<f64>,
    /// Bytes of a request's body.
    pub body: usize,
    /// Asks for a stream of so many events at such a pace, instead of a whole answer.
    pub stream: Option<Pace>,
    /// Connections opened a second, at most.
    pub ramp: f64,
    /// The window begins after this, and not before each connection of a closed loop has had a first byte.
    pub warm: Duration,
    pub window: Duration,
    /// Processes whose CPU time and memory are reported.
    pub watch: Vec<u32>,
}

/// The run that `args` ask for, or what is wrong with them.
pub fn parse(args: &[String]) -> Result<Run, String> {
    match args.split_first() {
        Some((command, [])) if command == "stub" => Ok(Run::Stub),
        Some((command, rest)) if command == "drive" => plan(rest).map(Run::Drive),
        _ => Err("say `stub`, or `drive --to HOST:PORT --connections N …`".into()),
    }
}

fn plan(args: &[String]) -> Result<Plan, String> {
    let mut to = None;
    let mut plan = Plan {
        to: SocketAddr::from(([127, 0, 0, 1], 0)),
        connections: 64,
        rate: None,
        body: 1024,
        stream: None,
        ramp: f64::INFINITY,
        warm: Duration::from_millis(1000),
        window: Duration::from_millis(3000),
        watch: Vec::new(),
    };
    for pair in args.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("{} has no value", pair[0]));
        };
        match name.as_str() {
            "--to" => to = Some(read(name, value)?),
            "--connections" => plan.connections = read(name, value)?,
            "--rate" => plan.rate = Some(positive(name, value)?),
            "--body" => plan.body = read(name, value)?,
            "--stream" => plan.stream = Some(Pace::parse(value).ok_or_else(|| bad(name, value))?),
            "--ramp" => plan.ramp = positive(name, value)?,
            "--warm-ms" => plan.warm = Duration::from_millis(read(name, value)?),
            "--window-ms" => plan.window = Duration::from_millis(read(name, value)?),
            "--watch" => {
                plan.watch = value.split(',').map(|pid| read(name, pid)).collect::<Result<_, _>>()?;
            }
            _ => return Err(format!("no option {name}")),
        }
    }
    plan.to = to.ok_or("--to HOST:PORT is missing")?;
    if plan.connections == 0 {
        return Err(bad("--connections", "0"));
    }
    Ok(plan)
}

fn read<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| bad(name, value))
}

fn positive(name: &str, value: &str) -> Result<f64, String> {
    let number: f64 = read(name, value)?;
    if number > 0.0 { Ok(number) } else { Err(bad(name, value)) }
}

fn bad(name: &str, value: &str) -> String {
    format!("{name} can't be {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(line: &str) -> Result<Plan, String> {
        let args: Vec<String> = line.split(' ').map(String::from).collect();
        match parse(&args)? {
            Run::Drive(plan) => Ok(plan),
            Run::Stub => Err("stub".into()),
        }
    }

    #[test]
    fn reads_a_plan() {
        let plan = drive("drive --to 127.0.0.1:80 --rate 10.5 --stream 20x200 --watch 3,4").unwrap();
        assert_eq!(plan.to.port(), 80);
        assert_eq!(plan.rate, Some(10.5));
        assert_eq!(plan.stream, Some(Pace { every_ms: 20, events: 200 }));
        assert_eq!(plan.watch, [3, 4]);
    }

    #[test]
    fn names_what_is_wrong() {
        let wrong = |line| drive(line).err().unwrap();
        assert_eq!(wrong("drive --connections 3"), "--to HOST:PORT is missing");
        assert_eq!(wrong("drive --to 127.0.0.1:80 --rate 0"), "--rate can't be 0");
        assert_eq!(wrong("drive --to 127.0.0.1:80 --connections 0"), "--connections can't be 0");
        assert_eq!(wrong("drive --to 127.0.0.1:80 --stream fast"), "--stream can't be fast");
        assert_eq!(wrong("drive --to"), "--to has no value");
        assert_eq!(wrong("drive --speed 3"), "no option --speed");
        assert!(wrong("swim").contains("stub"));
    }
}
