//! The kernel: all channels as values, one order, one door.
//!
//! `step` takes one input and says what is to be recorded, spoken and done. It changes memory only; the host writes
//! the records before anything is heard, and calls [`Kernel::committed`] or [`Kernel::rolled_back`] accordingly.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use wire::state::{ConfigState, RootState};
use wire::{Action, ChannelUri, Incoming, Object, Timestamp};

use crate::calls::CachedReplay;
use crate::channel::{Channel, Watcher};
use crate::chore::Chore;
use crate::errand::Done;
use crate::io::{Effect, HostFacts, Input, Output, PeerId, RunId, Ticket, Timer};
use crate::limits::Limits;
use crate::load::Asked;
use crate::peers::Peer;
use crate::record::{Boot, ChannelId, ClientRecord, Duty, FloorRecord, Kind, Seq};
use crate::refer::Collection;
use crate::request::Request;
use crate::rollback::{Health, Undo};
use crate::tail::Tail;
use crate::turn::STOPPED;

/// Everything the host decides, and nothing it touches.
pub struct Kernel {
    pub(crate) limits: Limits,
    pub(crate) facts: HostFacts,
    pub(crate) now: Timestamp,
    pub(crate) seq: Seq,
    /// No action at or below this seq can be replayed.
    pub(crate) log_floor: Seq,
    pub(crate) tail: Tail,
    pub(crate) root: Arc<RootState>,
    pub(crate) root_snapshot: Option<Arc<crate::frame::Snapshot>>,
    /// Sessions and chats that are in memory.
    pub(crate) channels: BTreeMap<ChannelUri, Channel>,
    /// Who watches what, loaded or not.
    pub(crate) watchers: BTreeMap<ChannelUri, Vec<Watcher>>,
    pub(crate) peers: BTreeMap<PeerId, Peer>,
    /// Connected clients by id: one connection each (H-036).
    pub(crate) clients: BTreeMap<String, PeerId>,
    /// When a client that is active somewhere was last lost.
    pub(crate) lost: BTreeMap<String, Timestamp>,
    /// Sessions a client is active in, in memory or not.
    pub(crate) active: BTreeMap<String, BTreeSet<ChannelUri>>,
    pub(crate) asked: BTreeMap<Ticket, Asked>,
    /// Channels that are being read.
    pub(crate) loading: BTreeMap<ChannelUri, Ticket>,
    /// Who waits for what the host does with bodies.
    pub(crate) errands: BTreeMap<Ticket, PeerId>,
    /// What clients were asked and have not answered yet.
    pub(crate) requests: BTreeMap<u64, Request>,
    pub(crate) next_request: u64,
    /// How renders ended, counted.
    pub(crate) renders: BTreeMap<&'static str, u64>,
    pub(crate) replays: Vec<CachedReplay>,
    /// Clients that left a moment ago, with their floors, as the journal holds them.
    pub(crate) remembered: VecDeque<(ClientRecord, Vec<FloorRecord>)>,
    pub(crate) runs: BTreeMap<RunId, ChannelUri>,
    /// Chats whose turn has no agent any more and must be closed.
    pub(crate) orphans: BTreeSet<ChannelUri>,
    /// Sessions and chats disposed of a moment ago: what was read before must not bring them back.
    pub(crate) disposed: VecDeque<ChannelId>,
    pub(crate) next_ticket: u64,
    pub(crate) next_run: u64,
    /// Something was written since the last sweep.
    pub(crate) unswept: bool,
    pub(crate) collection: Collection,
    /// When connected clients were last recorded as seen.
    pub(crate) seen_written: Timestamp,
    /// The seq at the end of the last step.
    pub(crate) spoken_seq: Seq,
    pub(crate) health: Health,
    pub(crate) undo: Undo,
    pub(crate) stopping: bool,
    /// Clients whose stored floors are not true any more: they must initialize again.
    pub(crate) forgotten: BTreeSet<String>,
    /// Work that waits until something can be written again.
    pub(crate) postponed: Vec<Chore>,
    /// How often memory was rolled back.
    pub(crate) epoch: u64,
    /// What the current step says.
    pub(crate) out: Output,
    /// Channels whose head must be written with this step.
    pub(crate) dirty: BTreeSet<ChannelUri>,
    /// Sessions whose summary may have changed in this step.
    pub(crate) unpublished: BTreeSet<ChannelUri>,
}

impl Kernel {
    /// A kernel that goes on where the journal ends. The output is to be treated like that of a step.
    pub fn boot(boot: Boot, facts: HostFacts, limits: Limits, now: Timestamp) -> (Self, Output) {
        let agents: Vec<Value> = facts
            .agents
            .iter()
            .map(crate::io::AgentFacts::published)
            .collect();
        let config = ConfigState {
            schema: facts.config_schema.clone(),
            values: facts.config_values.clone(),
            extra: Object::new(),
        };
        let mut root = RootState {
            agents,
            active_sessions: Some(0),
            config: Some(config),
            extra: facts.root_extra(),
        };
        let stored = boot
            .root
            .and_then(|json| serde_json::from_slice(&json).ok());
        let stored = stored.and_then(|value: Value| RootState::from_value(value).ok());
        let agents_now = std::mem::take(&mut root.agents);
        let had_root = stored
            .as_ref()
            .is_some_and(|stored| stored.extra == root.extra);
        if let Some(stored) = stored {
            root.agents = stored.agents;
            root.active_sessions = stored.active_sessions;
            let values = stored
                .config
                .map(|config| config.values)
                .unwrap_or_default();
            if let Ok(values) = crate::config::known_values(&facts.config_schema, &values)
                && let Some(config) = root.config.as_mut()
            {
                config.values.extend(values);
            }
        } else {
            root.agents.clone_from(&agents_now);
        }
        let mut kernel = Self {
            tail: Tail::new(boot.seq, limits.tail_bytes),
            limits,
            facts,
            now,
            seq: boot.seq,
            log_floor: boot.log_floor,
            root: Arc::new(root),
            root_snapshot: None,
            channels: BTreeMap::new(),
            watchers: BTreeMap::new(),
            peers: BTreeMap::new(),
            clients: BTreeMap::new(),
            lost: BTreeMap::new(),
            active: BTreeMap::new(),
            asked: BTreeMap::new(),
            loading: BTreeMap::new(),
            errands: BTreeMap::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            renders: BTreeMap::new(),
            replays: Vec::new(),
            remembered: VecDeque::new(),
            runs: BTreeMap::new(),
            orphans: BTreeSet::new(),
            disposed: VecDeque::new(),
            next_ticket: 0,
            next_run: 0,
            unswept: true,
            collection: Collection::default(),
            seen_written: Timestamp(0),
            spoken_seq: boot.seq,
            health: Health::Writable,
            undo: Undo::since(boot.seq),
            stopping: false,
            forgotten: BTreeSet::new(),
            postponed: Vec::new(),
            epoch: 0,
            out: Output::default(),
            dirty: BTreeSet::new(),
            unpublished: BTreeSet::new(),
        };
        if kernel.root.agents != agents_now {
            kernel.act_root(
                Action::host(
                    "root/agentsChanged",
                    serde_json::json!({"agents": agents_now}),
                ),
                None,
            );
        } else if !had_root {
            kernel.dirty.insert(ChannelUri::root());
        }
        if let Some(config) = &kernel.root.config
            && config.values != kernel.facts.config_values
        {
            kernel.out.effects.push(Effect::Configure {
                values: config.values.clone(),
            });
        }
        for (uri, kind, duty) in boot.duties {
            kernel.take_up_duty(uri, kind, duty);
        }
        kernel.wake_in(Timer::Idle, kernel.limits.channel_idle_ms / 2);
        kernel.wake_in(Timer::Sweep, kernel.limits.sweep_ms);
        let out = kernel.finish_step();
        (kernel, out)
    }

    fn take_up_duty(&mut self, uri: ChannelUri, kind: Kind, duty: Duty) {
        match kind {
            Kind::Chat if duty.open_turn => self.begin_chore(Chore::CloseOrphan(uri)),
            Kind::Session if duty.creating || duty.active_clients => {
                self.begin_chore(Chore::Revive(uri))
            }
            Kind::Chat | Kind::Session | Kind::Root => {}
        }
    }

    /// One input, at one moment, and all that follows from it.
    pub fn step(&mut self, input: Input, now: Timestamp) -> Output {
        self.now = now.max(self.now); // a clock that jumps back must not make time run backwards
        match input {
            Input::Connected { peer } => {
                self.peers.insert(peer, Peer::new());
            }
            Input::Received {
                peer,
                message,
                bytes,
            } => self.receive(peer, message, bytes),
            Input::Malformed { peer, malformed } => {
                self.say(peer, crate::Frame::error(&malformed.id, &malformed.error));
            }
            Input::Disconnected { peer } => self.disconnected(peer),
            Input::Read { ticket, answer } => self.read(ticket, answer),
            Input::Completed { ticket, completed } => {
                self.errand_done(ticket, Done::Completed(completed));
            }
            Input::Fetched { ticket, fetched } => {
                self.errand_done(ticket, Done::Fetched(fetched));
            }
            Input::Kept { ticket, kept } => self.errand_done(ticket, Done::Kept(kept)),
            Input::Composed { ticket, composed } => {
                self.errand_done(ticket, Done::Composed(composed));
            }
            Input::SessionStarted { session, result } => {
                self.begin_chore(Chore::SessionStarted(session, result));
            }
            Input::OpeningPrompt { session, sections } => self.render_opening(&session, sections),
            Input::Agent { run, event } => self.agent_says(run, event),
            Input::Woke(timer) => self.woke(timer),
            Input::Probed { writable } => self.probed(writable),
            Input::Stopping => self.stop(),
        }
        self.finish_step()
    }

    fn woke(&mut self, timer: Timer) {
        match timer {
            Timer::Idle => {
                self.let_go_of_idle();
                self.wake_in(Timer::Idle, self.limits.channel_idle_ms / 2);
            }
            Timer::Sweep => {
                self.sweep();
                // There is more to trim than one step takes: come back soon.
                let behind = self.is_log_long();
                let soon = self.limits.sweep_ms.min(1_000);
                self.wake_in(
                    Timer::Sweep,
                    if behind { soon } else { self.limits.sweep_ms },
                );
            }
            Timer::Grace { session, client_id } => {
                self.begin_chore(Chore::EndGrace { session, client_id })
            }
            Timer::ClientTool { run, tool_call_id } => {
                if self.unwritable().is_none() {
                    self.client_tool_timed_out(run, &tool_call_id);
                }
            }
            Timer::Request { request } => self.request_timed_out(request),
            Timer::Probe => self.out.effects.push(Effect::Probe),
        }
    }

    /// Running turns end as resumable errors, so that nobody watches a spinner while the host is down.
    fn stop(&mut self) {
        self.stopping = true;
        // Workers were started after the turns they work for: they end first, in an error of their own.
        let running: Vec<ChannelUri> = self.runs.values().rev().cloned().collect();
        for chat in running {
            self.end_without_agent(&chat, "hostStopped", STOPPED);
        }
    }

    pub(crate) fn next_seq(&mut self) -> Seq {
        self.seq = Seq(self.seq.0 + 1);
        self.seq
    }

    pub(crate) fn wake_in(&mut self, timer: Timer, ms: u64) {
        let at = self.now.plus_ms(ms);
        self.out.effects.push(Effect::WakeAt { timer, at });
    }

    fn finish_step(&mut self) -> Output {
        self.publish_changed();
        self.write_heads();
        self.refer();
        let mut out = std::mem::take(&mut self.out);
        out.seq = self.seq;
        out.wrote = !out.records.is_empty() || self.spoken_seq != self.seq;
        self.spoken_seq = self.seq;
        self.unswept |= out.wrote;
        self.undo.close_step(out.wrote);
        out
    }

    /// The last batch is in the journal.
    pub fn committed(&mut self) {
        self.undo = Undo::since(self.seq);
    }

    /// Whether boot has done what it can: no question is out and no turn waits to be closed, or nothing can be written.
    pub fn is_settled(&self) -> bool {
        self.unwritable().is_some() || (self.asked.is_empty() && self.orphans.is_empty())
    }

    /// Sequence number of the last step.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// A channel's state as its subscribers know it, if it is in memory. For checkers.
    pub fn state_of(&self, uri: &ChannelUri) -> Option<Value> {
        if uri.is_root() {
            return Some(wire::action::to_value(&*self.root));
        }
        self.channels.get(uri).map(Channel::value)
    }

    /// Turns that run, by chat. For checkers.
    pub fn running(&self) -> Vec<(RunId, ChannelUri)> {
        self.runs
            .iter()
            .map(|(run, chat)| (*run, chat.clone()))
            .collect()
    }

    fn receive(&mut self, peer: PeerId, message: Incoming, bytes: usize) {
        // `ping` and answers pass at once, whatever the peer waits for (house, "Loading"; H-010).
        match message {
            Incoming::Request { id, method, .. } if method == "ping" => {
                self.say(peer, crate::Frame::value(&id, &Value::Null));
            }
            Incoming::Response { id, result } => self.answered(peer, &id, result, bytes),
            Incoming::Request { .. } | Incoming::Notification { .. } => {
                self.take_or_park(peer, message, bytes)
            }
        }
    }
}
