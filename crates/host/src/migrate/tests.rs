//! There and back, with a real PostgreSQL: equal to the byte, and whole wherever it is interrupted.

use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use futures_util::FutureExt;
use kernel::{Role, Seq};
use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::types::Value;
use wire::Timestamp;

use super::moved::MarkKind;
use super::tables::TABLES;
use super::*;
use crate::accounts::{AccountAdmin, NewToken};
use crate::blobs::{Blobs, FileBlobs};
use crate::journal::postgres::test_server::{TestServer, run_sql};
use crate::journal::{PostgresNode, SpaceJournal, Sqlite};
use crate::{Config, serve};

/// Rows in every table, among them whatever is stored in a way of its own: a large action, a piece without a body, a layout that
/// names pieces, nothing where there may be nothing, letters that collations sort differently.
const ROWS: &str = "
UPDATE meta SET value = 41 WHERE key = 'seq'; UPDATE meta SET value = 3 WHERE key = 'log_floor';
INSERT INTO channel VALUES (0, 'ahp-root://', 0, NULL, 40, 0, NULL, x'', x'7b7d'), (7, 'ahp-session:/a', 1, NULL, 39, 5, NULL, x'00ff', x'01'),
    (8, 'ahp-chat:/a', 2, 7, 38, 1, 1700000000000, x'02', x'03');
INSERT INTO action VALUES (7, 4, x'aa'), (7, 5, x''), (8, 6, x'bb');
INSERT INTO large_action (channel, seq, bytes) VALUES (7, 5, zeroblob(20000));
INSERT INTO turn_body VALUES (1, x'7b2261223a317d'), (2, zeroblob(70000));
INSERT INTO turn VALUES (8, 0, 't-0', 1, NULL, 7, 1), (8, 1, 't-\u{e4}', 2, 40, 70000, 2);
INSERT INTO turn_range VALUES (8, 0, 7, 0, 4, 3, 39);
INSERT INTO summary VALUES (7, 'ahp-session:/a', 5, 4, 0, NULL, x'7b7d'), (9, 'ahp-session:/b', -1, 4, 1, 'ann', x'7b7d');
INSERT INTO client (client_id, version, last_seen_ms, locale, capabilities, transform) VALUES ('Zoe', '1.0.0', 5, 'de', '{}', NULL),
    ('_x', '0.9.0', 7, NULL, NULL, '[]'), ('ann', '1.0.0', 6, NULL, NULL, NULL), ('\u{e4}', '1.0.0', 8, NULL, NULL, NULL);
INSERT INTO floor VALUES ('Zoe', 'ahp-root://', 3, 0, NULL, NULL, NULL), ('ann', 'ahp-chat:/a', 9, 1, 't-0', 50, 100);
INSERT INTO checkpoint VALUES (8, 't-0', x'0102');
INSERT INTO chat_messages VALUES ('M1', 7, 8, 't-0', 'user', 11, 11, '{\"z\":1,\"a\":2}'), ('m0', 7, 8, NULL, 'user', 12, 12, '{}');
INSERT INTO chat_parts VALUES ('p1', 'M1', 7, 0, 'text', NULL, NULL, 11, 11, '{\"text\":\"\u{e4}\"}'), ('p2', 'm0', 7, 1, 'file', NULL, NULL, 12, 12, '{}');
INSERT INTO frozen VALUES ('p1', x'7b7d');
INSERT INTO part_reference VALUES ('p1', x'01'), ('p1', x'ff');
INSERT INTO model_output VALUES (8, 't-0', 0, x'5b5d'), (8, 't-0', 1, x'5b5d');
INSERT INTO file_changes VALUES (7, '', x'7b7d'), (8, 't-0', x'7b7d');
INSERT INTO reference VALUES (8, -1, x'aa', NULL), (8, 0, x'bb', 'image/png');
INSERT INTO render VALUES (1, 8, 't-0', 5, '[]', '[1]', 'asked', NULL), (2, 8, 't-0', 6, '[]', '[2]', 'notAsked', '{}');
INSERT INTO lowered VALUES (1, 8, 't-0', 5, 'anthropic', 'm', '[]', '[]');
INSERT INTO sent_piece VALUES (1, 8, zeroblob(32), NULL, 3, 1), (2, 8, zeroblob(32), 'image/png', 9, 1);
INSERT INTO sent_piece_body VALUES (1, x'616263');
INSERT INTO model_call VALUES (1, 8, 1, 77, 't-0', 5, NULL, 'turn', 0, 'chat', 'm', 12, zeroblob(32), NULL, '[\"{\",1,2,\"}\"]', '[]'),
    (2, 8, 2, 78, 't-0', 6, 7, 'turn', 1, 'chat', 'm', 12, zeroblob(32), '{\"ok\":true}', '[\"x\"]', '[1]');
";

/// A data directory with a journal and two bodies.
fn fill(dir: &Path) {
    drop(Sqlite::open(dir).unwrap());
    Connection::open(dir.join(JOURNAL_FILE)).unwrap().execute_batch(ROWS).unwrap();
    let store = FileBlobs::open(dir).unwrap();
    store.put(b"small", Timestamp(1_700_000_000_123)).unwrap();
    store.put(&vec![7; 700_000], Timestamp(1_700_000_000_456)).unwrap();
}

/// Everything in a directory: all columns of all rows of all tables of the journal, and all bodies with their times.
fn dump(dir: &Path) -> Vec<String> {
    let conn = Connection::open(dir.join(JOURNAL_FILE)).unwrap();
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut names = conn.prepare(names).unwrap();
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut lines = Vec::new();
    for name in names {
        let mut rows = conn.prepare(&format!("SELECT * FROM {name} ORDER BY 1, 2")).unwrap();
        let columns = rows.column_count();
        let rows: Vec<Vec<Value>> = rows
            .query_map([], |row| {
                let cells = (0..columns).map(|column| row.get::<_, Value>(column));
                cells.collect::<Result<Vec<_>, _>>()
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(!rows.is_empty(), "{name} has rows, so that it is tested");
        lines.extend(rows.iter().map(|row| format!("{name} {row:?}")));
    }
    let store = FileBlobs::open_to_read(dir);
    for digest in store.list_older_than(0..=255, Timestamp(i64::MAX / 1_000_000)).unwrap() {
        let body = store.read(&digest, u64::MAX).unwrap();
        let at = to_postgres::put_at(dir, &digest).unwrap();
        lines.push(format!("{digest} {at:?} {body:?}"));
    }
    lines
}

fn wish(dir: &Path, database: &PostgresSettings) -> MigrateRequest {
    MigrateRequest {
        directory: dir.to_owned(),
        database: database.clone(),
        blobs: None,
        space: "team".to_owned(),
    }
}

fn silent(_: MigrateStep) {}

#[tokio::test(flavor = "multi_thread")]
async fn there_and_back_is_equal_to_the_byte_and_only_one_side_is_served() {
    let Some(server) = TestServer::start() else { return };
    let database = server.make_database();
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let there = wish(first.path(), &database);
    fill(first.path());
    let before = dump(first.path());
    let steps = Mutex::new(Vec::new());
    let carried = to_postgres(&there, &|step| steps.lock().push(step)).await.unwrap();
    assert_eq!((carried.seq, carried.bodies, carried.was_carried_before), (41, 2, false));
    let steps = steps.into_inner();
    for table in &TABLES {
        let told = |step: &MigrateStep| matches!(step, MigrateStep::Rows { table: name, rows } if *name == table.name && *rows > 0);
        assert!(steps.iter().any(told), "{} is told of", table.name);
    }

    // The directory is not served any more, and says where its sessions are.
    let config = Config::default_for(first.path().to_owned());
    let refused = serve(config, |_| {}, std::future::ready(())).await.unwrap_err().to_string();
    assert!(
        refused.contains("moved to the space `team`") && refused.contains("greenroom migrate"),
        "{refused}"
    );
    let again = to_postgres(&there, &silent).await.unwrap_err();
    assert!(matches!(again, MigrateError::AlreadyMoved(..)), "{again}");

    // The space goes on where the directory was.
    let node = PostgresNode::connect(&database).await.unwrap();
    let (journal, boot) = node.open_space("team").await.unwrap();
    assert_eq!((boot.seq, boot.log_floor), (Seq(41), Seq(3)));
    journal.close().await;

    // Somebody else's sessions are not written over.
    let taken = tempfile::tempdir().unwrap();
    fill(taken.path());
    let refused = to_directory(&wish(taken.path(), &database), &silent).await.unwrap_err();
    assert!(matches!(refused, MigrateError::DirectoryTaken(_)), "{refused}");
    let refused = to_postgres(&wish(taken.path(), &database), &silent).await.unwrap_err();
    assert!(matches!(refused, MigrateError::SpaceTaken(_)), "{refused}");

    // Back, into another directory; then that of before takes the place of what it was.
    let back = wish(second.path(), &database);
    let carried = to_directory(&back, &silent).await.unwrap();
    assert_eq!((carried.seq, carried.bodies), (41, 2));
    assert_eq!(dump(second.path()), before);
    let refused = to_directory(&there, &silent).await.unwrap_err();
    assert!(matches!(refused, MigrateError::SpaceMoved(..)), "{refused}");
    let Err(refused) = node.open_space("team").await else {
        panic!("a space that was moved is not served");
    };
    assert!(refused.to_string().contains("team"), "{refused}");
    to_postgres(&back, &silent).await.unwrap();
    to_directory(&there, &silent).await.unwrap();
    assert_eq!(dump(first.path()), before);
    drop(Sqlite::open(first.path()).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_anywhere_nothing_is_half_done_and_it_can_be_run_again() {
    let Some(server) = TestServer::start() else { return };
    let database = server.make_database();
    let name = database.url.rsplit_once("dbname=").unwrap().1;
    let sql = |sql: &str| run_sql(server.socket(), name, sql);
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    fill(dir);
    let before = dump(dir);
    let wish = wish(dir, &database);
    // Somebody has a token already, which is to count when the sessions are there.
    let admin = AccountAdmin::connect(&database).await.unwrap();
    admin.create_space("team").await.unwrap();
    let token = NewToken {
        space: "team".to_owned(),
        principal: "ann".to_owned(),
        role: Role::Member,
        seconds: None,
    };
    admin.issue_token(&token).await.unwrap();

    // In the middle: all is written, nothing is committed.
    let dies = |step: MigrateStep| assert!(step != MigrateStep::Comparing, "it dies here");
    let died = AssertUnwindSafe(to_postgres(&wish, &dies)).catch_unwind().await;
    assert!(died.is_err());
    assert_eq!(dump(dir), before);
    assert_eq!(admin.list_tokens("team").await.unwrap().len(), 1, "the space is what it was");

    // Between the rows and the mark: the directory counts, the space is closed.
    let in_the_way = dir.join(format!(".moved.json.{}.new", std::process::id()));
    fs::create_dir(&in_the_way).unwrap();
    let failed = to_postgres(&wish, &silent).await.unwrap_err();
    assert!(matches!(failed, MigrateError::Directory(..)), "{failed}");
    fs::remove_dir(&in_the_way).unwrap();
    assert!(admin.list_tokens("team").await.is_err());
    drop(Sqlite::open(dir).unwrap());
    let carried = to_postgres(&wish, &silent).await.unwrap();
    assert!(!carried.was_carried_before);
    assert_eq!(admin.list_tokens("team").await.unwrap().len(), 1, "tokens count when it is open");

    // Between the mark and the opening: there is nothing left to do but that.
    let moved = MovedDirectory::read_mark(dir, MarkKind::Moved).unwrap();
    let number = moved.unwrap().migration;
    sql(&format!(
        "UPDATE greenroom.space SET removed_at = now();
         INSERT INTO greenroom.moved_space SELECT id, 'arriving', '{number}', now() FROM greenroom.space"
    ));
    let carried = to_postgres(&wish, &silent).await.unwrap();
    assert!(carried.was_carried_before && carried.seq == 41);

    // Back, in the middle: the space counts.
    let died = AssertUnwindSafe(to_directory(&wish, &dies)).catch_unwind().await;
    assert!(died.is_err());
    assert!(is_marked(dir, MarkKind::Moved));
    assert_eq!(admin.list_tokens("team").await.unwrap().len(), 1);
    to_directory(&wish, &silent).await.unwrap();
    assert_eq!(dump(dir), before);

    // Between the closing of the space and the place of the journal; no host makes a journal of its own there.
    let mark = MovedDirectory::read_mark(dir, MarkKind::Arrived).unwrap().unwrap();
    fs::create_dir(dir.join("incoming")).unwrap();
    let incoming = dir.join("incoming").join(JOURNAL_FILE);
    fs::rename(dir.join(JOURNAL_FILE), incoming).unwrap();
    mark.mark(dir, MarkKind::Arriving).unwrap();
    let refused = serve(Config::default_for(dir.to_owned()), |_| {}, std::future::ready(()))
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("are on their way into it"), "{refused}");
    let carried = to_directory(&wish, &silent).await.unwrap();
    assert!(carried.was_carried_before && carried.seq == 41);
    assert_eq!(dump(dir), before);
    for kind in [MarkKind::Moved, MarkKind::Arriving, MarkKind::Leaving] {
        assert!(!is_marked(dir, kind), "{kind:?}");
    }
}

fn is_marked(dir: &Path, kind: MarkKind) -> bool {
    MovedDirectory::read_mark(dir, kind).unwrap().is_some()
}

/// The journals that were set aside in a directory.
fn set_aside(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let aside = entries.filter(|it| it.file_name().to_string_lossy().starts_with("replaced-"));
    aside.filter(|it| it.path().join(JOURNAL_FILE).exists()).count()
}

/// Marks count for the migration that set them, and no journal is written over whatever marks lie beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_is_never_written_over_whatever_an_earlier_migration_left_behind() {
    let Some(server) = TestServer::start() else { return };
    let database = server.make_database();
    let source = tempfile::tempdir().unwrap();
    fill(source.path());
    to_postgres(&wish(source.path(), &database), &silent).await.unwrap();

    // A directory with sessions of its own and what a migration left behind that never closed its space.
    let own = tempfile::tempdir().unwrap();
    fill(own.path());
    let before = dump(own.path());
    let left = MovedDirectory::begin("team", &database.url).unwrap();
    left.mark(own.path(), MarkKind::Arriving).unwrap();
    fs::create_dir(own.path().join("incoming")).unwrap();
    fs::write(own.path().join("incoming").join(JOURNAL_FILE), b"stale").unwrap();
    let there = wish(own.path(), &database);
    let refused = to_directory(&there, &silent).await.unwrap_err();
    assert!(matches!(refused, MigrateError::DirectoryTaken(_)), "{refused}");
    assert_eq!(dump(own.path()), before);

    // The same with the very mark of the migration that closed the space: its journal waits, the other one stays.
    let empty = tempfile::tempdir().unwrap();
    to_directory(&wish(empty.path(), &database), &silent).await.unwrap();
    let arrived = MovedDirectory::read_mark(empty.path(), MarkKind::Arrived).unwrap().unwrap();
    arrived.mark(own.path(), MarkKind::Arriving).unwrap();
    let refused = to_directory(&there, &silent).await.unwrap_err();
    assert!(matches!(refused, MigrateError::DirectoryTaken(_)), "{refused}");
    assert_eq!(dump(own.path()), before);

    // A mark of another migration finishes nothing.
    fs::remove_file(own.path().join(JOURNAL_FILE)).unwrap();
    left.mark(own.path(), MarkKind::Arriving).unwrap();
    let refused = to_directory(&there, &silent).await.unwrap_err();
    assert!(matches!(refused, MigrateError::SpaceMoved(..)), "{refused}");
    assert!(!own.path().join(JOURNAL_FILE).exists());

    // What is on its way from another space is not thrown away.
    let other = MovedDirectory::begin("other", &database.url).unwrap();
    other.mark(own.path(), MarkKind::Arriving).unwrap();
    let refused = to_directory(&there, &silent).await.unwrap_err();
    assert!(matches!(refused, MigrateError::Unfinished(..)), "{refused}");

    // A journal that was moved away is set aside when its sessions come back.
    to_postgres(&wish(empty.path(), &database), &silent).await.unwrap();
    to_directory(&wish(source.path(), &database), &silent).await.unwrap();
    assert_eq!(set_aside(source.path()), 1);
}

/// A space that one directory began to fill is not emptied by another, nor is one that was moved to a directory of the same name.
#[tokio::test(flavor = "multi_thread")]
async fn a_space_is_filled_by_the_migration_that_began_it() {
    let Some(server) = TestServer::start() else { return };
    let database = server.make_database();
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(first.path());
    fill(second.path());
    // It dies between the rows and its mark.
    let in_the_way = format!(".moved.json.{}.new", std::process::id());
    fs::create_dir(first.path().join(&in_the_way)).unwrap();
    let failed = to_postgres(&wish(first.path(), &database), &silent).await;
    assert!(failed.is_err());
    fs::remove_dir(first.path().join(&in_the_way)).unwrap();
    let refused = to_postgres(&wish(second.path(), &database), &silent).await.unwrap_err();
    assert!(matches!(refused, MigrateError::SpaceArriving(_)), "{refused}");
    to_postgres(&wish(first.path(), &database), &silent).await.unwrap();

    // Moved to a directory that is deleted; another one of its name is not it.
    let target = first.path().join("back");
    to_directory(&wish(&target, &database), &silent).await.unwrap();
    fs::remove_dir_all(&target).unwrap();
    fs::create_dir(&target).unwrap();
    fill(&target);
    let refused = to_postgres(&wish(&target, &database), &silent).await.unwrap_err();
    assert!(matches!(refused, MigrateError::SpaceTaken(_)), "{refused}");
}

/// Copies leave their source as it is, and are equal to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_equal_to_the_byte_and_the_source_is_left_alone() {
    let Some(server) = TestServer::start() else { return };
    let database = server.make_database();
    let (source, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(source.path());
    let before = dump(source.path());
    let of = |dir: &Path, space: &str| MigrateRequest {
        space: space.to_owned(),
        ..wish(dir, &database)
    };
    // From a directory, which goes on; within the database, while somebody has the source; into a directory.
    let copied = copy_from_directory(&of(source.path(), "one"), &silent).await.unwrap();
    assert_eq!((copied.seq, copied.bodies), (41, 2));
    assert_eq!(dump(source.path()), before);
    drop(Sqlite::open(source.path()).unwrap());
    let node = PostgresNode::connect(&database).await.unwrap();
    let (journal, _) = node.open_space("one").await.unwrap();
    let copied = copy_space(&database, None, "one", "two", &silent).await.unwrap();
    assert_eq!((copied.seq, copied.bodies), (41, 2));
    copy_to_directory(&of(there.path(), "two"), &silent).await.unwrap();
    assert_eq!(dump(there.path()), before);
    journal.close().await;

    // Both are served, each with an order of its own.
    for name in ["one", "two"] {
        let (journal, boot) = node.open_space(name).await.unwrap();
        assert_eq!((boot.seq, boot.log_floor), (Seq(41), Seq(3)), "{name}");
        journal.close().await;
    }

    // Nothing that is there is written over.
    let refused = copy_space(&database, None, "one", "two", &silent).await;
    assert!(refused.unwrap_err().to_string().contains("two"));
    let refused = copy_space(&database, None, "none", "three", &silent).await;
    assert!(refused.unwrap_err().to_string().contains("no space `none`"));
    let refused = copy_space(&database, None, "one", "Three", &silent).await;
    assert!(refused.unwrap_err().to_string().contains("small letters"));
    let refused = copy_to_directory(&of(source.path(), "two"), &silent).await;
    assert!(matches!(refused, Err(MigrateError::DirectoryTaken(_))));
    // Nor is what a journal left behind taken for a part of the copy.
    let remains = tempfile::tempdir().unwrap();
    std::fs::write(remains.path().join("journal.sqlite-wal"), b"x").unwrap();
    let refused = copy_to_directory(&of(remains.path(), "two"), &silent).await;
    assert!(matches!(refused, Err(MigrateError::DirectoryTaken(_))));
    let refused = copy_from_directory(&of(source.path(), "two"), &silent).await;
    assert!(refused.unwrap_err().to_string().contains("two"));
    assert_eq!(dump(source.path()), before);
}

/// What differs is found, whatever made it differ.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_was_lost_on_the_way_is_noticed() {
    let Some(server) = TestServer::start() else { return };
    let database = server.make_database();
    let name = database.url.rsplit_once("dbname=").unwrap().1;
    AccountAdmin::connect(&database).await.unwrap();
    let sql = "CREATE FUNCTION greenroom.spoil() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN NEW.locale := NULL; RETURN NEW; END $$;
         CREATE TRIGGER spoil BEFORE INSERT ON greenroom.client FOR EACH ROW EXECUTE FUNCTION greenroom.spoil()";
    run_sql(server.socket(), name, sql);
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    let failed = to_postgres(&wish(directory.path(), &database), &silent).await.unwrap_err();
    assert!(matches!(&failed, MigrateError::Differs(table) if table == "client"), "{failed}");
    drop(Sqlite::open(directory.path()).unwrap());
    assert!(!is_marked(directory.path(), MarkKind::Moved));
}
