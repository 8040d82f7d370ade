//! What the model is shown of a conversation: users' messages are lowered here, right before they are sent, and nowhere
//! else.
//!
//! Promises: a part that cannot be sent is described instead, and the user is told; what a server refused is described
//! from then on, so that one attachment cannot spoil a chat.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent_api::{AgentEvent, EventSink, Lowering, SharedSources, TurnOver, UserMessage};
use compositor::lower::{Capabilities, Decision, Lowered, Target, chat_content};
use serde_json::Value;

use super::turn::Stop;
use crate::lower::{MessageToLower, lower_message, lower_messages};
use crate::provider::{ModelMessage, ProviderError, ProviderErrorKind};

/// The shapes of the one wire format that is spoken.
const TARGET: Target = Target::OpenaiChat;

/// One entry of a conversation: what a user said, not yet in any vendor's shape, or all else.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Told {
    User(Arc<UserMessage>),
    Model(ModelMessage),
}

impl Told {
    pub(super) fn user(text: &str) -> Self {
        Self::User(Arc::new(UserMessage::text(text)))
    }
}

/// The view of one model on one turn.
pub(super) struct Shown<'a> {
    pub sources: &'a SharedSources,
    pub capabilities: Capabilities,
    pub model: String,
    pub events: &'a dyn EventSink,
    /// Parts that are only described, by the place of their message.
    pub described: BTreeMap<usize, BTreeSet<usize>>,
    /// What became of the parts of each message when they were last lowered.
    pub decided: BTreeMap<usize, Vec<Decision>>,
}

impl Shown<'_> {
    /// The conversation as the model is sent it. `newest` is the place of the message this turn answers.
    pub(super) async fn all(
        &mut self,
        told: &[Told],
        newest: usize,
    ) -> Result<Vec<ModelMessage>, TurnOver> {
        let users: Vec<(usize, MessageToLower)> = told
            .iter()
            .enumerate()
            .filter_map(|(place, told)| match told {
                Told::User(message) => Some((
                    place,
                    MessageToLower {
                        message: Arc::clone(message),
                        described: self.described.get(&place).cloned().unwrap_or_default(),
                    },
                )),
                Told::Model(_) => None,
            })
            .collect();
        let (places, users): (Vec<usize>, Vec<MessageToLower>) = users.into_iter().unzip();
        let capabilities = self.capabilities.clone();
        let lowered = lower_messages(self.sources, users, TARGET, capabilities).await;
        let mut contents = BTreeMap::new();
        for (place, lowered) in places.into_iter().zip(lowered) {
            contents.insert(place, chat_content(&lowered));
            self.decided.insert(place, lowered.decisions.clone());
            if place == newest {
                self.tell(lowered).await?;
            }
        }
        let messages = told.iter().enumerate().map(|(place, told)| match told {
            Told::User(_) => ModelMessage::User(contents.remove(&place).unwrap_or(Value::Null)),
            Told::Model(message) => message.clone(),
        });
        Ok(messages.collect())
    }

    /// One more message of the turn.
    pub(super) async fn one(
        &mut self,
        message: Arc<UserMessage>,
    ) -> Result<ModelMessage, TurnOver> {
        let capabilities = self.capabilities.clone();
        let lowered = lower_message(self.sources, message, TARGET, capabilities).await;
        let content = chat_content(&lowered);
        self.tell(lowered).await?;
        Ok(ModelMessage::User(content))
    }

    /// The user hears what did not go as meant, inspectors see the blocks.
    async fn tell(&self, lowered: Lowered) -> Result<(), TurnOver> {
        if !lowered.diagnostics.is_empty() {
            let text = lowered.diagnostics.join("\n");
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

    /// The server did not take the request as it was. If a body may be to blame, the largest is described from now on,
    /// and if that does not help all of them: the conversation without, or the error if there is none to leave out.
    pub(super) async fn without_what_is_unfit(
        &mut self,
        error: ProviderError,
        told: &[Told],
        newest: usize,
    ) -> Result<Vec<ModelMessage>, Stop> {
        let bodies = self.decided.iter().flat_map(|(place, decisions)| {
            let bodies = decisions.iter().filter(|decision| is_body(decision));
            bodies.map(|decision| (decision.bytes, *place, decision.part))
        });
        let mut bodies: Vec<(u64, usize, usize)> = bodies.collect();
        bodies.sort_unstable();
        if error.kind != ProviderErrorKind::Unfit || bodies.is_empty() {
            return Err(error.into());
        }
        let unfit = match self.described.is_empty() {
            true => bodies.split_off(bodies.len() - 1),
            false => bodies,
        };
        let names: Vec<String> = unfit
            .iter()
            .map(|(_, place, part)| name_of(told.get(*place), *part))
            .collect();
        for (_, place, part) in unfit {
            self.described.entry(place).or_default().insert(part);
        }
        let names = names.join(", ");
        let text =
            format!("The model's server did not take {names}: the model is only told of it.");
        self.events.send(AgentEvent::Notice { text }).await?;
        Ok(self.all(told, newest).await?)
    }
}

/// What a part is called.
fn name_of(told: Option<&Told>, part: usize) -> String {
    let object = match told {
        Some(Told::User(message)) => message.parts.get(part).map(|part| part.object()),
        Some(Told::Model(_)) | None => None,
    };
    let name = object.and_then(|part| part.get("name").or_else(|| part.get("ref")?.get("path")));
    let name = name.and_then(Value::as_str);
    name.unwrap_or("an attachment").to_owned()
}

fn is_body(decision: &Decision) -> bool {
    matches!(
        decision.became.as_str(),
        "image" | "document" | "audio" | "video" | "binary"
    )
}
