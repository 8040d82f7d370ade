//! Two spaces of one database whose rows have the same numbers: what is done in one leaves the other as it is.
//!
//! Promises: every statement that the journal makes of a record, and every one that takes rows away, is run beside such a twin, and
//! all rows of the twin in all tables are compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kernel::{
    Batch, Boot, ChannelId, ClientRecord, DocumentPiece, FileChangesRecord, FloorRecord,
    FrozenRecord, LoweredRecord, MessageRecord, ModelCallEndRecord, ModelCallRecord,
    ModelOutputRecord, PartRecord, Record, Rendered, Seq, SummaryRecord, Transform,
    TransformSkipped,
};
use parking_lot::Mutex;
use wire::{Digest, Timestamp};

use super::postgres::ServerBooks;
use super::{JournalUnderTest, action, chat, dispose, fork, hide, session, sweep, turn, uri};
use crate::accounts::AccountAdmin;
use crate::blobs::Blobs;
use crate::journal::{
    Journal, JournalError, JournalReader, Memory, PgBlobs, PostgresJournal, SpaceJournal,
};

/// A journal that notes what is written to it.
struct RecordingJournal {
    journal: Memory,
    written: Arc<Mutex<Vec<Record>>>,
}

impl Journal for RecordingJournal {
    fn boot(&mut self) -> Result<Boot, JournalError> {
        self.journal.boot()
    }

    fn append(&mut self, batch: &Batch) -> Result<(), JournalError> {
        self.written.lock().extend(batch.records.clone());
        self.journal.append(batch)
    }

    fn probe(&mut self) -> Result<(), JournalError> {
        self.journal.probe()
    }

    fn find_unreferenced(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError> {
        self.journal.find_unreferenced(digests)
    }

    fn release_space(&mut self) -> Result<bool, JournalError> {
        self.journal.release_space()
    }

    fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError> {
        self.journal.reader()
    }
}

/// What a promise writes, but for what takes something away.
pub(super) fn record_additions(promise: &dyn Fn(&mut JournalUnderTest)) -> Vec<Record> {
    let written = Arc::new(Mutex::new(Vec::new()));
    let (memory, noted) = (Memory::new(), Arc::clone(&written));
    let open = move || {
        Box::new(RecordingJournal { journal: memory.clone(), written: Arc::clone(&noted) })
            as Box<dyn Journal>
    };
    promise(&mut JournalUnderTest::opened_by(Box::new(open), None));
    let mut written = std::mem::take(&mut *written.lock());
    written.retain(adds);
    written
}

fn adds(record: &Record) -> bool {
    !matches!(
        record,
        Record::MessageGone { .. }
            | Record::HideTurns { .. }
            | Record::Dispose { .. }
            | Record::SummaryGone { .. }
            | Record::Checkpoint { data: None, .. }
            | Record::ClientGone { .. }
            | Record::FloorGone { .. }
            | Record::Trim { .. }
            | Record::Sweep { .. }
    )
}

/// How many rows each table has of a space, and a digest of them.
type SpaceRows = BTreeMap<String, (u64, String)>;

/// A space that nothing is done in while it is looked at.
pub(super) struct Twin {
    space: i64,
    journal: PostgresJournal,
}

impl Twin {
    /// Each record alone: those that a promise has refused do not keep the others away.
    pub(super) fn fill(books: &ServerBooks, records: Vec<Record>) -> Self {
        let name = books.new_name();
        let opened = books.runtime.block_on(books.node.open_space(&name));
        let (journal, _) = opened.unwrap();
        let sql = format!("SELECT id FROM greenroom.space WHERE name = '{name}'");
        let space = books.ask(&sql).parse().unwrap();
        let twin = Self { space, journal };
        for record in records {
            match twin.write(books, record) {
                Ok(()) | Err(JournalError::BadRecord { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        twin
    }

    fn write(&self, books: &ServerBooks, record: Record) -> Result<(), JournalError> {
        let (seq, records) = (Seq(1_000), vec![record]);
        let batch = Batch { seq, records };
        books.runtime.block_on(self.journal.append(batch))
    }

    pub(super) fn rows(&self, books: &ServerBooks) -> SpaceRows {
        let tables = books.ask(
            "SELECT string_agg(table_name, ',') FROM information_schema.columns
                 WHERE table_schema = 'greenroom' AND column_name = 'space'",
        );
        let space = self.space;
        let of_tables = tables.split(',').map(|table| {
            format!(
                "SELECT '{table} ' || count(*) || ' ' || md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), ''))
                     FROM greenroom.{table} t WHERE space = {space}"
            )
        });
        let sql = of_tables.collect::<Vec<_>>().join(" UNION ALL ");
        let rows = books.ask(&sql);
        let rows = rows.lines().map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            let mut word = || words.next().unwrap();
            (word(), (word().parse().unwrap(), word()))
        });
        rows.collect()
    }

    fn count(&self, books: &ServerBooks) -> u64 {
        self.rows(books).values().map(|(count, _)| count).sum()
    }
}

fn digest(n: u8) -> Digest {
    crate::blobs::digest_of(&[n])
}

/// A record of each kind that adds something.
fn one_of_each() -> Vec<Record> {
    let (of_chat, json) = (ChannelId(2), Bytes::from_static(b"{}"));
    let turn_id = "t1".to_owned();
    let reference = |channel: u64, turn, n| Record::Reference {
        channel: ChannelId(channel),
        turn,
        digest: digest(n),
        content_type: None,
    };
    let mut records = vec![session(1, "s"), chat(2, "c"), chat(3, "f"), fork(3, 2, 0, 1)];
    records.extend([turn(2, 0, "t0"), turn(2, 1, "t1"), action(2, 5), action(2, 6)]);
    records.extend([reference(2, None, 1), reference(2, Some(1), 2)]);
    records.extend(of_a_message());
    records.extend(for_inspection());
    records.push(Record::ModelOutput(ModelOutputRecord {
        chat: of_chat,
        turn_id: turn_id.clone(),
        round: 0,
        json: json.clone(),
    }));
    records.push(Record::FileChanges(FileChangesRecord {
        channel: of_chat,
        turn_id: turn_id.clone(),
        json: json.clone(),
    }));
    records.push(Record::Checkpoint { chat: of_chat, turn_id, data: Some(json.clone()) });
    records.push(Record::Summary(SummaryRecord {
        session: ChannelId(1),
        uri: uri("s"),
        modified: Timestamp(1),
        created: Timestamp(1),
        empty: true,
        creator: None,
        json,
    }));
    records.extend(of_a_client());
    records
}

fn of_a_message() -> [Record; 3] {
    let (part_id, json) = ("prt_1".to_owned(), Bytes::from_static(b"{}"));
    [
        Record::Message(MessageRecord {
            id: "msg_1".to_owned(),
            session: ChannelId(1),
            chat: ChannelId(2),
            turn_id: None,
            metadata: json.clone(),
            parts: vec![PartRecord {
                id: part_id.clone(),
                kind: "text".to_owned(),
                json: json.clone(),
            }],
            at: Timestamp(7),
        }),
        Record::Frozen(FrozenRecord {
            part_id: part_id.clone(),
            json: json.clone(),
            digest: Some(digest(3)),
        }),
        Record::PartReference { part_id, digest: digest(4) },
    ]
}

fn of_a_client() -> Vec<Record> {
    let client_id = "ann".to_owned();
    let mut records = vec![Record::Client(ClientRecord {
        client_id: client_id.clone(),
        version: "1.0".to_owned(),
        capabilities: None,
        locale: None,
        transform: None,
        last_seen_ms: 1,
    })];
    for channel in ["c", "f"] {
        records.push(Record::Floor {
            client_id: client_id.clone(),
            floor: FloorRecord {
                channel: uri(channel),
                floor: Seq(1),
                replaced: false,
                oldest_turn: None,
                view_turns: None,
                max_latency_ms: None,
            },
        });
    }
    records
}

/// What only an operator looks at.
fn for_inspection() -> [Record; 3] {
    let json = Bytes::from_static(b"{}");
    [
        model_call(1),
        Record::Lowered(LoweredRecord {
            chat: ChannelId(2),
            turn_id: "t1".to_owned(),
            at: Timestamp(1),
            target: "t".to_owned(),
            model: "m".to_owned(),
            blocks: json.clone(),
            diagnostics: json,
        }),
        Record::Render(Box::new(Rendered {
            chat: ChannelId(2),
            turn_id: None,
            at: Timestamp(1),
            before: Vec::new(),
            rewritten: BTreeMap::new(),
            transform: Transform::NotAsked(TransformSkipped::NobodyOptedIn),
        })),
    ]
}

/// Of its chat one is kept.
fn model_call(key: u64) -> Record {
    Record::ModelCall(Box::new(ModelCallRecord {
        chat: ChannelId(2),
        key,
        turn_id: "t1".to_owned(),
        at: Timestamp(1),
        purpose: "answer".to_owned(),
        round: 0,
        api: "a".to_owned(),
        model: "m".to_owned(),
        body_bytes: 1,
        body_digest: digest(9),
        body: vec![DocumentPiece::Shared {
            digest: digest(9),
            bytes: Bytes::from(key.to_string()),
        }],
        details: Vec::new(),
        calls_max: 1,
        bytes_max: 1_000_000,
    }))
}

/// Each takes something away, or changes it, in the order in which there is something to take.
fn takings() -> Vec<Vec<Record>> {
    let client_id = || "ann".to_owned();
    vec![
        vec![Record::MessageStarted { id: "msg_1".to_owned(), turn_id: "t1".to_owned() }],
        vec![Record::ModelCallEnd(ModelCallEndRecord {
            key: 1,
            at: Timestamp(2),
            json: Bytes::from_static(b"{}"),
        })],
        vec![model_call(2)],
        (0..60).flat_map(|_| for_inspection().into_iter().skip(1)).collect(),
        vec![hide(2, 1, 9)],
        vec![Record::Checkpoint { chat: ChannelId(2), turn_id: "t1".to_owned(), data: None }],
        vec![Record::FloorGone { client_id: client_id(), channel: uri("c") }],
        vec![Record::ClientGone { client_id: client_id() }],
        vec![Record::MessageGone { id: "msg_1".to_owned() }],
        vec![Record::SummaryGone { session: ChannelId(1) }],
        vec![Record::Trim { through: Seq(5) }],
        vec![dispose(2, 1), dispose(3, 1)],
        vec![sweep(2)],
        vec![Record::Sweep {
            disposed_before: Timestamp(2),
            clients_before: Timestamp(10),
            clients_max: 0,
        }],
    ]
}

fn put_bodies(blobs: &PgBlobs) {
    for n in 1..=4 {
        blobs.put(&[n], Timestamp(1)).unwrap();
    }
}

#[test]
fn what_takes_rows_away_in_one_space_leaves_its_twin_as_it_is() {
    let Some(books) = ServerBooks::start() else { return };
    let (twin, own) = (Twin::fill(&books, one_of_each()), Twin::fill(&books, one_of_each()));
    for space in [&twin, &own] {
        put_bodies(&space.journal.blobs());
    }
    let before = twin.rows(&books);
    let empty: Vec<&str> = before
        .iter()
        .filter(|(_, (count, _))| *count == 0)
        .map(|(table, _)| table.as_str())
        .collect();
    // Orders of operators, and objects outside of the database.
    assert_eq!(empty, ["blob_grave", "move_order"], "the twin has rows");
    for taking in takings() {
        let (of_own, what) = (own.rows(&books), format!("{taking:?}"));
        for record in taking {
            own.write(&books, record).unwrap();
        }
        assert_ne!(own.rows(&books), of_own, "it does something: {what}");
        assert_eq!(twin.rows(&books), before, "{what}");
    }
    let blobs = own.journal.blobs();
    let remove = move |digests: &[Digest]| blobs.remove_all(digests, Timestamp(2)).unwrap();
    let digests = (1..=4).map(digest).collect();
    let counted = own.count(&books);
    let collected = own.journal.collect(digests, Box::new(remove));
    books.runtime.block_on(collected).unwrap();
    assert!(own.count(&books) < counted, "bodies went");
    assert_eq!(twin.rows(&books), before, "collecting");
    books.runtime.block_on(own.journal.close());
    assert_eq!(twin.rows(&books), before, "closing");
    let sql = format!("SELECT name FROM greenroom.space WHERE id = {}", own.space);
    let name = books.ask(&sql);
    books.runtime.block_on(async {
        let admin = AccountAdmin::over(Arc::clone(&books.node)).await.unwrap();
        admin.remove_space(&name).await.unwrap();
    });
    assert_eq!(own.count(&books), 0, "all of it is gone");
    let after = twin.rows(&books);
    // The tables of accounts are there by now.
    assert!(before.iter().all(|(table, rows)| after.get(table) == Some(rows)));
}
