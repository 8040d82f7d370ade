//! The rows of a message: its typed parts, written in the transaction of the action that brings it (C-080, C-081).

use std::sync::Arc;

use bytes::Bytes;
use compositor::Part;
use serde_json::{Value, json};
use wire::{ChannelUri, Object, rpc};

use crate::composed_message::{ComposedMessage, MessagePart};
use crate::record::{FrozenRecord, MessageRecord, PartRecord, Record};
use crate::references::body_of_part;
use crate::state::{Kernel, Step};
use crate::submission::{CommandStep, Submission, Submitted};

/// Notices shown of one message at most; the rest is in its rows.
const NOTICES_MAX: usize = 16;

/// Writes the rows of a message whose action was just recorded.
pub(crate) fn record_message(
    step: &mut Step,
    uri: &ChannelUri,
    submission: Submission,
    turn_id: Option<String>,
) -> Submitted {
    let part_count = submission.parts.len();
    debug_assert!(
        submission.frozen.iter().all(|frozen| frozen.part < part_count),
        "what was read of a client is a part of the message"
    );
    let seq = step.seq().0;
    let id = format!("msg_{seq:026}");
    let part_id = |index: usize| format!("prt_{seq:020}{index:06}");
    let parts = submission.parts.iter().enumerate();
    let references: Vec<Record> = parts
        .clone()
        .filter_map(|(index, part)| {
            Some(Record::PartReference { part_id: part_id(index), digest: body_of_part(part)? })
        })
        .collect();
    let parts = parts.map(|(index, part)| PartRecord {
        id: part_id(index),
        kind: part.kind().to_owned(),
        json: Bytes::from(rpc::to_json(part.object())),
    });
    let mut metadata = submission.metadata;
    name_model(step, uri, &submission.message, &mut metadata);
    let record = MessageRecord {
        id: id.clone(),
        session: step.chat(uri).session_id(),
        chat: step.id_of(uri),
        turn_id,
        metadata: Bytes::from(rpc::to_json(&metadata)),
        parts: parts.collect(),
        at: step.now(),
    };
    step.record(Record::Message(record));
    for reference in references {
        step.record(reference);
    }
    let mut composed = composed_parts(submission.parts, part_id);
    for frozen in submission.frozen {
        composed[frozen.part].frozen = Some(frozen.json.clone());
        step.record(Record::Frozen(FrozenRecord {
            part_id: part_id(frozen.part),
            json: frozen.json,
            digest: frozen.digest,
        }));
    }
    let mut notices = submission.diagnostics;
    if notices.len() > NOTICES_MAX {
        let more = notices.len() - NOTICES_MAX;
        notices.truncate(NOTICES_MAX);
        notices.push(format!("and {more} more"));
    }
    let actions = submission.actions.into_iter();
    Submitted {
        id,
        commands: actions.map(CommandStep::Do).collect(),
        reaches_model: submission.reaches_model,
        notices,
        help: submission.help,
        missing_model: submission.missing_model,
        compact: None,
        composed: Some(Arc::new(ComposedMessage { parts: composed })),
    }
}

/// The parts as the turn gets them, under the ids of their rows.
fn composed_parts(parts: Vec<Part>, id: impl Fn(usize) -> String) -> Vec<MessagePart> {
    let parts = parts.into_iter().enumerate().map(|(index, part)| MessagePart {
        id: id(index),
        part,
        frozen: None,
    });
    parts.collect()
}

/// The model that is really used, as inspectors expect it.
fn name_model(kernel: &Kernel, uri: &ChannelUri, message: &Object, metadata: &mut Object) {
    if let Some(model) = message.get("model") {
        let provider = &kernel.session_of(uri).state().provider;
        let mut named = json!({"provider_id": provider, "model_id": model["id"]});
        if let Some(config) = model.get("config") {
            named["config"] = config.clone();
        }
        metadata.insert("model".to_owned(), named);
    }
}

/// A message of the host's or an agent's own making, which means itself.
pub(crate) fn record_plain_message(
    step: &mut Step,
    uri: &ChannelUri,
    message: &Value,
    turn_id: &str,
) -> Submitted {
    let message = message.as_object().cloned().unwrap_or_default();
    let submission = Submission::plain(message);
    record_message(step, uri, submission, Some(turn_id.to_owned()))
}
