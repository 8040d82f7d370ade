//! Requests to models, found by their number in a data directory, and words for what is known of them.

use std::path::Path;

use anyhow::{Context, bail};
use host::blobs::FileBlobs;
use host::journal::{Archive, ArchivedCall, ArchivedChat, ArchivedSession};
use host::sent_request::{SentCall, read_call};
use serde_json::Value;

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
        Ok(Self { archive, blobs: FileBlobs::open_to_read(data), chats })
    }

    /// The call of this number. Each chat has numbers of its own.
    pub(super) fn read(&self, number: u64) -> anyhow::Result<SentCall> {
        let (chat, calls) = match self.chats.as_slice() {
            [] => bail!("no model was asked here yet, or nothing is stored of it"),
            [(chat, calls)] => (chat, calls),
            several => {
                let names: Vec<String> = several
                    .iter()
                    .map(|(chat, _)| &chat.state.resource)
                    .map(|name| escape_line(name))
                    .collect();
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
        Ok(read_call(self.archive, &self.blobs, chat, call)?)
    }
}

pub(super) fn exit_of(sent: &SentCall) -> Exit {
    match sent.fault {
        None => Exit::Complete,
        Some(_) => Exit::Failed,
    }
}

/// The request for people or programs to read.
pub(super) fn shown_request(sent: &SentCall, with_bodies: bool) -> anyhow::Result<Value> {
    match (&sent.body, with_bodies) {
        (Some(body), true) => serde_json::from_slice(body).context("what was sent is not JSON"),
        (None, true) => bail!("{}", sent.fault.as_deref().unwrap_or_default()),
        (_, false) => Ok(sent.outline.clone()),
    }
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
    tokens.as_u64().map_or_else(|| "-".to_owned(), |tokens| tokens.to_string())
}

pub(super) fn format_cost(cost: &Value) -> String {
    cost.as_f64().map_or_else(|| "-".to_owned(), |cost| format!("${cost:.4}"))
}
