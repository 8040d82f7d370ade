//! The host's sessions, seen from an open chat: which of them wait for somebody, and what can be done to them.

use serde_json::{Value, json};
use wire::ChannelUri;

use crate::{ClientError, SessionSummary};

use super::OpenChat;

impl OpenChat {
    /// Asks for the list of sessions, for [`OpenChat::take_session_list`]. What is returned does not borrow the chat.
    pub fn list_sessions(
        &mut self,
    ) -> impl Future<Output = Result<Vec<SessionSummary>, ClientError>> + Send + use<> {
        self.sessions.expect_list();
        let live = self.live.clone();
        async move { live.list_sessions().await }
    }

    /// Takes the list that was asked for last. `false` if it has to be asked for again.
    pub fn take_session_list(&mut self, sessions: &[SessionSummary]) -> bool {
        self.sessions.take_list(sessions)
    }

    /// The list that was asked for does not come.
    pub fn give_up_session_list(&mut self) {
        self.sessions.cancel_list();
    }

    /// How many other sessions wait for somebody, as far as is known here.
    pub fn count_waiting_elsewhere(&self) -> usize {
        self.sessions.count_waiting_besides(self.session.as_str())
    }

    /// Gives a session another title. A refusal comes as an event.
    pub fn rename_session(&self, session: &ChannelUri, title: &str) -> Result<(), ClientError> {
        self.change(session, json!({"type": "session/titleChanged", "title": title}))
    }

    /// Puts a session away, or takes it out again. A refusal comes as an event.
    pub fn archive_session(
        &self,
        session: &ChannelUri,
        is_archived: bool,
    ) -> Result<(), ClientError> {
        self.change(
            session,
            json!({"type": "session/isArchivedChanged", "isArchived": is_archived}),
        )
    }

    fn change(&self, session: &ChannelUri, action: Value) -> Result<(), ClientError> {
        self.live.dispatch(session, action).map(drop)
    }
}
