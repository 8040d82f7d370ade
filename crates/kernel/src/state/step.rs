//! A step: what one input causes. It owns the output, and it is the only way to change the kernel.
//!
//! Handlers read the kernel through it and change one owner at a time by its methods. What they change is noted for undoing by
//! the owner itself; what follows is noted here and done before the step ends; what is derived is computed once, at the end.

use std::sync::Arc;

use bytes::Bytes;
use wire::ChannelUri;

use super::{Kernel, Step};
use crate::background_task::BackgroundTask;
use crate::channels::{Channel, Chat, DamagedChannel, PlainChannel, Run, Session, SnapshotWindow};
use crate::follow_up::FollowUp;
use crate::io::{AgentFacts, Effect, FailureReply, Output, PeerId, RunId, Ticket, Timer};
use crate::journal_query::{Query, StoredChannel, TurnPage};
use crate::peers::{InboxOutcome, ParkedMessage, Peers};
use crate::queries::{AnswerMatch, Waiter};
use crate::received::Received;
use crate::record::{ChannelId, Record, Seq};
use crate::requests::{Request, Requests};
use crate::role::ClientHolder;

/// What was used more lately stays in memory however much there is.
const USED_JUST_NOW_MS: u64 = 5_000;

impl Step<'_> {
    // Channels.

    /// A chat in memory, to be changed; the change is undone with the step, and its head is written.
    pub(crate) fn chat_mut(&mut self, uri: &ChannelUri) -> &mut Chat {
        match self.kernel.channels.chat_mut(uri) {
            Some(chat) => chat,
            None => unreachable!("{uri} is a chat in memory"),
        }
    }

    /// A session in memory, to be changed; likewise.
    pub(crate) fn session_mut(&mut self, uri: &ChannelUri) -> &mut Session {
        self.note_changed(uri);
        match self.kernel.channels.session_mut(uri) {
            Some(session) => session,
            None => unreachable!("{uri} is a session in memory"),
        }
    }

    /// The run of a chat, to be changed. It is not stored.
    pub(crate) fn run_mut(&mut self, chat: &ChannelUri) -> Option<&mut Run> {
        self.kernel.channels.run_mut(chat)
    }

    /// Something people would call a change happened in a session: it moves up in the list.
    pub(crate) fn touch_modified(&mut self, session: &ChannelUri) {
        let now = self.now();
        self.session_mut(session).set_modified(now);
    }

    pub(crate) fn set_checkpoint(&mut self, chat: &ChannelUri, turn_id: String, data: Bytes) {
        self.kernel.channels.set_checkpoint(chat, turn_id, data);
    }

    /// What the active turn of a chat takes as JSON, counted anew.
    pub(crate) fn recount_active_turn(&mut self, chat: &ChannelUri) -> usize {
        self.kernel.channels.recount_active_turn(chat)
    }

    /// Replaces what was decided of one customization for all sessions, and for those in one directory.
    pub(crate) fn decide_for_all(
        &mut self,
        id: &str,
        global: Option<bool>,
        workspace: Option<(&str, Option<bool>)>,
    ) {
        self.kernel.channels.decide_for_all(id, global, workspace);
    }

    pub(crate) fn insert_channel(&mut self, uri: ChannelUri, channel: Channel) {
        self.kernel.channels.insert(uri, channel);
    }

    /// A changeset, annotations, a terminal or a watch in memory, to be changed; likewise. Its state changes by actions alone.
    pub(crate) fn plain_mut(&mut self, uri: &ChannelUri) -> &mut PlainChannel {
        match self.kernel.channels.plain_mut(uri) {
            Some(plain) => plain,
            None => unreachable!("{uri} is a plain channel in memory"),
        }
    }

    /// Makes another session the one that a chat belongs to.
    pub(crate) fn set_owner(&mut self, chat: &ChannelUri, session: &ChannelUri) {
        self.kernel.channels.set_owner(chat, session);
    }

    /// Writes the head of a channel at this place in the records: others after it refer to it.
    pub(crate) fn write_head(&mut self, uri: &ChannelUri) {
        let seq = self.seq();
        if let Some(head) = self.kernel.channels.head(uri, seq) {
            self.out.records.push(Record::Channel(head));
        }
    }

    /// Writes a channel that is not in memory.
    pub(crate) fn record_channel(&mut self, uri: &ChannelUri, channel: &Channel) {
        let seq = self.seq();
        if let Some(record) = channel.record(uri, seq) {
            self.out.records.push(Record::Channel(record));
        }
    }

    pub(crate) fn mark_head(&mut self, uri: &ChannelUri) {
        self.kernel.channels.mark_head(uri);
    }

    /// A channel leaves memory for good, and its subscriptions end.
    pub(crate) fn remove_channel(&mut self, uri: &ChannelUri) {
        self.kernel.channels.dispose(uri);
        self.kernel.recovery.remove_interrupted(uri);
        self.kernel.peers.end_subscriptions(uri);
    }

    /// A session or chat is disposed of.
    pub(crate) fn dispose_channel(&mut self, uri: &ChannelUri) {
        self.remove_channel(uri);
        self.effect(Effect::EndChat { chat: uri.clone() });
    }

    /// A stored channel comes into memory. Returns the URIs that were not there yet.
    pub(crate) fn install(
        &mut self,
        stored: StoredChannel,
    ) -> Result<Vec<ChannelUri>, DamagedChannel> {
        let now = self.now();
        let kernel = &mut *self.kernel;
        let installed = kernel.channels.install(stored, &kernel.facts.agents, now)?;
        for uri in &installed {
            if let Some(session) = self.kernel.channels.find_session(uri) {
                let clients = session.active_client_ids();
                self.kernel.active_clients.load(uri, clients);
            }
        }
        Ok(installed)
    }

    pub(crate) fn prepend_turns(&mut self, chat: ChannelId, before_n: u64, page: TurnPage) {
        self.kernel.channels.prepend_turns(chat, before_n, page);
    }

    pub(crate) fn snapshot(
        &mut self,
        uri: &ChannelUri,
        view: Option<u32>,
        bytes_max: usize,
    ) -> Option<SnapshotWindow> {
        let (seq, now) = (self.seq(), self.now());
        self.kernel.channels.snapshot(uri, view, bytes_max, seq, now)
    }

    /// While too much is in memory, channels leave it sooner. Those that were used just now stay: somebody may wait for several of
    /// them at once.
    pub(crate) fn make_room(&mut self) {
        let most = self.limits().loaded_bytes_max;
        if most > 0 && self.kernel.channels.loaded_bytes() > most {
            self.unload_unused_for(self.limits().channel_idle_ms.min(USED_JUST_NOW_MS));
        }
    }

    pub(crate) fn unload_idle(&mut self) {
        self.unload_unused_for(self.limits().channel_idle_ms);
    }

    fn unload_unused_for(&mut self, idle_ms: u64) {
        let now = self.now();
        self.kernel.replays.clear();
        let peers = &self.kernel.peers;
        let is_watched = |uri: &ChannelUri| !peers.watchers(uri).is_empty();
        let unloaded = self.kernel.channels.unload_idle(now, idle_ms, is_watched);
        for chat in unloaded {
            self.effect(Effect::UnloadChat { chat });
        }
    }

    // The log.

    pub(crate) fn next_seq(&mut self) -> Seq {
        self.kernel.log.next_seq()
    }

    pub(crate) fn trim_log(&mut self, through: Seq) {
        self.kernel.log.trim(through);
        self.record(Record::Trim { through });
    }

    // Peers and clients.

    pub(crate) fn peers_mut(&mut self) -> &mut Peers {
        &mut self.kernel.peers
    }

    pub(crate) fn offer_message(
        &mut self,
        peer: PeerId,
        received: Received,
    ) -> Option<InboxOutcome> {
        let kernel = &mut *self.kernel;
        kernel.peers.offer(peer, received, &kernel.limits)
    }

    pub(crate) fn end_current_message(&mut self, peer: PeerId) -> (Option<Received>, bool) {
        let kernel = &mut *self.kernel;
        kernel.peers.end_current(peer, &kernel.limits)
    }

    /// The current message of a peer waits for these reads.
    pub(crate) fn park_for_reads(
        &mut self,
        peer: PeerId,
        mut waiting: Box<ParkedMessage>,
        queries: Vec<Query>,
    ) {
        for query in queries {
            let ticket = self.ask(query, Waiter::Peer(peer));
            waiting.tickets.push(ticket);
        }
        self.kernel.peers.park_current(peer, waiting);
    }

    pub(crate) fn add_active_client(&mut self, session: &ChannelUri, client_id: &str) {
        self.kernel.active_clients.add(session, client_id);
    }

    pub(crate) fn remove_active_client(&mut self, session: &ChannelUri, client_id: &str) {
        self.kernel.active_clients.remove(session, client_id);
    }

    pub(crate) fn lose_active_client(&mut self, client_id: &str, holder: Option<ClientHolder>) {
        let now = self.now();
        self.kernel.active_clients.lose(client_id, now, holder);
    }

    pub(crate) fn find_active_client_again(&mut self, client_id: &str) {
        self.kernel.active_clients.find_again(client_id);
    }

    // Facts.

    /// What the host says of its agents. Not undone with the step: it is so whether it is recorded or not.
    pub(crate) fn set_agents(&mut self, agents: Vec<AgentFacts>) {
        let facts = Arc::make_mut(&mut self.kernel.facts);
        let before = std::mem::replace(&mut facts.agents, agents);
        for agent in &mut facts.agents {
            // The host reports what agents are; tokens come from clients.
            let mut before = before.iter();
            let known = before.find(|known| known.provider == agent.provider);
            agent.tokens = known.map(|known| known.tokens.clone()).unwrap_or_default();
        }
    }

    /// An agent has a token of somebody for a resource now, or none any more. Not undone: the agent has it whether anything is
    /// recorded or not.
    pub(crate) fn note_token(
        &mut self,
        provider: &str,
        principal: Option<&str>,
        resource: &str,
        is_there: bool,
    ) {
        let token = (principal.map(str::to_owned), resource.to_owned());
        let agents = Arc::make_mut(&mut self.kernel.facts).agents.iter_mut();
        for agent in agents.filter(|agent| agent.provider == provider) {
            if is_there {
                agent.tokens.insert(token.clone())
            } else {
                agent.tokens.remove(&token)
            };
        }
    }

    /// No agent has a token of a principal any more. Not undone, for the same reason.
    pub(crate) fn forget_tokens_of(&mut self, principal: &str) {
        let facts = Arc::make_mut(&mut self.kernel.facts);
        for agent in &mut facts.agents {
            agent.tokens.retain(|(owner, _)| owner.as_deref() != Some(principal));
        }
    }

    // Runs, requests, questions, housekeeping.

    /// Starts the run of a chat; returns its number.
    pub(crate) fn start_run(&mut self, chat: &ChannelUri) -> RunId {
        let run = self.kernel.runs.start(chat.clone());
        self.chat_mut(chat).start_run(run);
        run
    }

    /// Takes the run of a chat away: whatever it still says is dropped.
    pub(crate) fn take_run(&mut self, chat: &ChannelUri) -> Option<Run> {
        self.find_chat(chat)?.run()?;
        let run = self.chat_mut(chat).take_run()?;
        self.kernel.runs.end(run.id());
        Some(run)
    }

    pub(crate) fn stop_runs(&mut self) {
        self.kernel.runs.stop();
    }

    pub(crate) fn requests_mut(&mut self) -> &mut Requests {
        &mut self.kernel.requests
    }

    pub(crate) fn add_request(&mut self, request: Request) -> u64 {
        self.kernel.requests.add(request)
    }

    /// Asks the journal something for a waiter.
    pub(crate) fn ask(&mut self, query: Query, waiter: Waiter) -> Ticket {
        let kernel = &mut *self.kernel;
        let channels = &kernel.channels;
        let hidden = |chat| hidden_seq(channels, chat);
        let (ticket, send) = kernel.queries.ask(query, waiter, kernel.log.seq(), hidden);
        if let Some(query) = send {
            self.effect(Effect::Read { ticket, query });
        }
        ticket
    }

    /// What was asked before now is asked again: its answer may show rows that are removed by this step.
    pub(crate) fn outdate_reads(&mut self) {
        self.kernel.queries.outdate();
    }

    /// The journal answered a question.
    pub(crate) fn take_answered(&mut self, ticket: Ticket) -> AnswerMatch {
        let kernel = &mut *self.kernel;
        let channels = &kernel.channels;
        let hidden = |chat| hidden_seq(channels, chat);
        kernel.queries.answer(ticket, kernel.log.seq(), hidden)
    }

    pub(crate) fn start_work(&mut self, peer: PeerId) -> Ticket {
        self.kernel.queries.start_work(peer)
    }

    pub(crate) fn end_work(&mut self, ticket: Ticket) -> Option<PeerId> {
        self.kernel.queries.end_work(ticket)
    }

    pub(crate) fn recovery_mut(&mut self) -> &mut crate::recovery::Recovery {
        &mut self.kernel.recovery
    }

    pub(crate) fn upkeep_mut(&mut self) -> &mut crate::upkeep::Upkeep {
        &mut self.kernel.upkeep
    }

    /// Whether there is something to sweep by now.
    pub(crate) fn is_sweep_due(&mut self) -> bool {
        let is_log_long = self.is_log_long();
        let kernel = &mut *self.kernel;
        kernel.upkeep.is_due(kernel.now, &kernel.limits, is_log_long)
    }

    /// A sweep begins. Returns whether everything is to be looked at.
    pub(crate) fn begin_sweep(&mut self) -> bool {
        let kernel = &mut *self.kernel;
        kernel.upkeep.begin_sweep(kernel.now, &kernel.limits)
    }

    pub(crate) fn replays_mut(&mut self) -> &mut crate::replay_cache::ReplayCache {
        &mut self.kernel.replays
    }

    // Output.

    pub(crate) fn record(&mut self, record: Record) {
        self.out.records.push(record);
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.out.effects.push(effect);
    }

    pub(crate) fn wake_in(&mut self, timer: Timer, ms: u64) {
        let at = self.now().plus_ms(ms);
        self.effect(Effect::WakeAt { timer, at });
    }

    /// Adds a reply that is sent if this step cannot be written.
    pub(crate) fn reply_if_write_fails(&mut self, reply: FailureReply) {
        self.out.failure_replies.push(reply);
    }

    // What follows, and what is derived.

    pub(crate) fn follow_up(&mut self, follow_up: FollowUp) {
        self.follow_ups.push_back(follow_up);
    }

    pub(crate) fn start_task(&mut self, task: BackgroundTask) {
        self.follow_up(FollowUp::Task { task: Box::new(task), answer: None });
    }

    pub(crate) fn next_follow_up(&mut self) -> Option<FollowUp> {
        self.follow_ups.pop_front()
    }

    /// The derived state of a session or chat may have changed.
    pub(crate) fn note_changed(&mut self, uri: &ChannelUri) {
        if !self.changed.contains(uri) {
            self.changed.push(uri.clone());
        }
    }

    pub(crate) fn take_changed(&mut self) -> Vec<ChannelUri> {
        std::mem::take(&mut self.changed)
    }

    /// A turn began or asked for something: who had read the session has not any more (G-24).
    pub(crate) fn mark_unread(&mut self, session: &ChannelUri) {
        if !self.unread.contains(session) {
            self.unread.push(session.clone());
        }
    }

    pub(crate) fn take_unread(&mut self) -> Vec<ChannelUri> {
        std::mem::take(&mut self.unread)
    }

    /// Ends the step: everything that follows is done and everything derived is computed.
    pub(crate) fn finish(mut self) -> Output {
        assert!(self.follow_ups.is_empty(), "everything that follows is done");
        assert!(self.unread.is_empty(), "everything derived is computed");
        let kernel = self.kernel;
        let seq = kernel.log.seq();
        let heads = kernel.channels.take_heads(seq).into_iter();
        self.out.records.extend(heads.map(Record::Channel));
        let mut references = crate::references::references_of(&self.out.records);
        self.out.records.append(&mut references);
        let mut out = self.out;
        out.seq = seq;
        let many_deferred = kernel.peers.has_many_deferred() && kernel.unwritable().is_none();
        out.wrote = kernel.log.end_step() || !out.records.is_empty() || many_deferred;
        if out.wrote {
            kernel.upkeep.note_written(kernel.now);
            let deferred = kernel.peers.take_deferred();
            out.deferred = deferred.len();
            out.records.splice(0..0, deferred);
        }
        kernel.peers.end_step(out.wrote);
        kernel.upkeep.end_step();
        out.effects.extend(kernel.set_timers());
        out
    }
}

impl Kernel {
    /// Timers for housekeeping, where something is there to be looked after and none is set yet: whoever has nothing to do
    /// sleeps.
    fn set_timers(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        let holds_something = !self.channels.is_only_root() || !self.replays.is_empty();
        if self.upkeep.arm_idle(holds_something) {
            let at = self.now.plus_ms(self.limits.channel_idle_ms / 2);
            let timer = Timer::Idle;
            effects.push(Effect::WakeAt { timer, at });
        }
        let is_log_long = self.is_log_long();
        if let Some(at) = self.upkeep.arm(&self.limits, is_log_long) {
            let timer = Timer::Sweep;
            effects.push(Effect::WakeAt { timer, at });
        }
        effects
    }
}

fn hidden_seq(channels: &crate::channels::Channels, chat: ChannelId) -> Seq {
    channels.find_chat_by_id(chat).map_or(Seq(0), Chat::last_hidden_seq)
}
