//! Attachments of a message: what is embedded in it and too large becomes a resource.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::Object;

use super::{BodyData, DetachedBodies, UnstoredBody, decoded_len, take_text};

/// How much may stay embedded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InlineBudget {
    /// In one attachment.
    pub each: usize,
    /// In all of them together.
    pub all: usize,
}

/// Lifts the bodies out of a message for which there is no room; the part that would overflow is the one that goes
/// (C-033). Returns them, and how many bytes stay. `at` is where the message stands; `early` are those that are out of it
/// already.
pub(crate) fn detach_message(
    message: &mut Object,
    at: &str,
    room: InlineBudget,
    early: &DetachedBodies,
) -> (Vec<UnstoredBody>, usize) {
    let mut bodies = Vec::new();
    let mut stays = 0;
    let Some(Value::Array(attachments)) = message.get_mut("attachments") else {
        return (bodies, stays);
    };
    for (index, attachment) in attachments.iter_mut().enumerate() {
        let Value::Object(attachment) = attachment else { continue };
        let kind = attachment.get("type").and_then(Value::as_str);
        let data = attachment.get("data").and_then(Value::as_str);
        let (Some("embeddedResource"), Some(data)) = (kind, data) else { continue };
        let pointer = format!("{at}/attachments/{index}");
        let early = early.find(&pointer).cloned();
        let bytes = match &early {
            Some(early) => early.decoded_len(),
            None => decoded_len(data),
        };
        if early.is_none() && bytes <= room.each && stays + bytes <= room.all {
            stays += bytes;
            continue;
        }
        let data = early.unwrap_or_else(|| {
            let data = take_text(attachment, "data").unwrap_or_default();
            BodyData::Base64(Arc::new(data))
        });
        attachment.insert("type".to_owned(), json!("resource"));
        attachment.shift_remove("data");
        attachment.insert("uri".to_owned(), json!(""));
        attachment.insert("sizeHint".to_owned(), json!(bytes));
        bodies.push(UnstoredBody { pointer, data });
    }
    (bodies, stays)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sizes: &[usize]) -> Object {
        let attachments: Vec<Value> = sizes.iter().map(|size| {
            let data = "A".repeat(size / 3 * 4);
            json!({"type": "embeddedResource", "label": "l", "data": data, "contentType": "image/png",
                "displayKind": "image", "x-own": [1]})
        }).collect();
        let Value::Object(message) = json!({"text": "t", "attachments": attachments}) else {
            unreachable!()
        };
        message
    }

    fn check(sizes: &[usize], moved: &[&str], stays: usize) {
        let room = InlineBudget { each: 30, all: 60 };
        let (bodies, left) =
            detach_message(&mut message(sizes), "/m", room, &DetachedBodies::default());
        let pointers: Vec<&str> = bodies.iter().map(|body| body.pointer.as_str()).collect();
        assert_eq!((pointers.as_slice(), left), (moved, stays), "{sizes:?}");
    }

    // C-033
    #[test]
    fn what_is_strictly_larger_goes_and_what_would_overflow_goes() {
        check(&[30, 30], &[], 60);
        check(&[33, 30], &["/m/attachments/0"], 30);
        check(&[30, 30, 3], &["/m/attachments/2"], 60);
        check(&[27, 24, 12, 9], &["/m/attachments/2"], 60);
        check(&[], &[], 0);
    }

    #[test]
    fn everything_but_the_body_stays_as_it_was() {
        let mut message = message(&[60]);
        let room = InlineBudget { each: 3, all: 60 };
        let (bodies, _) = detach_message(&mut message, "", room, &DetachedBodies::default());
        assert_eq!(bodies[0].data, BodyData::Base64(Arc::new("A".repeat(80))));
        assert_eq!(
            message["attachments"],
            json!([{"type": "resource", "label": "l", "contentType": "image/png",
                "displayKind": "image", "x-own": [1], "uri": "", "sizeHint": 60}])
        );
    }

    #[test]
    fn other_attachments_are_left_alone() {
        let attachments = json!([
            {"type": "simple", "label": "l", "data": "AAAAAAAA"},
            {"type": "resource", "uri": "file:///x"},
            {"type": "embeddedResource", "data": 5},
            "strange",
        ]);
        let mut message = Object::new();
        message.insert("attachments".to_owned(), attachments.clone());
        let room = InlineBudget { each: 0, all: 0 };
        assert_eq!(detach_message(&mut message, "", room, &DetachedBodies::default()), (vec![], 0));
        assert_eq!(message["attachments"], attachments);
    }
}
