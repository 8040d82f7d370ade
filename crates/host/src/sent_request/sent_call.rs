//! One request to a model, read from the journal and put together again.
//!
//! Promises: whether a request is what was sent is known by its digest, and said.
//! Must not know: who looks at it.

use serde_json::{Value, json};
use wire::Timestamp;

use super::{join, outline};
use crate::blobs::{Blobs, digest_of};
use crate::journal::{Archive, ArchivedCall, ArchivedChat, ArchivedRender, JournalError};

/// One call, with all that is stored of it.
pub struct SentCall {
    pub chat: String,
    pub call: ArchivedCall,
    /// The bytes that were sent, if they can be proved to be them.
    pub body: Option<Vec<u8>>,
    /// Why they cannot.
    pub fault: Option<String>,
    /// The request, with bodies by name.
    pub outline: Value,
    pub details: Value,
    pub render: Option<ArchivedRender>,
}

/// Reads a call of a chat.
pub fn read_call(
    archive: &Archive,
    blobs: &dyn Blobs,
    chat: &ArchivedChat,
    call: &ArchivedCall,
) -> Result<SentCall, JournalError> {
    let request = archive.read_request(call)?;
    let (body, fault) = match join(&request.body, blobs) {
        Ok(body) if digest_of(&body) == call.body_digest => (Some(body), None),
        Ok(_) => {
            let fault = "what is stored differs from what was sent: its digest is another";
            (None, Some(fault.to_owned()))
        }
        Err(error) => (None, Some(error.to_string())),
    };
    let details = serde_json::from_slice(&outline(&request.details)).map_err(|error| {
        JournalError::Unreadable(format!("what is stored of this call is damaged: {error}"))
    })?;
    let renders = archive.renders(chat)?;
    Ok(SentCall {
        chat: chat.state.resource.clone(),
        outline: serde_json::from_slice(&outline(&request.body)).unwrap_or(Value::Null),
        render: find_render(renders, call, &details),
        call: call.clone(),
        body,
        fault,
        details,
    })
}

/// The render that a request was made with.
fn find_render(
    renders: Vec<ArchivedRender>,
    call: &ArchivedCall,
    details: &Value,
) -> Option<ArchivedRender> {
    let sections = details["sections"].as_array().into_iter().flatten();
    let before: Vec<(&str, &str)> = sections
        .filter_map(|section| Some((section["id"].as_str()?, section["before"].as_str()?)))
        .collect();
    let is_its_own = |render: &ArchivedRender| {
        let sections = render.before.iter().map(|(id, text)| (id.as_str(), text.as_str()));
        render.turn_id.as_deref() == Some(&call.turn_id)
            && render.at <= call.at
            && sections.eq(before.iter().copied())
    };
    renders.into_iter().rev().find(is_its_own)
}

/// What is known of a call without its request.
pub fn call_json(chat: &str, call: &ArchivedCall) -> Value {
    let end = call.end.clone().unwrap_or_default();
    json!({
        "chat": chat,
        "call": call.number,
        "turnId": call.turn_id,
        "purpose": call.purpose,
        "round": call.round,
        "at": Timestamp(call.at).to_rfc3339(),
        "endedAt": call.ended_at.map(|at| Timestamp(at).to_rfc3339()),
        "api": call.api,
        "model": call.model,
        "outcome": end["outcome"],
        "reason": end["reason"],
        "inputTokens": end["inputTokens"],
        "outputTokens": end["outputTokens"],
        "cacheReadTokens": end["cacheReadTokens"],
        "cacheWriteTokens": end["cacheWriteTokens"],
        "cost": end["cost"],
        "repeats": end["repeats"],
        "bodyBytes": call.body_bytes,
        "bodySha256": call.body_digest.to_hex(),
    })
}

/// Which client was asked to rewrite which sections, and the outcome.
pub fn transform_json(render: &ArchivedRender) -> Value {
    let asked = render.asked.as_ref().map(|asked| {
        json!({
            "clientId": asked.client_id,
            "method": asked.method,
            "sections": asked.sections,
            "ms": asked.ms,
            "error": asked.error,
        })
    });
    json!({"outcome": render.outcome, "asked": asked})
}
