//! `greenroom export`: a session as JSON Lines or as a document, read from the data directory; no host is needed, and one may run.
//!
//! Promises: every line is `{"type": "session" | "message" | "part", "data": {...}}`: the session first, then each message
//! in order, each followed by its parts. What was recorded comes out as it is, unknown fields included.

mod markdown;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use client::endpoint;
use host::journal::{Archive, ArchivedChat, ArchivedSession, JournalError};
use serde_json::{Map, Value, json};
use wire::ChannelUri;
use wire::state::ActiveTurn;

use crate::archive::find_session;
use crate::exit::Exit;
use crate::session_name::SessionName;
use crate::terminal::json_line;

/// Write a session as JSON Lines, or as a document to read
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom export scripted:/0190... > session.jsonl
  greenroom export --markdown 'Parser work' > session.md
  greenroom export scripted:/0190... | jq -r 'select(.data.type == \"markdown\").data.data.content'

Reads the data directory: no host has to run, and one that does is not disturbed. A turn that is running is written as far \
as it got, without a `state`. `greenroom sessions import` makes a session of the JSON Lines again. `greenroom sessions` lists the URIs.")]
pub(crate) struct ExportOptions {
    /// The session: its URI, a part of its id, or its title; or the URI of one chat of it
    #[arg(value_name = "SESSION")]
    name: SessionName,
    /// Write a document in Markdown instead
    #[arg(long)]
    markdown: bool,
    /// Data directory [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// A name for the file of a session, without its ending.
pub(crate) fn file_name(session: &ChannelUri) -> String {
    let id: String = session
        .as_str()
        .rsplit('/')
        .next()
        .unwrap_or("session")
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    format!("greenroom-{id}")
}

/// Writes a session to a file that is not there yet: JSON Lines if its name says so, else a document.
pub(crate) fn write_file(data: &Path, session: &ChannelUri, file: &Path) -> anyhow::Result<()> {
    let (archive, session) = find_session(data, &SessionName::of(session))?;
    let created = std::fs::File::create_new(file);
    let created = created.with_context(|| format!("{} cannot be created", file.display()))?;
    let mut out = BufWriter::new(created);
    let ending = file.extension().and_then(std::ffi::OsStr::to_str);
    match ending {
        Some("jsonl" | "json" | "ndjson") => write(&mut out, &archive, &session)?,
        _ => markdown::write(&mut out, &archive, &session)?,
    }
    out.flush()?;
    Ok(())
}

/// Why an export stopped.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("standard output cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

pub(crate) fn run(options: &ExportOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let (archive, session) = find_session(&data, &options.name)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = if options.markdown {
        markdown::write(&mut out, &archive, &session)
    } else {
        write(&mut out, &archive, &session)
    };
    match written.and_then(|()| Ok(out.flush()?)) {
        // Whoever closed the pipe has seen enough.
        Err(ExportError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Ok(Exit::Complete)
        }
        written => {
            written?;
            Ok(Exit::Complete)
        }
    }
}

fn write(
    out: &mut impl Write,
    archive: &Archive,
    session: &ArchivedSession,
) -> Result<(), ExportError> {
    let mut data = Map::new();
    data.insert("resource".to_owned(), json!(session.uri.as_str()));
    if let Value::Object(state) = wire::action::to_value(&session.state) {
        data.extend(state);
    }
    if let Some((created, modified)) = session.times {
        data.insert("createdAt".to_owned(), json!(created.to_rfc3339()));
        data.insert("modifiedAt".to_owned(), json!(modified.to_rfc3339()));
    }
    write_line(out, "session", data)?;
    for chat in &session.chats {
        archive.turns(chat, |turn| write_turn(out, &chat.state.resource, turn))?;
        if let Some(turn) = running_turn(chat) {
            write_turn(out, &chat.state.resource, turn)?;
        }
    }
    Ok(())
}

/// The turn that runs, or ran when its host died.
fn running_turn(chat: &ArchivedChat) -> Option<Value> {
    let turn: &ActiveTurn = chat.state.active_turn.as_ref()?;
    Some(wire::action::to_value(turn))
}

/// A turn is two messages: what was asked, and what was answered.
fn write_turn(out: &mut impl Write, chat: &str, turn: Value) -> Result<(), ExportError> {
    debug_assert!(turn.is_object(), "a turn is an object");
    let Value::Object(mut answer) = turn else {
        return Ok(()); // the journal stores nothing else; what is not a turn has no messages
    };
    let id = match answer.shift_remove("id") {
        Some(Value::String(id)) => id,
        _ => String::new(),
    };
    let started_at = answer.shift_remove("startedAt").unwrap_or(Value::Null);
    let parts = answer.shift_remove("responseParts");
    let row = |role: &str| {
        let mut row = Map::new();
        row.insert("id".to_owned(), json!(format!("{id}/{role}")));
        row.insert("chat".to_owned(), json!(chat));
        row.insert("turnId".to_owned(), json!(id));
        row.insert("role".to_owned(), json!(role));
        row.insert("createdAt".to_owned(), started_at.clone());
        row
    };
    if let Some(Value::Object(mut message)) = answer.shift_remove("message") {
        let text = message.shift_remove("text").unwrap_or(Value::Null);
        let attachments = message.shift_remove("attachments");
        let mut user = row("user");
        user.extend(message);
        let owner = user["id"].clone();
        write_line(out, "message", user)?;
        let typed = json!({"type": "text", "text": text});
        let attached = into_list(attachments).into_iter();
        write_parts(out, &owner, "type", std::iter::once(typed).chain(attached))?;
    }
    let mut assistant = row("assistant");
    assistant.extend(answer);
    let owner = assistant["id"].clone();
    write_line(out, "message", assistant)?;
    write_parts(out, &owner, "kind", into_list(parts).into_iter())
}

fn write_parts(
    out: &mut impl Write,
    message: &Value,
    discriminant: &str,
    parts: impl Iterator<Item = Value>,
) -> Result<(), ExportError> {
    for (index, part) in parts.enumerate() {
        let mut row = Map::new();
        row.insert("message".to_owned(), message.clone());
        row.insert("index".to_owned(), json!(index));
        row.insert("type".to_owned(), part[discriminant].clone());
        row.insert("data".to_owned(), part);
        write_line(out, "part", row)?;
    }
    Ok(())
}

fn into_list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn write_line(
    out: &mut impl Write,
    kind: &str,
    data: Map<String, Value>,
) -> Result<(), ExportError> {
    writeln!(out, "{}", json_line(&json!({"type": kind, "data": data})))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_turn_is_a_question_and_an_answer_with_their_parts() {
        let turn = json!({
            "id": "t1", "startedAt": "2026-11-15T08:00:00Z", "duration": 5,
            "message": {
                "text": "look", "origin": {"kind": "user"},
                "attachments": [{"type": "simple", "label": "a", "new": 1}],
            },
            "responseParts": [
                {"kind": "reasoning", "id": "p1", "content": "hm"},
                {"kind": "markdown", "id": "p2", "content": "seen"},
            ],
            "usage": {"inputTokens": 1},
            "state": "complete",
        });
        let mut out = Vec::new();
        write_turn(&mut out, "ahp-chat:/c", turn).unwrap();
        expect![[r#"
            {"type":"message","data":{"id":"t1/user","chat":"ahp-chat:/c","turnId":"t1","role":"user","createdAt":"2026-11-15T08:00:00Z","origin":{"kind":"user"}}}
            {"type":"part","data":{"message":"t1/user","index":0,"type":"text","data":{"type":"text","text":"look"}}}
            {"type":"part","data":{"message":"t1/user","index":1,"type":"simple","data":{"type":"simple","label":"a","new":1}}}
            {"type":"message","data":{"id":"t1/assistant","chat":"ahp-chat:/c","turnId":"t1","role":"assistant","createdAt":"2026-11-15T08:00:00Z","duration":5,"usage":{"inputTokens":1},"state":"complete"}}
            {"type":"part","data":{"message":"t1/assistant","index":0,"type":"reasoning","data":{"kind":"reasoning","id":"p1","content":"hm"}}}
            {"type":"part","data":{"message":"t1/assistant","index":1,"type":"markdown","data":{"kind":"markdown","id":"p2","content":"seen"}}}
        "#]]
        .assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn a_missing_session_is_reported_with_a_hint() {
        let data = tempfile::tempdir().unwrap();
        let name = "scripted:/none".parse().unwrap();
        let error = find_session(data.path(), &name).unwrap_err();
        assert!(error.to_string().contains("--data"), "{error}");
    }
}
