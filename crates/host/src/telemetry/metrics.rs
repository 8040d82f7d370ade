//! Counters of what a host does, and their Prometheus text form.
//!
//! Promises: counting is one addition to an atomic number.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use wire::Timestamp;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricCounter {
    Steps,
    Commits,
    CommitMicroseconds,
    CommitFailures,
    Frames,
    TurnsStarted,
    TurnsCompleted,
    TurnsFailed,
    TurnsCancelled,
    TelemetryDropped,
}

/// A row of what is shown: its name, what it means, what it counts, and by how much it is divided.
struct ShownMetric {
    name: &'static str,
    help: &'static str,
    counter: MetricCounter,
    divisor: f64,
}

const fn metric(name: &'static str, help: &'static str, counter: MetricCounter) -> ShownMetric {
    ShownMetric { name, help, counter, divisor: 1.0 }
}

const METRICS: [ShownMetric; 10] = [
    metric(
        "greenroom_steps_total",
        "Inputs that the kernel handled, without telemetry.",
        MetricCounter::Steps,
    ),
    metric(
        "greenroom_commits_total",
        "Transactions written to the journal.",
        MetricCounter::Commits,
    ),
    ShownMetric {
        name: "greenroom_commit_seconds_total",
        help: "Time spent writing them.",
        counter: MetricCounter::CommitMicroseconds,
        divisor: 1_000_000.0,
    },
    metric(
        "greenroom_commit_failures_total",
        "Transactions that could not be written.",
        MetricCounter::CommitFailures,
    ),
    metric(
        "greenroom_frames_total",
        "Messages handed to connections, without telemetry.",
        MetricCounter::Frames,
    ),
    metric("greenroom_turns_started_total", "Turns that began.", MetricCounter::TurnsStarted),
    metric(
        "greenroom_turns_completed_total",
        "Turns that were completed.",
        MetricCounter::TurnsCompleted,
    ),
    metric(
        "greenroom_turns_failed_total",
        "Turns that ended in an error.",
        MetricCounter::TurnsFailed,
    ),
    metric(
        "greenroom_turns_cancelled_total",
        "Turns that were cancelled.",
        MetricCounter::TurnsCancelled,
    ),
    metric(
        "greenroom_telemetry_dropped_total",
        "Log records and spans that nobody fetched in time.",
        MetricCounter::TelemetryDropped,
    ),
];

/// The value of a metric at a moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MetricValue {
    pub name: &'static str,
    pub help: &'static str,
    pub value: f64,
    /// Only rises; otherwise it is what it is now.
    pub is_sum: bool,
}

/// The counters of a host.
pub(crate) struct HostMetrics {
    counts: [AtomicU64; METRICS.len()],
    started: Timestamp,
    /// What was last taken, and with how many connections.
    taken: Mutex<([u64; METRICS.len()], usize)>,
}

impl HostMetrics {
    pub(crate) fn new(started: Timestamp) -> Self {
        Self { counts: Default::default(), started, taken: Mutex::default() }
    }

    pub(crate) fn started(&self) -> Timestamp {
        self.started
    }

    pub(crate) fn add(&self, counter: MetricCounter, count: u64) {
        if let Some(total) = self.counts.get(counter as usize) {
            total.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn get(&self, counter: MetricCounter) -> u64 {
        let total = self.counts.get(counter as usize);
        total.map_or(0, |total| total.load(Ordering::Relaxed))
    }

    /// All values if one is another than when this was last called.
    pub(crate) fn take_changed(&self, connections: usize) -> Option<Vec<MetricValue>> {
        let counts = std::array::from_fn(|index| {
            let total = self.counts.get(index);
            total.map_or(0, |total| total.load(Ordering::Relaxed))
        });
        let mut taken = self.taken.lock();
        if *taken == (counts, connections) {
            return None;
        }
        *taken = (counts, connections);
        Some(self.values(connections))
    }

    /// All values as they are now.
    pub(crate) fn values(&self, connections: usize) -> Vec<MetricValue> {
        let sums = METRICS.iter().map(|shown| MetricValue {
            name: shown.name,
            help: shown.help,
            value: self.get(shown.counter) as f64 / shown.divisor,
            is_sum: true,
        });
        let ended: u64 = [
            MetricCounter::TurnsCompleted,
            MetricCounter::TurnsFailed,
            MetricCounter::TurnsCancelled,
        ]
        .map(|counter| self.get(counter))
        .iter()
        .sum();
        let running = self.get(MetricCounter::TurnsStarted).saturating_sub(ended);
        let gauges = [
            ("greenroom_connections", "WebSocket connections that are open.", connections as f64),
            ("greenroom_turns_running", "Turns that run now.", running as f64),
        ]
        .map(|(name, help, value)| MetricValue { name, help, value, is_sum: false });
        sums.chain(gauges).chain(resident_memory()).collect()
    }

    /// The text form that Prometheus reads.
    pub(crate) fn to_prometheus(&self, connections: usize, version: &str) -> String {
        let mut text = String::new();
        let version = version.replace(['\\', '"', '\n'], "");
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "# HELP greenroom_build_info The version of this host.\n# TYPE greenroom_build_info gauge\n\
             greenroom_build_info{{version=\"{version}\"}} 1\n"
        );
        for metric in self.values(connections) {
            let kind = if metric.is_sum { "counter" } else { "gauge" };
            let MetricValue { name, help, value, .. } = metric;
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
        text
    }
}

/// What the process occupies, where the system tells.
fn resident_memory() -> Option<MetricValue> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(MetricValue {
        name: "process_resident_memory_bytes",
        help: "Resident memory of the host process.",
        value: kib * 1_024.0,
        is_sum: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_its_row() {
        let metrics = HostMetrics::new(Timestamp(0));
        for (index, shown) in METRICS.iter().enumerate() {
            assert_eq!(shown.counter as usize, index, "{}", shown.name);
            metrics.add(shown.counter, index as u64 + 1);
        }
        let text = metrics.to_prometheus(3, "1.2\"3");
        for line in [
            "greenroom_build_info{version=\"1.23\"} 1",
            "greenroom_steps_total 1",
            "greenroom_commit_seconds_total 0.000003",
            "# TYPE greenroom_turns_failed_total counter",
            "greenroom_connections 3",
            "# TYPE greenroom_connections gauge",
        ] {
            assert!(text.lines().any(|each| each == line), "{line}:\n{text}");
        }
        for line in text.lines() {
            let is_comment = line.starts_with("# HELP ") || line.starts_with("# TYPE ");
            let value = line.rsplit(' ').next().unwrap();
            assert!(is_comment || value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn nothing_is_taken_twice() {
        let metrics = HostMetrics::new(Timestamp(0));
        assert!(metrics.take_changed(1).is_some(), "somebody connected");
        assert_eq!(metrics.take_changed(1), None);
        metrics.add(MetricCounter::Frames, 2);
        let values = metrics.take_changed(1).unwrap();
        let frames = values.iter().find(|each| each.name == "greenroom_frames_total");
        assert_eq!(frames.unwrap().value, 2.0);
    }
}
