//! Which sessions of the host need somebody, from its list and from what it says about it since.
//!
//! Promises: a list that was asked for is taken with everything that was heard while it was on its way. Bounded: of no more
//! sessions than `SESSIONS_MAX` anything is remembered.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::state::status;

use crate::{Notification, SessionSummary};

const SESSIONS_MAX: usize = 10_000;
/// Notifications that are kept while a list is on its way; with more the list is asked for again.
const HEARD_MAX: usize = 4_096;

/// The status of each session that is known.
#[derive(Debug, Default)]
pub struct SessionIndex {
    status: BTreeMap<String, u32>,
    /// Lists that are on their way.
    expected: usize,
    /// Notifications that came meanwhile.
    heard: Vec<Notification>,
}

impl SessionIndex {
    /// A list is asked for now.
    pub fn expect_list(&mut self) {
        self.expected += 1;
    }

    /// No list comes of what was asked.
    pub fn cancel_list(&mut self) {
        self.expected = self.expected.saturating_sub(1);
        if self.expected == 0 {
            self.heard.clear();
        }
    }

    /// The list that was asked for. `false` if so much was heard meanwhile that it has to be asked for again.
    pub fn take_list(&mut self, sessions: &[SessionSummary]) -> bool {
        let heard = self.heard.clone();
        self.cancel_list();
        if heard.len() >= HEARD_MAX {
            return false;
        }
        self.status = sessions
            .iter()
            .take(SESSIONS_MAX)
            .map(|session| (session.resource().to_owned(), session.status()))
            .collect();
        for notification in &heard {
            self.apply(notification);
        }
        true
    }

    /// Applies a notification about the list of sessions. `true` if it was one.
    pub fn receive(&mut self, notification: &Notification) -> bool {
        let is_known = self.apply(notification);
        if is_known && self.expected > 0 && self.heard.len() < HEARD_MAX {
            self.heard.push(notification.clone());
        }
        is_known
    }

    fn apply(&mut self, notification: &Notification) -> bool {
        let params = &notification.params;
        let bits = |value: &Value| value.as_u64().and_then(|bits| u32::try_from(bits).ok());
        match notification.method.as_str() {
            "root/sessionAdded" => {
                let summary = &params["summary"];
                if let (Some(uri), Some(bits)) =
                    (summary["resource"].as_str(), bits(&summary["status"]))
                {
                    self.set(uri, bits);
                }
            }
            "root/sessionSummaryChanged" => {
                if let (Some(uri), Some(bits)) =
                    (params["session"].as_str(), bits(&params["changes"]["status"]))
                {
                    self.set(uri, bits);
                }
            }
            "root/sessionRemoved" => {
                self.status.remove(params["session"].as_str().unwrap_or(""));
            }
            _ => return false,
        }
        true
    }

    fn set(&mut self, uri: &str, bits: u32) {
        if self.status.len() < SESSIONS_MAX || self.status.contains_key(uri) {
            self.status.insert(uri.to_owned(), bits);
        }
    }

    /// How many sessions other than this one wait for somebody. Archived ones are out of sight.
    pub fn count_waiting_besides(&self, session: &str) -> usize {
        let waits = |bits: u32| {
            bits & status::ACTIVITY_MASK == status::INPUT_NEEDED && bits & status::IS_ARCHIVED == 0
        };
        let others = self.status.iter().filter(|(uri, _)| *uri != session);
        others.filter(|(_, bits)| waits(**bits)).count()
    }
}

impl SessionSummary {
    /// The agent that works in it.
    pub fn agent(&self) -> &str {
        self.value()["provider"].as_str().unwrap_or("")
    }

    /// Whether it waits for the user.
    pub fn needs_attention(&self) -> bool {
        self.status() & status::ACTIVITY_MASK == status::INPUT_NEEDED
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(session: &str, status: u32) -> Notification {
        Notification {
            method: "root/sessionSummaryChanged".to_owned(),
            params: json!({"session": session, "changes": {"status": status}}),
        }
    }

    fn listed(session: &str, status: u32) -> SessionSummary {
        SessionSummary::new(json!({"resource": session, "status": status}))
    }

    #[test]
    fn those_that_wait_are_counted() {
        let mut index = SessionIndex::default();
        index.expect_list();
        assert!(index.receive(&changed("s:/2", 1)), "heard before the list came");
        assert!(index.take_list(&[
            listed("s:/1", status::INPUT_NEEDED),
            listed("s:/2", status::INPUT_NEEDED),
            listed("s:/3", status::INPUT_NEEDED | status::IS_ARCHIVED),
        ]));
        assert_eq!(index.count_waiting_besides("s:/9"), 1);
        assert_eq!(index.count_waiting_besides("s:/1"), 0);
        index.receive(&changed("s:/2", status::INPUT_NEEDED | status::IS_READ));
        assert_eq!(index.count_waiting_besides("s:/9"), 2);
        let removed = Notification {
            method: "root/sessionRemoved".to_owned(),
            params: json!({"session": "s:/1"}),
        };
        index.receive(&removed);
        assert_eq!(index.count_waiting_besides("s:/9"), 1);
        let added = Notification {
            method: "root/sessionAdded".to_owned(),
            params: json!({"summary": {"resource": "s:/4", "status": 24}}),
        };
        index.receive(&added);
        assert_eq!(index.count_waiting_besides("s:/9"), 2);
        let other = Notification { method: "auth/required".to_owned(), params: json!({}) };
        assert!(!index.receive(&other));
    }
}
