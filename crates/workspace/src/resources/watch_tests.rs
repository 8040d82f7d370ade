//! What a watch tells of real files.

use std::fs;

use super::*;
use crate::resources::watched_directories::WATCHED_MAX;

struct WatchFixture {
    _directory: tempfile::TempDir,
    root: PathBuf,
    files: ResourceFiles,
}

fn fixture() -> WatchFixture {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("data/inner")).unwrap();
    fs::create_dir_all(root.join("d/e")).unwrap();
    let confinement = Confinement::within(std::slice::from_ref(&root))
        .unwrap()
        .hiding(&root.join("data"))
        .unwrap();
    WatchFixture { _directory: directory, files: ResourceFiles::new(confinement), root }
}

impl WatchFixture {
    fn watch(&self, name: &str, recursive: bool, excludes: &[String]) -> ResourceWatch {
        let uri = format!("file://{}", self.root.join(name).display());
        let request = WatchRequest { uri: &uri, recursive, excludes, includes: None };
        self.files.watch(&request, &[]).unwrap()
    }

    fn changes_of(&self, watch: &mut ResourceWatch) -> Vec<(String, ResourceChangeKind)> {
        let batch = watch.read_changes();
        assert_eq!(batch.end, None);
        let changes = batch.changes.into_iter();
        let prefix = format!("file://{}", self.root.display());
        let changes = changes.map(|change| {
            let path = change.uri.strip_prefix(&prefix).unwrap();
            (path.trim_start_matches('/').to_owned(), change.kind)
        });
        changes.collect()
    }
}

fn of(path: &str, kind: ResourceChangeKind) -> (String, ResourceChangeKind) {
    (path.to_owned(), kind)
}

#[test]
fn a_tree_tells_each_path_once() {
    use ResourceChangeKind::*;
    let f = fixture();
    let mut watch = f.watch("", true, &["skipped".to_owned()]);
    assert_eq!(f.changes_of(&mut watch), []);
    fs::write(f.root.join("d/e/a"), "one").unwrap();
    fs::write(f.root.join("d/e/a"), "two").unwrap();
    fs::write(f.root.join("gone"), "").unwrap();
    fs::remove_file(f.root.join("gone")).unwrap();
    fs::write(f.root.join("data/token"), "").unwrap();
    fs::write(f.root.join("data/inner/token"), "").unwrap();
    assert_eq!(f.changes_of(&mut watch), [of("d/e/a", Added)]);
    fs::create_dir_all(f.root.join("new/deep")).unwrap();
    fs::write(f.root.join("new/deep/b"), "").unwrap();
    fs::create_dir(f.root.join("skipped")).unwrap();
    fs::write(f.root.join("skipped/x"), "").unwrap();
    let new = [of("new", Added), of("new/deep", Added), of("new/deep/b", Added)];
    assert_eq!(f.changes_of(&mut watch), new);
    fs::write(f.root.join("new/deep/b"), "later").unwrap();
    fs::rename(f.root.join("d/e/a"), f.root.join("d/e/c")).unwrap();
    let later = [of("d/e/a", Deleted), of("d/e/c", Added), of("new/deep/b", Updated)];
    assert_eq!(f.changes_of(&mut watch), later);
    fs::rename(f.root.join("new"), f.root.join("moved")).unwrap();
    let moved = [
        of("moved", Added),
        of("moved/deep", Added),
        of("moved/deep/b", Added),
        of("new", Deleted),
    ];
    assert_eq!(f.changes_of(&mut watch), moved);
    let request = crate::WriteRequest {
        uri: &format!("file://{}", f.root.join("moved/deep/b").display()),
        bytes: b"again",
        placement: crate::Placement::From(0),
        create_only: false,
        if_match: None,
    };
    f.files.write(&request, &[]).unwrap();
    assert_eq!(f.changes_of(&mut watch), [of("moved/deep/b", Updated)]);
    fs::remove_dir_all(f.root.join("moved")).unwrap();
    let gone = [of("moved", Deleted), of("moved/deep", Deleted), of("moved/deep/b", Deleted)];
    assert_eq!(f.changes_of(&mut watch), gone);
    assert_eq!(f.changes_of(&mut watch), []);
}

#[test]
fn without_descendants_only_itself_and_its_children_are_told() {
    use ResourceChangeKind::*;
    let f = fixture();
    let mut watch = f.watch("d", false, &[]);
    fs::write(f.root.join("d/e/deep"), "").unwrap();
    fs::write(f.root.join("d/a"), "").unwrap();
    fs::write(f.root.join("beside"), "").unwrap();
    assert_eq!(f.changes_of(&mut watch), [of("d/a", Added)]);
    fs::remove_dir_all(f.root.join("d")).unwrap();
    let changes = f.changes_of(&mut watch);
    assert_eq!(changes.first(), Some(&of("d", Deleted)));
    fs::create_dir(f.root.join("d")).unwrap();
    assert_eq!(f.changes_of(&mut watch), [of("d", Added)]);
    fs::write(f.root.join("d/b"), "").unwrap();
    assert_eq!(f.changes_of(&mut watch), [of("d/b", Added)]);
}

#[test]
fn a_file_is_watched_by_its_name() {
    use ResourceChangeKind::*;
    let f = fixture();
    fs::write(f.root.join("d/a"), "").unwrap();
    let mut watch = f.watch("d/a", false, &[]);
    fs::write(f.root.join("d/a"), "more").unwrap();
    fs::write(f.root.join("d/b"), "").unwrap();
    assert_eq!(f.changes_of(&mut watch), [of("d/a", Updated)]);
    // As editors write.
    fs::rename(f.root.join("d/b"), f.root.join("d/a")).unwrap();
    assert_eq!(f.changes_of(&mut watch), [of("d/a", Added)]);
    fs::remove_file(f.root.join("d/a")).unwrap();
    assert_eq!(f.changes_of(&mut watch), [of("d/a", Deleted)]);
}

#[test]
fn very_many_changes_become_one() {
    let f = fixture();
    let mut watch = f.watch("", true, &[]);
    for n in 0..CHANGES_MAX + 10 {
        fs::write(f.root.join(format!("d/{n}")), "").unwrap();
    }
    let mut all = Vec::new();
    loop {
        let changes = f.changes_of(&mut watch);
        if changes.is_empty() {
            break;
        }
        assert!(changes.len() <= CHANGES_MAX);
        all.extend(changes);
    }
    assert!(all.contains(&of("", ResourceChangeKind::Updated)) || all.len() > CHANGES_MAX);
}

#[test]
fn a_tree_of_too_many_directories_is_refused_with_their_number() {
    let f = fixture();
    for n in 0..=WATCHED_MAX {
        fs::create_dir(f.root.join(format!("d/{n}"))).unwrap();
    }
    let uri = format!("file://{}", f.root.display());
    let request = |excludes| WatchRequest { uri: &uri, recursive: true, excludes, includes: None };
    let refused = f.files.watch(&request(&[]), &[]).unwrap_err();
    assert!(refused.to_string().contains("8192"), "{refused}");
    let excludes = ["d/[0-9]*".to_owned()];
    f.files.watch(&request(&excludes), &[]).unwrap();
}

/// Makes more events than the system holds for a watch.
fn overflow(f: &WatchFixture) {
    let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let names = [f.root.join("d/one"), f.root.join("d/other")];
    for n in 0..=most {
        // Equal events that follow each other are one.
        fs::write(&names[n % 2], "").unwrap();
    }
}

#[test]
fn lost_events_are_told_and_what_came_meanwhile_is_watched() {
    let f = fixture();
    let mut watch = f.watch("", true, &[]);
    overflow(&f);
    // Nothing is heard of these.
    fs::create_dir_all(f.root.join("late/deep")).unwrap();
    fs::remove_dir_all(f.root.join("d/e")).unwrap();
    let mut is_told = false;
    loop {
        let batch = watch.read_changes();
        assert_eq!(batch.end, None);
        if batch.is_incomplete {
            let [change] = batch.changes.as_slice() else {
                panic!("one change stands for all: {:?}", batch.changes);
            };
            is_told |= change.uri == format!("file://{}", f.root.display());
        } else if batch.changes.is_empty() {
            break;
        }
    }
    assert!(is_told);
    fs::write(f.root.join("late/deep/a"), "").unwrap();
    assert_eq!(f.changes_of(&mut watch), [of("late/deep/a", ResourceChangeKind::Added)]);
    let gone = PathBuf::from("d/e");
    assert!(!watch.watched.values().any(|w| *w == WatchedDirectory::Inside(gone.clone())));
}

#[test]
fn a_root_that_is_removed_or_moved_ends_its_watch_with_words() {
    for moves in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("root");
        fs::create_dir_all(root.join("d")).unwrap();
        let confinement = Confinement::within(std::slice::from_ref(&root)).unwrap();
        let files = ResourceFiles::new(confinement);
        let uri = format!("file://{}", root.display());
        let request = WatchRequest { uri: &uri, recursive: true, excludes: &[], includes: None };
        let mut watch = files.watch(&request, &[]).unwrap();
        if moves {
            fs::rename(&root, directory.path().join("elsewhere")).unwrap()
        } else {
            fs::remove_dir_all(&root).unwrap()
        }
        let batch = watch.read_changes();
        assert!(batch.is_incomplete);
        let end = batch.end.unwrap().to_string();
        assert!(end.starts_with("there is no ") && end.contains("root"), "{end}");
    }
}

#[test]
fn a_tree_that_grows_beyond_the_bound_ends_its_watch_with_words() {
    let f = fixture();
    let mut watch = f.watch("", true, &[]);
    for n in 0..=WATCHED_MAX {
        fs::create_dir(f.root.join(format!("d/{n}"))).unwrap();
    }
    let mut reads = 0;
    let end = loop {
        let batch = watch.read_changes();
        if let Some(end) = batch.end {
            break end;
        }
        reads += 1;
        assert!(reads < 100, "it goes on though it cannot see everything");
    };
    assert!(end.to_string().contains("8192"), "{end}");
}
