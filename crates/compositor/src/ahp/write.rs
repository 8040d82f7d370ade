//! Parts become a message (3.1, 3.3): the one they came as if that is known, otherwise one that any host can read and
//! from which ours finds them again.

use std::ops::Range;

use serde_json::{Value, json};
use wire::Object;

use super::attachment::insert_text;
use super::form::{Form, to_attachment};
use super::read::read_attachment;
use super::record::IN_PART;
use super::skeleton::{AS, ATTACHMENT, PART, ReadAs, TEXT, text_digest};
use super::{MESSAGE_KEY, PART_KEY};
use crate::command::args;
use crate::diagnostics::Diagnostics;
use crate::normalize::decoded_len;
use crate::part::{Part, View};
use crate::position::PositionConverter;
use crate::version::SCHEMA_VERSION;

/// The message that parts are. `metadata` is that of their row; relative paths belong to the first of `roots`.
pub fn to_ahp(parts: &[Part], metadata: &Object, roots: &[String]) -> Object {
    match metadata.get("ahp") {
        Some(Value::Object(received)) => restore(received, parts),
        _ => PartWriter::new(roots).message(parts, metadata),
    }
}

/// The message as it was received, with the bodies that its parts hold. None is taken twice: a forged message must not grow.
fn restore(received: &Object, parts: &[Part]) -> Object {
    let mut message = received.clone();
    let mut taken = vec![false; parts.len()];
    let attachments = message.get_mut("attachments").and_then(Value::as_array_mut);
    for attachment in attachments.into_iter().flatten() {
        let is_embedded = attachment["type"] == "embeddedResource";
        let Some(data) = attachment.get_mut("data").filter(|_| is_embedded) else { continue };
        let index = data.get(IN_PART).and_then(Value::as_u64);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let body = index.and_then(|index| parts.get(index)?.object().get("data"));
        if let (Some(index), Some(Value::String(body))) = (index, body)
            && !std::mem::replace(&mut taken[index], true)
        {
            *data = json!(body);
        }
    }
    message
}

/// An attachment that is being written.
struct WrittenAttachment<'a> {
    part: &'a Part,
    form: Form,
    /// What it covers of the text.
    covers: Option<Range<usize>>,
}

struct PartWriter<'a> {
    roots: &'a [String],
    text: String,
    units: usize,
    written: Vec<WrittenAttachment<'a>>,
    entries: Vec<Value>,
}

impl<'a> PartWriter<'a> {
    fn new(roots: &'a [String]) -> Self {
        Self { roots, text: String::new(), units: 0, written: Vec::new(), entries: Vec::new() }
    }

    fn message(mut self, parts: &'a [Part], metadata: &Object) -> Object {
        parts.iter().for_each(|part| self.add(part));
        let ruler = PositionConverter::new(&self.text);
        let attachments: Vec<Value> =
            self.written.into_iter().map(|made| finish(made, &ruler, self.roots)).collect();
        let mut message = Object::new();
        message.insert("text".to_owned(), json!(self.text));
        let origin = metadata.get("origin").cloned().unwrap_or_else(|| json!({"kind": "user"}));
        message.insert("origin".to_owned(), origin);
        if !attachments.is_empty() {
            message.insert("attachments".to_owned(), Value::Array(attachments));
        }
        if let Some(model) = metadata.get("model").and_then(model) {
            message.insert("model".to_owned(), model);
        }
        if let Some(agent) = metadata.get("agent") {
            message.insert("agent".to_owned(), json!({"uri": agent}));
        }
        let skeleton = json!({"schema_version": SCHEMA_VERSION,
            "text_sha256": text_digest(&self.text), "parts": self.entries});
        message.insert("_meta".to_owned(), json!({ MESSAGE_KEY: skeleton }));
        message
    }

    fn add(&mut self, part: &'a Part) {
        if is_span(part) {
            let from = self.units;
            self.push_text(part.object()["text"].as_str().unwrap_or(""));
            self.entries.push(json!({ TEXT: [from, self.units] }));
            return;
        }
        let has_body = part.kind() == "file-attachment"
            && part.object().get("data").is_some_and(Value::is_string);
        let is_derived = part.object().contains_key("derived_from");
        let covers = if is_derived { None } else { self.write_mention(part) };
        let travels = has_body || (part.is_readable() && !is_derived);
        let Some(form) = to_attachment(part, self.roots).filter(|_| travels) else {
            self.entries.push(json!({ PART: part.object() }));
            return;
        };
        let mut entry = json!({ ATTACHMENT: self.written.len() });
        if form.read_as == ReadAs::Stored {
            entry[AS] = json!("file-attachment");
        }
        self.entries.push(entry);
        self.written.push(WrittenAttachment { part, form, covers });
    }

    /// Writes the text that represents a part; the range of it that is the part itself.
    fn write_mention(&mut self, part: &Part) -> Option<Range<usize>> {
        let from = self.text.len();
        match part.view() {
            View::Text(text) if !part.object().contains_key("ahp") => {
                self.push_text(text.text);
                return None;
            }
            View::Command(command) => {
                self.push_text(part.anchor().unwrap_or(command.id));
                let covers = from..self.text.len();
                let (raw, _) = args::read(command.args);
                if !raw.is_empty() {
                    self.push_text(" ");
                    self.push_text(&raw);
                }
                return Some(covers);
            }
            _ => self.push_text(part.anchor()?),
        }
        Some(from..self.text.len())
    }

    fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
        self.units += text.encode_utf16().count();
    }
}

/// Whether a part is nothing but a stretch of the text.
fn is_span(part: &Part) -> bool {
    let object = part.object();
    let mut keys = object.keys().map(String::as_str);
    (keys.next(), keys.next(), keys.next()) == (Some("type"), Some("text"), None)
        && part.kind() == "text"
        && object["text"].is_string()
}

/// Sets the range of an attachment, and lets it carry its part if reading it back would not give the part.
fn finish(made: WrittenAttachment<'_>, ruler: &PositionConverter<'_>, roots: &[String]) -> Value {
    let WrittenAttachment { part, mut form, covers } = made;
    let range = covers.map(|covers| {
        let position = |byte| {
            let position = ruler.position(byte);
            json!({"line": position.line, "character": position.character})
        };
        json!({"start": position(covers.start), "end": position(covers.end)})
    });
    if form.may_read_back && reads_back(part, &mut form, &range, ruler, roots) {
        return Value::Object(form.attachment);
    }
    let mut attachment = form.otherwise.unwrap_or(form.attachment);
    if let Some(range) = range {
        attachment.insert("range".to_owned(), range);
    }
    let mut carried = part.object().clone();
    if attachment.get("type").is_some_and(|it| it == "embeddedResource") {
        carried.insert("data".to_owned(), json!(""));
    }
    attachment.insert("_meta".to_owned(), json!({ PART_KEY: carried }));
    Value::Object(attachment)
}

fn reads_back(
    part: &Part,
    form: &mut Form,
    range: &Option<Value>,
    ruler: &PositionConverter<'_>,
    roots: &[String],
) -> bool {
    // An attachment that is passed on unchanged has its range already.
    if !form.is_whole
        && let Some(range) = range
    {
        form.attachment.insert("range".to_owned(), range.clone());
    }
    let attachment = Value::Object(form.attachment.clone());
    let mut read_back =
        read_attachment(&attachment, form.read_as, ruler, roots, &mut Diagnostics::default()).part;
    if let Some(Value::String(data)) = form.attachment.get("data")
        && read_back.contains_key("data")
    {
        read_back.insert("data".to_owned(), json!(data));
        read_back.insert("size".to_owned(), json!(decoded_len(data)));
    }
    let text = |object: &Object| serde_json::to_string(object).unwrap_or_default();
    text(&read_back) == text(part.object())
}

/// The label of a chip: what is typed for it.
pub(super) fn text_as_typed(part: &Part) -> String {
    let typed = part.anchor().map(str::to_owned);
    typed.or_else(|| insert_text(part)).unwrap_or_else(|| part.kind().to_owned())
}

fn model(model: &Value) -> Option<Value> {
    let id = model.get("model_id")?.as_str()?;
    let id = match model.get("provider_id").and_then(Value::as_str) {
        Some(provider) => format!("{provider}/{id}"),
        None => id.to_owned(),
    };
    let mut selection = json!({ "id": id });
    if let Some(config) = model.get("config") {
        selection["config"] = config.clone();
    }
    Some(selection)
}
