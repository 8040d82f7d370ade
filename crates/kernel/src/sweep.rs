//! Housekeeping: empty sessions, old actions, clients that never came back (G-20, G-28).

use wire::{ChannelUri, Timestamp};

use crate::Kernel;
use crate::chore::Chore;
use crate::io::ReadFailed;
use crate::load::{Memo, Waiter};
use crate::peers::Ready;
use crate::record::{Answer, Query, Record, Seq};

/// At most this many seqs are forgotten in one step: trimming must not stall the house.
const TRIM_STEP: u64 = 10_000;
/// At most this many empty sessions are looked at in one sweep.
const EMPTY_STEP: u32 = 512;

impl Kernel {
    pub(crate) fn sweep(&mut self) {
        if self.unwritable().is_some() {
            return;
        }
        self.trim();
        self.collect(self.unswept);
        if self.unswept {
            self.unswept = false;
            let before = |seconds: u64| self.seconds_ago(seconds);
            let record = Record::Sweep {
                disposed_before: before(self.limits.retention_disposed_s),
                clients_before: before(self.limits.client_ttl_s),
                clients_max: self.limits.clients_max,
            };
            self.remembered.clear(); // the journal decides who is remembered for longer
            self.see_connected_clients();
            self.out.records.push(record);
        }
        let created_before = self.seconds_ago(self.limits.empty_session_ttl_s);
        let query = Query::EmptySessions {
            created_before,
            limit: EMPTY_STEP,
        };
        self.ask(vec![query], Waiter::Sweep, Memo::default());
    }

    /// A very long time ago is the beginning of time, not the future.
    pub(crate) fn seconds_ago(&self, seconds: u64) -> Timestamp {
        let ms = i64::try_from(seconds)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000);
        Timestamp(self.now.0.saturating_sub(ms))
    }

    /// Whoever is connected is seen, often enough not to be forgotten.
    fn see_connected_clients(&mut self) {
        if self.now
            < self
                .seen_written
                .plus_ms(self.limits.client_ttl_s.saturating_mul(250))
        {
            return;
        }
        self.seen_written = self.now;
        let connected: Vec<Ready> = self
            .clients
            .values()
            .filter_map(|peer| self.ready(*peer))
            .cloned()
            .collect();
        for ready in connected.iter().filter(|ready| !ready.volatile) {
            self.record_client(ready);
        }
    }

    /// Whether enough actions are older than what is kept: trimming looks at every channel, so not for a few.
    pub(crate) fn is_log_long(&self) -> bool {
        let enough = TRIM_STEP.min(self.limits.retention_actions / 10).max(1);
        self.kept_from() >= self.log_floor.0.saturating_add(enough)
    }

    fn kept_from(&self) -> u64 {
        self.seq.0.saturating_sub(self.limits.retention_actions)
    }

    /// Old actions go. A turn that is running gets its head written first: what was streamed must not be lost.
    fn trim(&mut self) {
        if !self.is_log_long() {
            return;
        }
        let through = self.kept_from().min(self.log_floor.0 + TRIM_STEP);
        let running: Vec<ChannelUri> = self.runs.values().cloned().collect();
        self.dirty.extend(running);
        self.log_floor = Seq(through);
        self.out.records.push(Record::Trim {
            through: Seq(through),
        });
    }

    pub(crate) fn sweep_heard(&mut self, answer: Option<&Result<Answer, ReadFailed>>) {
        if let Some(Ok(Answer::EmptySessions(sessions))) = answer {
            for session in sessions {
                self.begin_chore(Chore::DisposeIfEmpty(session.clone()));
            }
        }
    }

    /// Nobody said anything in it, nobody is there, and whoever made it is gone.
    pub(crate) fn dispose_if_empty(&mut self, uri: &ChannelUri) {
        let Some(session) = self.session(uri) else {
            return;
        };
        let watched = |uri: &ChannelUri| {
            self.watchers
                .get(uri)
                .is_some_and(|watchers| !watchers.is_empty())
        };
        let chats = session
            .state
            .chats
            .iter()
            .filter_map(|chat| ChannelUri::parse(&chat.resource).ok());
        let busy = session.had_turn
            || !session.waiting.is_empty()
            || !session.state.active_clients.is_empty()
            || session
                .creator
                .as_ref()
                .is_some_and(|creator| self.clients.contains_key(creator))
            || watched(uri)
            || chats.into_iter().any(|chat| watched(&chat));
        if !busy {
            self.dispose_session(uri);
        }
    }
}
