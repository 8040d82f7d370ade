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
    let resolved = &by_turn[turn_id][0].resolved[&0];
    resolved.to_stored().body.unwrap()
}

// G-52
#[tokio::test]
async fn a_fork_is_shown_the_same_file_when_the_chat_it_came_from_is_gone() {
    let (data, files) = (tempdir().unwrap(), tempdir().unwrap());
    let file = files.path().join("a.txt");
    fs::write(&file, "as it was").unwrap();
    let sqlite = Sqlite::open(data.path()).unwrap();
    let (journal, _) = JournalHandle::start(Box::new(sqlite)).unwrap();
    let blobs = MemoryBlobs::new();
    let bodies = Bodies::new(Arc::new(blobs.clone()), Clock::start(), &Limits::default());
    let (arrivals, _) = tokio::sync::mpsc::channel(1);
    let terminals = crate::terminals::Terminals::new(arrivals.clone());
    let asker = crate::client_plugins::ClientAsker::new(arrivals);
    let services = TurnServices::new(journal.clone(), bodies.clone(), terminals, asker);
    write(&journal, vec![session(1, "s"), chat(2, "c")]).await;
    write(
        &journal,
        vec![message_about("a.txt", "t0"), turn(2, 0, "t0")],
    )
    .await;
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
