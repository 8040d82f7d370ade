//! What a node counts of its part in a cluster, and the text form that Prometheus reads.
//!
//! Promises: counting is one addition to an atomic number; no name of a space or of anybody is in it.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ClusterNode;
use super::relay::Relays;
use crate::journal::SpaceActivity;

/// Beyond this many spaces there are no rows for each: there may be thousands.
const BUSIEST_MAX: usize = 20;

/// Counters of a node.
#[derive(Debug, Default)]
pub(super) struct NodeCounters {
    spaces_taken: AtomicU64,
    spaces_lost: AtomicU64,
}

impl NodeCounters {
    pub(super) fn note_taken(&self) {
        self.spaces_taken.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_lost(&self) {
        self.spaces_lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// A metric: its name, what it means, its kind and its value.
type MetricRow = (&'static str, &'static str, (&'static str, f64));

fn gauge(value: u64) -> (&'static str, f64) {
    ("gauge", value as f64)
}

fn sum(value: u64) -> (&'static str, f64) {
    ("counter", value as f64)
}

impl ClusterNode {
    /// All of them.
    pub(crate) fn describe_metrics(&self, relays: &Relays, connections: usize) -> String {
        let mut text = String::new();
        let rows = self.node_rows(relays, connections).into_iter();
        for (name, help, (kind, value)) in rows.chain(self.journal_rows()) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        describe_spaces(&mut text, &self.database().busiest_spaces(BUSIEST_MAX));
        text
    }

    /// What it does for clients and among others.
    fn node_rows(&self, relays: &Relays, connections: usize) -> [MetricRow; 8] {
        let shared = self.shared();
        let (relayed, unreachable) = relays.counts();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let loaded = shared.handles.lock().len() as u64;
        [
            ("greenroom_node_connections", "Open connections.", gauge(connections as u64)),
            ("greenroom_node_spaces", "Spaces that are loaded.", gauge(loaded)),
            (
                "greenroom_node_trusted_seconds",
                "How long the node may speak without another heartbeat.",
                ("gauge", shared.trust.remaining().as_secs_f64()),
            ),
            (
                "greenroom_node_spaces_taken_total",
                "Spaces that were taken and started.",
                sum(read(&shared.counters.spaces_taken)),
            ),
            (
                "greenroom_node_spaces_lost_total",
                "Spaces that another node took.",
                sum(read(&shared.counters.spaces_lost)),
            ),
            (
                "greenroom_node_relays_total",
                "Connections that were relayed to another node.",
                sum(relayed),
            ),
            (
                "greenroom_node_relays_failed_total",
                "Clients sent away because no owner could be reached.",
                sum(unreachable),
            ),
            (
                "greenroom_node_requests_forwarded_total",
                "Requests that were passed on to another node.",
                sum(relays.forwarded()),
            ),
        ]
    }

    /// What is written.
    fn journal_rows(&self) -> [MetricRow; 5] {
        let journal = self.database().counts();
        [
            ("greenroom_node_batches_total", "Batches written.", sum(journal.batches)),
            (
                "greenroom_node_append_seconds_total",
                "Time that batches took, waiting included.",
                ("counter", seconds(journal.append_us)),
            ),
            (
                "greenroom_node_commits_total",
                "Transactions that carried batches; batches in one are those of several spaces.",
                sum(journal.commits),
            ),
            (
                "greenroom_node_queue_seconds_total",
                "Time that batches waited for a writer.",
                ("counter", seconds(journal.queued_us)),
            ),
            (
                "greenroom_node_unknown_outcomes_total",
                "Batches whose outcome had to be looked up.",
                sum(journal.unknown),
            ),
        ]
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1_000_000.0
}

/// Reads one number of a space.
type SpaceValue = fn(&SpaceActivity) -> f64;

/// The few spaces that write most, by their numbers in the database.
fn describe_spaces(text: &mut String, spaces: &[SpaceActivity]) {
    let values: [(&str, &str, SpaceValue); 2] = [
        (
            "greenroom_space_batches_total",
            "Batches of a space that writes much, since it was loaded.",
            |busy| busy.batches as f64,
        ),
        (
            "greenroom_space_append_seconds_total",
            "Time that they took, waiting included.",
            |busy| seconds(busy.append_us),
        ),
    ];
    for (name, help, value) in values {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
        for busy in spaces {
            let _ = writeln!(text, "{name}{{space=\"{}\"}} {}", busy.space, value(busy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_spaces_are_told_by_number() {
        let busy = SpaceActivity {
            space: 12,
            batches: 3,
            append_us: 1_500_000,
            ..SpaceActivity::default()
        };
        let mut text = String::new();
        describe_spaces(&mut text, &[busy]);
        let lines: Vec<&str> = text.lines().filter(|it| !it.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "greenroom_space_batches_total{space=\"12\"} 3",
                "greenroom_space_append_seconds_total{space=\"12\"} 1.5",
            ]
        );
    }
}
