//! What only the host knows of a chat, as the journal stores it beside the chat's state. Never on the wire.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::{Timestamp, rpc};

use crate::author::Author;
use crate::io::Compacted;
use crate::record::Seq;
use crate::submission::Submitted;

/// The private record of a chat. The names in the journal are older than the fields' names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ChatPrivate {
    /// When the active turn was accepted, by the host's clock; `None` once it was resumed.
    #[serde(with = "milliseconds")]
    pub accepted: Option<Timestamp>,
    /// What a worker was started with; given to its turns.
    #[serde(with = "base64_text", skip_serializing_if = "Option::is_none")]
    pub brief: Option<Bytes>,
    /// The client whose message the active turn answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// Of a side chat: the number of the last turn, shown nowhere, that is its context (H-144).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_n: Option<u64>,
    /// Who put which message to wait.
    #[serde(rename = "authors", skip_serializing_if = "BTreeMap::is_empty")]
    pub message_authors: BTreeMap<String, Author>,
    /// Turn ids of clients that look like ones the host will make (G-26).
    #[serde(rename = "foreseen", skip_serializing_if = "BTreeSet::is_empty")]
    pub host_like_turn_ids: BTreeSet<String>,
    /// The newest truncates: at which seq, and the number of the turn that stayed last. A replay from before one may not
    /// be possible (G-19).
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    cuts: VecDeque<(u64, Option<u64>)>,
    /// The seq of the newest truncate that is not among them any more.
    cuts_forgotten: u64,
    /// How deep below a chat of a user a worker works.
    pub depth: usize,
    /// What is known of the messages that wait, by their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub messages: BTreeMap<String, Submitted>,
    /// What is left to do of the active turn's message before an agent works on it.
    #[serde(rename = "begun", skip_serializing_if = "Option::is_none")]
    pub current_submission: Option<Submitted>,
    /// How far back the agent remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Compacted>,
    /// What the agent noted of what its model refused (G-50). Opaque.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusals: Option<String>,
    /// What the agent wants to know again in later turns of this chat. A fork begins with its source's: who writes them says of
    /// which chat they are. Opaque.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_notes: Option<String>,
}

impl ChatPrivate {
    pub(crate) fn decode(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    pub(crate) fn encode(&self) -> Bytes {
        Bytes::from(rpc::to_json(self))
    }

    pub(crate) fn remember_cut(&mut self, at: Seq, kept_n: Option<u64>, most: usize) {
        debug_assert!(
            self.cuts.back().is_none_or(|(seq, _)| *seq < at.0),
            "cuts are noted in the order they happen"
        );
        self.cuts.push_back((at.0, kept_n));
        if self.cuts.len() > most
            && let Some((seq, _)) = self.cuts.pop_front()
        {
            self.cuts_forgotten = seq;
        }
    }

    /// Whether a truncate above `start` named a turn that a window from `oldest_n` on does not hold.
    pub(crate) fn was_cut_below(&self, oldest_n: u64, start: Seq) -> bool {
        let mut cuts = self.cuts.iter().filter(|(seq, _)| *seq > start.0);
        self.cuts_forgotten > start.0
            || cuts.any(|(_, kept_n)| kept_n.is_some_and(|kept_n| kept_n < oldest_n))
    }

    /// Whether a truncate happened above `start` at all.
    pub(crate) fn was_cut(&self, start: Seq) -> bool {
        self.cuts.back().is_some_and(|(seq, _)| *seq > start.0)
    }
}

mod milliseconds {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Timestamp};

    pub(super) fn serialize<S: Serializer>(
        at: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        at.map(|at| at.0).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<i64>::deserialize(from)?.map(Timestamp))
    }
}

mod base64_text {
    use super::{Bytes, Deserialize, Deserializer, Engine, STANDARD, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Bytes>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let text = bytes.as_ref().map(|bytes| STANDARD.encode(bytes));
        text.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Bytes>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        let bytes = text.map(|text| STANDARD.decode(text)).transpose();
        bytes.map(|bytes| bytes.map(Bytes::from)).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_stored_as_it_is() {
        let private = ChatPrivate {
            accepted: Some(Timestamp(5)),
            brief: Some(Bytes::from_static(b"look")),
            author: Some(Author { client_id: "ann".to_owned(), principal: None }),
            depth: 2,
            ..ChatPrivate::default()
        };
        let stored = private.encode();
        let text = String::from_utf8(stored.to_vec()).unwrap();
        assert_eq!(
            text,
            r#"{"accepted":5,"brief":"bG9vaw==","author":"ann","cutsForgotten":0,"depth":2}"#
        );
        assert_eq!(ChatPrivate::decode(&stored).unwrap().encode(), stored);
        assert!(ChatPrivate::decode(b"{\"brief\":\"?\"}").is_err());
    }

    #[test]
    fn cuts_below_a_window_are_known_for_as_long_as_they_are_remembered() {
        let mut private = ChatPrivate::default();
        private.remember_cut(Seq(10), Some(3), 2);
        assert!(private.was_cut_below(5, Seq(9)));
        assert!(!private.was_cut_below(3, Seq(9)));
        assert!(!private.was_cut_below(5, Seq(10)));
        private.remember_cut(Seq(20), None, 2);
        private.remember_cut(Seq(30), None, 2);
        assert!(private.was_cut_below(0, Seq(9)), "a forgotten cut counts");
        assert!(!private.was_cut_below(0, Seq(10)));
        assert!(private.was_cut(Seq(29)) && !private.was_cut(Seq(30)));
    }
}
