//! What a model's server refused in a chat: later requests do without it (G-50).
//!
//! Promises: it holds for one chat and one model; what cannot be read is forgotten, and so is what is about another model.
//! Must not know: how a request is made.

use std::collections::BTreeSet;

use agent_api::{AgentEvent, UserMessage};
use bytes::Bytes;
use compositor::lower::Capabilities;
use compositor::resolve::Resolved;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::provider::MediaKind;

/// Single bodies that are remembered; the oldest are forgotten first.
const BODIES_MAX: usize = 500;

/// Hexadecimal digits by which a body is recognised.
const DIGEST_DIGITS: usize = 32;

/// What requests do without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Refusals {
    /// The model by its id in the configuration.
    model: String,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub kinds: BTreeSet<MediaKind>,
    /// Single bodies, by their digests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bodies: Vec<String>,
    /// Its server takes texts where others take lists, and no bodies at all.
    pub strings_only: bool,
    /// Its server does not take back what it had added to the model's answers.
    pub signatures: bool,
    /// Its server wants thoughts with each of the model's answers, if only empty ones.
    pub blank_reasoning: bool,
    /// Its server does not show what it thinks.
    pub hides_thoughts: bool,
}

/// What a refusal taught, as soon as the smaller request is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LearnedRefusal {
    notes: Bytes,
    notice: String,
}

impl LearnedRefusal {
    /// What is recorded and said.
    pub(super) fn into_events(self) -> [AgentEvent; 2] {
        [AgentEvent::Refusals(self.notes), AgentEvent::Notice { text: self.notice }]
    }
}

impl Refusals {
    /// What was noted about a model; nothing if the notes are about another one.
    pub(super) fn read(notes: Option<&[u8]>, model: &str) -> Self {
        let nothing = Self { model: model.to_owned(), ..Self::default() };
        let Some(notes) = notes else {
            return nothing; // nothing was refused yet
        };
        match serde_json::from_slice::<Self>(notes) {
            Ok(known) if known.model == model => known,
            Ok(_) | Err(_) => nothing,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
            && self.bodies.is_empty()
            && !self.strings_only
            && !self.signatures
            && !self.blank_reasoning
            && !self.hides_thoughts
    }

    /// As it is stored; empty if there is nothing to remember.
    pub(super) fn notes(&self) -> Bytes {
        if self.is_empty() { Bytes::new() } else { Bytes::from(wire::rpc::to_json(self)) }
    }

    pub(super) fn add_body(&mut self, message: &UserMessage, part: usize) {
        let Some(digest) = digest_of(message, part) else {
            return; // not a part of the message: nothing of it was sent
        };
        if !self.bodies.contains(&digest) {
            self.bodies.push(digest);
        }
        let over = self.bodies.len().saturating_sub(BODIES_MAX);
        self.bodies.drain(..over);
    }

    /// The parts of a message that are only described.
    pub(super) fn described_parts(&self, message: &UserMessage) -> BTreeSet<usize> {
        if self.bodies.is_empty() {
            return BTreeSet::new();
        }
        let parts = 0..message.parts.len();
        let is_refused = |part: &usize| {
            let digest = digest_of(message, *part);
            digest.is_some_and(|digest| self.bodies.contains(&digest))
        };
        parts.filter(is_refused).collect()
    }

    /// What is left of what a model takes.
    pub(super) fn reduce(&self, mut capabilities: Capabilities) -> Capabilities {
        for kind in &self.kinds {
            match kind {
                MediaKind::Image => capabilities.image = None,
                MediaKind::Document => capabilities.pdf = None,
                MediaKind::Audio => capabilities.audio = None,
                MediaKind::Video => capabilities.video = None,
            }
        }
        capabilities.text_only |= self.strings_only;
        capabilities
    }

    /// What is recorded and said of what was learned beyond `before`. `bodies` are the names of single bodies.
    pub(super) fn learned_since(&self, before: &Self, bodies: &[String]) -> LearnedRefusal {
        LearnedRefusal { notes: self.notes(), notice: self.describe_since(before, bodies) }
    }

    /// What the user reads of what was learned.
    fn describe_since(&self, before: &Self, bodies: &[String]) -> String {
        const AGAIN: &str = "`/retry-attachments` sends them again.";
        let new: Vec<&str> =
            self.kinds.difference(&before.kinds).map(|kind| kind.plural()).collect();
        if self.strings_only && !before.strings_only {
            return format!(
                "This model takes plain text only; it got descriptions of attachments, and the text of PDFs. {AGAIN}"
            );
        }
        if !new.is_empty() {
            let kinds = join_words(&new);
            let got = if new.contains(&MediaKind::Document.plural()) {
                "it got the text of PDFs, or a description"
            } else {
                "it got a description"
            };
            return format!("This model does not take {kinds}; {got}. {AGAIN}");
        }
        if self.signatures && !before.signatures {
            let words =
                "The model's server does not take its earlier reasoning any more; it is left out.";
            return words.to_owned();
        }
        if self.blank_reasoning && !before.blank_reasoning {
            let words = "The model's server wants the model's reasoning with all its answers; those that have none got an empty one.";
            return words.to_owned();
        }
        if before.blank_reasoning && !self.blank_reasoning {
            let words = "The model's server does not take empty reasoning any more; answers that have none are sent without.";
            return words.to_owned();
        }
        if self.hides_thoughts && !before.hides_thoughts {
            let words = "The model's server does not show what the model thinks to this account; it is not asked for it any more.";
            return words.to_owned();
        }
        let names = bodies.join(", ");
        format!(
            "The model's server did not take {names}; the model got a description, or the text of a PDF. {AGAIN}"
        )
    }
}

fn join_words(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// By what a part is recognised in later turns: what it says, and the bytes that it turned out to mean.
fn digest_of(message: &UserMessage, part: usize) -> Option<String> {
    let mut hasher = Sha256::new();
    hasher.update(wire::rpc::to_json(message.parts.get(part)?.object()));
    if let Some(Resolved::Media { bytes, .. }) = message.resolved.get(&part) {
        hasher.update(Sha256::digest(bytes));
    }
    let mut digest = wire::Digest::new(hasher.finalize().into()).to_hex();
    digest.truncate(DIGEST_DIGITS);
    Some(digest)
}

#[cfg(test)]
mod tests {
    use compositor::Part;
    use serde_json::json;

    use super::*;

    fn message(names: &[&str]) -> UserMessage {
        let part = |name: &&str| {
            let value = json!({"type": "attachment", "name": name, "mime": "image/png"});
            Part::from_value(value).unwrap()
        };
        UserMessage { parts: names.iter().map(part).collect(), ..UserMessage::default() }
    }

    #[test]
    fn it_is_about_one_model_and_survives_being_stored() {
        let mut refusals = Refusals::read(None, "m");
        assert!(refusals.is_empty() && refusals.notes().is_empty());
        refusals.kinds.insert(MediaKind::Document);
        refusals.add_body(&message(&["a", "b"]), 1);
        let notes = refusals.notes();
        let read = Refusals::read(Some(&notes), "m");
        assert_eq!(read, refusals);
        let described = read.described_parts(&message(&["x", "b", "a"]));
        assert_eq!(described, BTreeSet::from([1]));
        assert!(Refusals::read(Some(&notes), "other").is_empty());
        assert!(Refusals::read(Some(b"?"), "m").is_empty());
    }

    #[test]
    fn the_number_of_bodies_is_bounded() {
        let mut refusals = Refusals::default();
        for number in 0..BODIES_MAX + 10 {
            refusals.add_body(&message(&[&number.to_string()]), 0);
        }
        assert_eq!(refusals.bodies.len(), BODIES_MAX);
        assert!(refusals.notes().len() < 64 << 10);
    }

    #[test]
    fn what_was_learned_is_said_in_a_sentence() {
        let before = Refusals::default();
        let mut after = before.clone();
        after.add_body(&message(&["a"]), 0);
        let said = after.describe_since(&before, &["a.png".to_owned()]);
        assert!(said.contains("did not take a.png;"), "{said}");
        after.kinds.extend([MediaKind::Document, MediaKind::Image]);
        let said = after.describe_since(&before, &[]);
        assert!(said.contains("does not take images and PDFs; it got the text of PDFs"), "{said}");
        after.strings_only = true;
        let said = after.describe_since(&before, &[]);
        assert!(said.contains("plain text only"), "{said}");
        let with_blanks = Refusals { blank_reasoning: true, ..before.clone() };
        let said = before.describe_since(&with_blanks, &[]);
        assert!(said.contains("empty reasoning any more"), "{said}");
    }
}
