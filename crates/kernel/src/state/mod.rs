//! The kernel's state: the owners, and what everybody may read of them. Only a [`Step`] changes them.

mod emit;
mod failed_step;
mod rollback;
mod step;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};
use wire::state::RootState;
use wire::{ChannelUri, Timestamp};

pub(crate) use emit::Sender;

use crate::active_clients::ActiveClients;
use crate::background_task::BackgroundTask;
use crate::channels::{Channels, Chat, Enablement, PlainChannel, Session};
use crate::follow_up::FollowUp;
use crate::io::{AgentFacts, HostFacts, Output, RunId};
use crate::limits::Limits;
use crate::log::Log;
use crate::peers::{NegotiatedPeer, Peers};
use crate::queries::Queries;
use crate::record::{ChannelId, FloorRecord, Seq};
use crate::recovery::Recovery;
use crate::replay_cache::ReplayCache;
use crate::requests::Requests;
use crate::runs::Runs;
use crate::upkeep::Upkeep;

/// At most this many seqs are forgotten in one step: trimming must not stall everyone.
pub(crate) const TRIM_STEP: u64 = 10_000;

/// Everything the host decides, and nothing it touches.
pub struct Kernel {
    limits: Arc<Limits>,
    facts: Arc<HostFacts>,
    now: Timestamp,
    log: Log,
    channels: Channels,
    peers: Peers,
    active_clients: ActiveClients,
    runs: Runs,
    requests: Requests,
    queries: Queries,
    recovery: Recovery,
    upkeep: Upkeep,
    replays: ReplayCache,
    /// Steps since the last commit.
    uncommitted: usize,
}

/// What one input causes, while it is worked out: the output, and the only way to change the kernel.
pub(crate) struct Step<'k> {
    kernel: &'k mut Kernel,
    out: Output,
    /// Sessions and chats whose derived state may have changed, in the order they did.
    changed: Vec<ChannelUri>,
    /// Sessions that became unread (G-24).
    unread: Vec<ChannelUri>,
    follow_ups: VecDeque<FollowUp>,
}

impl Deref for Step<'_> {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        self.kernel
    }
}

impl<'k> Step<'k> {
    fn new(kernel: &'k mut Kernel) -> Self {
        Self {
            kernel,
            out: Output::default(),
            changed: Vec::new(),
            unread: Vec::new(),
            follow_ups: VecDeque::new(),
        }
    }
}

impl Kernel {
    pub(crate) fn new(
        facts: Arc<HostFacts>,
        limits: Arc<Limits>,
        now: Timestamp,
        log: Log,
        root: RootState,
        enablement: Enablement,
    ) -> Self {
        Self {
            channels: Channels::new(root, enablement, &limits),
            limits,
            facts,
            now,
            log,
            peers: Peers::default(),
            active_clients: ActiveClients::default(),
            runs: Runs::default(),
            requests: Requests::default(),
            queries: Queries::default(),
            recovery: Recovery::default(),
            upkeep: Upkeep::beginning_at(now),
            replays: ReplayCache::default(),
            uncommitted: 0,
        }
    }

    /// Has the root's state in common with other kernels as long as it is the same; `known` are those that some have.
    pub fn share_root(&mut self, known: &mut Vec<Arc<RootState>>) {
        self.channels.share_root(known);
    }

    /// Begins a step at a moment. A clock that jumps back must not make time run backwards.
    pub(crate) fn begin_step(&mut self, now: Timestamp) -> Step<'_> {
        self.now = now.max(self.now);
        self.number_step(self.uncommitted);
        self.uncommitted += 1;
        Step::new(self)
    }

    /// What is changed from now on belongs to this step since the last commit.
    fn number_step(&mut self, step: usize) {
        self.channels.begin_step(step);
        self.peers.begin_step(step);
        self.active_clients.begin_step(step);
        self.recovery.begin_step(step);
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn facts(&self) -> &HostFacts {
        &self.facts
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether enough actions are older than what is kept: trimming looks at every channel, so not for a few.
    pub(crate) fn is_log_long(&self) -> bool {
        let enough = TRIM_STEP.min(self.limits.retention_actions / 10).max(1);
        let floor = self.log.floor().0;
        self.oldest_kept() >= floor.saturating_add(enough) || self.too_old() > floor
    }

    /// The last action that is too old to be kept, by what the journal said of days.
    fn too_old(&self) -> u64 {
        self.upkeep.log_from().0.saturating_sub(1).min(self.log.seq().0)
    }

    pub(crate) fn oldest_kept(&self) -> u64 {
        let kept = self.limits.retention_actions;
        self.log.seq().0.saturating_sub(kept).max(self.too_old())
    }

    /// A very long time ago is the beginning of time, not the future.
    pub(crate) fn seconds_ago(&self, seconds: u64) -> Timestamp {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        Timestamp(self.now.0.saturating_sub(seconds.saturating_mul(1_000)))
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn channels(&self) -> &Channels {
        &self.channels
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }

    pub(crate) fn active_clients(&self) -> &ActiveClients {
        &self.active_clients
    }

    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }

    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    pub(crate) fn upkeep(&self) -> &Upkeep {
        &self.upkeep
    }

    pub(crate) fn replays(&self) -> &ReplayCache {
        &self.replays
    }

    /// The reason to refuse what must be written, if nothing can be.
    pub(crate) fn unwritable(&self) -> Option<String> {
        self.recovery.unwritable()
    }

    pub(crate) fn find_chat(&self, uri: &ChannelUri) -> Option<&Chat> {
        self.channels.find_chat(uri)
    }

    pub(crate) fn find_session(&self, uri: &ChannelUri) -> Option<&Session> {
        self.channels.find_session(uri)
    }

    /// A changeset, annotations, a terminal or a watch that is in memory.
    pub(crate) fn find_plain(&self, uri: &ChannelUri) -> Option<&PlainChannel> {
        self.channels.find_plain(uri)
    }

    /// A chat that is in memory: the caller has made sure of it.
    pub(crate) fn chat(&self, uri: &ChannelUri) -> &Chat {
        match self.channels.find_chat(uri) {
            Some(chat) => chat,
            None => unreachable!("{uri} is a chat in memory"),
        }
    }

    /// A session that is in memory: the caller has made sure of it, or has one of its chats.
    pub(crate) fn session(&self, uri: &ChannelUri) -> &Session {
        match self.channels.find_session(uri) {
            Some(session) => session,
            None => unreachable!("{uri} is a session in memory"),
        }
    }

    /// The session of a chat that is in memory.
    pub(crate) fn session_of(&self, chat: &ChannelUri) -> &Session {
        self.session(self.chat(chat).session())
    }

    /// The number of a channel that is in memory.
    pub(crate) fn id_of(&self, uri: &ChannelUri) -> ChannelId {
        match self.channels.id_of(uri) {
            Some(id) => id,
            None => unreachable!("{uri} is in memory"),
        }
    }

    /// The id of the turn that runs in a chat.
    pub(crate) fn active_turn_id(&self, chat: &ChannelUri) -> Option<String> {
        self.channels.find_chat(chat)?.active_turn_id().map(str::to_owned)
    }

    pub(crate) fn role(&self, peer: crate::io::PeerId) -> crate::role::Role {
        self.peers.role(peer)
    }

    pub(crate) fn ready(&self, peer: crate::io::PeerId) -> Option<&NegotiatedPeer> {
        self.peers.ready(peer)
    }

    /// What is known of the agent of a provider.
    pub(crate) fn find_agent(&self, provider: &str) -> Option<&AgentFacts> {
        let mut agents = self.facts.agents.iter();
        agents.find(|agent| agent.provider == provider)
    }

    // For the host and for checkers.

    /// Sequence number of the last step.
    pub fn seq(&self) -> Seq {
        self.log.seq()
    }

    /// Whether boot has done what it can: no question is out and no turn waits to be closed, or nothing can be written.
    pub fn is_settled(&self) -> bool {
        let busy = !self.queries.is_empty() || self.recovery.is_interrupted();
        self.unwritable().is_some() || !busy
    }

    /// A channel's state as its subscribers know it, if it is in memory.
    pub fn state_of(&self, uri: &ChannelUri) -> Option<Value> {
        self.channels.value_of(uri)
    }

    /// Whether a run still works on a turn: whatever another one says changes nothing.
    pub fn is_working(&self, run: RunId) -> bool {
        self.runs.chat_of(run).is_some()
    }

    /// Turns that run, by chat.
    pub fn running(&self) -> Vec<(RunId, ChannelUri)> {
        self.runs.iter().map(|(run, chat)| (run, chat.clone())).collect()
    }

    /// How often renders ended in which outcome, by [`crate::Transform::outcome_name`].
    pub fn renders(&self) -> &BTreeMap<&'static str, u64> {
        self.upkeep.renders()
    }

    /// Everything that a failed write must leave as it was, for checkers: a kernel that starts from the same journal with the
    /// same connections has the same digest.
    pub fn digest(&self) -> Value {
        // Every field is named: whoever adds one decides here whether it is in the digest.
        let Self {
            log,
            channels,
            peers,
            active_clients,
            runs,
            requests,
            // Reads that wait and work to catch up on are covered by the tasks below.
            queries: _,
            recovery: _,
            // The host's own, never undone.
            limits: _,
            facts: _,
            now: _,
            // When housekeeping is due depends on when it was last done; replays are a cache.
            upkeep: _,
            replays: _,
            uncommitted: _,
        } = self;
        let (states, private) = channels.digest();
        let running = runs.chats().map(ChannelUri::to_string);
        json!({
            "seq": log.seq().0,
            "logFloor": log.floor().0,
            "root": wire::action::to_value(channels.root()),
            "enablement": wire::action::to_value(channels.enablement()),
            "channels": states,
            "privateRecords": private,
            "peers": peers.digest(),
            "activeClients": active_clients.digest(),
            "running": running.collect::<Vec<_>>(),
            "requests": requests.count_for_runs(),
            "watchers": peers.watcher_counts(),
            "chatsToClose": self.chats_to_close(),
            "sessionsToRevive": self.sessions_to_revive(),
        })
    }

    /// Sessions that boot is still reading: who is active in them is not known yet.
    fn sessions_to_revive(&self) -> BTreeSet<&str> {
        let tasks = self.queries.waiting_tasks();
        let sessions = tasks.filter_map(|task| match task {
            BackgroundTask::ReviveSession(session) => Some(session.as_str()),
            _ => None,
        });
        sessions.collect()
    }

    fn chats_to_close(&self) -> BTreeSet<&str> {
        let reading = self.queries.waiting_tasks().filter_map(|task| match task {
            BackgroundTask::CloseInterruptedTurn(chat) => Some(chat),
            _ => None,
        });
        self.recovery.chats_to_close().chain(reading).map(ChannelUri::as_str).collect()
    }

    /// What the journal must hold of every connected client whose rows count as true, for checkers.
    pub fn stored_floors(&self) -> Vec<(String, Vec<FloorRecord>)> {
        self.peers.stored_floors()
    }
}
