//! What one message of an agent says of a call.

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Map, Value, json};

use super::call::MappedCall;
use crate::acp::label::label;

const NAME_CHARS_MAX: usize = 100;

/// What one message says of a call.
#[derive(Debug)]
pub(super) struct CallUpdate {
    pub(super) id: String,
    pub(super) fields: acp::ToolCallUpdateFields,
    pub(super) meta: Option<Map<String, Value>>,
    /// It announces a call.
    pub(super) is_announcement: bool,
}

pub(super) fn from_call(call: acp::ToolCall) -> CallUpdate {
    let mut fields = acp::ToolCallUpdateFields::default();
    fields.title = Some(call.title);
    fields.name = call.name;
    fields.kind = Some(call.kind);
    fields.status = Some(call.status);
    fields.content = (!call.content.is_empty()).then_some(call.content);
    fields.locations = (!call.locations.is_empty()).then_some(call.locations);
    fields.raw_input = call.raw_input;
    fields.raw_output = call.raw_output;
    CallUpdate { id: call.tool_call_id.to_string(), fields, meta: call.meta, is_announcement: true }
}

pub(super) fn from_update(update: acp::ToolCallUpdate) -> CallUpdate {
    CallUpdate {
        id: update.tool_call_id.to_string(),
        fields: update.fields,
        meta: update.meta,
        is_announcement: false,
    }
}

impl CallUpdate {
    /// Nothing is said of a call but which one it is.
    pub(super) fn about(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            fields: acp::ToolCallUpdateFields::default(),
            meta: None,
            is_announcement: false,
        }
    }

    /// An id that is asked about after its call was over is another call.
    pub(super) fn announce(&mut self) {
        self.is_announcement = true;
        self.fields.status = Some(acp::ToolCallStatus::Pending);
    }

    /// What is not said is as it was said of the same call before.
    pub(super) fn fill_from(&mut self, call: &MappedCall) {
        let fields = &mut self.fields;
        fields.name.get_or_insert_with(|| call.name.clone());
        fields.title.get_or_insert_with(|| call.title.clone());
        fields.kind.get_or_insert(call.kind());
        if fields.raw_input.is_none() {
            fields.raw_input.clone_from(&call.raw_input);
        }
        let content = || call.content().to_vec();
        fields.content.get_or_insert_with(content);
        let locations = || call.locations.iter().cloned().map(acp::ToolCallLocation::new).collect();
        fields.locations.get_or_insert_with(locations);
    }

    pub(super) fn tool_name(&self, kind: acp::ToolKind) -> String {
        let meta = self.meta.as_ref();
        let claude = meta.and_then(|meta| meta.get("claudeCode")?.get("toolName")?.as_str());
        let other = meta.and_then(|meta| meta.get("toolName")?.as_str());
        let said = self
            .fields
            .name
            .as_deref()
            .or(claude)
            .or(other)
            .map(|name| label(name, NAME_CHARS_MAX));
        match said {
            Some(name) if !name.is_empty() => name,
            _ => json!(kind).as_str().unwrap_or("other").to_owned(),
        }
    }
}
