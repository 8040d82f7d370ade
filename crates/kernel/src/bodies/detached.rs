//! Bodies that will certainly be moved out, taken out of a message where it is decoded: a message is handled more than once,
//! and copying megabytes each time would stall everybody and cost as much memory again.
//!
//! Promises: a body is decoded at most once and shared by all who have it. An action that goes back to its sender goes
//! without the bodies that were taken out of it (ADR 0028).

use std::sync::Arc;

use serde_json::Value;
use wire::ActionKind;
use wire::ext::compose::COMPOSE;
use wire::{Incoming, Object, bounds};

use super::{BodyData, decoded_len, take_text};
use crate::host_guard::HostGuard;
use crate::limits::EmbedLimits;

/// Bodies that were taken out, by where they stood. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct DetachedBodies(Arc<Vec<(String, BodyData)>>);

/// The largest refused action that goes back whole, but for its bodies.
const ECHO_BYTES_MAX: usize = 1_024 * 1_024;

/// An action as its sender knows it, but for its large bodies. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SentAction {
    action: Arc<Object>,
    /// In the form of the sender's version, if that differs.
    as_sent: Option<Arc<Object>>,
    detached: DetachedBodies,
    /// Kept as long as its bodies may be.
    _hold: HostGuard,
}

impl DetachedBodies {
    /// Takes the bodies over the limits out of a message; the text that held them is empty.
    pub(crate) fn detach_from(message: &mut Incoming, inline: EmbedLimits) -> Self {
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
                    take(action.get_mut(field), &at, inline, &mut detached);
                }
            }
            Incoming::Request { method, params, .. } if method == "createChat" => {
                take(params.get_mut("initialMessage"), "", inline, &mut detached);
            }
            Incoming::Request { method, params, .. } if method == COMPOSE => {
                take(params.get_mut("message"), "", inline, &mut detached);
            }
            _ => {}
        }
        Self(Arc::new(detached))
    }

    pub(crate) fn find(&self, place: &str) -> Option<&BodyData> {
        let mut all = self.0.iter();
        all.find(|(at, _)| at == place).map(|(_, data)| data)
    }
}

fn take(
    message: Option<&mut Value>,
    at: &str,
    inline: EmbedLimits,
    detached: &mut Vec<(String, BodyData)>,
) {
    let mut stays = 0;
    let attachments =
        message.and_then(|message| message.get_mut("attachments")).and_then(Value::as_array_mut);
    for (index, attachment) in attachments.into_iter().flatten().enumerate() {
        let Value::Object(attachment) = attachment else { continue };
        let kind = attachment.get("type").and_then(Value::as_str);
        let data = attachment.get("data").and_then(Value::as_str);
        let (Some("embeddedResource"), Some(data)) = (kind, data) else { continue };
        let bytes = decoded_len(data);
        if bytes <= inline.each_bytes && stays + bytes <= inline.message_bytes {
            stays += bytes;
        } else if let Some(data) = take_text(attachment, "data") {
            detached.push((format!("{at}/attachments/{index}"), BodyData::decode(data)));
        }
    }
}

impl SentAction {
    pub(crate) fn new(action: Object, detached: DetachedBodies, hold: HostGuard) -> Self {
        Self { action: Arc::new(action), as_sent: None, detached, _hold: hold }
    }

    /// What is left of an action that is too large to be kept.
    pub(crate) fn abridge(action: &Object) -> Self {
        let abridged = bounds::abridge(action);
        Self::new(abridged, DetachedBodies::default(), HostGuard::default())
    }

    /// The same, with the form in which its sender sent it.
    pub(crate) fn with_sent_form(mut self, as_sent: Option<Object>) -> Self {
        self.as_sent = as_sent.map(Arc::new);
        self
    }

    /// The action as it was sent, if its sender's version has another form.
    pub(crate) fn as_sent(&self) -> Option<Arc<Object>> {
        self.as_sent.clone()
    }

    pub(crate) fn detached(&self) -> &DetachedBodies {
        &self.detached
    }

    /// Without the bodies that were taken out of it.
    pub(crate) fn without_bodies(&self) -> &Object {
        &self.action
    }

    /// What goes back to its sender. Nothing is held for it, for its reader may take its time; so it must not be large.
    pub(crate) fn into_echo(self) -> Arc<Object> {
        let sent = self.as_sent.unwrap_or(self.action);
        let bytes = sent.values().map(bounds::bytes_of).sum::<usize>();
        if bytes > ECHO_BYTES_MAX { Arc::new(bounds::abridge(&sent)) } else { sent }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

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

    const INLINE: EmbedLimits = EmbedLimits { each_bytes: 299, message_bytes: 500 };

    #[test]
    fn what_is_taken_out_is_decoded_and_shared() {
        let action = json!({"type": "chat/draftChanged", "draft": message(400)});
        let mut sent = dispatched(action);
        let detached = DetachedBodies::detach_from(&mut sent, INLINE);
        assert_eq!(places(&detached), ["/draft/attachments/1"]);
        let Incoming::Notification { params, .. } = sent else { unreachable!() };
        let left = params["action"].as_object().unwrap().clone();
        assert_eq!(left["draft"]["attachments"][1]["data"], "");
        let sent = SentAction::new(left, detached, HostGuard::default());
        let body = sent.detached().find("/draft/attachments/1");
        assert_eq!(body, Some(&BodyData::Bytes(Bytes::from(vec![0; 300]))));
        assert_eq!(sent.into_echo()["draft"]["attachments"][1]["data"], "");
    }

    #[test]
    fn what_would_overflow_the_message_goes_and_what_is_no_base64_stays_text() {
        let attachment = |data: &str| json!({"type": "embeddedResource", "data": data});
        let fits = "A".repeat(396);
        let bad = "!".repeat(404);
        let attachments = [&fits, &fits, &bad].map(|data| attachment(data));
        let action = json!({"type": "chat/draftChanged", "draft": {"attachments": attachments}});
        let mut sent = dispatched(action);
        let detached = DetachedBodies::detach_from(&mut sent, INLINE);
        let places = places(&detached);
        assert_eq!(places, ["/draft/attachments/1", "/draft/attachments/2"]);
        assert!(matches!(detached.find(places[1]), Some(BodyData::Base64(text)) if **text == bad));
    }

    #[test]
    fn only_what_will_be_moved_is_taken_out() {
        for (action, taken) in [
            (json!({"type": "chat/turnStarted", "message": message(400)}), 1),
            (json!({"type": "chat/pendingMessageSet", "message": message(400)}), 1),
            (json!({"type": "chat/toolCallConfirmed", "userSuggestion": message(400)}), 1),
            (json!({"type": "chat/turnStarted", "message": message(396)}), 0),
            (json!({"type": "chat/turnStarted", "draft": message(400)}), 0),
            (json!({"type": "chat/isReadChanged", "message": message(400)}), 0),
            (json!({"type": 5}), 0),
            (json!("nothing"), 0),
        ] {
            let mut sent = dispatched(action);
            let before = sent.clone();
            let detached = DetachedBodies::detach_from(&mut sent, INLINE);
            assert_eq!(detached.0.len(), taken, "{before:?}");
            assert_eq!(sent == before, taken == 0);
        }
        for params in [json!(null), json!([1]), json!("x"), json!({"action": [1]})] {
            let mut strange =
                Incoming::Notification { method: "dispatchAction".to_owned(), params };
            let before = strange.clone();
            DetachedBodies::detach_from(&mut strange, INLINE);
            assert_eq!(strange, before);
        }
    }
}
