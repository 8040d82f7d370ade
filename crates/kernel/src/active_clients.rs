//! Where clients are active: in which sessions, in memory or not, and since when a client that is active somewhere is gone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wire::{ChannelUri, Timestamp};

use crate::role::ClientHolder;

/// The sessions each client is active in.
#[derive(Default)]
pub(crate) struct ActiveClients {
    sessions: BTreeMap<String, BTreeSet<ChannelUri>>,
    /// When a client that is active somewhere was last lost.
    lost: BTreeMap<String, Timestamp>,
    /// Who had the ids of those that were lost, as far as that is known.
    holders: BTreeMap<String, ClientHolder>,
    undo: Vec<ActiveClientBefore>,
    /// The number of this step since the last commit.
    step: usize,
}

/// What was true of a client and a session before a change.
struct ActiveClientBefore {
    step: usize,
    client_id: String,
    lost: Option<Timestamp>,
    holder: Option<ClientHolder>,
    /// The session, and whether the client was active in it; none if only the connection changed.
    session: Option<(ChannelUri, bool)>,
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
            self.sessions.entry(client_id).or_default().insert(session.clone());
        }
    }

    pub(crate) fn add(&mut self, session: &ChannelUri, client_id: &str) {
        self.note(session, client_id);
        self.sessions.entry(client_id.to_owned()).or_default().insert(session.clone());
    }

    pub(crate) fn remove(&mut self, session: &ChannelUri, client_id: &str) {
        self.note(session, client_id);
        if let Some(sessions) = self.sessions.get_mut(client_id) {
            sessions.remove(session);
            if sessions.is_empty() {
                self.sessions.remove(client_id);
                self.lost.remove(client_id);
                self.holders.remove(client_id);
            }
        }
    }

    /// A client is gone: its time of grace begins.
    pub(crate) fn lose(&mut self, client_id: &str, now: Timestamp, holder: Option<ClientHolder>) {
        debug_assert!(
            self.sessions.contains_key(client_id),
            "grace is for a client that is active somewhere"
        );
        self.lost.insert(client_id.to_owned(), now);
        match holder {
            Some(holder) => self.holders.insert(client_id.to_owned(), holder),
            None => self.holders.remove(client_id),
        };
    }

    /// Who had the id of a client that is active somewhere, when it was last lost.
    pub(crate) fn holder_of(&self, client_id: &str) -> Option<&ClientHolder> {
        self.holders.get(client_id)
    }

    /// A client is connected again.
    pub(crate) fn find_again(&mut self, client_id: &str) {
        if let Some(lost) = self.lost.remove(client_id) {
            self.undo.push(ActiveClientBefore {
                step: self.step,
                client_id: client_id.to_owned(),
                lost: Some(lost),
                holder: self.holders.get(client_id).cloned(),
                session: None,
            });
        }
    }

    fn note(&mut self, session: &ChannelUri, client_id: &str) {
        self.undo.push(ActiveClientBefore {
            step: self.step,
            client_id: client_id.to_owned(),
            lost: self.lost_at(client_id),
            holder: self.holders.get(client_id).cloned(),
            session: Some((session.clone(), self.is_active(client_id, session))),
        });
    }

    pub(crate) fn begin_step(&mut self, step: usize) {
        self.step = step;
    }

    pub(crate) fn commit(&mut self) {
        self.undo.clear();
    }

    /// What could not be written is undone. That a client was lost stands: its connection is gone.
    pub(crate) fn roll_back(&mut self, is_connected: impl Fn(&str) -> bool) {
        let notes = std::mem::take(&mut self.undo);
        self.undo_notes(notes, is_connected);
    }

    /// The same for some steps; what others did stands.
    pub(crate) fn undo_steps(
        &mut self,
        failed: &BTreeSet<usize>,
        is_connected: impl Fn(&str) -> bool,
    ) {
        let notes = std::mem::take(&mut self.undo).into_iter();
        let (undone, kept) = notes.partition(|before| failed.contains(&before.step));
        self.undo = kept;
        self.undo_notes(undone, is_connected);
    }

    fn undo_notes(&mut self, notes: Vec<ActiveClientBefore>, is_connected: impl Fn(&str) -> bool) {
        for before in notes.into_iter().rev() {
            let ActiveClientBefore { client_id, lost, holder, session, step: _ } = before;
            if let Some((session, was_active)) = session {
                let sessions = self.sessions.entry(client_id.clone()).or_default();
                if was_active {
                    sessions.insert(session)
                } else {
                    sessions.remove(&session)
                };
                if sessions.is_empty() {
                    self.sessions.remove(&client_id);
                }
            }
            if let Some(holder) = holder {
                // Who had it when it was lost again is known better.
                self.holders.entry(client_id.clone()).or_insert(holder);
            }
            if let Some(lost) = lost.filter(|_| !is_connected(&client_id)) {
                // It may have come back and been lost again meanwhile: then the later time counts.
                let later = self.lost.entry(client_id).or_insert(lost);
                *later = lost.max(*later);
            }
        }
        let sessions = &self.sessions;
        self.lost.retain(|client_id, _| sessions.contains_key(client_id));
        self.holders.retain(|client_id, _| sessions.contains_key(client_id));
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
    use crate::role::Role;

    #[test]
    fn what_could_not_be_written_is_undone_in_reverse() {
        let session = ChannelUri::parse("ahp-session:/s").unwrap();
        let mut active = ActiveClients::default();
        active.load(&session, vec!["ann".to_owned()]);
        active.lose("ann", Timestamp(7), None);
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

    #[test]
    fn who_had_an_id_is_known_after_a_removal_that_was_not_written() {
        let session = ChannelUri::parse("ahp-session:/s").unwrap();
        let mut active = ActiveClients::default();
        active.load(&session, vec!["ann".to_owned()]);
        let holder = ClientHolder { name: None, role: Role::Owner };
        active.lose("ann", Timestamp(7), Some(holder.clone()));
        active.remove(&session, "ann");
        assert_eq!(active.holder_of("ann"), None);
        active.roll_back(|_| false);
        assert_eq!(active.holder_of("ann"), Some(&holder), "nobody else may take it");
    }

    #[test]
    fn a_return_that_was_not_written_does_not_shorten_the_grace() {
        let session = ChannelUri::parse("ahp-session:/s").unwrap();
        let mut active = ActiveClients::default();
        active.load(&session, vec!["ann".to_owned()]);
        active.lose("ann", Timestamp(7), None);
        active.find_again("ann");
        active.roll_back(|_| false);
        assert_eq!(active.lost_at("ann"), Some(Timestamp(7)));
        active.find_again("ann");
        active.roll_back(|_| true); // the answer that admitted it was sent before
        assert_eq!(active.lost_at("ann"), None);
        active.lose("ann", Timestamp(9), None);
        active.find_again("ann");
        active.lose("ann", Timestamp(11), None);
        active.roll_back(|_| false);
        assert_eq!(active.lost_at("ann"), Some(Timestamp(11)));
        active.add(&session, "bob");
        active.lose("bob", Timestamp(12), None);
        active.roll_back(|_| false);
        assert_eq!(active.lost_at("bob"), None, "it was never active anywhere");
    }
}
