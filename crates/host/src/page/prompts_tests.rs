//! What is shown of a call that a journal holds.

use agent_api::{CallPurpose, ModelCall, Section};
use bytes::Bytes;
use kernel::{Batch, BootWork, ChannelId, ChannelRecord, Head, Record, Seq, StoredKind};
use wire::state::{ChatState, SessionState};

use super::*;
use crate::blobs::MemoryBlobs;
use crate::journal::{Journal, Sqlite};
use crate::sent_request::{CallIdentity, CallRetention, make_record};

#[test]
fn a_restricted_text_is_taken_out_wherever_it_stands() {
    let section = SectionTexts { id: "safety", before: "Be safe.", after: "Be \"safe\".\n" };
    let texts: Vec<_> = section.to_hide().collect();
    let mut request =
        json!({"system": "You are x.\n\nBe \"safe\".\n\nEnd.", "n": [{"deep": "Be safe."}]});
    let mut found = vec![false; texts.len()];
    hide(&mut request, &texts, &mut found);
    assert_eq!(found, [true, true]);
    let shown = request.to_string();
    assert!(!shown.contains("safe\\\"") && !shown.contains("Be safe"), "{shown}");
    assert!(shown.contains("You are x.") && shown.contains("<restricted section safety, 10 bytes"));
}

fn channel(id: u64, name: &str, parent: Option<u64>) -> Record {
    let state = json!({
        "provider": "p", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [],
        "resource": name, "modifiedAt": "", "chats": [
            {"resource": "test:/chat", "title": "", "status": 1, "modifiedAt": ""},
        ],
    });
    let session = || Head::Session(Arc::new(SessionState::from_value(state.clone()).unwrap()));
    let chat = || Head::Chat(Arc::new(ChatState::from_value(state.clone()).unwrap()));
    Record::Channel(ChannelRecord {
        id: ChannelId(id),
        uri: ChannelUri::parse(name).unwrap(),
        kind: parent.map_or(StoredKind::Session, |_| StoredKind::Chat),
        parent: parent.map(ChannelId),
        head: parent.map_or_else(session, |_| chat()),
        head_seq: Seq(id),
        boot_work: BootWork::default(),
        private: Bytes::new(),
    })
}

/// A reader over a journal with one call of this body.
fn reader(data: &std::path::Path, body: &Value) -> PromptReader {
    let blobs = Arc::new(MemoryBlobs::new());
    let call = ModelCall {
        purpose: CallPurpose::Answer,
        round: 0,
        api: "anthropic",
        model: "m".to_owned(),
        url: "https://models.example/v1".to_owned(),
        headers: Vec::new(),
        body: Bytes::from(body.to_string()),
        sections_before: vec![
            Section::new("tone", "Talk briefly."),
            Section::new("safety", "The secret rules."),
        ],
        sections_after: vec![
            Section::new("tone", "Talk briefly. No jokes."),
            Section::new("safety", "The secret rules."),
        ],
        decisions: Vec::new(),
    };
    let recorded_as = CallIdentity { chat: ChannelId(2), turn_id: "t1".to_owned(), key: 1 };
    let retention = CallRetention::default();
    let record = make_record(&call, recorded_as, Timestamp(5), retention, &*blobs).unwrap();
    let records =
        vec![channel(1, "test:/session", None), channel(2, "test:/chat", Some(1)), record];
    let mut journal = Sqlite::open(data).unwrap();
    let seq = Seq(9);
    journal.append(&Batch { seq, records }).unwrap();
    PromptReader::new(data.to_owned(), blobs, &["safety".to_owned()])
}

#[test]
fn a_call_is_shown_without_its_restricted_section() {
    let dir = tempfile::tempdir().unwrap();
    let system = "Talk briefly. No jokes.\n\nThe secret rules.";
    let reader = reader(dir.path(), &json!({"system": system, "messages": ["hello"]}));
    let listed = reader.read("test:/chat", None).unwrap();
    assert_eq!(listed["calls"][0]["model"], "m");
    let number = listed["calls"][0]["call"].as_u64().unwrap();
    let shown = reader.read("test:/chat", Some(number)).unwrap();
    assert_eq!(
        shown["sections"][0],
        json!({"id": "tone", "before": "Talk briefly.", "after": "Talk briefly. No jokes."})
    );
    let restricted = &shown["sections"][1];
    assert_eq!(
        (&restricted["id"], &restricted["restricted"], &restricted["bytes"]),
        (&json!("safety"), &json!(true), &json!(17))
    );
    assert_eq!(restricted["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(shown["isAsSent"], true);
    assert_eq!(shown["request"]["messages"], json!(["hello"]));
    assert!(!shown.to_string().contains("secret"), "{shown}");
    assert!(!listed.to_string().contains("secret"));
    assert!(matches!(reader.read("test:/chat", Some(99)), Err(PromptError::UnknownCall)));
    for unknown in ["test:/none", "test:/session", "", "no uri"] {
        let error = reader.read(unknown, None);
        assert!(matches!(error, Err(PromptError::UnknownChat)), "{unknown}");
    }
}

#[test]
fn a_request_with_a_section_that_is_not_found_is_withheld() {
    let dir = tempfile::tempdir().unwrap();
    let reader = reader(dir.path(), &json!({"system": "The  secret  rules."}));
    let listed = reader.read("test:/chat", None).unwrap();
    let number = listed["calls"][0]["call"].as_u64();
    let shown = reader.read("test:/chat", number).unwrap();
    assert_eq!(shown["request"], Value::Null);
    assert!(shown["withheld"].is_string() && !shown.to_string().contains("secret"));
}
