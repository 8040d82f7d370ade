//! Directories as they are walked, and indexes as they age.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;

fn uri(path: &Path) -> String {
    wire::file_uri::uri_of(path.as_os_str().as_bytes())
}

fn open(root: &Path) -> Workspace {
    Workspace::open_available(&[uri(root)], &Confinement::none()).0
}

fn write(root: &Path, path: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "x").unwrap();
}

fn walked(root: &Path) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let paths = walk(&open(root), deadline, &AtomicBool::new(false));
    let display = |path: super::super::IndexedPath<'_>| match path.kind {
        PathKind::Directory => format!("{}/", path.relative),
        PathKind::File => path.relative.to_owned(),
    };
    paths.best("", 1_000).into_iter().map(display).collect()
}

#[test]
fn ignored_files_are_left_out_and_the_top_comes_first() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for path in ["z.md", "src/a.rs", "src/deep/b.rs", "target/out.o", "c.log", ".git/HEAD"] {
        write(root, path);
    }
    fs::write(root.join(".gitignore"), "target/\n*.log\n").unwrap();
    assert_eq!(
        walked(root),
        [".gitignore", "src/", "z.md", "src/a.rs", "src/deep/", "src/deep/b.rs"]
    );
}

#[test]
fn links_are_not_followed_and_outside_ones_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "src/a.rs");
    symlink("src/a.rs", root.join("link.rs")).unwrap();
    symlink(".", root.join("circle")).unwrap();
    symlink("self", root.join("self")).unwrap();
    symlink("/etc", root.join("out")).unwrap();
    symlink("gone", root.join("dangling")).unwrap();
    assert_eq!(walked(root), ["circle/", "link.rs", "src/", "src/a.rs"]);
}

#[test]
fn unreadable_and_untypable_names_are_skipped() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, "a");
    write(root, "two\nlines");
    write(root, "closed/b");
    let odd = root.join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    fs::write(odd, "x").unwrap();
    let closed = root.join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let paths = walked(root);
    // Whoever may read everything reads that too.
    let is_closed = fs::read_dir(&closed).is_err();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    if is_closed {
        assert_eq!(paths, ["a", "closed/"])
    } else {
        assert_eq!(paths, ["a", "closed/", "closed/b"])
    }
    assert_eq!(walked(&root.join("not-there")), Vec::<String>::new());
}

#[test]
fn a_walk_ends_when_its_index_is_dropped_or_time_is_up() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "a");
    let deadline = Instant::now() + Duration::from_secs(60);
    let dropped = walk(&open(root.path()), deadline, &AtomicBool::new(true));
    assert!(dropped.is_empty());
    let late = walk(&open(root.path()), Instant::now(), &AtomicBool::new(false));
    assert!(late.is_empty());
}

#[test]
fn an_index_is_built_once_and_again_when_it_is_old() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "a");
    let directories = [uri(root.path())];
    let indexes = PathIndexes::default();
    let first = eventually(|| {
        Some(indexes.paths(&directories, &Confinement::none())).filter(|paths| paths.len() == 1)
    });
    write(root.path(), "b");
    assert!(
        Arc::ptr_eq(&first, &indexes.paths(&directories, &Confinement::none())),
        "it is not old yet"
    );

    let index = indexes.index(&directories, Instant::now());
    let old = Instant::now().checked_sub(STALE).unwrap();
    index.state.lock().built = Some(old);
    eventually(|| {
        Some(indexes.paths(&directories, &Confinement::none())).filter(|paths| paths.len() == 2)
    });
}

#[test]
fn only_so_many_indexes_are_in_memory() {
    let indexes = PathIndexes::default();
    for set in 0..INDEXES_MAX + 3 {
        let directories = [format!("file:///not/there/{set}")];
        indexes.paths(&directories, &Confinement::none());
    }
    assert_eq!(indexes.indexes.lock().len(), INDEXES_MAX);
    let much_later = Instant::now() + UNUSED_MAX * 2;
    indexes.index(&["file:///new".to_owned()], much_later);
    assert_eq!(indexes.indexes.lock().len(), 1);
}

fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(paths) = look() {
            return paths;
        }
        assert!(Instant::now() < deadline, "it never came");
        std::thread::yield_now();
    }
}
