//! Bodies that will certainly be moved out, taken out of a message before it is handled: a message is handled more than
//! once, and copying megabytes each time would stall everybody. What comes back to its sender is whole again.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};
use wire::ActionKind;
use wire::{Incoming, Object};

use super::{decoded_len, take_text};

/// Bodies that were taken out, by where they stood. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct DetachedBodies(Arc<Vec<(String, Arc<String>)>>);

/// An action as its sender knows it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SentAction {
    action: Arc<Object>,
    /// What its message took on the wire.
    bytes: usize,
    detached: DetachedBodies,
}

impl DetachedBodies {
    /// Takes the bodies over `bytes_max` out of a message; the text that held them is empty.
    pub(crate) fn detach_from(message: &mut Incoming, bytes_max: usize) -> Self {
        let mut detached = Vec::new();
        match message {
            Incoming::Notification { method, params } if method == "dispatchAction" => {
                let action = params.get_mut("action");
                let named = action
                    .as_ref()
                    .and_then(|action| action.get("type")?.as_str())
                    .and_then(|name| ActionKind::from_name(name).message_field());
                if let (Some(action), Some(field)) = (action, named) {
                    let at = format!("/{field}");
                    take(action.get_mut(field), &at, bytes_max, &mut detached);
                }
            }
            Incoming::Request { method, params, .. } if method == "createChat" => {
                take(
                    params.get_mut("initialMessage"),
                    "",
                    bytes_max,
                    &mut detached,
                );
            }
            _ => {}
        }
        Self(Arc::new(detached))
    }

    pub(crate) fn find(&self, place: &str) -> Option<&Arc<String>> {
        let mut all = self.0.iter();
        all.find(|(at, _)| at == place).map(|(_, data)| data)
    }
}

fn take(
    message: Option<&mut Value>,
    at: &str,
    bytes_max: usize,
    detached: &mut Vec<(String, Arc<String>)>,
) {
    let attachments = message.and_then(|message| message.get_mut("attachments"));
    let attachments = attachments.and_then(Value::as_array_mut);
    for (index, attachment) in attachments.into_iter().flatten().enumerate() {
        let Value::Object(attachment) = attachment else {
            continue;
        };
        let kind = attachment.get("type").and_then(Value::as_str);
        let data = attachment.get("data").and_then(Value::as_str);
        if kind == Some("embeddedResource")
            && data.is_some_and(|data| decoded_len(data) > bytes_max)
            && let Some(data) = take_text(attachment, "data")
        {
            detached.push((format!("{at}/attachments/{index}"), Arc::new(data)));
        }
    }
}

impl SentAction {
    pub(crate) fn new(action: Object, detached: DetachedBodies, bytes: usize) -> Self {
        Self {
            action: Arc::new(action),
            bytes,
            detached,
        }
    }

    /// What is left of an action that is too large to be kept.
    pub(crate) fn abridged(action: &Object) -> Self {
        let abridged = wire::bounds::abridge(action);
        let bytes = wire::rpc::to_json(&abridged).len();
        Self::new(abridged, DetachedBodies::default(), bytes)
    }

    /// What the message that brought it took on the wire.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn detached(&self) -> &DetachedBodies {
        &self.detached
    }

    /// Without the bodies that were taken out of it.
    pub(crate) fn without_bodies(&self) -> &Object {
        &self.action
    }

    /// With its bodies in it again.
    pub(crate) fn with_bodies(&self) -> Cow<'_, Object> {
        if self.detached.0.is_empty() {
            return Cow::Borrowed(&self.action);
        }
        let mut whole = Value::Object((*self.action).clone());
        for (place, data) in self.detached.0.iter() {
            if let Some(attachment) = whole.pointer_mut(place) {
                attachment["data"] = json!(**data);
            }
        }
        match whole {
            Value::Object(whole) => Cow::Owned(whole),
            _ => Cow::Borrowed(&self.action),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Value {
        let data = "A".repeat(length);
        let attachment = json!({"type": "embeddedResource", "data": data});
        json!({"text": "t", "attachments": [{"type": "simple"}, attachment]})
    }

    fn dispatched(action: Value) -> Incoming {
        Incoming::Notification {
            method: "dispatchAction".to_owned(),
            params: json!({"action": action}),
        }
    }

    fn places(detached: &DetachedBodies) -> Vec<&str> {
        detached.0.iter().map(|(place, _)| place.as_str()).collect()
    }

    #[test]
    fn what_is_taken_out_is_put_back_for_its_sender() {
        let action = json!({"type": "chat/draftChanged", "draft": message(400)});
        let mut sent = dispatched(action.clone());
        let detached = DetachedBodies::detach_from(&mut sent, 299);
        assert_eq!(places(&detached), ["/draft/attachments/1"]);
        let Incoming::Notification { params, .. } = sent else {
            unreachable!()
        };
        let left = params["action"].as_object().unwrap().clone();
        assert_eq!(left["draft"]["attachments"][1]["data"], "");
        let whole = SentAction::new(left, detached, 400);
        assert_eq!(Value::Object(whole.with_bodies().into_owned()), action);
    }

    #[test]
    fn only_what_will_be_moved_is_taken_out() {
        for (action, taken) in [
            (
                json!({"type": "chat/turnStarted", "message": message(400)}),
                1,
            ),
            (
                json!({"type": "chat/pendingMessageSet", "message": message(400)}),
                1,
            ),
            (
                json!({"type": "chat/toolCallConfirmed", "userSuggestion": message(400)}),
                1,
            ),
            (
                json!({"type": "chat/turnStarted", "message": message(396)}),
                0,
            ),
            (
                json!({"type": "chat/turnStarted", "draft": message(400)}),
                0,
            ),
            (
                json!({"type": "chat/isReadChanged", "message": message(400)}),
                0,
            ),
            (json!({"type": 5}), 0),
            (json!("nothing"), 0),
        ] {
            let mut sent = dispatched(action);
            let before = sent.clone();
            let detached = DetachedBodies::detach_from(&mut sent, 299);
            assert_eq!(detached.0.len(), taken, "{before:?}");
            assert_eq!(sent == before, taken == 0);
        }
        for params in [json!(null), json!([1]), json!("x"), json!({"action": [1]})] {
            let mut strange = Incoming::Notification {
                method: "dispatchAction".to_owned(),
                params,
            };
            let before = strange.clone();
            DetachedBodies::detach_from(&mut strange, 0);
            assert_eq!(strange, before);
        }
    }
}
