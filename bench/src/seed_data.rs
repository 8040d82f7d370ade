//! Data directories with a past: sessions, chats, turns and actions written straight into a journal, as records the
//! host reads like its own.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wire::state::{ChatState, ChatSummary, RootState, SessionState, Turn, status};
use wire::{Action, ChannelUri, Object, Timestamp, action, rpc};

use crate::host_api::journal::{
    Batch, ChannelFields, ChannelId, Head, Journal, Record, Seq, Sqlite, StoredKind, SummaryRecord,
    channel_record,
};
use crate::protocol;

/// Records in one transaction.
const BATCH_RECORDS: usize = 20_000;
const BATCH_BYTES: usize = 32 * 1_024 * 1_024;
const PAST_MS: i64 = 1_740_000_000_000;

/// What a session is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub turns: u32,
    /// Of each turn's JSON, nearly.
    pub turn_bytes: usize,
    /// Actions in the log of its chat, all of them older than its state.
    pub actions: u32,
}

/// A session that was written.
#[derive(Debug, Clone)]
pub(crate) struct Seeded {
    pub chat: String,
    pub chat_id: u64,
}

pub(crate) struct Seeder {
    journal: Sqlite,
    seq: u64,
    sessions: u64,
    records: Vec<Record>,
    bytes: usize,
}

impl Seeder {
    pub(crate) fn open(data: &Path) -> Result<Self> {
        let journal = Sqlite::open(data).context("the journal of the measurement")?;
        Ok(Self { journal, seq: 0, sessions: 0, records: Vec::new(), bytes: 0 })
    }

    fn next(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    pub(crate) fn session(&mut self, name: &str, shape: Shape) -> Result<Seeded> {
        let session = format!("scripted:/{name}");
        let chat = protocol::chat_of(&session);
        let (session_uri, chat_uri) = (ChannelUri::parse(&session)?, ChannelUri::parse(&chat)?);
        let (session_id, chat_id) = (self.next(), self.next());
        let modified = Timestamp(PAST_MS + i64::try_from(self.seq)?);
        for _ in 0..shape.actions {
            let seq = self.next();
            let delta = Action::delta("t-of-old", "p123", "x".repeat(40));
            let envelope = action::encode(&chat_uri, &delta.body, seq, None, None).envelope;
            self.put(Record::Action { seq: Seq(seq), channel: ChannelId(chat_id), envelope }, 256)?;
        }
        for n in 0..u64::from(shape.turns) {
            let turn = Arc::new(turn(n, shape.turn_bytes)?);
            self.put(Record::Turn { chat: ChannelId(chat_id), n, turn }, shape.turn_bytes)?;
        }
        let moment = modified.to_rfc3339();
        let state = ChatState::new(&chat, name, status::IDLE, moment.clone());
        let summary = ChatSummary {
            resource: chat.clone(),
            title: name.to_owned(),
            status: status::IDLE,
            activity: None,
            modified_at: moment.clone(),
            extra: Object::new(),
        };
        let published = published(&session, name, &moment, &summary);
        let state_of_session = session_state(name, summary);
        let private = json!({
            "creator": "bench", "created": modified.0, "modified": modified.0, "hadTurn": true,
            "hasDraft": false, "published": published,
        });
        let head = Head::Session(Arc::new(state_of_session));
        let private = rpc::to_json(&private);
        let kind = StoredKind::Session;
        self.channel(session_id, &session_uri, kind, None, head, private)?;
        let head = Head::Chat(Arc::new(state));
        let private = rpc::to_json(&json!({"accepted": null}));
        let (kind, parent) = (StoredKind::Chat, Some(ChannelId(session_id)));
        self.channel(chat_id, &chat_uri, kind, parent, head, private)?;
        let summary = SummaryRecord {
            session: ChannelId(session_id),
            uri: session_uri,
            modified,
            created: modified,
            empty: false,
            creator: Some("bench".to_owned()),
            json: rpc::to_json(&published).into(),
        };
        self.put(Record::Summary(summary), 1_024)?;
        self.sessions += 1;
        Ok(Seeded { chat, chat_id })
    }

    /// Writes what is left, and the root channel.
    pub(crate) fn finish(mut self) -> Result<()> {
        let root = RootState {
            agents: Vec::new(),
            active_sessions: Some(i64::try_from(self.sessions)?),
            config: None,
            extra: Object::new(),
        };
        let uri = ChannelUri::root();
        self.channel(0, &uri, StoredKind::Root, None, Head::Root(Arc::new(root)), Vec::new())?;
        self.flush()
    }

    fn channel(
        &mut self,
        id: u64,
        uri: &ChannelUri,
        kind: StoredKind,
        parent: Option<ChannelId>,
        head: Head,
        private: Vec<u8>,
    ) -> Result<()> {
        let fields = ChannelFields {
            id: ChannelId(id),
            uri: uri.clone(),
            kind,
            parent,
            head,
            head_seq: Seq(self.seq),
            private,
        };
        self.put(channel_record(fields), 1_024)
    }

    fn put(&mut self, record: Record, bytes: usize) -> Result<()> {
        self.records.push(record);
        self.bytes += bytes;
        if self.records.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let batch = Batch { seq: Seq(self.seq), records: std::mem::take(&mut self.records) };
        self.bytes = 0;
        Ok(self.journal.append(&batch)?)
    }
}

fn session_state(title: &str, chat: ChatSummary) -> SessionState {
    SessionState {
        provider: "scripted".to_owned(),
        title: title.to_owned(),
        status: status::IDLE,
        activity: None,
        lifecycle: "ready".to_owned(),
        working_directories: None,
        active_clients: Vec::new(),
        default_chat: Some(chat.resource.clone()),
        chats: vec![chat],
        config: None,
        customizations: None,
        input_needed: Vec::new(),
        extra: Object::new(),
    }
}

fn published(session: &str, title: &str, moment: &str, chat: &ChatSummary) -> Value {
    json!({
        "resource": session, "provider": "scripted", "title": title, "status": status::IDLE,
        "createdAt": moment, "modifiedAt": moment, "defaultChat": chat.resource,
        "chats": [{"resource": chat.resource, "title": title, "status": status::IDLE}],
    })
}

/// A completed turn whose JSON has `bytes` bytes, or as few as it can have.
fn turn(n: u64, bytes: usize) -> Result<Turn> {
    let with = |content: String| {
        Turn::from_value(&json!({
            "id": format!("turn-{n:08}"),
            "startedAt": Timestamp(PAST_MS).to_rfc3339(),
            "duration": 1_000,
            "message": {"text": "what then?", "origin": {"kind": "user"}},
            "responseParts": [{"kind": "markdown", "id": "p1", "content": content}],
            "state": "complete",
        }))
    };
    let frame = with(String::new())?.json.len();
    Ok(with("y".repeat(bytes.saturating_sub(frame)))?)
}
