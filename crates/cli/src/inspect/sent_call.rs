//! Requests to models, read from a data directory and put together again.
//!
//! Promises: whether a request is what was sent is known by its digest, and said.

use std::path::Path;

use anyhow::{Context, bail};
use host::blobs::{FileBlobs, digest_of};
use host::journal::{Archive, ArchivedCall, ArchivedChat, ArchivedRender, ArchivedSession};
use host::sent_request::{join, outline};
use serde_json::{Value, json};
use wire::Timestamp;

use crate::exit::Exit;
use crate::terminal::escape_line;

/// The calls of some chats.
pub(super) struct SentCalls<'a> {
    archive: &'a Archive,
    blobs: FileBlobs,
    /// Chats that asked models, each with its calls.
    pub(super) chats: Vec<(&'a ArchivedChat, Vec<ArchivedCall>)>,
}

impl<'a> SentCalls<'a> {
    pub(super) fn open(
        archive: &'a Archive,
        session: &'a ArchivedSession,
        data: &Path,
    ) -> anyhow::Result<Self> {
        let mut chats = Vec::new();
        for chat in &session.chats {
            let calls = archive.calls(chat)?;
            if !calls.is_empty() {
                chats.push((chat, calls));
            }
        }
        Ok(Self {
            archive,
            blobs: FileBlobs::open_to_read(data),
            chats,
        })
    }

    /// The call of this number. Each chat has numbers of its own.
    pub(super) fn read(&self, number: u64) -> anyhow::Result<SentCall> {
        let (chat, calls) = match self.chats.as_slice() {
            [] => bail!("no model was asked here yet, or nothing is stored of it"),
            [(chat, calls)] => (chat, calls),
            several => {
                let names = several.iter().map(|(chat, _)| &chat.state.resource);
                let names: Vec<String> = names.map(|name| escape_line(name)).collect();
                bail!(
                    "several chats of this session asked models; name one of them: {}",
                    names.join(", ")
                );
            }
        };
        let Some(call) = calls.iter().find(|call| call.number == number) else {
            let (first, last) = (calls.first(), calls.last());
            let number_of = |call: Option<&ArchivedCall>| call.map_or(0, |call| call.number);
            bail!(
                "call {number} is not stored; there are {} to {}",
                number_of(first),
                number_of(last)
            );
        };
        let request = self.archive.read_request(call)?;
        let (body, fault) = match join(&request.body, &self.blobs) {
            Ok(body) if digest_of(&body) == call.body_digest => (Some(body), None),
            Ok(_) => {
                let fault = "what is stored differs from what was sent: its digest is another";
                (None, Some(fault.to_owned()))
            }
            Err(error) => (None, Some(error.to_string())),
        };
        let details = serde_json::from_slice(&outline(&request.details))
            .context("what is stored of this call is damaged")?;
        let renders = self.archive.renders(chat)?;
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
        let sections = render.before.iter();
        let sections = sections.map(|(id, text)| (id.as_str(), text.as_str()));
        render.turn_id.as_deref() == Some(&call.turn_id)
            && render.at <= call.at
            && sections.eq(before.iter().copied())
    };
    renders.into_iter().rev().find(is_its_own)
}

/// One call, with all that is stored of it.
pub(super) struct SentCall {
    pub(super) chat: String,
    pub(super) call: ArchivedCall,
    /// The bytes that were sent, if they can be proved to be them.
    pub(super) body: Option<Vec<u8>>,
    /// Why they cannot.
    pub(super) fault: Option<String>,
    /// The request, with bodies by name.
    pub(super) outline: Value,
    pub(super) details: Value,
    pub(super) render: Option<ArchivedRender>,
}

impl SentCall {
    pub(super) fn exit(&self) -> Exit {
        match self.fault {
            None => Exit::Complete,
            Some(_) => Exit::Failed,
        }
    }

    /// The request for people or programs to read.
    pub(super) fn shown_request(&self, with_bodies: bool) -> anyhow::Result<Value> {
        match (&self.body, with_bodies) {
            (Some(body), true) => serde_json::from_slice(body).context("what was sent is not JSON"),
            (None, true) => bail!("{}", self.fault.as_deref().unwrap_or_default()),
            (_, false) => Ok(self.outline.clone()),
        }
    }
}

/// What is known of a call without its request.
pub(super) fn call_json(chat: &str, call: &ArchivedCall) -> Value {
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

/// How a call ended, in a few words.
pub(super) fn describe_end(call: &ArchivedCall) -> String {
    let Some(end) = &call.end else {
        return "no end recorded: it runs, or its host was killed".to_owned();
    };
    let reason = escape_line(end["reason"].as_str().unwrap_or(""));
    match end["outcome"].as_str().unwrap_or("") {
        "answered" => reason,
        "refused" => format!("refused: {reason}"),
        "failed" => format!("failed: {reason}"),
        "abandoned" => "cancelled".to_owned(),
        other => escape_line(other),
    }
}

/// A number of tokens, or a dash where the server counted none.
pub(super) fn format_tokens(tokens: &Value) -> String {
    tokens
        .as_u64()
        .map_or_else(|| "-".to_owned(), |tokens| tokens.to_string())
}

pub(super) fn format_cost(cost: &Value) -> String {
    cost.as_f64()
        .map_or_else(|| "-".to_owned(), |cost| format!("${cost:.4}"))
}
