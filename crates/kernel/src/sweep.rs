//! Housekeeping: empty sessions, old actions, clients that never came back, bodies that nothing refers to (G-20, G-28).

use wire::ChannelUri;

use crate::background_task::BackgroundTask;
use crate::clients::record_client;
use crate::io::{Effect, ReadFailed};
use crate::journal_query::{Answer, Query};
use crate::queries::Waiter;
use crate::record::{Record, Seq};
use crate::state::{Step, TRIM_STEP};

/// At most this many empty sessions are looked at in one sweep.
const EMPTY_STEP: u32 = 512;

/// Sweeps once, if anything is due. Nothing is swept while nothing can be written.
pub(crate) fn sweep(step: &mut Step) {
    let now = step.now();
    if !step.is_sweep_due() {
        return; // the timer was set before more was written: it is set again for when that is due
    }
    if step.unwritable().is_some() {
        return step.upkeep_mut().put_off_sweep(now);
    }
    trim(step);
    let written = step.begin_sweep();
    let before = step.seconds_ago(step.limits().blob_grace_s);
    for buckets in step.upkeep_mut().next_buckets(written) {
        step.effect(Effect::Collect { buckets, before });
    }
    if written {
        let limits = step.limits();
        let record = Record::Sweep {
            disposed_before: step.seconds_ago(limits.retention_disposed_s),
            clients_before: step.seconds_ago(limits.client_ttl_s),
            clients_max: limits.clients_max,
        };
        step.peers_mut().forget_remembered();
        record_connected_clients(step);
        step.record(record);
    }
    let created_before = step.seconds_ago(step.limits().empty_session_ttl_s);
    let query = Query::EmptySessions { created_before, limit: EMPTY_STEP };
    step.ask(query, Waiter::Sweep);
}

/// Whoever is connected is seen, often enough not to be forgotten.
fn record_connected_clients(step: &mut Step) {
    let quarter_ttl_ms = step.limits().client_ttl_s.saturating_mul(250);
    if step.now() < step.upkeep().clients_seen().plus_ms(quarter_ttl_ms) {
        return; // they were recorded not long ago
    }
    let now = step.now();
    step.upkeep_mut().set_clients_seen(now);
    let connected = step.peers().all_ready();
    for ready in connected.iter().filter(|ready| !ready.volatile) {
        record_client(step, ready);
    }
}

/// Old actions go. A turn that is running gets its head written first: what was streamed must not be lost.
fn trim(step: &mut Step) {
    if !step.is_log_long() {
        return; // not worth it yet
    }
    let through = step.oldest_kept().min(step.log().floor().0 + TRIM_STEP);
    let running: Vec<ChannelUri> = step.runs().chats().cloned().collect();
    for chat in running {
        step.mark_head(&chat);
    }
    step.trim_log(Seq(through));
}

/// The journal knows which sessions may be empty.
pub(crate) fn finish(step: &mut Step, answer: Option<&Result<Answer, ReadFailed>>) {
    let Some(Ok(Answer::EmptySessions(empty))) = answer else {
        return step.upkeep_mut().note_released(); // it is asked again by the next sweep
    };
    let most = usize::try_from(EMPTY_STEP).unwrap_or(usize::MAX);
    debug_assert!(empty.due.len() <= most, "no more than was asked for");
    if let Some(from) = empty.log_from {
        step.upkeep_mut().set_log_from(from);
    }
    for session in &empty.due {
        step.start_task(BackgroundTask::DisposeIfEmpty(session.clone()));
    }
    let ttl_ms = step.limits().empty_session_ttl_s.saturating_mul(1_000);
    let is_all = empty.due.len() < most;
    match empty.next_since {
        _ if !is_all => step.upkeep_mut().note_released(),
        // The journal looks for what is older than its age.
        Some(since) => {
            let due = since.plus_ms(ttl_ms.saturating_add(1));
            step.upkeep_mut().set_empty_due(due);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wire::Timestamp;

    use super::*;
    use crate::io::{HostFacts, Input, Output, Timer};
    use crate::journal_query::EmptySessions;
    use crate::limits::Limits;
    use crate::record::Boot;
    use crate::state::Kernel;

    const MINUTE_MS: i64 = 60_000;
    const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

    /// A kernel with a journal that answers at once, and a clock that goes from timer to timer.
    struct IdleHost {
        kernel: Kernel,
        timers: BTreeMap<(Timestamp, usize), Timer>,
        empty: EmptySessions,
        /// When something was read, and when something was written.
        reads: Vec<i64>,
        writes: Vec<i64>,
        /// Parts of the blob store.
        collected: Vec<u8>,
        /// Through which action the log was trimmed.
        trimmed: Vec<u64>,
    }

    impl IdleHost {
        fn boot() -> Self {
            Self::boot_from(Boot::default())
        }

        fn boot_from(boot: Boot) -> Self {
            let (kernel, output) =
                Kernel::boot(boot, HostFacts::default(), Limits::default(), Timestamp(0)).unwrap();
            let mut host = Self {
                kernel,
                timers: BTreeMap::new(),
                empty: EmptySessions::default(),
                reads: Vec::new(),
                writes: Vec::new(),
                collected: Vec::new(),
                trimmed: Vec::new(),
            };
            host.act(output, Timestamp(0));
            host
        }

        fn act(&mut self, output: Output, now: Timestamp) {
            if output.wrote {
                self.writes.push(now.0);
            }
            self.kernel.committed();
            let trims = output.records.iter().filter_map(|record| match record {
                Record::Trim { through } => Some(through.0),
                _ => None,
            });
            self.trimmed.extend(trims);
            for effect in output.effects {
                match effect {
                    Effect::WakeAt { timer, at } => {
                        self.timers.insert((at, self.timers.len()), timer);
                    }
                    Effect::Read { ticket, .. } => {
                        self.reads.push(now.0);
                        let answer = Ok(Answer::EmptySessions(self.empty.clone()));
                        let output = self.kernel.step(Input::Read { ticket, answer }, now);
                        self.act(output, now);
                    }
                    Effect::Collect { buckets, .. } => self.collected.extend(buckets),
                    other => panic!("a host that nobody uses does nothing else: {other:?}"),
                }
            }
        }

        fn run_until(&mut self, end: i64) {
            while let Some(entry) = self.timers.first_entry()
                && entry.key().0 <= Timestamp(end)
            {
                let now = entry.key().0;
                let timer = entry.remove();
                let output = self.kernel.step(Input::Woke(timer), now);
                self.act(output, now);
            }
        }
    }

    #[test]
    fn a_host_that_nobody_uses_reads_and_writes_nothing() {
        let mut host = IdleHost::boot();
        host.run_until(10 * MINUTE_MS);
        assert!(!host.reads.is_empty(), "what was left is looked at");
        let (reads, writes) = (host.reads.len(), host.writes.len());
        // One sweep while what came last is fresh, and one for what that has left.
        assert!(reads <= 2 && writes <= 2, "{reads} reads, {writes} writes");
        let last = host.reads.last().copied();
        assert!(last <= Some(MINUTE_MS), "nothing is asked later: {last:?}");
        assert_eq!(host.collected.len(), 256, "all parts, each once");
        host.run_until(50 * MINUTE_MS);
        assert_eq!((host.reads.len(), host.writes.len()), (reads, writes));
        // What was put just before is old enough after an hour, what was disposed of after a week.
        host.run_until(8 * DAY_MS);
        let a_day_to_a_week = |at: &&i64| (DAY_MS..7 * DAY_MS).contains(*at);
        assert_eq!(host.reads.iter().filter(a_day_to_a_week).count(), 0);
        assert_eq!(host.writes.iter().filter(a_day_to_a_week).count(), 0);
        assert!(host.timers.is_empty(), "nothing is left to wake it");
    }

    #[test]
    fn actions_that_are_too_old_go_and_newer_ones_stay() {
        let boot = Boot { seq: Seq(25_000), ..Boot::default() };
        let mut host = IdleHost::boot_from(boot);
        host.empty.log_from = Some(Seq(20_001));
        host.run_until(10 * MINUTE_MS);
        assert_eq!(host.trimmed, [10_000, 20_000], "in steps");
        assert_eq!(host.kernel.log().floor(), Seq(20_000));
        // Nothing is forgotten that was not recorded, whatever the journal says.
        let mut host = IdleHost::boot_from(Boot { seq: Seq(5), ..Boot::default() });
        host.empty.log_from = Some(Seq(90_000));
        host.run_until(10 * MINUTE_MS);
        assert_eq!(host.kernel.log().floor(), host.kernel.log().seq());
    }

    #[test]
    fn an_empty_session_is_looked_at_when_it_is_old_enough() {
        let mut host = IdleHost::boot();
        let created = Timestamp(20 * MINUTE_MS);
        host.empty.next_since = Some(created);
        host.run_until(10 * MINUTE_MS);
        let reads = host.reads.len();
        let ttl_ms = i64::try_from(Limits::default().empty_session_ttl_s).unwrap() * 1_000;
        host.run_until(created.0 + ttl_ms);
        let last = host.reads.last().copied();
        assert!(last < Some(created.0 + ttl_ms), "not before its time");
        host.run_until(created.0 + ttl_ms + 1);
        assert!(host.reads.len() > reads);
        assert_eq!(host.reads.last(), Some(&(created.0 + ttl_ms + 1)));
    }
}
