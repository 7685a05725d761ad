//! What /proc says of processes and cores.

use std::fs;
use std::io;

/// Clock ticks a second in /proc: fixed at 100 for user space on every Linux architecture that Node runs on.
const TICK_NS: u64 = 10_000_000;

/// CPU time of a process, all its threads, those ended included.
pub fn cpu_ns(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything; fields are counted from behind it.
    let after = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |field: usize| after.split_whitespace().nth(field).and_then(|word| word.parse::<u64>().ok());
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => Ok((user + system) * TICK_NS),
        _ => Err(io::Error::other(format!("/proc/{pid}/stat has no times"))),
    }
}

/// Memory of its own that a process holds, without pages of files.
pub fn anonymous_bytes(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|kb| kb.parse::<u64>().ok())
        .map(|kb| kb << 10)
        .ok_or_else(|| io::Error::other(format!("/proc/{pid}/status has no RssAnon")))
}

/// Time that each core was busy, with what a hypervisor took from it.
pub fn cores_busy_ns() -> io::Result<Vec<u64>> {
    let text = fs::read_to_string("/proc/stat")?;
    let cores = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    // user nice system idle iowait irq softirq steal
    Ok(cores
        .map(|line| {
            let times: Vec<u64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
            let busy: u64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|&at| times.get(at)).sum();
            busy * TICK_NS
        })
        .collect())
}

/// One reading of everything that is watched.
pub struct Reading {
    /// By process, in the order asked for; the generator itself last.
    pub cpu_ns: Vec<u64>,
    pub cores_busy_ns: Vec<u64>,
}

impl Reading {
    pub fn take(pids: &[u32]) -> io::Result<Reading> {
        let own = std::process::id();
        let cpu_ns = pids.iter().chain([&own]).map(|&pid| cpu_ns(pid)).collect::<Result<_, _>>()?;
        Ok(Reading { cpu_ns, cores_busy_ns: cores_busy_ns()? })
    }

    /// What was used since `before`.
    pub fn since(&self, before: &Reading) -> Reading {
        let minus = |now: &[u64], then: &[u64]| now.iter().zip(then).map(|(a, b)| a.saturating_sub(*b)).collect();
        Reading {
            cpu_ns: minus(&self.cpu_ns, &before.cpu_ns),
            cores_busy_ns: minus(&self.cores_busy_ns, &before.cores_busy_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_process() {
        let own = std::process::id();
        let before = Reading::take(&[own]).unwrap();
        let mut sum = 0u64;
        while cpu_ns(own).unwrap() < before.cpu_ns[0] + 2 * TICK_NS {
            sum = sum.wrapping_add(cores_busy_ns().unwrap().len() as u64);
        }
        let used = Reading::take(&[own]).unwrap().since(&before);
        assert!(sum > 0 && used.cpu_ns[0] >= 2 * TICK_NS);
        assert_eq!(used.cpu_ns.len(), 2);
        assert!(anonymous_bytes(own).unwrap() > 1 << 10);
    }
}
