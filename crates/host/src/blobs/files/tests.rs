//! Files of bodies: who may read them, what a crash leaves, and disks that fail.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::blobs::digest_of;

const NOW: Timestamp = Timestamp(1_000_000);

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_the_owner_can_read_a_body() {
    let data = tempfile::tempdir().unwrap();
    let store = FileBlobs::open(data.path()).unwrap();
    let digest = store.put(b"secret", NOW).unwrap();
    let path = data
        .path()
        .join("blobs/sha256/2b")
        .join("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
    assert_eq!(store.path(&digest), path);
    assert_eq!(mode(&path), 0o600);
    for dir in path.ancestors().skip(1).take(3) {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
    }
}

#[test]
fn temporary_files_of_a_crash_are_removed_and_bodies_stay() {
    let data = tempfile::tempdir().unwrap();
    let store = FileBlobs::open(data.path()).unwrap();
    let digest = store.put(b"whole", NOW).unwrap();
    fs::write(store.unnamed.join("7"), b"half of a bo").unwrap();
    drop(store);
    let store = FileBlobs::open(data.path()).unwrap();
    assert_eq!(fs::read_dir(&store.unnamed).unwrap().count(), 0);
    assert_eq!(store.read(&digest, 99), Ok(Found::Body(b"whole".to_vec())));
}

#[test]
fn an_unsynced_body_has_no_name_until_it_is_durable() {
    let data = tempfile::tempdir().unwrap();
    let store = FileBlobs::open(data.path()).unwrap();
    let bodies = [&b"one"[..], b"two", b"three"];
    let digests = bodies.map(digest_of);
    for _ in 0..2 {
        for (digest, body) in digests.iter().zip(bodies) {
            store.put_unsynced(digest, body, NOW).unwrap();
        }
    }
    // No bucket is made, so none is synced; and each lies there once.
    let count = |directory: &Path| fs::read_dir(directory).unwrap().count();
    assert_eq!((count(&store.named), count(&store.unnamed)), (0, 3));
    store.make_durable(&digests[0]).unwrap();
    store.put(bodies[1], NOW).unwrap();
    assert_eq!((count(&store.named), count(&store.unnamed)), (2, 1));
    for (digest, body) in digests.iter().zip(bodies) {
        assert_eq!(store.read(digest, 99), Ok(Found::Body(body.to_vec())));
    }
    drop(store);
    let store = FileBlobs::open(data.path()).unwrap();
    let is_there = |digest| store.read(&digest, 99) != Ok(Found::Missing);
    assert_eq!(digests.map(is_there), [true, true, false]);
    assert_eq!(count(&store.unnamed), 0);
}

/// A disk that takes what is in files, and no names.
fn sync_no_names(file: &File) -> io::Result<()> {
    if file.metadata()?.is_dir() {
        Err(io::Error::other("no names today"))
    } else {
        file.sync_all()
    }
}

#[test]
fn a_name_that_could_not_be_made_durable_is_made_so_later() {
    let data = tempfile::tempdir().unwrap();
    let mut store = FileBlobs::open(data.path()).unwrap();
    let digest = digest_of(b"body");
    // The bucket is there already: it is the name that fails.
    store.put(b"others", NOW).unwrap();
    fs::create_dir_all(store.bucket(digest.as_bytes()[0])).unwrap();
    store.put_unsynced(&digest, b"body", NOW).unwrap();
    store.sync = sync_no_names;
    for _ in 0..2 {
        let made = store.make_durable(&digest);
        assert!(
            matches!(&made, Err(BlobError::Unwritable(why)) if why == "no names today"),
            "{made:?}"
        );
    }
    store.sync = File::sync_all;
    assert_eq!(store.make_durable(&digest), Ok(()));
    assert_eq!(store.read(&digest, 99), Ok(Found::Body(b"body".to_vec())));
    store.remove(&digest, Timestamp(NOW.0 + 1)).unwrap();
    assert_eq!(store.read(&digest, 99), Ok(Found::Missing));
}

#[test]
fn a_directory_whose_name_is_not_durable_is_made_again() {
    let data = tempfile::tempdir().unwrap();
    let mut store = FileBlobs::open(data.path()).unwrap();
    store.sync = sync_no_names;
    assert!(store.put(b"body", NOW).is_err());
    assert_eq!(fs::read_dir(&store.named).unwrap().count(), 0);
    store.sync = File::sync_all;
    store.put(b"body", NOW).unwrap();
}

#[test]
fn a_body_that_the_disk_did_not_take_is_never_called_durable() {
    let data = tempfile::tempdir().unwrap();
    let mut store = FileBlobs::open(data.path()).unwrap();
    let digest = digest_of(b"body");
    store.put_unsynced(&digest, b"body", NOW).unwrap();
    store.sync = |_| Err(io::Error::other("lost"));
    let made = store.make_durable(&digest);
    assert_eq!(made, Err(BlobError::Unwritable("lost".to_owned())));
    // As a system does once it has said that it could not.
    store.sync = |_| Ok(());
    assert_eq!(store.make_durable(&digest), Err(BlobError::Lost(digest)));
    assert_eq!(fs::read_dir(&store.unnamed).unwrap().count(), 0);
    store.sync = File::sync_all;
    store.put_unsynced(&digest, b"body", NOW).unwrap();
    assert_eq!(store.make_durable(&digest), Ok(()));
}

#[test]
fn a_body_that_somebody_took_away_is_lost_and_can_be_stored_again() {
    let data = tempfile::tempdir().unwrap();
    let store = FileBlobs::open(data.path()).unwrap();
    let [one, two] = [&b"one"[..], b"two"].map(|body| {
        store.put_unsynced(&digest_of(body), body, NOW).unwrap();
        digest_of(body)
    });
    for entry in fs::read_dir(&store.unnamed).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(store.make_durable(&one), Err(BlobError::Lost(one)));
    store.remove(&two, Timestamp(NOW.0 + 1)).unwrap();
    assert_eq!(store.list_older_than(0..=255, Timestamp(NOW.0 + 1)), Ok(vec![]));
    for (digest, body) in [(one, b"one"), (two, b"two")] {
        store.put_unsynced(&digest, body, NOW).unwrap();
        store.make_durable(&digest).unwrap();
    }
}

#[test]
fn a_body_that_was_cut_short_is_noticed_and_written_again() {
    let data = tempfile::tempdir().unwrap();
    let store = FileBlobs::open(data.path()).unwrap();
    let digest = store.put(b"all of it", NOW).unwrap();
    for wrong in [&b"all"[..], b"all of it and more", b""] {
        fs::write(store.path(&digest), wrong).unwrap();
        assert_eq!(store.read(&digest, 99), Err(BlobError::Damaged(digest)));
    }
    store.put(b"all of it", NOW).unwrap();
    assert_eq!(store.read(&digest, 99), Ok(Found::Body(b"all of it".to_vec())));
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_file() {
    let data = tempfile::tempdir().unwrap();
    let store = FileBlobs::open(data.path()).unwrap();
    let digest = digest_of(b"body");
    // In the way of the bucket: fails for every user, root included.
    fs::write(store.bucket(digest.as_bytes()[0]), b"").unwrap();
    assert!(matches!(store.put(b"body", NOW), Err(BlobError::Unwritable(_))));
    assert_eq!(fs::read_dir(&store.unnamed).unwrap().count(), 0);
    assert!(matches!(store.read(&digest, 99), Err(BlobError::Unreadable(_))));
}

#[test]
fn foreign_files_are_left_alone() {
    let data = tempfile::tempdir().unwrap();
    let store = FileBlobs::open(data.path()).unwrap();
    let digest = store.put(b"body", NOW).unwrap();
    let stranger = store.bucket(digest.as_bytes()[0]).join("notes.txt");
    fs::write(&stranger, b"mine").unwrap();
    let later = Timestamp(i64::MAX / 1_000_000);
    assert_eq!(store.list_older_than(0..=255, later), Ok(vec![digest]));
}
