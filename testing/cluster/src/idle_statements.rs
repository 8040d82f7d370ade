//! What nodes ask the database while nobody does anything: as much as without spaces, if spaces at rest ask nothing.

use std::time::{Duration, Instant};

use anyhow::Result;
use postgres_server::{PostgresServer, StatementCounts};

use crate::run::{DATABASE, NODES};

/// A heartbeat may fall into the one time and not into the other: so many of a kind are no difference.
const SLACK: u64 = 2 * NODES as u64;
/// What is still to be written after the last client has gone is written by then; what goes on for longer is counted.
const SETTLE_MAX: Duration = Duration::from_secs(240);
/// A kernel sweeps twice after the last thing it wrote, `sweep_ms` (30 s) apart: a shorter silence is not its last. There is nothing to
/// wait for but time: that nothing is asked in a while is what is counted.
const SETTLE_LOOK: Duration = Duration::from_secs(40);

/// What was asked in some time.
pub(crate) struct AskedStatements {
    counts: StatementCounts,
    time: Duration,
}

impl AskedStatements {
    /// Counts for so long.
    pub(crate) async fn count(server: &PostgresServer, time: Duration) -> Result<Self> {
        let before = server.statements(DATABASE)?;
        tokio::time::sleep(time).await;
        let after = server.statements(DATABASE)?;
        let since = |(id, calls): (String, u64)| {
            let earlier = before.get(&id).copied().unwrap_or(0);
            (id, calls.saturating_sub(earlier))
        };
        let counts = after.into_iter().map(since).collect();
        Ok(Self { counts, time })
    }

    /// A minute, of all kinds.
    pub(crate) fn per_minute(&self) -> f64 {
        self.counts.values().sum::<u64>() as f64 * 60.0 / self.time.as_secs_f64()
    }

    /// By how much each kind was run oftener a minute than usually, all together.
    pub(crate) fn excess_per_minute(&self, usual: &Self) -> f64 {
        self.excess(usual) as f64 * 60.0 / self.time.as_secs_f64()
    }

    fn excess(&self, usual: &Self) -> u64 {
        let part = self.time.as_secs_f64() / usual.time.as_secs_f64();
        let more = self.counts.iter().map(|(id, calls)| {
            let calls_before = usual.counts.get(id).copied().unwrap_or(0);
            let expected = (calls_before as f64 * part).ceil() as u64;
            calls.saturating_sub(expected)
        });
        more.filter(|more| *more > SLACK).sum()
    }

    /// Waits until nothing more is asked than usually, for a while at most.
    pub(crate) async fn settle(server: &PostgresServer, usual: &Self) -> Result<()> {
        let until = Instant::now() + SETTLE_MAX;
        while Self::count(server, SETTLE_LOOK).await?.excess(usual) > 0 && Instant::now() < until {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(of: &[(&str, u64)], seconds: u64) -> AskedStatements {
        let counts = of.iter().map(|(id, n)| ((*id).to_owned(), *n));
        AskedStatements { counts: counts.collect(), time: Duration::from_secs(seconds) }
    }

    #[test]
    fn what_many_spaces_ask_is_found_and_heartbeats_are_not() {
        let usual = asked(&[("beat", 90), ("orders", 360)], 60);
        assert_eq!(usual.per_minute(), 450.0);
        let idle = asked(&[("beat", 16), ("orders", 64)], 10);
        assert_eq!(idle.excess_per_minute(&usual), 0.0);
        let busy = asked(&[("beat", 15), ("orders", 60), ("sweep", 1_000)], 10);
        assert_eq!(busy.excess_per_minute(&usual), 6_000.0);
    }
}
