//! Messages with real files, on a real journal: what was shown once is shown again, whatever became of the file.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use kernel::{Limits, MessageRecord, PartRecord};
use serde_json::json;
use tempfile::tempdir;
use wire::{file_uri, rpc};

use super::*;
use crate::blobs::MemoryBlobs;
use crate::clock::Clock;
use crate::effects::Bodies;
use crate::effects::services::TurnServices;
use crate::journal::Sqlite;
use crate::journal::contract::{chat, dispose, fork, session, sweep, turn};

async fn write(journal: &JournalHandle, records: Vec<Record>) {
    let seq = Seq(20);
    journal.append(Batch { seq, records }).await.unwrap();
}

/// A message of a turn that refers to a file.
fn message_about(path: &str, turn_id: &str) -> Record {
    let part = json!({"type": "file-ref", "ref": {"kind": "path", "path": path}});
    let part = Part::from_value(part).unwrap();
    Record::Message(MessageRecord {
        id: "msg_1".to_owned(),
        session: ChannelId(1),
        chat: ChannelId(2),
        turn_id: Some(turn_id.to_owned()),
        metadata: Bytes::from_static(br#"{"schema_version":1}"#),
        parts: vec![PartRecord {
            id: "prt_1".to_owned(),
            kind: part.kind().to_owned(),
            json: Bytes::from(rpc::to_json(part.object())),
        }],
        at: Timestamp(7),
    })
}

/// What a chat's agent is shown of the only reference in a turn.
async fn shown(services: &TurnServices, chat: u64, directory: &Path, turn_id: &str) -> Vec<u8> {
    let directory = file_uri::uri_of(directory.to_str().unwrap());
    let messages = services.messages(ChannelId(chat), &[directory]);
    let by_turn = messages.read_turns(vec![turn_id.to_owned()]).await.unwrap();
    let resolved = &by_turn.get(turn_id).unwrap()[0].resolved[&0];
    resolved.to_stored().body.unwrap()
}

fn services_in(data: &Path, blobs: &MemoryBlobs) -> (TurnServices, Bodies) {
    let sqlite = Sqlite::open(data).unwrap();
    let (journal, _) = JournalHandle::start(Box::new(sqlite)).unwrap();
    let bodies = Bodies::new(Arc::new(blobs.clone()), Clock::start(), &Limits::default());
    let (arrivals, _) = tokio::sync::mpsc::channel(1);
    let terminals = crate::terminals::Terminals::new(arrivals.clone());
    let asker = crate::client_plugins::ClientAsker::new(arrivals);
    let services = TurnServices::new(journal, bodies.clone(), terminals, asker);
    (services, bodies)
}

/// The error that a turn ends in whose message cannot be read.
async fn unreadable(services: &TurnServices) -> AgentError {
    let read = services.messages(ChannelId(2), &[]).read_turns(vec!["t0".to_owned()]).await;
    let error = read.unwrap_err();
    assert!(error.resumable, "{error:?}");
    error
}

#[tokio::test]
async fn a_damaged_row_is_an_error_and_not_another_message() {
    let whole = Bytes::from_static(br#"{"schema_version":1}"#);
    let (cut, text) = (Bytes::from_static(b"{\"ref"), Bytes::from_static(b"{\"type\":\"text\"}"));
    for (metadata, json) in [(whole, cut.clone()), (cut, text)] {
        let data = tempdir().unwrap();
        let (services, _) = services_in(data.path(), &MemoryBlobs::new());
        let Record::Message(mut message) = message_about("a.txt", "t0") else { unreachable!() };
        message.metadata = metadata;
        message.parts[0].json = json;
        let channels = vec![session(1, "s"), chat(2, "c")];
        write(&services.journal, channels).await;
        let rows = vec![Record::Message(message), turn(2, 0, "t0")];
        write(&services.journal, rows).await;
        let error = unreadable(&services).await;
        assert!(error.message.contains("msg_1 is damaged"), "{error:?}");
    }
}

// C-021
#[tokio::test]
async fn a_frozen_reference_that_cannot_be_read_is_not_resolved_again() {
    let (data, files) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(files.path().join("a.txt"), "as it was").unwrap();
    let blobs = MemoryBlobs::new();
    let (services, _) = services_in(data.path(), &blobs);
    write(&services.journal, vec![session(1, "s"), chat(2, "c")]).await;
    let rows = vec![message_about("a.txt", "t0"), turn(2, 0, "t0")];
    write(&services.journal, rows).await;
    assert_eq!(shown(&services, 2, files.path(), "t0").await, b"as it was");
    fs::write(files.path().join("a.txt"), "as it is").unwrap();
    let digest = wire::Digest::of(b"as it was");
    blobs.damage(&digest);
    let error = unreadable(&services).await;
    assert!(error.message.contains("is damaged"), "{error:?}");
    // One that is gone cannot be shown again by anybody.
    blobs.remove(&digest, Timestamp(i64::MAX)).unwrap();
    assert_eq!(shown(&services, 2, files.path(), "t0").await, b"as it is");
}

// C-081
#[tokio::test]
async fn what_was_just_composed_is_what_its_rows_say_later() {
    let (data, files) = (tempdir().unwrap(), tempdir().unwrap());
    fs::write(files.path().join("a.txt"), "as it was").unwrap();
    let (services, _) = services_in(data.path(), &MemoryBlobs::new());
    let rows = message_about("a.txt", "t0");
    let Record::Message(message) = &rows else { unreachable!() };
    let row = &message.parts[0];
    let composed = ComposedMessage {
        parts: vec![MessagePart {
            id: row.id.clone(),
            part: Part::from_value(serde_json::from_slice(&row.json).unwrap()).unwrap(),
            frozen: None,
        }],
    };
    write(&services.journal, vec![session(1, "s"), chat(2, "c")]).await;
    write(&services.journal, vec![rows, turn(2, 0, "t0")]).await;
    let directory = file_uri::uri_of(files.path().to_str().unwrap());
    let messages = services.messages(ChannelId(2), &[directory]);
    let shown_first = messages.use_composed(composed).await.unwrap();
    fs::write(files.path().join("a.txt"), "as it is").unwrap();
    let by_turn = messages.read_turns(vec!["t0".to_owned()]).await.unwrap();
    assert_eq!(*by_turn.get("t0").unwrap(), [shown_first]);
}

// G-52
#[tokio::test]
async fn a_fork_is_shown_the_same_file_when_the_chat_it_came_from_is_gone() {
    let (data, files) = (tempdir().unwrap(), tempdir().unwrap());
    let file = files.path().join("a.txt");
    fs::write(&file, "as it was").unwrap();
    let blobs = MemoryBlobs::new();
    let (services, bodies) = services_in(data.path(), &blobs);
    let journal = services.journal.clone();
    write(&journal, vec![session(1, "s"), chat(2, "c")]).await;
    write(&journal, vec![message_about("a.txt", "t0"), turn(2, 0, "t0")]).await;
    assert_eq!(shown(&services, 2, files.path(), "t0").await, b"as it was");

    write(&journal, vec![chat(10, "f"), fork(10, 2, 0, 9)]).await;
    fs::write(&file, "as it is").unwrap();
    write(&journal, vec![dispose(2, 20)]).await;
    for _ in 0..2 {
        write(&journal, vec![sweep(21)]).await;
    }
    let orphan = blobs.put(b"orphan", Timestamp(0)).unwrap();
    bodies.collect(0..=255, Timestamp(i64::MAX), &journal).await;
    assert!(!blobs.digests().contains(&orphan), "bodies were collected");
    assert_eq!(shown(&services, 10, files.path(), "t0").await, b"as it was");
}
