//! `greenroom sessions import`: a session from the JSON Lines that `greenroom export` writes.
//!
//! Promises: all of it or nothing. A line that is none of those is named by its number. Ids stay as they are unless a session has
//! them already; then all of them are new.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde_json::{Map, Value, json};
use wire::ext::import_session::{ImportSessionParams, ImportedTurn};
use wire::rpc::code;

use crate::exit::Exit;
use crate::format::{format_bytes, format_count};
use crate::output::print;
use crate::own_host::{HostConnection, MESSAGE_BYTES_MAX};
use crate::target::HostOptions;
use crate::terminal::escape_line;

/// What a running host takes in one message unless it is set otherwise.
const HOST_MESSAGE_BYTES: usize = 32 << 20;

/// Make a session from the JSON Lines that `greenroom export` wrote
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom export 3f2a > backup.jsonl
  greenroom sessions import backup.jsonl
  ssh there greenroom export 3f2a | greenroom sessions import -

All of it is imported or nothing. Ids are kept unless they are taken. What was true only then is left out: who was connected, what was waited \
for, a turn that was running, and the settings: the agent starts with this host's defaults. Attachments over 1 MiB and long outputs are named \
in an export, not held: they can be read where the data directory still has them.")]
pub(crate) struct ImportOptions {
    /// The file; `-` reads standard input
    file: PathBuf,
    #[command(flatten)]
    host: HostOptions,
}

pub(crate) async fn run(options: ImportOptions) -> anyhow::Result<Exit> {
    let mut exported = if options.file == Path::new("-") {
        ExportedSession::read(std::io::stdin().lock())
    } else {
        let file = File::open(&options.file)
            .with_context(|| format!("{} cannot be read", options.file.display()))?;
        ExportedSession::read(BufReader::new(file))
    }
    .with_context(|| format!("{} was not imported", options.file.display()))?;
    let host = HostConnection::open(&options.host).await?;
    let imported = exported.send(&host).await;
    host.close().await?;
    let session = imported?;
    let turns = format_count(exported.turns.len(), "turn");
    print(&format!("Imported {turns} as {}.\n", escape_line(&session)))?;
    if exported.running > 0 {
        eprintln!("A turn that was running when it was exported is left out.");
    }
    Ok(Exit::Complete)
}

/// A session as an export tells it.
#[derive(Debug, PartialEq)]
struct ExportedSession {
    session: Map<String, Value>,
    /// Each with its chat, in the order of the file.
    turns: Vec<(String, Map<String, Value>)>,
    /// Turns without an end.
    running: usize,
}

/// A message whose parts are being read.
struct OpenMessage {
    id: String,
    chat: String,
    turn_id: String,
    is_user: bool,
    fields: Map<String, Value>,
    created_at: Value,
    parts: Vec<Value>,
}

impl ExportedSession {
    fn read(input: impl BufRead) -> anyhow::Result<Self> {
        let mut input = input.take(MESSAGE_BYTES_MAX as u64);
        let mut reader = ExportReader::default();
        let (mut line, mut number) = (String::new(), 0);
        loop {
            line.clear();
            number += 1;
            let at = || format!("line {number}");
            if input.read_line(&mut line).with_context(at)? == 0 {
                break;
            }
            if !line.trim().is_empty() {
                reader.take_line(&line).with_context(at)?;
            }
        }
        if input.limit() == 0 {
            bail!("it is larger than {}", format_bytes(MESSAGE_BYTES_MAX as u64));
        }
        reader.finish()
    }

    /// Has the host make the session; under new ids if those it has are taken.
    async fn send(&mut self, host: &HostConnection) -> anyhow::Result<String> {
        let params = self.params()?;
        let bytes = params.session.len() + params.turns.len();
        if !host.is_own() && bytes > HOST_MESSAGE_BYTES {
            eprintln!(
                "It has {}. If the running host refuses that much (frame_in_bytes), stop it and import again: that works without a host.",
                format_bytes(bytes as u64)
            );
        }
        let imported = match host.live.import_session(&params).await {
            Err(error) if error.code() == Some(code::SESSION_ALREADY_EXISTS) => {
                self.rename_all();
                host.live.import_session(&self.params()?).await
            }
            imported => imported,
        };
        imported.context("the host did not import it")
    }

    fn params(&self) -> anyhow::Result<ImportSessionParams> {
        let mut turns = String::new();
        for (chat, turn) in &self.turns {
            let imported = ImportedTurn { chat: chat.clone(), turn: turn.clone() };
            turns.push_str(&serde_json::to_string(&imported)?);
            turns.push('\n');
        }
        Ok(ImportSessionParams { session: serde_json::to_string(&self.session)?, turns })
    }

    /// Gives the session and its chats new names.
    fn rename_all(&mut self) {
        let provider =
            self.session.get("provider").and_then(Value::as_str).unwrap_or("ahp-session");
        let session = format!("{provider}:/{}", uuid::Uuid::now_v7());
        let mut names: HashMap<String, String> = HashMap::new();
        let chats = self.session.get("chats").and_then(Value::as_array).into_iter().flatten();
        for chat in chats.filter_map(|chat| chat["resource"].as_str()) {
            let is_default = chat.starts_with("ahp-chat://default/");
            let name = if is_default {
                client::chat::default_chat_of(&session)
            } else {
                format!("ahp-chat:/{}", uuid::Uuid::now_v7())
            };
            names.insert(chat.to_owned(), name);
        }
        self.session.insert("resource".to_owned(), json!(session));
        for (field, value) in &mut self.session {
            if matches!(field.as_str(), "chats" | "defaultChat") {
                rename_in(value, &names);
            }
        }
        for (chat, _) in &mut self.turns {
            if let Some(name) = names.get(chat) {
                name.clone_into(chat);
            }
        }
    }
}

/// Replaces names wherever they are whole values.
fn rename_in(value: &mut Value, names: &HashMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(name) = names.get(text) {
                name.clone_into(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_in(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename_in(field, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What was read so far.
#[derive(Default)]
struct ExportReader {
    session: Option<Map<String, Value>>,
    turns: Vec<(String, Map<String, Value>)>,
    running: usize,
    question: Option<OpenMessage>,
    open: Option<OpenMessage>,
}

impl ExportReader {
    fn take_line(&mut self, line: &str) -> anyhow::Result<()> {
        let row: Value = serde_json::from_str(line).context("it is not JSON")?;
        let Value::Object(mut row) = row else { bail!("it is not an object") };
        let Some(Value::Object(data)) = row.remove("data") else { bail!("it has no `data`") };
        match (row.get("type").and_then(Value::as_str), &self.session) {
            (Some("session"), None) => {
                self.session = Some(data);
                Ok(())
            }
            (Some("session"), Some(_)) => Err(anyhow!("it is a second session")),
            (Some("message" | "part"), None) => Err(anyhow!("it stands before the session")),
            (Some("message"), Some(_)) => self.begin_message(data),
            (Some("part"), Some(_)) => self.take_part(data),
            _ => Err(anyhow!("its `type` is none of session, message and part")),
        }
    }

    fn begin_message(&mut self, mut data: Map<String, Value>) -> anyhow::Result<()> {
        self.end_message()?;
        let mut text = |field: &str| match data.shift_remove(field) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(anyhow!("a message without `{field}`")),
        };
        let (id, chat, turn_id, role) =
            (text("id")?, text("chat")?, text("turnId")?, text("role")?);
        let is_user = match role.as_str() {
            "user" => true,
            "assistant" => false,
            _ => bail!("a message whose `role` is neither user nor assistant"),
        };
        let created_at = data.shift_remove("createdAt").unwrap_or(Value::Null);
        self.open = Some(OpenMessage {
            id,
            chat,
            turn_id,
            is_user,
            fields: data,
            created_at,
            parts: Vec::new(),
        });
        Ok(())
    }

    fn take_part(&mut self, mut data: Map<String, Value>) -> anyhow::Result<()> {
        let Some(message) = &mut self.open else { bail!("a part without a message") };
        if data.get("message").and_then(Value::as_str) != Some(&message.id) {
            bail!("a part of another message than the one above it");
        }
        if data.get("index").and_then(Value::as_u64) != Some(message.parts.len() as u64) {
            bail!("a part out of order");
        }
        let part = data.shift_remove("data");
        message.parts.push(part.context("a part without `data`")?);
        Ok(())
    }

    /// A message is whole: a question waits for its answer, an answer makes a turn.
    fn end_message(&mut self) -> anyhow::Result<()> {
        let Some(message) = self.open.take() else {
            return Ok(()); // the first one
        };
        if message.is_user {
            if self.question.is_some() {
                bail!("a message of the user whose answer is missing stands above");
            }
            self.question = Some(message);
            return Ok(());
        }
        let question =
            self.question.take().context("an answer without the message of the user before it")?;
        if (&question.turn_id, &question.chat) != (&message.turn_id, &message.chat) {
            bail!("an answer to another message than the one above it");
        }
        let chat = message.chat.clone();
        let turn = turn_of(question, message)?;
        if turn.contains_key("state") {
            self.turns.push((chat, turn))
        } else {
            self.running += 1
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<ExportedSession> {
        self.end_message().context("at the end")?;
        if self.question.is_some() {
            bail!("the last message has no answer: the file is cut off");
        }
        let session = self.session.context("it holds no session")?;
        if self.turns.is_empty() {
            bail!("it holds no turn that ended");
        }
        Ok(ExportedSession { session, turns: self.turns, running: self.running })
    }
}

/// The turn that a question and its answer were.
fn turn_of(question: OpenMessage, answer: OpenMessage) -> anyhow::Result<Map<String, Value>> {
    let mut parts = question.parts.into_iter();
    let typed = parts.next();
    let text = typed.as_ref().map(|typed| &typed["text"]);
    let text = text.context("a message of the user without its text")?;
    let mut message = Map::new();
    if !text.is_null() {
        message.insert("text".to_owned(), text.clone());
    }
    message.extend(question.fields);
    let attachments: Vec<Value> = parts.collect();
    if !attachments.is_empty() {
        message.insert("attachments".to_owned(), Value::Array(attachments));
    }
    let mut turn = Map::new();
    turn.insert("id".to_owned(), json!(answer.turn_id));
    if !answer.created_at.is_null() {
        turn.insert("startedAt".to_owned(), answer.created_at);
    }
    turn.insert("message".to_owned(), Value::Object(message));
    turn.insert("responseParts".to_owned(), Value::Array(answer.parts));
    turn.extend(answer.fields);
    Ok(turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = r#"{"type":"session","data":{"resource":"p:/1","provider":"p","chats":[{"resource":"ahp-chat://default/cDovMQ"},{"resource":"ahp-chat:/w","origin":{"chat":"ahp-chat://default/cDovMQ"}}],"defaultChat":"ahp-chat://default/cDovMQ"}}"#;
    const USER: &str = r#"{"type":"message","data":{"id":"t/user","chat":"ahp-chat:/w","turnId":"t","role":"user","createdAt":"2026-11-15T08:00:00Z","origin":{"kind":"user"}}}"#;
    const TEXT: &str = r#"{"type":"part","data":{"message":"t/user","index":0,"type":"text","data":{"type":"text","text":"look"}}}"#;
    const ANSWER: &str = r#"{"type":"message","data":{"id":"t/assistant","chat":"ahp-chat:/w","turnId":"t","role":"assistant","createdAt":"2026-11-15T08:00:00Z","state":"complete"}}"#;

    fn read(lines: &[&str]) -> Result<ExportedSession, String> {
        let text = lines.join("\n");
        ExportedSession::read(text.as_bytes()).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn lines_become_turns_again() {
        let read = read(&[SESSION, USER, TEXT, "", ANSWER]).unwrap();
        let turn = json!({
            "id": "t", "startedAt": "2026-11-15T08:00:00Z",
            "message": {"text": "look", "origin": {"kind": "user"}},
            "responseParts": [], "state": "complete",
        });
        assert_eq!(Value::Object(read.turns[0].1.clone()), turn);
        assert_eq!((read.turns[0].0.as_str(), read.running), ("ahp-chat:/w", 0));
    }

    #[test]
    fn a_bad_line_is_named() {
        for (lines, expected) in [
            (&[SESSION, "{"][..], "line 2: it is not JSON"),
            (&[USER], "line 1: it stands before the session"),
            (&[SESSION, SESSION], "line 2: it is a second session"),
            (&[SESSION, "[1]"], "line 2: it is not an object"),
            (&[r#"{"data":{}}"#], "line 1: its `type`"),
            (&[SESSION, r#"{"type":"song","data":{}}"#], "line 2: its `type`"),
            (&[SESSION, TEXT], "line 2: a part without a message"),
            (&[SESSION, USER, TEXT, TEXT], "line 4: a part out of order"),
            (
                &[SESSION, USER, TEXT, USER, TEXT, ANSWER],
                "a message of the user whose answer is missing",
            ),
            (&[SESSION, ANSWER], "an answer without the message"),
            (&[SESSION, USER, TEXT], "cut off"),
            (&[SESSION], "no turn"),
            (&[], "no session"),
        ] {
            let error = read(lines).unwrap_err();
            assert!(error.contains(expected), "{error} is not {expected}");
        }
    }

    #[test]
    fn new_names_are_used_everywhere() {
        let mut read = read(&[SESSION, USER, TEXT, ANSWER]).unwrap();
        read.rename_all();
        let session = Value::Object(read.session.clone());
        let resource = session["resource"].as_str().unwrap();
        assert!(resource.starts_with("p:/") && resource != "p:/1");
        let default = session["defaultChat"].as_str().unwrap();
        assert_eq!(default, client::chat::default_chat_of(resource));
        assert_eq!(session["chats"][0]["resource"], default);
        assert_eq!(session["chats"][1]["origin"]["chat"], default);
        assert_eq!(session["chats"][1]["resource"], read.turns[0].0.as_str());
        assert_ne!(read.turns[0].0, "ahp-chat:/w");
    }
}
