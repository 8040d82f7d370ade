//! Taking back on a full disk.

use wire::Digest;

use super::*;
use crate::full_disk_fixture::{FullDiskFixture, run_with_little_room};

#[test]
fn a_full_disk_leaves_all_files_as_they_were() {
    run_with_little_room("changes::take_back::tests::takes_back_where_there_is_little_room");
}

#[test]
fn takes_back_where_there_is_little_room() {
    let Some(room) = FullDiskFixture::new() else {
        return; // run on its own
    };
    let mut changes = FileChanges::default();
    for (name, before) in room.wanted() {
        let side =
            |digest: Digest| ChangedSide { digest: Some(digest), mode: Some(0o644), bytes: 1 };
        let now = crate::blobs::digest_of(format!("{name} now").as_bytes());
        let file = RecordedChange {
            uri: room.uri(name),
            before: before.map(side),
            after: (name != "b").then(|| side(now)),
            new_directories: 0,
            stats: workspace::DiffStats::default(),
        };
        changes.files.insert(file.uri.clone(), file);
    }
    let known = FileChanges::default();
    let refused = take_back(&room.workspace, &room.bodies, &changes, &known, false).unwrap_err();
    assert!(refused.message.starts_with("nothing was done: "), "{refused:?}");
    room.check_untouched();
}
