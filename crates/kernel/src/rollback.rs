//! When the journal cannot be written (G-15): nothing of the batch was heard, so memory goes back to what the journal
//! holds. Channels that changed leave memory and are loaded again when somebody needs them.

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::rpc::code;
use wire::state::RootState;
use wire::{ChannelUri, RpcError, Timestamp};

use crate::Kernel;
use crate::channel::{Body, Watcher};
use crate::chore::Chore;
use crate::frame::Frame;
use crate::io::{Effect, Output, Owed, PeerId, Timer};
use crate::peers::{Stage, Subscription};
use crate::record::{ChannelId, Seq};
use crate::speak::Sender;

/// Whether the journal takes writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    Writable,
    Failing(String),
}

/// What the steps since the last commit changed beside channels.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    /// The last seq that is in the journal.
    pub seq: Seq,
    /// Some step since then must be written.
    wrote: bool,
    touched: BTreeSet<ChannelUri>,
    root: Option<Arc<RootState>>,
    pub watched: Vec<(ChannelUri, PeerId, Option<Watcher>, Option<Subscription>)>,
    pub admitted: Vec<PeerId>,
    pub disposed: Vec<ChannelId>,
    /// Where clients were active, and when they were lost.
    pub active: Vec<(ChannelUri, String, bool, Option<Timestamp>)>,
    /// Chores that were done: they are done again when writing works.
    pub chores: Vec<Chore>,
    /// Clients whose rows were made true.
    pub rewritten: Vec<String>,
}

impl Undo {
    /// Nothing changed yet since `seq`, which is in the journal.
    pub fn since(seq: Seq) -> Self {
        Self {
            seq,
            ..Self::default()
        }
    }

    /// What was answered before the first step that must be written stands, whatever happens to the batch.
    pub fn close_step(&mut self, wrote: bool) {
        self.wrote |= wrote;
        if !self.wrote {
            self.watched.clear();
            self.admitted.clear();
        }
    }

    pub fn touch(&mut self, uri: &ChannelUri) {
        if !self.touched.contains(uri) {
            self.touched.insert(uri.clone());
        }
    }

    pub fn keep_root(&mut self, root: &Arc<RootState>) {
        if self.root.is_none() {
            self.root = Some(Arc::clone(root));
        }
    }
}

impl Kernel {
    /// The outputs since the last commit could not be written. What comes back is to be spoken and done instead.
    pub fn rolled_back(&mut self, outputs: Vec<Output>, why: &str) -> Output {
        let written = Undo::since(self.undo.seq);
        let undo = std::mem::replace(&mut self.undo, written);
        self.seq = undo.seq;
        self.spoken_seq = undo.seq;
        self.tail.cut_back(undo.seq);
        if let Some(root) = undo.root {
            self.root = root;
            self.root_snapshot = None;
        }
        let first_failing = self.health == Health::Writable;
        let mut touched = undo.touched;
        if first_failing {
            // While nothing can be recorded no agent works, not even one that is silent (G-15).
            touched.extend(self.runs.values().cloned());
        }
        // A chat is never in memory without its session.
        let chats = self
            .channels
            .iter()
            .filter(|(_, channel)| match &channel.body {
                Body::Chat(chat) => touched.contains(&chat.session),
                Body::Session(_) => false,
            });
        let chats: Vec<ChannelUri> = chats.map(|(uri, _)| uri.clone()).collect();
        touched.extend(chats);
        for uri in touched {
            self.evict(&uri);
        }
        for (uri, peer, watcher, subscription) in undo.watched.into_iter().rev() {
            let Some(state) = self.peers.get_mut(&peer) else {
                continue;
            };
            match subscription {
                Some(subscription) => state.subscriptions.insert(uri.clone(), subscription),
                None => state.subscriptions.remove(&uri),
            };
            self.set_watcher(&uri, peer, watcher);
        }
        for (session, client_id, was, lost) in undo.active.into_iter().rev() {
            let sessions = self.active.entry(client_id.clone()).or_default();
            if was {
                sessions.insert(session);
            } else {
                sessions.remove(&session);
            }
            if sessions.is_empty() {
                self.active.remove(&client_id);
            }
            if let Some(lost) = lost.filter(|_| !self.clients.contains_key(&client_id)) {
                self.lost.insert(client_id, lost);
            }
        }
        self.disposed.retain(|id| !undo.disposed.contains(id));
        self.postponed.extend(undo.chores);
        for client_id in undo.rewritten {
            if self.clients.contains_key(&client_id) {
                self.mark_volatile(&client_id);
            } else {
                self.forgotten.insert(client_id);
            }
        }
        self.epoch += 1;
        self.replays.clear();
        self.remembered.clear();
        for peer in undo.admitted {
            self.dismiss(peer);
        }
        self.health = Health::Failing(why.to_owned());
        let mut nothing_lost_yet = true;
        for output in outputs {
            nothing_lost_yet &= !output.wrote;
            if nothing_lost_yet {
                self.out.frames.extend(output.frames);
                self.out.effects.extend(output.effects);
                continue;
            }
            // What asks for no answer of its own but says something (a pong, a parse error) shows no state: it stands.
            if !output.wrote && output.owed.is_empty() {
                self.out.frames.extend(output.frames);
            }
            for owed in output.owed {
                self.tell_unrecorded(owed, why);
            }
            // Questions, timers and stops stand; what was to follow from a record that is not there does not.
            self.out
                .effects
                .extend(output.effects.into_iter().filter(|effect| {
                    !matches!(
                        effect,
                        Effect::RunTurn(_)
                            | Effect::Reply { .. }
                            | Effect::StartSession { .. }
                            | Effect::RecordRender { .. }
                            | Effect::Configure { .. }
                    )
                }));
        }
        if first_failing {
            self.wake_in(Timer::Probe, self.limits.journal_retry_ms);
        }
        let mut out = std::mem::take(&mut self.out);
        out.seq = self.seq;
        self.dirty.clear();
        out
    }

    /// Takes a channel out of memory together with its run; a turn that was open in the journal is closed later.
    fn evict(&mut self, uri: &ChannelUri) {
        let run = self
            .chat(uri)
            .and_then(|chat| chat.run.as_ref())
            .map(|run| run.id);
        if let Some(run) = run {
            self.runs.remove(&run);
            self.out.effects.push(Effect::StopTurn { run });
        }
        // Its turn may be open in the journal; of a session this means nothing and does no harm.
        self.orphans.insert(uri.clone());
        self.channels.remove(uri);
    }

    fn dismiss(&mut self, peer: PeerId) {
        if let Some(state) = self.peers.get_mut(&peer) {
            if let Stage::Ready(ready) = &state.stage {
                self.clients.remove(&ready.client_id);
            }
            state.stage = Stage::New;
            state.subscriptions.clear();
            state.served.clear();
        }
    }

    fn tell_unrecorded(&mut self, owed: Owed, why: &str) {
        match owed {
            Owed::Answer { peer, id } => {
                let error = self.unwritable_error(why);
                self.say(peer, Frame::error(&id, &error));
            }
            Owed::Refusal {
                peer,
                channel,
                action,
                origin,
            } => {
                let reason = unwritable_reason(why);
                self.refuse(&Sender { peer, origin }, &channel, &action.whole(), &reason);
            }
        }
    }

    pub(crate) fn unwritable_error(&self, why: &str) -> RpcError {
        RpcError::new(code::INTERNAL_ERROR, unwritable_reason(why))
    }

    /// The reason to refuse what must be written, if nothing can be.
    pub(crate) fn unwritable(&self) -> Option<String> {
        match &self.health {
            Health::Writable => None,
            Health::Failing(why) => Some(unwritable_reason(why)),
        }
    }

    pub(crate) fn probed(&mut self, writable: bool) {
        if !writable {
            self.wake_in(Timer::Probe, self.limits.journal_retry_ms);
            return;
        }
        self.health = Health::Writable;
        self.rewrite_volatile_clients();
        for chat in std::mem::take(&mut self.orphans) {
            self.begin_chore(Chore::CloseOrphan(chat));
        }
        for chore in std::mem::take(&mut self.postponed) {
            self.begin_chore(chore);
        }
    }
}

fn unwritable_reason(why: &str) -> String {
    format!("nothing can be recorded right now, so nothing was changed: {why}")
}
