//! A conversation as the model is sent it: users' messages are lowered here, right before they are sent, and nowhere
//! else.
//!
//! Promises: a part that cannot be sent is described instead, and the user is told.
//! Must not know: where the conversation comes from; when a request is sent again.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::{
    AgentEvent, EventSink, Lowering, ModelTerms, PartDecision, SharedSources, TurnInput, TurnOver,
    UserMessage, model_call,
};
use compositor::Part;
use compositor::lower::{Capabilities, CapabilityMap, Lowered, LoweringDecision, chat_content};
use compositor::part::View;
use serde_json::Value;

use super::orphans::Findings;
use super::outputs::OutputSource;
use super::refusals::Refusals;
use super::{Model, NativeContext};
use crate::lower::{MessageToLower, lower_messages};
use crate::provider::{self, Api, MediaKind, ModelMessage};

/// One entry of a conversation: a user's message, not yet in any vendor's shape, or anything else.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum HistoryEntry {
    User(Arc<UserMessage>),
    Model(ModelMessage),
    /// The result of a call, with bodies: they are lowered like those of a user.
    Result {
        id: String,
        text: String,
        media: Arc<UserMessage>,
    },
}

impl HistoryEntry {
    pub(super) fn user(text: &str) -> Self {
        Self::User(Arc::new(UserMessage::text(text)))
    }

    pub(super) fn result(id: String, text: String, media: Vec<Part>) -> Self {
        if media.is_empty() {
            let blocks = Vec::new();
            return Self::Model(ModelMessage::ToolResult { id, text, blocks });
        }
        let media = Arc::new(UserMessage { parts: media, ..UserMessage::default() });
        Self::Result { id, text, media }
    }
}

/// A body that is sent to the model as itself.
pub(super) struct NativeBody<'a> {
    pub kind: MediaKind,
    pub message: &'a UserMessage,
    /// Where its message stands in the conversation.
    pub position: usize,
    pub part: usize,
}

impl NativeBody<'_> {
    /// What people call it.
    pub(super) fn name(&self) -> String {
        let part = self.message.parts.get(self.part);
        part.and_then(model_call::name_of).unwrap_or("an attachment").to_owned()
    }
}

/// What an attachment is, by its type.
fn kind_of(part: &Part) -> Option<MediaKind> {
    let View::Attachment(of) = part.view() else { return None };
    match of.mime.split('/').next().unwrap_or("") {
        "image" => Some(MediaKind::Image),
        "audio" => Some(MediaKind::Audio),
        "video" => Some(MediaKind::Video),
        _ => (of.mime == "application/pdf").then_some(MediaKind::Document),
    }
}

/// What a model makes of a message that is not sent yet, in a chat where this was refused.
pub(super) fn terms_of(
    known: &CapabilityMap,
    model: &Model,
    refusals: Option<&[u8]>,
    message: &UserMessage,
) -> ModelTerms {
    let refusals = Refusals::read(refusals, &model.id);
    ModelTerms {
        model: model.id.clone(),
        target: model.api.target(),
        capabilities: refusals.reduce(model.capabilities(known)),
        described: refusals.described_parts(message),
        context_tokens: model.facts().context_tokens,
        input_price: model.facts().prices.map(|prices| prices.input),
    }
}

/// The view of one model on one turn.
pub(super) struct ModelView<'a> {
    sources: &'a SharedSources,
    capabilities: Capabilities,
    api: Api,
    model: String,
    pub events: &'a dyn EventSink,
    /// What requests do without.
    refusals: Refusals,
    /// Whether the agent has notes that are about another model.
    notes_are_stale: bool,
    /// What the parts of each message became when they were last lowered, by the position of the message.
    decisions: BTreeMap<usize, Vec<LoweringDecision>>,
    /// Whether a message was lowered to a list.
    has_lists: bool,
    findings: Findings,
}

impl<'a> ModelView<'a> {
    pub(super) fn new(
        shared: &NativeContext,
        model: &Model,
        input: &'a TurnInput,
        events: &'a dyn EventSink,
    ) -> Self {
        let refusals = Refusals::read(input.refusals.as_deref(), &model.id);
        Self {
            sources: &input.sources,
            capabilities: model.capabilities(&shared.capabilities),
            api: model.api,
            model: model.id.clone(),
            events,
            notes_are_stale: input.refusals.is_some() && refusals.is_empty(),
            refusals,
            decisions: BTreeMap::new(),
            has_lists: false,
            findings: Findings::default(),
        }
    }

    /// From now on calls without an end are sent with what is known of them.
    pub(super) fn set_findings(&mut self, findings: Findings) {
        self.findings = findings;
    }

    /// Forgets what another model refused (G-50).
    pub(super) async fn forget_other_models(&mut self) -> Result<(), TurnOver> {
        if !std::mem::take(&mut self.notes_are_stale) {
            return Ok(()); // there is nothing to forget
        }
        let nothing = AgentEvent::Refusals(self.refusals.notes());
        self.events.send(nothing).await
    }

    /// Whose answers may go back.
    pub(super) fn source(&self) -> OutputSource {
        OutputSource {
            api: self.api,
            model: self.model.clone(),
            findings: Findings::clone(&self.findings),
        }
    }

    pub(super) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(super) fn set_refusals(&mut self, refusals: Refusals) {
        self.refusals = refusals;
    }

    /// Lowers a conversation. `newest` is the position of the message this turn answers: what cannot be sent of it is said.
    pub(super) async fn lower_conversation(
        &mut self,
        entries: &[HistoryEntry],
        newest: usize,
    ) -> Result<Vec<ModelMessage>, TurnOver> {
        let (messages, newest) = self.lower_all(entries, newest).await;
        if let Some(lowered) = newest {
            self.report(lowered).await?;
        }
        Ok(messages)
    }

    /// Lowers it once more after something was refused: what is different now is said elsewhere.
    pub(super) async fn lower_again(
        &mut self,
        entries: &[HistoryEntry],
        newest: usize,
    ) -> Vec<ModelMessage> {
        let (messages, newest) = self.lower_all(entries, newest).await;
        if let Some(lowered) = newest {
            self.record(lowered).await;
        }
        messages
    }

    /// Lowers one more message of the turn, which stands at `position`.
    pub(super) async fn lower_one(
        &mut self,
        message: Arc<UserMessage>,
        position: usize,
    ) -> Result<ModelMessage, TurnOver> {
        let entry = [HistoryEntry::User(message)];
        let (mut messages, lowered) = self.lower_entries(&entry, position, position).await;
        if let Some(lowered) = lowered {
            self.report(lowered).await?;
        }
        Ok(messages.pop().unwrap_or(ModelMessage::User(Value::Null)))
    }

    async fn lower_all(
        &mut self,
        entries: &[HistoryEntry],
        newest: usize,
    ) -> (Vec<ModelMessage>, Option<Lowered>) {
        self.has_lists = false;
        self.decisions.clear();
        self.lower_entries(entries, 0, newest).await
    }

    /// Lowers one more entry that is not the user's.
    pub(super) async fn lower_entry(
        &mut self,
        entry: &HistoryEntry,
        position: usize,
    ) -> ModelMessage {
        if let HistoryEntry::Model(message) = entry {
            return self.keep_or_strip(message);
        }
        let entries = std::slice::from_ref(entry);
        let (mut messages, _) = self.lower_entries(entries, position, usize::MAX).await;
        messages.pop().unwrap_or(ModelMessage::User(Value::Null))
    }

    /// The messages of entries that begin at `first`, and what the one at `newest` became.
    async fn lower_entries(
        &mut self,
        entries: &[HistoryEntry],
        first: usize,
        newest: usize,
    ) -> (Vec<ModelMessage>, Option<Lowered>) {
        let users: Vec<MessageToLower> = entries
            .iter()
            .filter_map(|entry| match entry {
                HistoryEntry::User(message) | HistoryEntry::Result { media: message, .. } => {
                    Some(MessageToLower {
                        message: Arc::clone(message),
                        described: self.refusals.described_parts(message),
                    })
                }
                HistoryEntry::Model(_) => None,
            })
            .collect();
        let capabilities = self.refusals.reduce(self.capabilities.clone());
        let mut lowered =
            lower_messages(self.sources, users, self.api.target(), capabilities).await.into_iter();
        let mut reported = None;
        let mut messages = Vec::with_capacity(entries.len());
        for (position, entry) in (first..).zip(entries) {
            messages.push(match entry {
                HistoryEntry::Model(message) => self.keep_or_strip(message),
                HistoryEntry::Result { id, text, .. } => {
                    let lowered = lowered.next().unwrap_or_default();
                    let result = self.result_of(id, text, &lowered);
                    self.decisions.insert(position, lowered.decisions);
                    result
                }
                HistoryEntry::User(_) => {
                    let lowered = lowered.next().unwrap_or_default();
                    let content = self.content_of(&lowered);
                    self.decisions.insert(position, lowered.decisions.clone());
                    if position == newest {
                        reported = Some(lowered);
                    }
                    ModelMessage::User(content)
                }
            });
        }
        (messages, reported)
    }

    /// The content of a user's message. Where texts and lists are both taken, some servers take only texts.
    fn content_of(&mut self, lowered: &Lowered) -> Value {
        match self.api {
            Api::Chat => {
                let content = chat_content(lowered);
                self.has_lists |= content.is_array();
                content
            }
            Api::Anthropic | Api::Responses | Api::Gemini => Value::Array(lowered.blocks.clone()),
        }
    }

    /// The result of a call with its bodies. Where a result is a text, what is said of bodies is a part of it, and those
    /// that go as themselves come after it.
    fn result_of(&mut self, id: &str, text: &str, lowered: &Lowered) -> ModelMessage {
        let mut text = text.to_owned();
        let mut blocks = lowered.blocks.clone();
        if self.api == Api::Chat {
            blocks.retain(|block| match block["text"].as_str() {
                Some(described) => {
                    text.push('\n');
                    text.push_str(described);
                    false
                }
                None => true,
            });
            self.has_lists |= !blocks.is_empty();
        }
        ModelMessage::ToolResult { id: id.to_owned(), text: text.trim_start().to_owned(), blocks }
    }

    /// Whether the model's answers go back as its server wants them, and not in our words. It is the same for all of them:
    /// a server takes what it signed also after something else of the conversation was left out, but not some of it.
    fn sends_items(&self) -> bool {
        !self.refusals.signatures
    }

    /// A message of the model as it goes back: without what its server had added, if that is refused.
    fn keep_or_strip(&self, message: &ModelMessage) -> ModelMessage {
        match message {
            ModelMessage::Assistant { text, calls, items: Some(_) } if !self.sends_items() => {
                ModelMessage::Assistant { text: text.clone(), calls: calls.clone(), items: None }
            }
            message => message.clone(),
        }
    }

    /// Tells the user what did not go as meant, and records the blocks for inspectors.
    async fn report(&self, lowered: Lowered) -> Result<(), TurnOver> {
        if !lowered.diagnostics.is_empty() {
            // As paragraphs: notices are Markdown, in which single newlines are none.
            let text = lowered.diagnostics.join("\n\n");
            self.events.send(AgentEvent::Notice { text }).await?;
        }
        self.record(lowered).await;
        Ok(())
    }

    async fn record(&self, lowered: Lowered) {
        let lowering = Lowering {
            target: self.api.target().name(),
            model: self.model.clone(),
            blocks: lowered.blocks,
            diagnostics: lowered.diagnostics,
        };
        self.events.record_lowering(lowering).await;
    }

    /// Whether a message is a list where a text could stand.
    pub(super) fn has_lists(&self) -> bool {
        self.has_lists
    }

    /// Whether something of the model goes back that only its server can read.
    pub(super) fn has_signatures(&self, entries: &[HistoryEntry]) -> bool {
        let is_signed = |entry: &HistoryEntry| match entry {
            HistoryEntry::Model(ModelMessage::Assistant { items: Some(items), .. }) => {
                provider::has_additions(self.api, items)
            }
            HistoryEntry::Model(_) | HistoryEntry::User(_) | HistoryEntry::Result { .. } => false,
        };
        self.sends_items() && entries.iter().any(is_signed)
    }

    /// The attachments of messages before a position that the model was not sent as themselves when they were last lowered.
    pub(super) fn described<'e>(
        &self,
        entries: &'e [HistoryEntry],
        before: usize,
    ) -> Vec<NativeBody<'e>> {
        let mut described = Vec::new();
        for (position, decisions) in self.decisions.range(..before) {
            let Some(HistoryEntry::User(message)) = entries.get(*position) else {
                continue; // results are described again
            };
            for decision in decisions {
                let part = message.parts.get(decision.part);
                let kind = part.and_then(kind_of);
                if let Some(kind) = kind.filter(|kind| kind.as_str() != decision.became) {
                    described.push(NativeBody {
                        kind,
                        message,
                        position: *position,
                        part: decision.part,
                    });
                }
            }
        }
        described
    }

    /// How the parts of the entries were sent when they were last lowered, for `inspect`.
    pub(super) fn describe_decisions(&self, entries: &[HistoryEntry]) -> Vec<PartDecision> {
        let mut described = Vec::new();
        for (position, decisions) in &self.decisions {
            let message = match entries.get(*position) {
                Some(HistoryEntry::User(message)) => message,
                Some(HistoryEntry::Result { media, .. }) => media,
                _ => continue, // the model's own texts have no parts
            };
            described.extend(decisions.iter().map(|decision| {
                let part = message.parts.get(decision.part);
                PartDecision::new(*position, part, decision)
            }));
        }
        described
    }

    /// The bodies that were sent as themselves when the entries were last lowered.
    pub(super) fn natives<'e>(&self, entries: &'e [HistoryEntry]) -> Vec<NativeBody<'e>> {
        let mut natives = Vec::new();
        for (position, decisions) in &self.decisions {
            let message = match entries.get(*position) {
                Some(HistoryEntry::User(message)) => message,
                Some(HistoryEntry::Result { media, .. }) => media,
                _ => continue, // nothing of it was sent as itself
            };
            natives.extend(decisions.iter().filter_map(|decision| {
                let all = MediaKind::ALL.into_iter();
                let kind = all.into_iter().find(|kind| kind.as_str() == decision.became);
                Some(NativeBody { kind: kind?, message, position: *position, part: decision.part })
            }));
        }
        natives
    }
}
