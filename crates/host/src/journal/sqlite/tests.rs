//! What only the journal on disk promises: its directory, its format, its disk, its plans.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use kernel::{Answer, Batch, ChannelId, Query, Record, Seq};
use rusqlite::Connection;
use tempfile::tempdir;

use super::read::{self, list, turns};
use super::schema::{MIGRATIONS, Migration};
use super::{
    FILE, Sqlite, SqliteReader, actions, changes, messages, outputs, references, sweep, write,
};
use crate::journal::{Journal, JournalError, JournalReader};

fn batch(seq: u64, bytes: usize) -> Batch {
    let envelope = Bytes::from(vec![b'x'; bytes]);
    let action = Record::Action { seq: Seq(seq), channel: ChannelId(1), envelope };
    Batch { seq: Seq(seq), records: vec![action] }
}

fn seqs(reader: &mut dyn JournalReader) -> Vec<u64> {
    let floors = vec![(ChannelId(1), Seq(0))];
    match reader.read(&Query::Log { floors, through: Seq(u64::MAX), bytes_max: u64::MAX }).unwrap()
    {
        Answer::Log(slice) => slice.actions.iter().map(|(seq, _, _)| seq.0).collect(),
        other => panic!("{other:?}"),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_second_host_learns_who_has_the_directory() {
    let dir = tempdir().unwrap();
    let first = Sqlite::open(dir.path()).unwrap();
    match Sqlite::open(dir.path()) {
        Err(JournalError::Locked(words)) => {
            assert!(words.contains("another greenroom"), "{words}");
            assert!(words.contains(&format!("pid {}", std::process::id())), "{words}");
        }
        other => panic!("{other:?}"),
    }
    drop(first);
    Sqlite::open(dir.path()).unwrap();
}

#[test]
fn only_the_owner_can_read_what_was_said() {
    let parent = tempdir().unwrap();
    let dir = parent.path().join("data");
    let mut journal = Sqlite::open(&dir).unwrap();
    journal.append(&batch(1, 10)).unwrap();
    assert_eq!(mode(&dir), 0o700);
    let files: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 5, "lock, pid, journal and its two side files: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_reader_beside_a_running_host_needs_no_lock_and_cannot_write() {
    let dir = tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    journal.append(&batch(1, 10)).unwrap();
    let mut reader = SqliteReader::open(dir.path()).unwrap();
    assert_eq!(seqs(&mut reader), [1]);
    assert!(reader.conn.execute("DELETE FROM action", []).is_err());
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let dir = tempdir().unwrap();
    drop(Sqlite::open(dir.path()).unwrap());
    let conn = Connection::open(dir.path().join(FILE)).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    for refused in [Sqlite::open(dir.path()).err(), SqliteReader::open(dir.path()).err()] {
        match refused {
            Some(JournalError::Format(words)) => {
                assert!(words.contains("newer greenroom"), "{words}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_file_of_another_program_is_refused() {
    let dir = tempdir().unwrap();
    let conn = Connection::open(dir.path().join(FILE)).unwrap();
    conn.execute_batch("CREATE TABLE recipes (name)").unwrap();
    drop(conn);
    assert!(matches!(Sqlite::open(dir.path()), Err(JournalError::Format(_))));
}

#[test]
fn an_older_format_walks_the_chain_and_a_failing_step_changes_nothing() {
    let dir = tempdir().unwrap();
    let mut journal = Sqlite::open_with(dir.path(), &MIGRATIONS[..1]).unwrap();
    journal.append(&batch(7, 10)).unwrap();
    drop(journal);
    let renamed: Migration = |tx| tx.execute_batch("ALTER TABLE checkpoint RENAME TO milestone");
    let broken: Migration = |tx| tx.execute_batch("DROP TABLE action; DROP TABLE nonsense;");
    let filled: Migration = |tx| tx.execute_batch("INSERT INTO milestone VALUES (1, 't', x'')");

    let chain = [MIGRATIONS[0], renamed, broken];
    assert!(matches!(Sqlite::open_with(dir.path(), &chain), Err(JournalError::Unwritable(_))));
    let chain = [MIGRATIONS[0], renamed, filled];
    let mut journal = Sqlite::open_with(dir.path(), &chain).unwrap();
    assert_eq!(journal.boot().unwrap().seq, Seq(7));
    let one = |sql: &str| journal.conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(one("PRAGMA user_version"), 3);
    assert_eq!(one("SELECT value FROM meta WHERE key = 'format'"), 3);
    assert_eq!(one("SELECT count(*) FROM milestone"), 1);
    assert_eq!(one("SELECT count(*) FROM action"), 1);
}

#[test]
fn a_journal_of_format_1_is_opened_with_all_it_holds() {
    let dir = tempdir().unwrap();
    let mut journal = Sqlite::open_with(dir.path(), &MIGRATIONS[..1]).unwrap();
    journal.append(&batch(7, 10)).unwrap();
    drop(journal);
    let mut journal = Sqlite::open(dir.path()).unwrap();
    assert_eq!(journal.boot().unwrap().seq, Seq(7));
    assert_eq!(seqs(&mut *journal.reader().unwrap()), [7]);
    let digest = wire::Digest::new([1; 32]);
    let reference =
        Record::Reference { channel: ChannelId(1), turn: Some(0), digest, content_type: None };
    let records = vec![reference];
    let seq = Seq(8);
    journal.append(&Batch { seq, records }).unwrap();
    assert_eq!(journal.find_unreferenced(&[digest]), Ok(vec![]));
}

// G-52
#[test]
fn a_journal_of_format_4_keeps_what_its_messages_name() {
    let dir = tempdir().unwrap();
    let journal = Sqlite::open_with(dir.path(), &MIGRATIONS[..4]).unwrap();
    let digest = |name: u8| wire::Digest::new([name; 32]);
    let part = |id: &str, json: String| {
        let sql = "INSERT INTO chat_parts VALUES (?1, 'm', 1, ?1, 'x', NULL, NULL, 0, 0, ?2)";
        journal.conn.execute(sql, [id, &json]).unwrap();
    };
    part("0", format!(r#"{{"content_id":"sha256:{}"}}"#, digest(1).to_hex()));
    part("1", format!(r#"{{"ref":{{"content_id":"sha256:{}"}}}}"#, digest(2).to_hex()));
    part("2", r#"{"text":"\"content_id\""}"#.to_owned());
    let body = format!(r#"{{"body":"{}"}}"#, digest(3).uri());
    let sql = "INSERT INTO frozen VALUES ('2', ?1), ('0', x'7b7d')";
    journal.conn.execute(sql, [body.into_bytes()]).unwrap();
    drop(journal);
    let mut journal = Sqlite::open(dir.path()).unwrap();
    let all = [1, 2, 3, 4].map(digest);
    assert_eq!(journal.find_unreferenced(&all), Ok(vec![digest(4)]));
    let gone = Record::MessageGone { id: "m".to_owned() };
    let records = vec![gone];
    let seq = Seq(1);
    journal.append(&Batch { seq, records }).unwrap();
    assert_eq!(journal.find_unreferenced(&all), Ok(all.to_vec()));
}

/// Bytes of all envelopes, in order, and whether those that are large lie apart.
fn stored(journal: &Sqlite) -> (Vec<usize>, i64) {
    let floors = vec![(ChannelId(1), Seq(0))];
    let query = Query::Log { floors, through: Seq(u64::MAX), bytes_max: u64::MAX };
    let Answer::Log(slice) = journal.reader().unwrap().read(&query).unwrap() else {
        panic!("the log was asked for");
    };
    let sizes = slice.actions.iter().map(|(_, _, envelope)| {
        assert!(envelope.iter().all(|byte| *byte == b'x'));
        envelope.len()
    });
    let apart = "SELECT (SELECT count(*) FROM large_action) + (SELECT count(*) FROM action WHERE length(bytes) > 16384) * 100";
    let apart = journal.conn.query_row(apart, [], |row| row.get(0)).unwrap();
    (sizes.collect(), apart)
}

#[test]
fn large_actions_of_format_5_are_moved_and_read_as_they_were() {
    let dir = tempdir().unwrap();
    let journal = Sqlite::open_with(dir.path(), &MIGRATIONS[..5]).unwrap();
    let sizes = [10, 16_384, 16_385, 1 << 20, 10];
    for (seq, bytes) in (1_i64..).zip(sizes) {
        let sql = "INSERT INTO action VALUES (1, ?1, CAST(replace(hex(zeroblob(?2 / 2)), '0', 'x') || substr('x', 1, ?2 % 2) AS BLOB))";
        journal.conn.execute(sql, [seq, bytes]).unwrap();
    }
    let clients = "INSERT INTO client VALUES ('ann', '1.0.0', '{}', 'de', 7, '[\"a\"]')";
    journal.conn.execute(clients, []).unwrap();
    let frozen = "INSERT INTO frozen VALUES ('p', x'7b7d')";
    journal.conn.execute(frozen, []).unwrap();
    drop(journal);
    let mut journal = Sqlite::open(dir.path()).unwrap();
    let sizes: Vec<usize> = sizes.iter().map(|bytes| *bytes as usize).collect();
    assert_eq!(stored(&journal), (sizes, 2));
    let client_id = "ann".to_owned();
    match journal.reader().unwrap().read(&Query::Client { client_id }) {
        Ok(Answer::Client(Some((client, _)))) => {
            assert_eq!(client.locale.as_deref(), Some("de"));
            assert_eq!(client.capabilities, Some(serde_json::json!({})));
            assert_eq!(client.transform, Some(vec!["a".to_owned()]));
            assert_eq!(client.last_seen_ms, 7);
        }
        other => panic!("{other:?}"),
    }
    let one = |sql: &str| journal.conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    assert_eq!(one("SELECT count(*) FROM frozen WHERE part_id = 'p'"), Ok(1));
    let through = Seq(3);
    let records = vec![Record::Trim { through }];
    let seq = Seq(9);
    journal.append(&Batch { seq, records }).unwrap();
    assert_eq!(stored(&journal), (vec![1 << 20, 10], 1));
}

#[test]
fn large_actions_lie_apart_and_go_with_their_channel() {
    let dir = tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    let sizes = [16_384, 16_385, 40_000];
    for (seq, bytes) in (1..).zip(sizes) {
        journal.append(&batch(seq, bytes)).unwrap();
    }
    assert_eq!(stored(&journal), (sizes.to_vec(), 2));
    assert!(journal.append(&batch(2, 40_000)).is_err(), "a seq is used once");
    let disposed = "INSERT INTO channel (id, uri, kind, head_seq, duty, disposed_at, private, head)
         VALUES (1, 'a:b', 2, 0, 0, 5, x'', x'')";
    journal.conn.execute(disposed, []).unwrap();
    let sweep = Record::Sweep {
        disposed_before: wire::Timestamp(6),
        clients_before: wire::Timestamp(0),
        clients_max: 9,
    };
    let (seq, records) = (Seq(9), vec![sweep]);
    journal.append(&Batch { seq, records }).unwrap();
    assert_eq!(stored(&journal), (vec![], 0));
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let dir = tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    let mut reader = journal.reader().unwrap();
    journal.append(&batch(1, 10)).unwrap();
    let pages: i64 = journal.conn.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let limit = |journal: &Sqlite, pages: i64| {
        journal.conn.pragma_update(None, "max_page_count", pages).unwrap();
    };
    limit(&journal, pages + 2);
    let refused = journal.append(&batch(2, 1_000_000)).unwrap_err();
    assert_eq!(refused, JournalError::Unwritable("database or disk is full".to_owned()));
    assert!(journal.probe().is_err());
    assert_eq!(seqs(&mut *reader), [1], "reads go on");
    assert_eq!(journal.boot().unwrap().seq, Seq(1));
    limit(&journal, 1_000_000);
    journal.probe().unwrap();
    journal.append(&batch(2, 1_000_000)).unwrap();
    assert_eq!(seqs(&mut *reader), [1, 2]);
}

#[test]
fn a_row_over_the_largest_that_sqlite_takes_is_no_full_disk() {
    let dir = tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    // Zeroed pages that nobody reads take no memory.
    let mut large = batch(2, 0);
    large.records = [10, 1_000_000_001, 10]
        .into_iter()
        .zip(2..)
        .map(|(bytes, seq)| Record::Action {
            seq: Seq(seq),
            channel: ChannelId(1),
            envelope: Bytes::from(vec![0; bytes]),
        })
        .collect();
    match journal.append(&large) {
        Err(JournalError::BadRecord { index, reason }) => {
            assert_eq!(index, 1);
            assert!(reason.contains("too big"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    large.records.remove(1);
    journal.append(&large).unwrap();
    assert_eq!(seqs(&mut *journal.reader().unwrap()), [2, 4]);
}

/// What a power cut leaves: the files as they are, without the tidying of an orderly end.
fn crashed_copy(from: &Path, wal_bytes_lost: u64) -> tempfile::TempDir {
    let dir = tempdir().unwrap();
    let wal = format!("{FILE}-wal");
    for name in [FILE, &wal] {
        fs::copy(from.join(name), dir.path().join(name)).unwrap();
    }
    let file = fs::OpenOptions::new().write(true).open(dir.path().join(&wal)).unwrap();
    file.set_len(file.metadata().unwrap().len() - wal_bytes_lost).unwrap();
    dir
}

#[test]
fn what_was_committed_survives_a_crash_and_a_torn_batch_is_gone_whole() {
    let dir = tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    journal.append(&batch(1, 10)).unwrap();
    journal.append(&batch(2, 20_000)).unwrap();
    for (lost, seq, expected) in [(0, 2, vec![1, 2]), (100, 1, vec![1])] {
        let copy = crashed_copy(dir.path(), lost);
        let mut reopened = Sqlite::open(copy.path()).unwrap();
        assert_eq!(reopened.boot().unwrap().seq, Seq(seq));
        assert_eq!(seqs(&mut *reopened.reader().unwrap()), expected);
    }
}

#[test]
fn one_sweep_is_bounded_and_the_next_goes_on() {
    let dir = tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    journal
        .conn
        .execute_batch(
            "INSERT INTO channel (id, uri, kind, head_seq, duty, disposed_at, private, head)
                 VALUES (1, 'a:b', 2, 0, 0, 5, x'', x'');
             WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 4999)
             INSERT INTO action (channel, seq, bytes) SELECT 1, n, x'' FROM numbers;
             INSERT INTO reference (channel, turn, digest) SELECT 1, -1, seq FROM action WHERE seq < 3000;",
        )
        .unwrap();
    let left = |journal: &Sqlite, table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        journal.conn.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let time = wire::Timestamp;
    let sweep = Record::Sweep { disposed_before: time(6), clients_before: time(0), clients_max: 9 };
    let sweep = Batch { seq: Seq(1), records: vec![sweep] };
    let mut seen = Vec::new();
    while left(&journal, "channel") > 0 {
        journal.append(&sweep).unwrap();
        seen.push((left(&journal, "action"), left(&journal, "reference")));
    }
    let expected = [(3_000, 3_000), (1_000, 3_000), (0, 2_000), (0, 0), (0, 0)];
    assert_eq!(seen, expected);
}

#[test]
fn every_question_and_sweep_goes_by_an_index() {
    let dir = tempdir().unwrap();
    let journal = Sqlite::open(dir.path()).unwrap();
    let statements = [
        read::DUTIES,
        read::CHANNEL_BY_URI,
        read::CHANNEL_BY_ID,
        actions::IN_ORDER,
        actions::LARGE,
        actions::NEXT_CHANNEL,
        actions::TRIM_CHANNEL,
        actions::TRIM_LARGE,
        actions::FORGET_LARGE,
        turns::OWN_TURNS,
        turns::RANGE_TURNS,
        turns::FIND_OWN,
        turns::FIND_IN_RANGE,
        turns::NEXT_N,
        list::FIRST_PAGE,
        list::NEXT_PAGE,
        list::EMPTY,
        list::NEXT_EMPTY,
        write::HIDE_TURNS,
        write::DISPOSE_CHATS,
        sweep::DUE,
        sweep::UNUSED_TURNS,
        sweep::STALE_CLIENTS,
        sweep::OLDEST_CLIENTS,
        references::REFERRED,
        references::CONTENT_TYPE,
        references::FORGET_CHANNEL,
        messages::OF_TURN,
        outputs::OF_TURN,
        changes::OF_TURN,
        messages::BY_ID,
        messages::PARTS,
    ];
    for sql in statements {
        let mut explained = journal.conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = vec![1_i64; explained.parameter_count()];
        let plan: Vec<String> = explained
            .query_map(rusqlite::params_from_iter(values), |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for step in &plan {
            let sorts = step.contains("TEMP B-TREE");
            // Walking an index in its order is no scan of the table: a bound ends it.
            let scans =
                step.starts_with("SCAN") && !step.contains("INDEX") && step != "SCAN CONSTANT ROW";
            assert!(!sorts && !scans, "{sql}\n{plan:#?}");
        }
    }
}
