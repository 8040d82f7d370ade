//! What is recorded of a message: the message as clients see it, and the same without its bodies beside its parts
//! (3.1, G-32).

use serde_json::{Value, json};
use wire::Object;

use crate::body::BodyOutcome;
use crate::normalize::Normalized;
use crate::version::SCHEMA_VERSION;

/// Stands for a body that a part holds.
pub(super) const IN_PART: &str = "$part";

pub(crate) struct Recorded {
    /// As it is recorded and sent to clients.
    pub message: Object,
    /// The same with `{"$part": i}` where part `i` holds the body.
    pub skeleton: Object,
}

/// Completes a message whose bodies were taken out: with the bodies that stay, and references to those that are detached.
pub(crate) fn record(mut message: Object, normalized: &Normalized) -> Recorded {
    for (attachment, _, outcome) in &normalized.body_outcomes {
        if let BodyOutcome::Detached { digest, size } = outcome
            && let Some(attachment) = attachment_mut(&mut message, *attachment)
        {
            attachment.insert("type".to_owned(), json!("resource"));
            attachment.shift_remove("data");
            attachment.insert("uri".to_owned(), json!(digest.uri()));
            attachment.insert("sizeHint".to_owned(), json!(size));
        }
    }
    let mut skeleton = message.clone();
    for (attachment, part, outcome) in &normalized.body_outcomes {
        let data = match outcome {
            BodyOutcome::Detached { .. } => continue,
            BodyOutcome::Inline => {
                set_data(&mut skeleton, *attachment, json!({ IN_PART: part }));
                normalized.parts[*part].object()["data"].clone()
            }
            BodyOutcome::NotBase64(body) => {
                set_data(&mut skeleton, *attachment, json!(body));
                json!(body)
            }
        };
        set_data(&mut message, *attachment, data);
    }
    Recorded { message, skeleton }
}

fn attachment_mut(message: &mut Object, index: usize) -> Option<&mut Object> {
    message.get_mut("attachments")?.as_array_mut()?.get_mut(index)?.as_object_mut()
}

fn set_data(message: &mut Object, index: usize, data: Value) {
    if let Some(attachment) = attachment_mut(message, index) {
        attachment.insert("data".to_owned(), data);
    }
}

/// The metadata of a message's row.
pub(crate) fn metadata(message: &Object, skeleton: Object) -> Object {
    let mut metadata = Object::new();
    metadata.insert("schema_version".to_owned(), json!(SCHEMA_VERSION));
    let origin = message.get("origin").cloned().unwrap_or_else(|| json!({"kind": "user"}));
    metadata.insert("origin".to_owned(), origin);
    if let Some(model) = message.get("model").and_then(model) {
        metadata.insert("model".to_owned(), model);
    }
    let agent = message.get("agent").and_then(|agent| agent.get("uri"));
    if let Some(agent) = agent {
        metadata.insert("agent".to_owned(), agent.clone());
    }
    metadata.insert("ahp".to_owned(), Value::Object(skeleton));
    metadata
}

/// A model as its id says it: a provider may come before a slash.
fn model(selection: &Value) -> Option<Value> {
    let id = selection.get("id")?.as_str()?;
    let mut model = match id.split_once('/') {
        Some((provider, model)) => json!({"provider_id": provider, "model_id": model}),
        None => json!({"model_id": id}),
    };
    if let Some(config) = selection.get("config") {
        model["config"] = config.clone();
    }
    Some(model)
}
