//! Bodies in an object store: kept while the database can be restored, copied and carried with their space.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::{Digest, Timestamp};

use super::*;
use crate::accounts::AccountAdmin;
use crate::blobs::{Blobs, FileBlobs, Found, digest_of};
use crate::journal::postgres::PgBlobs;
use crate::journal::postgres::test_server::{TestServer, query_sql, run_sql};
use crate::journal::{PostgresNode, SpaceJournal};

const LARGE: [u8; 2_000] = [7; 2_000];

/// A store in a directory, for bodies of a kilobyte and more.
fn store_at(dir: &Path) -> BlobSettings {
    BlobSettings { from_bytes: 1_000, ..BlobSettings::at(&format!("file://{}", dir.display())) }
}

/// The objects of a body, of all spaces.
fn find_objects(dir: &Path, digest: &Digest) -> Vec<PathBuf> {
    let spaces = std::fs::read_dir(dir).unwrap();
    let objects = spaces
        .flat_map(|space| std::fs::read_dir(space.unwrap().path()).unwrap())
        .map(|object| object.unwrap().path());
    let is_of_it =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&digest.to_hex());
    objects.filter(is_of_it).collect()
}

fn count_objects(dir: &Path, digest: &Digest) -> usize {
    find_objects(dir, digest).len()
}

const AGE: &str = "UPDATE greenroom.blob_grave SET at = at - interval '8 days'";

async fn on_thread<T: Send + 'static>(
    blobs: &Arc<PgBlobs>,
    work: impl FnOnce(&PgBlobs) -> T + Send + 'static,
) -> T {
    let blobs = Arc::clone(blobs);
    tokio::task::spawn_blocking(move || work(&blobs)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_outlives_its_row_for_a_while_and_is_then_deleted() {
    let Some(server) = TestServer::start() else { return };
    let (database, directory) = (server.make_database(), tempfile::tempdir().unwrap());
    let name = database.url.rsplit_once("dbname=").unwrap().1;
    let node = PostgresNode::connect(&database).await.unwrap();
    let objects = ObjectBodies::open(&store_at(directory.path())).unwrap();
    node.set_objects(Arc::new(objects));
    let (journal, _) = node.open_space("team").await.unwrap();
    let blobs = Arc::new(journal.blobs());
    let now = Timestamp(1_790_000_000_000);
    let later = Timestamp(now.0 + 1_000);
    let digest = on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    let small = on_thread(&blobs, move |it| it.put(b"small", now).unwrap()).await;
    assert_eq!(count_objects(directory.path(), &digest), 1);
    assert_eq!(count_objects(directory.path(), &small), 0, "it is in the database");

    // Removed: nobody reads it, and the object stays for a restored database.
    on_thread(&blobs, move |it| it.remove(&digest, later).unwrap()).await;
    let found = on_thread(&blobs, move |it| it.read(&digest, u64::MAX)).await;
    assert_eq!(found, Ok(Found::Missing));
    let sweep = move |it: &PgBlobs| it.list_older_than(0..=255, later).unwrap();
    assert_eq!(on_thread(&blobs, sweep).await, [small]);
    assert_eq!(count_objects(directory.path(), &digest), 1);

    // Put again, it has an object of its own, and the old one goes.
    let first = find_objects(directory.path(), &digest);
    on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    run_sql(server.socket(), name, AGE);
    on_thread(&blobs, sweep).await;
    let second = find_objects(directory.path(), &digest);
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    // Put while it is there, it keeps its object.
    on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    assert_eq!(find_objects(directory.path(), &digest), second);

    // Removed for long enough, also with its whole space.
    on_thread(&blobs, move |it| it.remove(&digest, later).unwrap()).await;
    run_sql(server.socket(), name, AGE);
    on_thread(&blobs, sweep).await;
    assert_eq!(count_objects(directory.path(), &digest), 0);
    on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    journal.close().await;
    AccountAdmin::over(Arc::clone(&node)).await.unwrap().remove_space("team").await.unwrap();
    assert_eq!(count_objects(directory.path(), &digest), 1);
    run_sql(server.socket(), name, AGE);
    on_thread(&blobs, sweep).await;
    assert_eq!(count_objects(directory.path(), &digest), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_copied_and_carried_with_their_space() {
    let Some(server) = TestServer::start() else { return };
    let (database, directory) = (server.make_database(), tempfile::tempdir().unwrap());
    let settings = store_at(directory.path());
    let node = PostgresNode::connect(&database).await.unwrap();
    let objects = ObjectBodies::open(&settings).unwrap();
    node.set_objects(Arc::new(objects));
    let (journal, _) = node.open_space("team").await.unwrap();
    let blobs = Arc::new(journal.blobs());
    let now = Timestamp(1_790_000_000_000);
    on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    journal.close().await;
    let digest = digest_of(&LARGE);
    let silent = |_: MigrateStep| {};
    let refused = copy_space(&database, None, "team", "copy", &silent).await;
    assert!(matches!(refused, Err(MigrateError::NoObjects)));
    copy_space(&database, Some(&settings), "team", "copy", &silent).await.unwrap();
    assert_eq!(count_objects(directory.path(), &digest), 2);
    // A copy of what is damaged is none.
    let found = find_objects(directory.path(), &digest);
    for object in &found {
        std::fs::write(object, [8; 2_000]).unwrap();
    }
    let refused = copy_space(&database, Some(&settings), "team", "third", &silent).await;
    assert!(matches!(refused, Err(MigrateError::Damaged(_))));
    for object in &found {
        std::fs::write(object, LARGE).unwrap();
    }
    let there = tempfile::tempdir().unwrap();
    let wish = MigrateRequest {
        directory: there.path().to_owned(),
        database: database.clone(),
        blobs: Some(settings),
        space: "copy".to_owned(),
    };
    to_directory(&wish, &silent).await.unwrap();
    let found = FileBlobs::open_to_read(there.path()).read(&digest, u64::MAX).unwrap();
    assert_eq!(found, Found::Body(LARGE.to_vec()));
}

/// A node with one space, whose large bodies are in a directory.
async fn open_team(
    database: &PostgresSettings,
    directory: &Path,
) -> (Arc<PostgresNode>, Arc<PgBlobs>) {
    let node = PostgresNode::connect(database).await.unwrap();
    let objects = ObjectBodies::open(&store_at(directory)).unwrap();
    node.set_objects(Arc::new(objects));
    let (journal, _) = node.open_space("team").await.unwrap();
    (node, Arc::new(journal.blobs()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_removed_while_it_is_put_again_stays() {
    let Some(server) = TestServer::start() else { return };
    let (database, directory) = (server.make_database(), tempfile::tempdir().unwrap());
    let name = database.url.rsplit_once("dbname=").unwrap().1;
    let (_node, blobs) = open_team(&database, directory.path()).await;
    let now = Timestamp(1_790_000_000_000);
    let digest = on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    let first = find_objects(directory.path(), &digest);

    // Does what a removal does, as soon as the row was found and before the object is put.
    let sql = "CREATE FUNCTION greenroom.take() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             DELETE FROM greenroom.blob WHERE space = NEW.space AND digest = NEW.digest;
             INSERT INTO greenroom.blob_grave (space, digest, object, at)
                 VALUES (NEW.space, NEW.digest, NEW.object, clock_timestamp());
             RETURN NULL; END $$;
         CREATE TRIGGER take AFTER UPDATE ON greenroom.blob FOR EACH ROW EXECUTE FUNCTION greenroom.take()";
    run_sql(server.socket(), name, sql);
    on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    run_sql(server.socket(), name, "DROP TRIGGER take ON greenroom.blob");
    assert_eq!(count_objects(directory.path(), &digest), 2);

    // However long ago that was, only the first object goes.
    run_sql(server.socket(), name, AGE);
    let sweep = move |it: &PgBlobs| it.list_older_than(0..=255, now).unwrap();
    on_thread(&blobs, sweep).await;
    let left = find_objects(directory.path(), &digest);
    assert_eq!(left.len(), 1);
    assert_ne!(left, first);
    let found = on_thread(&blobs, move |it| it.read(&digest, u64::MAX)).await;
    assert_eq!(found, Ok(Found::Body(LARGE.to_vec())));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_stopped_for_long_deletes_and_names_nothing_wrong() {
    let Some(server) = TestServer::start() else { return };
    let (database, directory) = (server.make_database(), tempfile::tempdir().unwrap());
    let name = database.url.rsplit_once("dbname=").unwrap().1;
    let (_node, blobs) = open_team(&database, directory.path()).await;
    let now = Timestamp(1_790_000_000_000);
    let later = Timestamp(now.0 + 1_000);
    let digest = on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    let first = find_objects(directory.path(), &digest);

    // One that was about to delete the first object does so when the body is there again.
    on_thread(&blobs, move |it| it.remove(&digest, later).unwrap()).await;
    on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    std::fs::remove_file(&first[0]).unwrap();
    let found = on_thread(&blobs, move |it| it.read(&digest, u64::MAX)).await;
    assert_eq!(found, Ok(Found::Body(LARGE.to_vec())));
    // Its row in the grave goes with the next sweep.
    run_sql(server.socket(), name, AGE);
    let sweep = move |it: &PgBlobs| it.list_older_than(0..=255, now).unwrap();
    on_thread(&blobs, sweep).await;
    let count = "SELECT count(*) FROM greenroom.blob_grave";
    assert_eq!(query_sql(server.socket(), name, count), "0");

    // One that was about to name an object does not: others may delete it.
    let other = digest_of(b"other");
    let object = on_thread(&blobs, move |it| it.reserve_object_name(&other).unwrap()).await;
    run_sql(server.socket(), name, AGE);
    let named = on_thread(&blobs, move |it| it.name_object(&other, &object, 5, now)).await;
    let error = named.unwrap_err().to_string();
    assert!(error.contains("put it again"), "{error}");
    let found = on_thread(&blobs, move |it| it.read(&other, u64::MAX)).await;
    assert_eq!(found, Ok(Found::Missing));
}

/// A database from before objects had names of their own.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_earlier_versions_are_read_and_kept() {
    let Some(server) = TestServer::start() else { return };
    let (database, directory) = (server.make_database(), tempfile::tempdir().unwrap());
    let name = database.url.rsplit_once("dbname=").unwrap().1;
    let (_node, blobs) = open_team(&database, directory.path()).await;
    let now = Timestamp(1_790_000_000_000);
    let digest = on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    let object = find_objects(directory.path(), &digest).remove(0);
    std::fs::rename(&object, object.with_file_name(digest.to_hex())).unwrap();
    let sql = "ALTER TABLE greenroom.blob DROP COLUMN object;
         ALTER TABLE greenroom.blob_grave DROP COLUMN object;
         ALTER TABLE greenroom.blob_grave ADD PRIMARY KEY (space, digest);
         INSERT INTO greenroom.blob_grave SELECT space, digest, clock_timestamp() - interval '8 days' FROM greenroom.blob";
    run_sql(server.socket(), name, sql);

    // Buried and named at once: what is named stays.
    let (_node, blobs) = open_team(&database, directory.path()).await;
    let sweep = move |it: &PgBlobs| it.list_older_than(0..=255, now).unwrap();
    on_thread(&blobs, sweep).await;
    on_thread(&blobs, move |it| it.put(&LARGE, now).unwrap()).await;
    let found = on_thread(&blobs, move |it| it.read(&digest, u64::MAX)).await;
    assert_eq!(found, Ok(Found::Body(LARGE.to_vec())));
    assert_eq!(count_objects(directory.path(), &digest), 1);
}
