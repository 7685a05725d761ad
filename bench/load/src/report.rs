//! What happened in a window, as one JSON object.

use crate::watch::Reading;

#[derive(Default)]
pub struct Report {
    pub elapsed_ns: u64,
    /// Answers that ended in the window, well or not.
    pub requests: u64,
    /// Those with another status than 200, cut short, malformed, or late by `drive::PATIENCE_NS`.
    pub errors: u64,
    /// The first error, in words.
    pub error: Option<String>,
    /// Events that arrived in the window.
    pub events: u64,
    /// Connections opened in the window.
    pub opened: u64,
    /// From sending a request to its answer's first byte.
    pub first_byte_ns: Vec<u64>,
    /// From an event's being sent by the stub to its being read here.
    pub event_ns: Vec<u64>,
    /// How late the generator itself sent, in an open loop.
    pub late_ns: Vec<u64>,
    pub pids: Vec<u32>,
    pub used: Option<Reading>,
    /// Memory of each process before the first connection, and at the window's end.
    pub idle_bytes: Vec<u64>,
    pub end_bytes: Vec<u64>,
    /// Answers under way at the window's end.
    pub open: usize,
}

impl Report {
    pub fn failed(&mut self, why: impl Into<String>) {
        self.errors += 1;
        self.error.get_or_insert_with(|| why.into());
    }

    pub fn json(mut self) -> String {
        let processes: Vec<String> = (0..self.pids.len())
            .map(|at| {
                let cpu = self.used.as_ref().map_or(0, |used| used.cpu_ns[at]);
                format!(
                    "{{\"pid\":{},\"cpuNs\":{cpu},\"idleBytes\":{},\"endBytes\":{}}}",
                    self.pids[at], self.idle_bytes[at], self.end_bytes[at]
                )
            })
            .collect();
        let own = self.used.as_ref().and_then(|used| used.cpu_ns.last().copied()).unwrap_or(0);
        let cores = self.used.as_ref().map_or(&[][..], |used| &used.cores_busy_ns);
        let cores: Vec<String> = cores.iter().map(u64::to_string).collect();
        let error = self.error.as_ref().map_or("null".into(), |text| format!("\"{}\"", text.escape_default()));
        format!(
            "{{\"elapsedNs\":{},\"requests\":{},\"errors\":{},\"error\":{error},\"events\":{},\"opened\":{},\"open\":{},\
             \"firstByteNs\":{},\"eventNs\":{},\"lateNs\":{},\"processes\":[{}],\"ownCpuNs\":{own},\"coresBusyNs\":[{}]}}",
            self.elapsed_ns,
            self.requests,
            self.errors,
            self.events,
            self.opened,
            self.open,
            quantiles(&mut self.first_byte_ns),
            quantiles(&mut self.event_ns),
            quantiles(&mut self.late_ns),
            processes.join(","),
            cores.join(",")
        )
    }
}

/// Nearest-rank quantiles; null where there is nothing.
fn quantiles(values: &mut [u64]) -> String {
    if values.is_empty() {
        return "null".into();
    }
    values.sort_unstable();
    let at = |q: f64| values[((values.len() as f64 * q).ceil() as usize).clamp(1, values.len()) - 1];
    format!(
        "{{\"count\":{},\"p50\":{},\"p99\":{},\"p999\":{},\"max\":{}}}",
        values.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_nearest_rank() {
        let mut values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(quantiles(&mut values), r#"{"count":100,"p50":50,"p99":99,"p999":100,"max":100}"#);
        assert_eq!(quantiles(&mut [7]), r#"{"count":1,"p50":7,"p99":7,"p999":7,"max":7}"#);
        assert_eq!(quantiles(&mut []), "null");
    }

    #[test]
    fn keeps_the_first_error_and_escapes_it() {
        let mut report = Report::default();
        report.failed("a \"quote\"");
        report.failed("another");
        let json = report.json();
        assert!(json.contains(r#""errors":2,"error":"a \"quote\"""#), "{json}");
    }
}
