//! A data directory and a settings file of an earlier release: opened, listed, continued and exported by this one. And the other
//! way round: what a later release wrote is refused with words, and left as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use client::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::running::{Host, data_directory, greenroom, lines, text};

const SESSIONS: [&str; 8] =
    ["plain", "tools", "question", "attachments", "fork", "archived", "queue", "killed"];

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/release-0.1.0").join(path)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A copy of the directory, where `greenroom` looks for one.
pub fn copied() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    copy(&fixture("data"), &data_directory(home.path()));
    home
}

pub fn expected(name: &str) -> Value {
    serde_json::from_slice(&fs::read(fixture("expected").join(name)).unwrap()).unwrap()
}

/// What the moment of the restart decides, and the words of an error, are no part of what was stored.
pub fn without_moment(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.remove("modifiedAt");
                if object.get("id") == Some(&json!("kill-1")) {
                    object.remove("duration");
                }
                if object.get("errorType") == Some(&json!("interrupted")) {
                    object.remove("message");
                }
                object.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

fn export(host: &Host, name: &str) -> Vec<Value> {
    let exported = host.run(&["export", &format!("scripted:/{name}")]);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    lines(&exported.stdout)
}

fn expected_export(name: &str) -> Vec<Value> {
    lines(&fs::read(fixture("expected").join(format!("{name}.jsonl"))).unwrap())
}

#[test]
fn every_session_of_an_earlier_release_is_listed_and_opened_as_it_was() {
    let host = Host::start_with(copied(), &[]);
    let listed = host.run(&["sessions", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(without_moment(listed), without_moment(expected("sessions.json")));
    let chats: BTreeMap<String, Value> = serde_json::from_value(expected("chats.json")).unwrap();
    assert_eq!(chats.len(), 10, "a chat for each session, a fork, a worker");
    for (chat, state) in chats {
        assert_eq!(without_moment(host.state(&chat)), without_moment(state), "{chat}");
    }
}

#[test]
fn every_session_of_an_earlier_release_is_exported_as_it_was() {
    let host = Host::start_with(copied(), &[]);
    for name in SESSIONS {
        let (mut rows, before) = (export(&host, name), expected_export(name));
        // Later releases say when a session was created and modified, too.
        for field in ["createdAt", "modifiedAt"] {
            let session = rows[0]["data"].as_object_mut().unwrap();
            assert!(session.remove(field).is_some_and(|moment| moment.is_string()), "{field}");
        }
        if name != "killed" {
            assert_eq!(rows, before, "{name}");
            continue;
        }
        // The start closed the turn that was running: its row has an end now, and one more part says why.
        assert_eq!(rows.len(), before.len() + 1);
        let turn = |rows: &[Value]| {
            let of_turn = |row: &&Value| row["data"]["id"] == "kill-1/assistant";
            rows.iter().find(of_turn).unwrap()["data"]["state"].clone()
        };
        assert_eq!((turn(&before), turn(&rows)), (Value::Null, json!("error")));
        let streamed = |rows: &[Value]| {
            let of_turn = |row: &&Value| row["data"]["message"] == "kill-1/assistant";
            rows.iter().find(of_turn).unwrap()["data"]["data"].clone()
        };
        assert_eq!(streamed(&rows), streamed(&before));
    }
}

/// The URI under which an exported session names the body of so many bytes.
fn content_uri(rows: &[Value], bytes: usize) -> Option<Value> {
    fn find(value: &Value, bytes: usize) -> Option<Value> {
        match value {
            Value::Object(object) if object.get("sizeHint") == Some(&json!(bytes)) => {
                object.get("uri").cloned()
            }
            Value::Object(object) => object.values().find_map(|value| find(value, bytes)),
            Value::Array(items) => items.iter().find_map(|value| find(value, bytes)),
            _ => None,
        }
    }
    rows.iter().find_map(|row| find(row, bytes))
}

#[tokio::test]
async fn bodies_that_an_earlier_release_stored_are_read() {
    let host = Host::start_with(copied(), &[]);
    let (connection, _events) = Connection::connect(&host.target()).await.unwrap();
    connection.initialize("ann", &[]).await.unwrap();
    let tool_result = "0123456789abcdef".repeat(2_100);
    let attachment = "A line of a large file.\n".repeat(200);
    for (name, body) in [("tools", tool_result), ("attachments", attachment)] {
        let uri = content_uri(&export(&host, name), body.len()).expect(name);
        let read = json!({"channel": format!("scripted:/{name}"), "uri": uri, "encoding": "utf-8"});
        let read = connection.request("resourceRead", read).await.unwrap();
        assert_eq!(read["data"], body, "{name}");
    }
}

#[test]
fn every_session_of_an_earlier_release_is_continued() {
    // Their working directory must lie in a root.
    let host = Host::start_with(copied(), &["--workspace", "/"]);
    for name in SESSIONS {
        let session = format!("scripted:/{name}");
        let before = export(&host, name).len();
        let sent = host.run(&["send", "--json", "--session", &session, "and once more"]);
        assert!(sent.status.success(), "{name}: {}", text(&sent.stderr));
        let rows = export(&host, name);
        assert!(rows.len() >= before + 4, "{name}: a question and an answer");
        let is_new_message = |row: &Value| row["data"]["data"]["text"] == "and once more";
        assert!(rows.iter().any(is_new_message), "{name}");
    }
    // And what was added is there after another start.
    let host = Host::start_with(host.kill(), &[]);
    let rows = export(&host, "plain");
    let is_new_message = |row: &Value| row["data"]["data"]["text"] == "and once more";
    assert!(rows.iter().any(is_new_message));
}

#[test]
fn the_settings_file_of_an_earlier_release_is_understood() {
    let home = copied();
    let printed = greenroom(home.path()).args(["serve", "--print-config"]).output().unwrap();
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    let settings = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.lines().filter_map(|line| line.split_once(" = "));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let now = settings(&text(&printed.stdout));
    let then = fs::read_to_string(fixture("data/greenroom.toml")).unwrap();
    for (key, value) in settings(&then) {
        // Nothing has read it since before this release; it is accepted and not printed.
        if key != "reverse_request_timeout_ms" {
            assert_eq!(now.get(&key), Some(&value), "{key}");
        }
    }
}

/// The format version of a SQLite file is a number in its header (offset 60, big-endian).
fn set_format(journal: &Path, format: u32) {
    let mut bytes = fs::read(journal).unwrap();
    bytes[60..64].copy_from_slice(&format.to_be_bytes());
    fs::write(journal, bytes).unwrap();
}

#[test]
fn a_journal_of_a_later_release_is_refused_with_a_message_and_not_changed() {
    let home = copied();
    let journal = data_directory(home.path()).join("journal.sqlite");
    // The log beside it would show the header as it was.
    fs::remove_file(journal.with_file_name("journal.sqlite-wal")).unwrap();
    set_format(&journal, 99);
    let before = fs::read(&journal).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--workspace", "."];
    for verb in [&serve[..], &["export", "scripted:/plain"]] {
        let refused = greenroom(home.path()).args(verb).output().unwrap();
        let words = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{words}");
        assert!(words.contains("format 99") && words.contains("newer greenroom"), "{words}");
        assert!(words.contains("run that version or a later one"), "what to do: {words}");
        assert_eq!(fs::read(&journal).unwrap(), before);
    }
    set_format(&journal, 4);
    Host::start_with(home, &[]);
}
