//! The state of a chat channel: completed turns shared, the active turn with constant-time access to its parts.

use std::collections::HashMap;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{Fields, StateError, Turn, TurnList};
use crate::Object;

/// A chat. Optional fields without a field of their own here live in `extra`.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatState {
    pub resource: String,
    pub title: String,
    pub status: u32,
    pub activity: Option<String>,
    pub modified_at: String,
    pub working_directories: Option<Vec<String>>,
    pub turns: Arc<TurnList>,
    pub turns_next_cursor: Option<String>,
    pub active_turn: Option<ActiveTurn>,
    pub steering_message: Option<PendingMessage>,
    pub queued_messages: Vec<PendingMessage>,
    pub draft: Option<Value>,
    pub extra: Object,
}

/// A message that waits: steering or queued.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingMessage {
    pub id: String,
    /// Shared: it may be large.
    pub message: Arc<Value>,
}

/// The turn that is running.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveTurn {
    pub id: String,
    pub started_at: String,
    /// Shared: it may be large, and whoever works on it has it, too.
    pub message: Arc<Value>,
    pub parts: PartList,
    pub usage: Option<Value>,
    pub extra: Object,
}

/// One response part, as its JSON object.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponsePart(pub Object);

/// Response parts in stream order, found by id in constant time however many there are.
#[derive(Debug, Clone, Default)]
pub struct PartList {
    items: Vec<Arc<ResponsePart>>,
    /// The position of the first part with an id: the reducers' rule for ids that occur twice.
    index: HashMap<Arc<str>, usize>,
}

impl PartialEq for PartList {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl ResponsePart {
    pub fn kind(&self) -> &str {
        self.0.get("kind").and_then(Value::as_str).unwrap_or("")
    }

    /// The id that deltas and tool-call actions address: text parts and tool calls have one, others do not.
    pub fn address(&self) -> Option<&str> {
        match self.kind() {
            "markdown" | "reasoning" => self.0.get("id")?.as_str(),
            "toolCall" => self.0.get("toolCall")?.get("toolCallId")?.as_str(),
            _ => None,
        }
    }

    /// Appends to a text field in place; `false` if there is no such text.
    pub fn append(&mut self, field: &str, text: &str) -> bool {
        match self.0.get_mut(field) {
            Some(Value::String(content)) => {
                content.push_str(text);
                true
            }
            _ => false,
        }
    }
}

impl PartList {
    pub fn new(parts: Vec<ResponsePart>) -> Self {
        let mut list = Self::default();
        for part in parts {
            list.push(part);
        }
        list
    }

    pub fn push(&mut self, part: ResponsePart) {
        if let Some(id) = part.address() {
            let position = self.items.len();
            self.index.entry(Arc::from(id)).or_insert(position);
        }
        self.items.push(Arc::new(part));
    }

    pub fn get(&self, address: &str) -> Option<&ResponsePart> {
        self.items.get(*self.index.get(address)?).map(|part| &**part)
    }

    /// The first part with this address, to be changed. Its address must stay what it is.
    pub fn get_mut(&mut self, address: &str) -> Option<&mut ResponsePart> {
        let position = *self.index.get(address)?;
        self.items.get_mut(position).map(Arc::make_mut)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &ResponsePart> {
        self.items.iter().map(|part| &**part)
    }

    /// The parts in order, to be changed one by one.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ResponsePart> {
        self.items.iter_mut().map(Arc::make_mut)
    }

    /// The first part that `matches` accepts, to be changed; only that part is copied if it is shared.
    pub fn find_mut(
        &mut self,
        matches: impl Fn(&ResponsePart) -> bool,
    ) -> Option<&mut ResponsePart> {
        self.items.iter_mut().find(|part| matches(part)).map(Arc::make_mut)
    }

    /// The parts in order, moved; one that is shared is copied.
    pub fn into_parts(self) -> impl Iterator<Item = ResponsePart> {
        self.items.into_iter().map(Arc::unwrap_or_clone)
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl PendingMessage {
    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("a pending message", value)?;
        let id = fields.text("id")?;
        let message = fields.take("message").ok_or_else(|| fields.missing("message"))?;
        let message = Arc::new(message);
        Ok(Self { id, message })
    }
}

impl ActiveTurn {
    pub fn new(id: &str, started_at: &str, message: impl Into<Arc<Value>>) -> Self {
        Self {
            id: id.to_owned(),
            started_at: started_at.to_owned(),
            message: message.into(),
            parts: PartList::default(),
            usage: None,
            extra: Object::new(),
        }
    }

    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("an active turn", value)?;
        Ok(Self {
            id: fields.text("id")?,
            started_at: fields.text("startedAt")?,
            message: fields
                .take("message")
                .map(Arc::new)
                .ok_or_else(|| fields.missing("message"))?,
            parts: PartList::new(
                fields
                    .list("responseParts")
                    .unwrap_or_default()
                    .into_iter()
                    .filter_map(|part| match part {
                        Value::Object(part) => Some(ResponsePart(part)),
                        _ => None,
                    })
                    .collect(),
            ),
            usage: fields.take("usage"),
            extra: fields.rest(),
        })
    }
}

impl ChatState {
    /// A chat without turns.
    pub fn new(resource: &str, title: &str, status: u32, modified_at: String) -> Self {
        Self {
            resource: resource.to_owned(),
            title: title.to_owned(),
            status,
            activity: None,
            modified_at,
            working_directories: None,
            turns: Arc::default(),
            turns_next_cursor: None,
            active_turn: None,
            steering_message: None,
            queued_messages: Vec::new(),
            draft: None,
            extra: Object::new(),
        }
    }

    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("a chat", value)?;
        let turns: Result<Vec<_>, _> = fields
            .list("turns")
            .unwrap_or_default()
            .iter()
            .map(|turn| Turn::from_value(turn).map(Arc::new))
            .collect();
        let queued = fields.list("queuedMessages").unwrap_or_default();
        Ok(Self {
            resource: fields.text("resource")?,
            title: fields.text("title")?,
            status: fields.status()?,
            activity: fields.optional_text("activity"),
            modified_at: fields.text("modifiedAt")?,
            working_directories: fields.texts("workingDirectories"),
            turns: Arc::new(TurnList::new(turns?)),
            turns_next_cursor: fields.optional_text("turnsNextCursor"),
            active_turn: fields.take("activeTurn").map(ActiveTurn::from_value).transpose()?,
            steering_message: fields
                .take("steeringMessage")
                .map(PendingMessage::from_value)
                .transpose()?,
            queued_messages: queued
                .into_iter()
                .map(PendingMessage::from_value)
                .collect::<Result<_, _>>()?,
            draft: fields.take("draft"),
            extra: fields.rest(),
        })
    }

    /// The JSON of this chat with `turns` (joined, without brackets) and `cursor` instead of its own: how a
    /// snapshot with a window is put together from bytes that are already there.
    pub fn encode_with(&self, turns: &[u8], cursor: Option<&str>) -> Vec<u8> {
        let (head, tail) = self.encode_around(cursor);
        let mut json = Vec::with_capacity(head.len() + turns.len() + tail.len());
        json.extend_from_slice(&head);
        json.extend_from_slice(turns);
        json.extend_from_slice(&tail);
        json
    }

    /// The JSON before and after the joined turns.
    pub fn encode_around(&self, cursor: Option<&str>) -> (Vec<u8>, Vec<u8>) {
        let json = crate::rpc::to_json(&ChatHead { chat: self, cursor });
        // `turns` is written last of all fields, and empty: the JSON ends in `"turns":[]}`.
        let head = json[..json.len() - 2].to_vec();
        (head, b"]}".to_vec())
    }

    /// The JSON of this chat without its turns: what the journal stores as the head of its channel.
    pub fn encode_head(&self) -> Vec<u8> {
        crate::rpc::to_json(&ChatHead { chat: self, cursor: None })
    }

    /// The whole chat as JSON.
    pub fn value(&self) -> Value {
        let json = self
            .encode_with(&self.turns.pieces_from(0).concat(), self.turns_next_cursor.as_deref());
        let value = serde_json::from_slice(&json);
        debug_assert!(value.is_ok(), "turns are JSON");
        value.unwrap_or_default()
    }
}

struct ChatHead<'a> {
    chat: &'a ChatState,
    cursor: Option<&'a str>,
}

impl Serialize for ChatHead<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let chat = self.chat;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resource", &chat.resource)?;
        map.serialize_entry("title", &chat.title)?;
        map.serialize_entry("status", &chat.status)?;
        if let Some(activity) = &chat.activity {
            map.serialize_entry("activity", activity)?;
        }
        map.serialize_entry("modifiedAt", &chat.modified_at)?;
        if let Some(directories) = &chat.working_directories {
            map.serialize_entry("workingDirectories", directories)?;
        }
        for (key, value) in &chat.extra {
            map.serialize_entry(key, value)?;
        }
        if let Some(turn) = &chat.active_turn {
            map.serialize_entry("activeTurn", turn)?;
        }
        if let Some(message) = &chat.steering_message {
            map.serialize_entry("steeringMessage", message)?;
        }
        if !chat.queued_messages.is_empty() {
            map.serialize_entry("queuedMessages", &chat.queued_messages)?;
        }
        if let Some(draft) = &chat.draft {
            map.serialize_entry("draft", draft)?;
        }
        if let Some(cursor) = self.cursor {
            map.serialize_entry("turnsNextCursor", cursor)?;
        }
        map.serialize_entry("turns", &[(); 0])?;
        map.end()
    }
}

impl Serialize for ActiveTurn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("startedAt", &self.started_at)?;
        map.serialize_entry("message", &*self.message)?;
        map.serialize_entry("responseParts", &self.parts)?;
        if let Some(usage) = &self.usage {
            map.serialize_entry("usage", usage)?;
        }
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Serialize for PartList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.items.iter().map(|part| &part.0))
    }
}

impl Serialize for PendingMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("message", &*self.message)?;
        map.end()
    }
}
