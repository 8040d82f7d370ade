//! The state of a session's annotations channel: comments on files, each a thread of entries.

use serde::Serialize;
use serde_json::Value;

use super::{Fields, StateError};
use crate::{Object, bounds};

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AnnotationsState {
    pub annotations: Vec<Annotation>,
    #[serde(flatten)]
    pub extra: Object,
}

/// A thread about a file or a range of it. `_meta` lives in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Annotation {
    pub id: String,
    /// `AnnotationOrigin`: the session, and perhaps chat and turn, that the content is of.
    pub origin: Value,
    pub resource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Value>,
    pub resolved: bool,
    pub entries: Vec<AnnotationEntry>,
    #[serde(flatten)]
    pub extra: Object,
}

/// One comment in a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnnotationEntry {
    pub id: String,
    /// `StringOrMarkdown`.
    pub text: Value,
    #[serde(flatten)]
    pub extra: Object,
}

impl AnnotationsState {
    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("annotations", value)?;
        let annotations =
            fields.list("annotations").ok_or_else(|| fields.missing("annotations"))?;
        Ok(Self {
            annotations: annotations
                .into_iter()
                .map(Annotation::from_value)
                .collect::<Result<_, _>>()?,
            extra: fields.rest(),
        })
    }

    pub fn annotation(&self, id: &str) -> Option<&Annotation> {
        self.annotations.iter().find(|each| each.id == id)
    }

    /// Roughly what all of them take as JSON.
    pub fn size_hint(&self) -> usize {
        self.annotations.iter().map(Annotation::size_hint).sum()
    }

    pub fn entry_count(&self) -> usize {
        self.annotations.iter().map(|each| each.entries.len()).sum()
    }
}

impl Annotation {
    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("an annotation", value)?;
        let entries = fields.list("entries").ok_or_else(|| fields.missing("entries"))?;
        Ok(Self {
            id: fields.text("id")?,
            origin: fields.take("origin").ok_or_else(|| fields.missing("origin"))?,
            resource: fields.text("resource")?,
            range: fields.present("range"),
            resolved: fields.flag("resolved")?,
            entries: entries
                .into_iter()
                .map(AnnotationEntry::from_value)
                .collect::<Result<_, _>>()?,
            extra: fields.rest(),
        })
    }

    pub fn entry(&self, id: &str) -> Option<&AnnotationEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    fn size_hint(&self) -> usize {
        let entries = self.entries.iter().map(|entry| {
            let meta = entry.extra.values().map(bounds::bytes_of).sum::<usize>();
            64 + bounds::bytes_of(&entry.text) + meta
        });
        let meta = self.extra.values().map(bounds::bytes_of).sum::<usize>();
        let range = self.range.as_ref().map_or(0, bounds::bytes_of);
        let place = bounds::bytes_of(&self.origin) + self.resource.len() + range;
        512 + place + meta + entries.sum::<usize>()
    }
}

impl AnnotationEntry {
    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("an entry of an annotation", value)?;
        Ok(Self {
            id: fields.text("id")?,
            text: fields.take("text").ok_or_else(|| fields.missing("text"))?,
            extra: fields.rest(),
        })
    }

    /// What it says, whether it is Markdown or plain.
    pub fn plain_text(&self) -> &str {
        let markdown = || self.text["markdown"].as_str();
        self.text.as_str().or_else(markdown).unwrap_or("")
    }
}
