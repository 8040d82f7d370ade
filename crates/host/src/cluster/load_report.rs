//! What the busiest spaces of this node do, written down now and then where operators look (`greenroom space top`).
//!
//! Promises: no statement while nothing is done in any space; at most so many spaces are told of, by number.
//! Must not know: what becomes of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::node::ClusterShared;
use crate::journal::SpaceActivity;

/// Between two reports.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// At most this many spaces are reported: there may be thousands.
const REPORTED_MAX: usize = 50;

/// What a space does.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpaceRate {
    /// Its number in the database.
    pub space: i64,
    pub records_per_s: f64,
    pub bytes_per_s: f64,
    pub connections: u64,
    pub turns: u64,
}

impl SpaceRate {
    fn is_idle(&self) -> bool {
        self.records_per_s <= 0.0 && self.connections == 0 && self.turns == 0
    }
}

/// What spaces did between two looks at their counters.
#[derive(Debug)]
struct RateMeter {
    looked_at: Instant,
    before: HashMap<i64, (u64, u64)>,
}

impl RateMeter {
    fn new() -> Self {
        Self { looked_at: Instant::now(), before: HashMap::new() }
    }

    /// Those that did something since the last look, the busiest first.
    fn look(&mut self, activities: &[SpaceActivity]) -> Vec<SpaceRate> {
        let now = Instant::now();
        let seconds = now.duration_since(self.looked_at).as_secs_f64().max(0.001);
        let before = std::mem::take(&mut self.before);
        let rate = |now: u64, before: u64| {
            // One that was loaded anew begins at zero.
            now.checked_sub(before).unwrap_or(now) as f64 / seconds
        };
        let mut rates: Vec<SpaceRate> = activities
            .iter()
            .map(|it| {
                let (records, bytes) = before.get(&it.space).copied().unwrap_or_default();
                SpaceRate {
                    space: it.space,
                    records_per_s: rate(it.records, records),
                    bytes_per_s: rate(it.bytes, bytes),
                    connections: it.connections,
                    turns: it.turns,
                }
            })
            .filter(|rate| !rate.is_idle())
            .collect();
        rates.sort_by(|a, b| {
            let busier = b.bytes_per_s.total_cmp(&a.bytes_per_s);
            busier.then_with(|| (b.turns, b.connections).cmp(&(a.turns, a.connections)))
        });
        rates.truncate(REPORTED_MAX);
        let seen = activities.iter().map(|it| (it.space, (it.records, it.bytes)));
        (self.looked_at, self.before) = (now, seen.collect());
        rates
    }
}

/// Reports until the node is gone.
pub(super) async fn report_loads(node: Arc<ClusterShared>) {
    let mut due = interval(REPORT_EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut meter, mut sent_rates) = (RateMeter::new(), Vec::new());
    loop {
        tokio::select! {
            () = node.stop.cancelled() => return,
            _at = due.tick() => {}
        }
        let rates = meter.look(&node.database.space_activities());
        if rates == sent_rates {
            continue; // what is written down is true
        }
        let text = match serde_json::to_string(&rates) {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!(%error, "the load of the spaces cannot be reported");
                continue;
            }
        };
        match node.database.note_busiest(node.id, &text).await {
            Ok(()) => sent_rates = rates,
            Err(error) => tracing::debug!(%error, "operators cannot see what spaces do now"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(space: i64, records: u64, bytes: u64, connections: u64) -> SpaceActivity {
        SpaceActivity { space, records, bytes, connections, ..SpaceActivity::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn rates_are_of_the_time_between_two_looks() {
        let mut meter = RateMeter::new();
        tokio::time::advance(Duration::from_secs(2)).await;
        let rates = meter.look(&[activity(1, 10, 200, 0), activity(2, 20, 4_000, 1)]);
        let sent_rates = |rates: &[SpaceRate]| -> Vec<(i64, f64, f64)> {
            rates.iter().map(|it| (it.space, it.records_per_s, it.bytes_per_s)).collect()
        };
        assert_eq!(sent_rates(&rates), [(2, 10.0, 2_000.0), (1, 5.0, 100.0)]);
        tokio::time::advance(Duration::from_secs(1)).await;
        // The first rests; the second has a client; the third was loaded anew.
        let again = [activity(1, 10, 200, 0), activity(2, 20, 4_000, 1)];
        let rates = meter.look(&again);
        assert_eq!(sent_rates(&rates), [(2, 0.0, 0.0)], "its client is there");
        tokio::time::advance(Duration::from_secs(1)).await;
        let rates = meter.look(&[activity(2, 3, 30, 0)]);
        assert_eq!(sent_rates(&rates), [(2, 3.0, 30.0)]);
    }
}
