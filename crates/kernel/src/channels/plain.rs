//! A channel that is its state and little else, in memory: a changeset, a session's annotations, a terminal, a watch.
//!
//! Promises: a terminal's state stays within its bound, and is the same however often it is loaded.
//! Must not know: how files are compared, processes run or directories are watched.

use bytes::Bytes;
use wire::reduce::{Reduced, reduce_plain};
use wire::state::PlainState;
use wire::{Action, ChannelUri, Object, rpc};

use crate::record::{BootWork, ChannelId, Head, StoredKind};

/// A plain channel in memory.
pub(crate) struct PlainChannel {
    state: PlainState,
    /// The session it belongs to and ends with. A terminal or watch of a client has none.
    session: Option<(ChannelUri, ChannelId)>,
    /// What only the host knows of it. Never on the wire.
    private: Object,
    trim: TerminalBound,
}

/// How much of a terminal's output is kept (G-56).
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminalBound {
    pub chars_max: usize,
    pub lines_min: usize,
}

impl PlainChannel {
    pub(crate) fn new(
        state: PlainState,
        session: Option<(ChannelUri, ChannelId)>,
        private: Object,
        trim: TerminalBound,
    ) -> Self {
        debug_assert!(
            session.is_some() || state.changeset().is_none() && state.annotations().is_none(),
            "changesets and annotations belong to a session"
        );
        Self { state, session, private, trim }
    }

    pub(crate) fn state(&self) -> &PlainState {
        &self.state
    }

    pub(crate) fn session(&self) -> Option<&ChannelUri> {
        self.session.as_ref().map(|(uri, _)| uri)
    }

    pub(super) fn session_id(&self) -> Option<ChannelId> {
        self.session.as_ref().map(|(_, id)| *id)
    }

    pub(crate) fn private(&self) -> &Object {
        &self.private
    }

    pub(crate) fn private_mut(&mut self) -> &mut Object {
        &mut self.private
    }

    pub(super) fn encode_private(&self) -> Bytes {
        Bytes::from(rpc::to_json(&self.private))
    }

    /// Applies an action, and trims what a terminal printed.
    pub(super) fn reduce(&mut self, action: &Action) -> Reduced {
        let reduced = reduce_plain(&mut self.state, action);
        if let PlainState::Terminal(terminal) = &mut self.state
            && terminal.chars() > self.trim.chars_max
        {
            let TerminalBound { chars_max, lines_min } = self.trim;
            std::sync::Arc::make_mut(terminal).trim(chars_max, lines_min);
        }
        reduced
    }

    /// What the journal keeps it as; none of what is not stored.
    pub(super) fn stored_as(&self) -> Option<(StoredKind, Head)> {
        let kind = match &self.state {
            PlainState::Changeset(_) => StoredKind::Changeset,
            PlainState::Annotations(_) => StoredKind::Annotations,
            PlainState::Terminal(_) => StoredKind::Terminal,
            PlainState::ResourceWatch(_) => return None,
        };
        Some((kind, Head::Plain(self.state.clone())))
    }

    pub(super) fn boot_work(&self) -> BootWork {
        let terminal = self.state.terminal();
        BootWork {
            running_process: terminal.is_some_and(|terminal| terminal.is_running()),
            ..BootWork::default()
        }
    }

    /// Whether it may leave memory when nobody uses it: not while a process prints into it, nor what is nowhere else. What
    /// belongs to a session without being named after it must be found there when the session ends.
    pub(super) fn may_unload(&self, is_watched: impl Fn() -> bool) -> bool {
        match &self.state {
            PlainState::Terminal(terminal) => !terminal.is_running() && !is_watched(),
            PlainState::Changeset(_) | PlainState::Annotations(_) => true,
            PlainState::ResourceWatch(_) => false,
        }
    }
}
