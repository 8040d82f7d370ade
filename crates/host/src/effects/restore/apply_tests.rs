//! A disk that is full while files are restored.

use workspace::DiffStats;

use super::*;
use crate::full_disk_fixture::{FullDiskFixture, run_with_little_room};

#[test]
fn a_full_disk_leaves_all_files_as_they_were() {
    run_with_little_room("effects::restore::apply::tests::restores_where_there_is_little_room");
}

#[test]
fn restores_where_there_is_little_room() {
    let Some(room) = FullDiskFixture::new() else {
        return; // run on its own
    };
    let files = Files { workspace: room.workspace.clone(), bodies: room.bodies.clone() };
    let planned = room.wanted().into_iter().map(|(name, wanted)| PlannedFile {
        uri: room.uri(name),
        path: name.to_owned(),
        wanted: wanted.map(|digest| FileContent { digest, mode: Some(0o644) }),
        directories: 0,
        sets_mode: false,
        may_be_link: false,
        seen: (name != "b").then(|| crate::blobs::digest_of(format!("{name} now").as_bytes())),
        is_foreign: false,
        stats: DiffStats::default(),
    });
    let prepared = planned.map(|file| prepare_one(file, &files).unwrap());
    let (done, problems) = write_all(prepared.collect(), &files, &Cancellation::default());
    assert!(done.is_empty());
    assert_eq!(problems.len(), 2, "{problems:?}");
    room.check_untouched();
}
