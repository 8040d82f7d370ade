//! Where clients are active: in which sessions, in memory or not, and since when a client that is active somewhere is gone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wire::{ChannelUri, Timestamp};

/// The sessions each client is active in.
#[derive(Default)]
pub(crate) struct ActiveClients {
    sessions: BTreeMap<String, BTreeSet<ChannelUri>>,
    /// When a client that is active somewhere was last lost.
    lost: BTreeMap<String, Timestamp>,
    undo: Vec<Before>,
}

/// What was true of a client and a session before a change.
struct Before {
    session: ChannelUri,
    client_id: String,
    was_active: bool,
    lost: Option<Timestamp>,
}

impl ActiveClients {
    pub(crate) fn is_active(&self, client_id: &str, session: &ChannelUri) -> bool {
        let sessions = self.sessions.get(client_id);
        sessions.is_some_and(|sessions| sessions.contains(session))
    }

    pub(crate) fn sessions_of(&self, client_id: &str) -> impl Iterator<Item = &ChannelUri> {
        self.sessions.get(client_id).into_iter().flatten()
    }

    pub(crate) fn lost_at(&self, client_id: &str) -> Option<Timestamp> {
        self.lost.get(client_id).copied()
    }

    /// A session came into memory with these clients: nothing that could be undone.
    pub(crate) fn load(&mut self, session: &ChannelUri, client_ids: Vec<String>) {
        for client_id in client_ids {
            let sessions = self.sessions.entry(client_id).or_default();
            sessions.insert(session.clone());
        }
    }

    pub(crate) fn add(&mut self, session: &ChannelUri, client_id: &str) {
        self.note(session, client_id);
        let sessions = self.sessions.entry(client_id.to_owned()).or_default();
        sessions.insert(session.clone());
    }

    pub(crate) fn remove(&mut self, session: &ChannelUri, client_id: &str) {
        self.note(session, client_id);
        if let Some(sessions) = self.sessions.get_mut(client_id) {
            sessions.remove(session);
            if sessions.is_empty() {
                self.sessions.remove(client_id);
                self.lost.remove(client_id);
            }
        }
    }

    /// A client is gone: its time of grace begins.
    pub(crate) fn lose(&mut self, client_id: &str, now: Timestamp) {
        self.lost.insert(client_id.to_owned(), now);
    }

    /// A client is connected again.
    pub(crate) fn find_again(&mut self, client_id: &str) {
        self.lost.remove(client_id);
    }

    fn note(&mut self, session: &ChannelUri, client_id: &str) {
        self.undo.push(Before {
            session: session.clone(),
            client_id: client_id.to_owned(),
            was_active: self.is_active(client_id, session),
            lost: self.lost_at(client_id),
        });
    }

    pub(crate) fn commit(&mut self) {
        self.undo.clear();
    }

    pub(crate) fn roll_back(&mut self, is_connected: impl Fn(&str) -> bool) {
        for before in std::mem::take(&mut self.undo).into_iter().rev() {
            let sessions = self.sessions.entry(before.client_id.clone()).or_default();
            match before.was_active {
                true => sessions.insert(before.session),
                false => sessions.remove(&before.session),
            };
            if sessions.is_empty() {
                self.sessions.remove(&before.client_id);
            }
            if let Some(lost) = before.lost.filter(|_| !is_connected(&before.client_id)) {
                self.lost.insert(before.client_id, lost);
            }
        }
    }

    pub(crate) fn digest(&self) -> Value {
        let sessions = self.sessions.iter().map(|(client_id, sessions)| {
            let sessions: Vec<&str> = sessions.iter().map(ChannelUri::as_str).collect();
            (client_id.clone(), json!(sessions))
        });
        Value::Object(sessions.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_written_is_undone_in_reverse() {
        let session = ChannelUri::parse("ahp-session:/s").unwrap();
        let mut active = ActiveClients::default();
        active.load(&session, vec!["ann".to_owned()]);
        active.lose("ann", Timestamp(7));
        active.remove(&session, "ann");
        active.add(&session, "bob");
        active.add(&session, "ann");
        active.remove(&session, "ann");
        active.roll_back(|_| false);
        assert!(active.is_active("ann", &session));
        assert!(!active.is_active("bob", &session));
        assert_eq!(active.lost_at("ann"), Some(Timestamp(7)));
        active.roll_back(|_| false); // nothing is undone twice
        assert!(active.is_active("ann", &session));
    }
}
