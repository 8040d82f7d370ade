//! A chat in memory: its state as clients know it, the window of its turns, and what only the host knows of it.
//!
//! Promises: every turn in the state has its number in the journal; a chat has at most one run, and only while a turn is
//! active.

mod waiting;
mod window;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use wire::reduce::{Reduced, reduce_chat};
use wire::state::{ChatState, Outcome, Turn, TurnList};
use wire::{Action, ChannelUri, Timestamp};

use super::chat_private::ChatPrivate;
use super::run::Run;
use crate::author::Author;
use crate::io::{Compacted, RunId};
use crate::journal_query::TurnPage;
use crate::record::{ChannelId, Seq};
use crate::submission::Submitted;

/// Truncates remembered for reconnects; a client that missed an older one gets a snapshot.
const CUTS_MAX: usize = 32;

/// Turn ids of clients that look like the host's own, at most: a client need not use any.
pub(crate) const HOST_LIKE_IDS_MAX: usize = 1_024;

/// A chat in memory.
pub(crate) struct Chat {
    state: Arc<ChatState>,
    session: ChannelUri,
    session_id: ChannelId,
    /// The journal's numbers of the turns in `state.turns`.
    turn_numbers: Vec<u64>,
    /// Visible turns lie on disk before the first of these.
    has_older: bool,
    next_n: u64,
    run: Option<Run>,
    /// The last checkpoint of the turn that can be resumed.
    checkpoint: Option<(String, Bytes)>,
    /// The seq at which turns were last hidden: what was read before may still show them.
    last_hidden_seq: Seq,
    private: ChatPrivate,
    /// What the active turn takes as JSON, at most: what is replaced within it is counted until it is counted anew.
    active_turn_bytes: usize,
}

/// What a chat is loaded from, beside its state.
pub(crate) struct StoredChat {
    pub session: ChannelUri,
    pub session_id: ChannelId,
    pub turns: TurnPage,
    pub next_n: u64,
    pub checkpoint: Option<(String, Bytes)>,
    pub private: ChatPrivate,
}

/// What a new chat begins with beside its state.
#[derive(Default)]
pub(crate) struct InitialChat {
    pub turns: TurnPage,
    /// The number its first own turn gets.
    pub next_n: u64,
    pub checkpoint: Option<(String, Bytes)>,
    pub host_like_turn_ids: BTreeSet<String>,
    pub compacted: Option<Compacted>,
    pub refusals: Option<String>,
    pub agent_notes: Option<String>,
    pub brief: Option<Bytes>,
    pub depth: usize,
}

/// A turn that ended: its row, and whether its checkpoint is to be removed.
pub(crate) struct EndedTurn {
    pub n: u64,
    pub turn: Arc<Turn>,
    pub removes_checkpoint: bool,
}

/// What a truncate removed.
pub(crate) struct TruncatedTurns {
    /// The row of the turn that was running.
    pub active: Option<(u64, Arc<Turn>)>,
    /// Whether rows from `from_n` on are to be hidden.
    pub hides: bool,
    pub checkpoint_turn: Option<String>,
}

impl Chat {
    pub(crate) fn new(state: ChatState, session: ChannelUri, session_id: ChannelId) -> Self {
        Self {
            state: Arc::new(state),
            session,
            session_id,
            turn_numbers: Vec::new(),
            has_older: false,
            next_n: 0,
            run: None,
            checkpoint: None,
            last_hidden_seq: Seq(0),
            private: ChatPrivate::default(),
            active_turn_bytes: 0,
        }
    }

    /// A chat as the journal holds it.
    pub(crate) fn from_stored(mut state: ChatState, stored: StoredChat) -> Self {
        let has_older = stored.turns.older;
        let (turn_numbers, turns) = split_page(stored.turns);
        state.turns = Arc::new(TurnList::new(turns));
        let mut chat = Self {
            turn_numbers,
            has_older,
            next_n: stored.next_n,
            checkpoint: stored.checkpoint,
            private: stored.private,
            ..Self::new(state, stored.session, stored.session_id)
        };
        chat.recount_active_turn();
        chat
    }

    /// A new chat that begins with turns of another one, or with a task.
    pub(crate) fn beginning_with(
        state: ChatState,
        session: ChannelUri,
        session_id: ChannelId,
        beginning: InitialChat,
    ) -> Self {
        let mut private = ChatPrivate::default();
        private.host_like_turn_ids = beginning.host_like_turn_ids;
        private.compacted = beginning.compacted;
        private.refusals = beginning.refusals;
        private.agent_notes = beginning.agent_notes;
        private.brief = beginning.brief;
        private.depth = beginning.depth;
        let mut chat = Self::from_stored(
            state,
            StoredChat {
                session,
                session_id,
                turns: beginning.turns,
                next_n: beginning.next_n,
                checkpoint: beginning.checkpoint,
                private,
            },
        );
        if chat.is_side_chat() {
            chat.private.context_n = chat.next_n.checked_sub(1);
        }
        chat
    }

    pub(crate) fn state(&self) -> &ChatState {
        &self.state
    }

    pub(crate) fn shared_state(&self) -> Arc<ChatState> {
        Arc::clone(&self.state)
    }

    /// It belongs to another session from now on.
    pub(super) fn set_session(&mut self, session: ChannelUri, id: ChannelId) {
        self.session = session;
        self.session_id = id;
    }

    /// Whether it has turns.
    pub(crate) fn has_turns(&self) -> bool {
        self.has_older || !self.turn_numbers.is_empty()
    }

    pub(crate) fn session(&self) -> &ChannelUri {
        &self.session
    }

    pub(crate) fn session_id(&self) -> ChannelId {
        self.session_id
    }

    pub(crate) fn private(&self) -> &ChatPrivate {
        &self.private
    }

    pub(crate) fn active_turn_id(&self) -> Option<&str> {
        self.state.active_turn.as_ref().map(|turn| turn.id.as_str())
    }

    pub(crate) fn is_side_chat(&self) -> bool {
        let origin = self.state.extra.get("origin");
        origin.is_some_and(|origin| origin["kind"] == "sideChat")
    }

    /// The chat whose tool call started this one as a worker.
    pub(crate) fn parent(&self) -> Option<ChannelUri> {
        let origin = self.state.extra.get("origin")?;
        if origin["kind"] != "tool" {
            return None;
        }
        ChannelUri::parse(origin["chat"].as_str()?).ok()
    }

    /// Applies an action.
    pub(crate) fn reduce(&mut self, action: &Action) -> Reduced {
        reduce_chat(Arc::make_mut(&mut self.state), action)
    }

    /// No chat action carries a title: it follows the session's catalogue (G-13, H-150).
    pub(crate) fn set_title(&mut self, title: String) {
        Arc::make_mut(&mut self.state).title = title;
    }

    // Runs.

    pub(crate) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Run> {
        self.run.as_mut()
    }

    pub(crate) fn start_run(&mut self, id: RunId) {
        assert!(self.run.is_none(), "a chat has one run at a time");
        debug_assert!(self.state.active_turn.is_some(), "a run works on an active turn");
        self.run = Some(Run::new(id));
    }

    pub(crate) fn take_run(&mut self) -> Option<Run> {
        self.run.take()
    }

    // The size of the active turn.

    /// What the active turn takes as JSON, at most.
    pub(crate) fn active_turn_bytes(&self) -> usize {
        self.active_turn_bytes
    }

    pub(crate) fn add_turn_bytes(&mut self, bytes: usize) {
        self.active_turn_bytes = self.active_turn_bytes.saturating_add(bytes);
    }

    /// Counts what the active turn really takes, all of it: not for every piece of a stream.
    pub(crate) fn recount_active_turn(&mut self) -> usize {
        let turn = self.state.active_turn.as_ref();
        self.active_turn_bytes = turn.map_or(0, wire::rpc::json_bytes);
        self.active_turn_bytes
    }

    // A turn's life.

    /// A turn began: `chat/turnStarted` was applied.
    pub(crate) fn begin_turn(
        &mut self,
        now: Timestamp,
        author: Option<Author>,
        submitted: Submitted,
    ) {
        debug_assert!(self.state.active_turn.is_some(), "the turn is active");
        self.private.accepted = Some(now);
        self.private.author = author;
        self.private.current_submission = Some(submitted);
    }

    /// The latest turn goes on: `chat/turnResume` was applied at `seq`. Its row is not visible any more; returns its
    /// number.
    pub(crate) fn resume_turn(&mut self, seq: Seq, author: Author) -> Option<u64> {
        self.private.author = Some(author);
        self.private.accepted = None; // its duration counts from its original `startedAt` (G-04)
        self.last_hidden_seq = seq;
        self.recount_active_turn();
        self.turn_numbers.pop()
    }

    /// The active turn became a completed one. `None` if the action did not end it.
    pub(crate) fn end_turn(&mut self) -> Option<EndedTurn> {
        if self.state.active_turn.is_some() || self.state.turns.len() <= self.turn_numbers.len() {
            return None;
        }
        assert_eq!(self.state.turns.len(), self.turn_numbers.len() + 1, "one turn ends at a time");
        let turn = Arc::clone(self.state.turns.last()?);
        let n = self.next_n;
        self.next_n += 1;
        self.turn_numbers.push(n);
        self.private.accepted = None;
        self.active_turn_bytes = 0;
        let resumable = matches!(turn.outcome, Outcome::Error { resumable: true });
        let mut removes_checkpoint = false;
        if !resumable {
            // What was left to do, and the checkpoint, matter only if the turn can go on.
            self.private.current_submission = None;
            removes_checkpoint = self.checkpoint.is_some();
            self.checkpoint.take_if(|(of, _)| *of == turn.id);
        } else if let Some(submitted) = &mut self.private.current_submission {
            // No agent had it. If the turn goes on, the rows of its message are read.
            submitted.composed = None;
        }
        Some(EndedTurn { n, turn, removes_checkpoint })
    }

    /// Everything from number `from_n` on was cut off at `seq`: `chat/truncated` was applied. `active` is the turn that
    /// was running, as if it had been cancelled: everyone saw it, so its row is hidden like the others and its id is
    /// never used again (H-170).
    pub(crate) fn truncate(
        &mut self,
        seq: Seq,
        kept_n: Option<u64>,
        active: Option<Arc<Turn>>,
    ) -> TruncatedTurns {
        let from_n = kept_n.map_or(0, |n| n + 1);
        let active = active.map(|turn| {
            self.next_n += 1;
            (self.next_n - 1, turn)
        });
        self.turn_numbers.truncate(self.state.turns.len());
        self.recount_active_turn();
        self.has_older &= from_n > 0;
        self.private.accepted = None;
        self.private.current_submission = None;
        self.private.compacted.take_if(|compacted| !compacted.is_before(from_n));
        self.last_hidden_seq = seq;
        self.private.remember_cut(seq, kept_n, CUTS_MAX);
        let last = self.state.turns.last().map(|turn| turn.id.clone());
        let checkpoint = self.checkpoint.take_if(|(turn, _)| last.as_ref() != Some(turn));
        TruncatedTurns {
            active,
            hides: self.next_n > from_n,
            checkpoint_turn: checkpoint.map(|(turn_id, _)| turn_id),
        }
    }

    pub(crate) fn set_checkpoint(&mut self, turn_id: String, data: Bytes) {
        self.checkpoint = Some((turn_id, data));
    }

    /// The checkpoint of a turn, if that is the one it belongs to.
    pub(crate) fn checkpoint_of(&self, turn_id: &str) -> Option<&Bytes> {
        self.checkpoint.as_ref().filter(|(turn, _)| turn == turn_id).map(|(_, data)| data)
    }

    /// Takes note of a client's turn id that looks like one the host may come to make (G-26).
    pub(crate) fn note_host_like_id(&mut self, seq: u64) {
        let ids = &mut self.private.host_like_turn_ids;
        ids.retain(|id| is_host_like(id, seq));
        if let Some(turn) = &self.state.active_turn
            && is_host_like(&turn.id, seq)
        {
            ids.insert(turn.id.clone());
        }
    }

    /// Takes note of the id of a turn that came from elsewhere, likewise.
    pub(crate) fn note_host_like_turn(&mut self, turn_id: &str, seq: Seq) {
        if is_host_like(turn_id, seq.0) {
            self.private.host_like_turn_ids.insert(turn_id.to_owned());
        }
    }

    /// A turn id from the seq that will create it. Seqs only rise, so nobody but a client that guessed it can have used
    /// it (G-26).
    pub(crate) fn free_turn_id(&self, seq: Seq) -> String {
        let base = format!("t{}", seq.0 + 1);
        let mut id = base.clone();
        let mut suffix = 0;
        while self.private.host_like_turn_ids.contains(&id) {
            suffix += 1;
            id = format!("{base}-{suffix}");
        }
        id
    }

    /// What is left to do of the active turn's message before an agent works on it.
    pub(crate) fn submission_mut(&mut self) -> Option<&mut Submitted> {
        self.private.current_submission.as_mut()
    }

    /// Nothing more is done of the active turn's message.
    pub(crate) fn drop_submission(&mut self) {
        self.private.current_submission = None;
    }

    /// What the agent's model refused in this chat, as the agent noted it (G-50); an empty text is none.
    pub(crate) fn set_refusals(&mut self, refusals: Option<String>) {
        self.private.refusals = refusals.filter(|text| !text.is_empty());
    }

    /// What the agent wants to know again in later turns; an empty text is nothing.
    pub(crate) fn set_agent_notes(&mut self, notes: String) {
        self.private.agent_notes = Some(notes).filter(|text| !text.is_empty());
    }

    /// The agent remembers only the last turns from now on; of the active one the first rounds are told by the summary too,
    /// if no turn before it is kept.
    pub(crate) fn compact(&mut self, keep_turns: usize, rounds: u64, summary: Option<String>) {
        let from = self.turn_numbers.len().saturating_sub(keep_turns);
        let kept = self.number_at(from);
        self.private.compacted = Some(Compacted {
            from_n: kept.unwrap_or(self.next_n),
            rounds: if kept.is_none() { rounds } else { 0 },
            summary,
        });
    }

    /// Milliseconds the active turn took: by the host's clock, or since its original start if it was resumed.
    pub(crate) fn turn_duration(&self, now: Timestamp) -> i64 {
        let turn = self.state.active_turn.as_ref();
        let started = turn.and_then(|turn| Timestamp::parse_rfc3339(&turn.started_at));
        let since = self.private.accepted.or(started);
        since.map_or(0, |since| now.ms_since(since))
    }
}

/// Turn rows as the numbers and the shared turns of a chat.
fn split_page(page: TurnPage) -> (Vec<u64>, Vec<Arc<Turn>>) {
    let turns = page.turns.into_iter().map(|stored| {
        let turn = Turn { id: stored.id, outcome: stored.outcome, json: stored.json };
        (stored.n, Arc::new(turn))
    });
    turns.unzip()
}

/// Whether a turn id is one that the host could come to use: `t` and a seq that is yet to come.
pub(crate) fn is_host_like(turn_id: &str, seq: u64) -> bool {
    let number = turn_id.strip_prefix('t').map(|rest| {
        let end = rest.find('-').unwrap_or(rest.len());
        &rest[..end]
    });
    number.and_then(|number| number.parse::<u64>().ok()).is_some_and(|number| number > seq)
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
