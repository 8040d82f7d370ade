//! A user's message as an agent gets it: typed parts, and the way from there to a provider's shapes.
//!
//! Promises: parts stay what they are; only [`Outside::lower`] makes anything else of them, and what it may touch outside
//! was handed in by the host. Must not know: where bodies and files lie.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use compositor::lower::{Capabilities, Lowered, Message, Target, lower_all};
use compositor::part::View;
use compositor::resolve::{
    FileRead, ImageLimits, InlineLimits, Resolved, Scanned, Sources, WhyUnavailable,
};
use compositor::{Part, part};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wire::Object;

/// Longest string of a block that inspectors are given as it is; of what is longer they learn size and digest.
const SHOWN_BYTES_MAX: usize = 64 * 1_024;

/// A message of a user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserMessage {
    pub parts: Vec<Part>,
    /// What the references among its parts turned out to be when they were first looked at, by part (C-021).
    pub resolved: BTreeMap<usize, Resolved>,
}

impl UserMessage {
    pub fn text(text: &str) -> Self {
        Self {
            parts: vec![Part::text(text)],
            resolved: BTreeMap::new(),
        }
    }

    /// The skills it mentions that there are, each once, in order.
    pub fn skills(&self) -> Vec<&str> {
        let mut skills = Vec::new();
        for part in &self.parts {
            if let View::Mention(part::Mention {
                target:
                    part::Target::Skill {
                        name,
                        unresolved: false,
                    },
                ..
            }) = part.view()
                && !skills.contains(&name)
            {
                skills.push(name);
            }
        }
        skills
    }
}

/// A message and the parts of it that a provider refused: they are described instead.
#[derive(Debug, Clone, Default)]
pub struct ToLower {
    pub message: Arc<UserMessage>,
    pub described: BTreeSet<usize>,
}

/// The world outside a message, as far as the host lets it be seen.
#[derive(Clone)]
pub struct Outside(Arc<Mutex<dyn Sources + Send>>);

impl std::fmt::Debug for Outside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outside")
    }
}

impl Default for Outside {
    fn default() -> Self {
        Self::new(Nothing)
    }
}

impl Outside {
    pub fn new(sources: impl Sources + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(sources)))
    }

    /// The same that others look at, too.
    pub fn shared(sources: Arc<Mutex<dyn Sources + Send>>) -> Self {
        Self(sources)
    }

    /// What a target is shown of one message.
    pub async fn lower(
        &self,
        message: Arc<UserMessage>,
        target: Target,
        capabilities: Capabilities,
    ) -> Lowered {
        let message = ToLower {
            message,
            described: BTreeSet::new(),
        };
        let mut lowered = self.lower_all(vec![message], target, capabilities).await;
        lowered.pop().unwrap_or_default()
    }

    /// What a target is shown of the messages of one request, in their order. The newest get their room first.
    pub async fn lower_all(
        &self,
        messages: Vec<ToLower>,
        target: Target,
        capabilities: Capabilities,
    ) -> Vec<Lowered> {
        let outside = Arc::clone(&self.0);
        let work = tokio::task::spawn_blocking(move || {
            let mut sources = outside.lock().unwrap_or_else(PoisonError::into_inner);
            let messages: Vec<Message<'_>> = messages
                .iter()
                .map(|to| Message {
                    parts: &to.message.parts,
                    resolved: &to.message.resolved,
                    described: &to.described,
                })
                .collect();
            let limits = InlineLimits::default();
            lower_all(&messages, limits, target, &capabilities, &mut *sources)
        });
        match work.await {
            Ok(lowered) => lowered,
            // A defect of ours: the turn ends in it, rather than with a model that was shown nothing.
            Err(died) => std::panic::resume_unwind(died.into_panic()),
        }
    }
}

/// A block whose long strings are named by their digest: what was sent can be proved without being kept twice.
pub fn without_bodies(block: Value) -> Value {
    match block {
        Value::String(text) if text.len() > SHOWN_BYTES_MAX => {
            let digest = Sha256::digest(text.as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({"$sha256": hex, "bytes": text.len()})
        }
        Value::Array(items) => items.into_iter().map(without_bodies).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, without_bodies(value)))
            .collect(),
        other => other,
    }
}

/// A world with nothing in it.
struct Nothing;

impl Sources for Nothing {
    fn file(&mut self, _: &str, _: u64) -> FileRead {
        FileRead::Unavailable(WhyUnavailable::NotFound)
    }

    fn scan(&mut self, _: &str, _: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Scanned {
        Scanned::Unavailable(WhyUnavailable::NotFound)
    }

    fn body(&mut self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn entity(&mut self, _: &str, _: &Object) -> bool {
        false
    }

    fn staged(&mut self, _: &Part) -> Option<String> {
        None
    }

    fn fit_image(&mut self, _: &str, _: &[u8], _: &ImageLimits) -> Option<(String, Vec<u8>)> {
        None
    }

    fn absolute(&self, path: &str) -> String {
        path.to_owned()
    }
}
