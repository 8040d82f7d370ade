//! The changesets that the host offers of a session and its open chat (its catalogue, H-285).
//!
//! Promises: what is offered is what the host's catalogue says; one whose address cannot be made here is left out.
//! Must not know: how changesets are shown.

use std::time::Duration;

use serde_json::Value;
use wire::{ChannelUri, percent};

use crate::{ClientError, Live};

use super::OpenChat;

/// What stands in an address for the turn that is meant.
const TURN: &str = "{turnId}";

/// How often it is looked for a catalogue that has not come yet, and how many times.
const CATALOGUE_LOOK_TIME: Duration = Duration::from_millis(50);
const CATALOGUE_LOOKS_MAX: usize = 100;

/// A changeset that can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesetOffer {
    /// A word to name it by, of its own among all that are offered: `session`, `turn`, `uncommitted`, `branch`, or what else the host has.
    pub name: String,
    /// What the host calls it.
    pub label: String,
    /// Whether a turn has to be named.
    pub is_of_turn: bool,
    /// Whether its files can be marked as reviewed.
    pub is_reviewable: bool,
    template: String,
}

/// A turn that is over, as people find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTurn {
    pub id: String,
    /// RFC 3339
    pub started_at: String,
    /// What was sent.
    pub text: String,
}

impl ChangesetOffer {
    /// The address, with the turn in it if one is needed.
    pub(super) fn uri(&self, turn: Option<&ListedTurn>) -> Result<ChannelUri, ClientError> {
        let uri = match turn {
            Some(turn) => self.template.replace(TURN, &percent::encode_word(&turn.id)),
            None => self.template.clone(),
        };
        ChannelUri::parse(&uri).map_err(|error| ClientError::Unreadable(error.to_string()))
    }

    /// `None` for an entry that cannot be read, or whose address takes what is not known here.
    pub fn from_value(entry: &Value) -> Option<Self> {
        let template = entry["uriTemplate"].as_str()?;
        let is_of_turn = template.contains(TURN);
        if template.replace(TURN, "").contains(['{', '}']) {
            return None;
        }
        let kind = entry["changeKind"].as_str().unwrap_or("changes");
        Some(Self {
            name: word_of(kind),
            label: entry["label"].as_str().unwrap_or(kind).to_owned(),
            is_of_turn,
            is_reviewable: entry["capabilities"]["review"].is_object(),
            template: template.to_owned(),
        })
    }
}

/// A kind as one word that can be typed.
fn word_of(kind: &str) -> String {
    let word: String = kind
        .chars()
        .map(|c| match c {
            c if c.is_alphanumeric() || c == '_' => c,
            _ => '-',
        })
        .collect();
    if word.is_empty() { "changes".to_owned() } else { word }
}

/// Entries of a catalogue, each with a name of its own.
fn offers_of<'v>(entries: impl Iterator<Item = &'v Value>) -> Vec<ChangesetOffer> {
    let mut offers: Vec<ChangesetOffer> = Vec::new();
    for mut offer in entries.filter_map(ChangesetOffer::from_value) {
        let kind = offer.name.clone();
        let mut number = 2;
        while offers.iter().any(|other| other.name == offer.name) {
            offer.name = format!("{kind}-{number}");
            number += 1;
        }
        offers.push(offer);
    }
    offers
}

/// What the host offers of a session and a chat now.
fn offers_in(live: &Live, session: &ChannelUri, chat: &ChannelUri) -> Vec<ChangesetOffer> {
    let (session, chat) = (live.session(session), live.chat(chat));
    let entries = |extra: &wire::Object| {
        extra.get("changesets").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut all = session.map_or(Vec::new(), |session| entries(&session.extra));
    all.extend(chat.map_or(Vec::new(), |chat| entries(&chat.extra)));
    offers_of(all.iter())
}

impl OpenChat {
    /// The changesets that can be looked at, in the host's order.
    pub fn changesets(&self) -> Vec<ChangesetOffer> {
        offers_in(&self.live, &self.session, &self.chat)
    }

    /// Waits for a few seconds until something is offered: the host looks at a session's directory first. Whether something is.
    pub fn wait_for_changesets(&self) -> impl Future<Output = bool> + Send + 'static {
        let live = self.live.clone();
        let (session, chat) = (self.session.clone(), self.chat.clone());
        async move {
            let mut ticks = tokio::time::interval(CATALOGUE_LOOK_TIME);
            for _ in 0..CATALOGUE_LOOKS_MAX {
                ticks.tick().await;
                if !offers_in(&live, &session, &chat).is_empty() {
                    return true;
                }
            }
            false
        }
    }

    /// The turns of this chat that are over and known here, the newest first.
    pub fn ended_turns(&self) -> Vec<ListedTurn> {
        let chat = self.confirmed();
        let turns =
            chat.as_ref().map_or(&[][..], |chat| chat.turns.as_slice()).iter().rev().map(|turn| {
                let value = turn.value();
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                ListedTurn {
                    id: turn.id.clone(),
                    started_at: text(&value["startedAt"]),
                    text: text(&value["message"]["text"]),
                }
            });
        turns.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(kind: &str, template: &str) -> Value {
        json!({"label": "L", "uriTemplate": template, "changeKind": kind, "capabilities": {"review": {}}})
    }

    #[test]
    fn what_the_catalogue_says_is_offered() {
        let entries = [
            entry("session", "x:/s/changeset/session"),
            entry("turn", "x:/s/changeset/turn/{turnId}"),
            entry("session", "x:/c/changeset/session"),
            entry("two words", "x:/s/changeset/own"),
            entry("compare-turns", "x:/s/{originalTurnId}/{modifiedTurnId}"),
            json!({"label": "no address"}),
        ];
        let offers = offers_of(entries.iter());
        let names: Vec<&str> = offers.iter().map(|offer| offer.name.as_str()).collect();
        assert_eq!(names, ["session", "turn", "session-2", "two-words"]);
        assert!(offers.iter().all(|offer| offer.is_reviewable));
        let turn =
            ListedTurn { id: "a b/c".to_owned(), started_at: String::new(), text: String::new() };
        let uri = offers[1].uri(Some(&turn)).unwrap();
        assert_eq!(uri.as_str(), "x:/s/changeset/turn/a%20b%2Fc");
        let without = json!({"uriTemplate": "x:/s/changeset/own", "changeKind": "own"});
        assert!(!offers_of([&without].into_iter())[0].is_reviewable);
    }
}
