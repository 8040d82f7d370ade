//! What an error says of a conflict that goes away if whoever asked insists: with `_meta.force` in the same request.
//!
//! Promises: what is written here is read here, on the other side of the wire. An error without it cannot be insisted against.

use serde_json::{Value, json};

use crate::RpcError;
use crate::rpc::code;

/// `data` of a -32011 that `_meta.force` would overcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForceOffer {
    /// Why nothing was done, for people; without how a program insists.
    pub reason: String,
    /// Some of the files that are in the way, as `file:` URIs.
    pub resources: Vec<String>,
}

impl ForceOffer {
    /// The error that makes this offer; what `_meta.force` would do stands behind the reason.
    pub fn to_error(&self, effect: &str) -> RpcError {
        let message = format!("{}; send `_meta.force` to {effect}", self.reason);
        RpcError::new(code::CONFLICT, message).with_data(json!({
            "canForce": true,
            "reason": self.reason,
            "resources": self.resources,
        }))
    }

    /// What an error offers; `None` if insisting would not help.
    pub fn of_error(error: &RpcError) -> Option<Self> {
        let data = error.data.as_ref()?;
        if error.code != code::CONFLICT || data["canForce"] != true {
            return None;
        }
        let reason = data["reason"].as_str().unwrap_or(&error.message);
        let resources =
            data["resources"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Some(Self { reason: reason.to_owned(), resources: resources.map(str::to_owned).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_read_from_the_data_alone() {
        let offer = ForceOffer {
            reason: "nothing was done: a.txt changed since".to_owned(),
            resources: vec!["file:///w/a.txt".to_owned()],
        };
        let error = offer.to_error("replace what is there");
        assert_eq!(ForceOffer::of_error(&error), Some(offer));
        let words = RpcError::new(code::CONFLICT, error.message.clone());
        assert_eq!(ForceOffer::of_error(&words), None);
        let refused = words.clone().with_data(json!({"canForce": false}));
        assert_eq!(ForceOffer::of_error(&refused), None);
        let other =
            RpcError::new(code::INTERNAL_ERROR, "full").with_data(json!({"canForce": true}));
        assert_eq!(ForceOffer::of_error(&other), None);
        let short = words.with_data(json!({"canForce": true}));
        let read = ForceOffer::of_error(&short).map(|offer| offer.reason);
        assert_eq!(read, Some(error.message));
    }
}
