//! A conversation as the model is sent it: users' messages are lowered here, right before they are sent, and nowhere
//! else.
//!
//! Promises: a part that cannot be sent is described instead, and the user is told; what a server rejected is described
//! from then on, so that one attachment cannot spoil a chat.
//! Must not know: where the conversation comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent_api::{AgentEvent, EventSink, Lowering, SharedSources, TurnInput, TurnOver, UserMessage};
use compositor::lower::{Capabilities, Lowered, LoweringDecision, Target, chat_content};
use serde_json::Value;

use super::stop::TurnStop;
use super::{Model, NativeContext};
use crate::lower::{MessageToLower, lower_message, lower_messages};
use crate::provider::{ModelMessage, ProviderError, ProviderErrorKind};

/// The shapes of the one wire format that is spoken.
const TARGET: Target = Target::OpenaiChat;

/// One entry of a conversation: a user's message, not yet in any vendor's shape, or anything else.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum HistoryEntry {
    User(Arc<UserMessage>),
    Model(ModelMessage),
}

impl HistoryEntry {
    pub(super) fn user(text: &str) -> Self {
        Self::User(Arc::new(UserMessage::text(text)))
    }
}

/// The view of one model on one turn.
pub(super) struct ModelView<'a> {
    sources: &'a SharedSources,
    capabilities: Capabilities,
    model: String,
    pub events: &'a dyn EventSink,
    /// Parts that are only described, by the position of their message.
    described: BTreeMap<usize, BTreeSet<usize>>,
    /// What the parts of each message became when they were last lowered.
    decisions: BTreeMap<usize, Vec<LoweringDecision>>,
}

impl<'a> ModelView<'a> {
    pub(super) fn new(
        shared: &NativeContext,
        model: &Model,
        input: &'a TurnInput,
        events: &'a dyn EventSink,
    ) -> Self {
        let mut capabilities = shared.capabilities.of(TARGET, Some(model.server_name()));
        if model.vision == Some(false) {
            capabilities.image = None;
        }
        Self {
            sources: &input.sources,
            capabilities,
            model: model.id.clone(),
            events,
            described: BTreeMap::new(),
            decisions: BTreeMap::new(),
        }
    }

    /// Lowers a conversation. `newest` is the position of the message this turn answers.
    pub(super) async fn lower_conversation(
        &mut self,
        entries: &[HistoryEntry],
        newest: usize,
    ) -> Result<Vec<ModelMessage>, TurnOver> {
        let users: Vec<(usize, MessageToLower)> = entries
            .iter()
            .enumerate()
            .filter_map(|(position, entry)| match entry {
                HistoryEntry::User(message) => Some((
                    position,
                    MessageToLower {
                        message: Arc::clone(message),
                        described: self.described.get(&position).cloned().unwrap_or_default(),
                    },
                )),
                HistoryEntry::Model(_) => None,
            })
            .collect();
        let (positions, users): (Vec<usize>, Vec<MessageToLower>) = users.into_iter().unzip();
        let capabilities = self.capabilities.clone();
        let lowered = lower_messages(self.sources, users, TARGET, capabilities).await;
        let mut contents = BTreeMap::new();
        for (position, lowered) in positions.into_iter().zip(lowered) {
            contents.insert(position, chat_content(&lowered));
            self.decisions.insert(position, lowered.decisions.clone());
            if position == newest {
                self.report(lowered).await?;
            }
        }
        let entries = entries.iter().enumerate();
        let messages = entries.map(|(position, entry)| match entry {
            HistoryEntry::User(_) => {
                ModelMessage::User(contents.remove(&position).unwrap_or(Value::Null))
            }
            HistoryEntry::Model(message) => message.clone(),
        });
        Ok(messages.collect())
    }

    /// Lowers one more message of the turn.
    pub(super) async fn lower_one(
        &mut self,
        message: Arc<UserMessage>,
    ) -> Result<ModelMessage, TurnOver> {
        let capabilities = self.capabilities.clone();
        let lowered = lower_message(self.sources, message, TARGET, capabilities).await;
        let content = chat_content(&lowered);
        self.report(lowered).await?;
        Ok(ModelMessage::User(content))
    }

    /// Tells the user what did not go as meant, and records the blocks for inspectors.
    async fn report(&self, lowered: Lowered) -> Result<(), TurnOver> {
        if !lowered.diagnostics.is_empty() {
            // As paragraphs: notices are Markdown, in which single newlines are none.
            let text = lowered.diagnostics.join("\n\n");
            self.events.send(AgentEvent::Notice { text }).await?;
        }
        let lowering = Lowering {
            target: TARGET.name(),
            model: self.model.clone(),
            blocks: lowered.blocks,
            diagnostics: lowered.diagnostics,
        };
        self.events.record_lowering(lowering).await;
        Ok(())
    }

    /// After a server rejected a request: if bodies may be to blame, the largest is described from now on, and if that does
    /// not help all of them. Returns the conversation without them, or the error if there is none to leave out.
    pub(super) async fn retry_without_rejected_media(
        &mut self,
        error: ProviderError,
        entries: &[HistoryEntry],
        newest: usize,
    ) -> Result<Vec<ModelMessage>, TurnStop> {
        let bodies = self.decisions.iter().flat_map(|(position, decisions)| {
            let bodies = decisions.iter().filter(|decision| is_body(decision));
            bodies.map(|decision| (decision.bytes, *position, decision.part))
        });
        let mut bodies: Vec<(u64, usize, usize)> = bodies.collect();
        bodies.sort_unstable();
        if error.kind != ProviderErrorKind::MediaRejected || bodies.is_empty() {
            return Err(error.into());
        }
        let rejected = match self.described.is_empty() {
            true => bodies.split_off(bodies.len() - 1),
            false => bodies,
        };
        let names: Vec<String> = rejected
            .iter()
            .map(|(_, position, part)| part_name(entries.get(*position), *part))
            .collect();
        for (_, position, part) in rejected {
            self.described.entry(position).or_default().insert(part);
        }
        let names = names.join(", ");
        let text =
            format!("The model's server rejected {names}; the model gets a description instead.");
        self.events.send(AgentEvent::Notice { text }).await?;
        Ok(self.lower_conversation(entries, newest).await?)
    }
}

/// What people call a part.
fn part_name(entry: Option<&HistoryEntry>, part: usize) -> String {
    let object = match entry {
        Some(HistoryEntry::User(message)) => message.parts.get(part).map(|part| part.object()),
        Some(HistoryEntry::Model(_)) | None => None,
    };
    let name = object.and_then(|part| part.get("name").or_else(|| part.get("ref")?.get("path")));
    let name = name.and_then(Value::as_str);
    name.unwrap_or("an attachment").to_owned()
}

fn is_body(decision: &LoweringDecision) -> bool {
    matches!(
        decision.became.as_str(),
        "image" | "document" | "audio" | "video" | "binary"
    )
}
