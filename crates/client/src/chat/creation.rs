//! How the creation of a session goes on, while it takes its time (`root/progress`).

use serde_json::Value;
use wire::state::SessionState;

use crate::Notification;

use super::OpenChat;

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreationProgress {
    pub done: i64,
    /// None if nobody knows.
    pub total: Option<i64>,
    /// What the host is at.
    pub message: Option<String>,
}

impl CreationProgress {
    /// What a notification says of the creation that goes by this token.
    pub(super) fn read(notification: &Notification, token: &str) -> Option<Self> {
        let params = &notification.params;
        let is_ours = notification.method == "root/progress" && params["progressToken"] == token;
        is_ours.then_some(())?;
        Some(Self {
            done: params["progress"].as_i64()?,
            total: params["total"].as_i64(),
            message: params["message"].as_str().map(str::to_owned),
        })
    }

    pub fn is_over(&self) -> bool {
        self.total == Some(self.done)
    }
}

impl OpenChat {
    /// The newest progress of the session's creation, once.
    pub fn take_creation_progress(&mut self) -> Option<CreationProgress> {
        self.creation.take()
    }

    /// Why the session could not be made, if that is so: no turn runs in it.
    pub fn creation_failure(&self) -> Option<String> {
        let session = self.session_state()?;
        failure_of(&session)
    }
}

/// Why a session could not be made.
pub(super) fn failure_of(session: &SessionState) -> Option<String> {
    if session.lifecycle != "failed" {
        return None;
    }
    let error = session.extra.get("creationError").unwrap_or(&Value::Null);
    let why = error["message"].as_str().unwrap_or("no reason was given");
    Some(why.to_owned())
}

/// What a session that is made here is asked for under: its name, which is used once.
pub(super) fn add_token(params: &mut Value) {
    params["progressToken"] = params["channel"].clone();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_our_own_creation_is_read_and_its_end_is_known() {
        let told = |params: Value| Notification { method: "root/progress".to_owned(), params };
        let begun = told(json!({"progressToken": "x:/s", "progress": 0, "message": "starting"}));
        let read = CreationProgress::read(&begun, "x:/s").unwrap();
        assert_eq!((read.is_over(), read.message.as_deref()), (false, Some("starting")));
        assert_eq!(CreationProgress::read(&begun, "x:/other"), None);
        let ended = told(json!({"progressToken": "x:/s", "progress": 3, "total": 3}));
        assert!(CreationProgress::read(&ended, "x:/s").unwrap().is_over());
    }
}
