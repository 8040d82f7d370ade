//! Real files: what is confined, what is atomic, what is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::*;

struct FilesFixture {
    _directory: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
    files: ResourceFiles,
}

/// A root with a data directory in it, and a directory beside it.
fn fixture() -> FilesFixture {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let (root, outside) = (top.join("root"), top.join("outside"));
    fs::create_dir_all(root.join("data")).unwrap();
    fs::write(root.join("data/token"), "secret").unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "outside").unwrap();
    let confinement = Confinement::within(std::slice::from_ref(&root))
        .unwrap()
        .hiding(&root.join("data"))
        .unwrap();
    FilesFixture { _directory: directory, root, outside, files: ResourceFiles::new(confinement) }
}

fn uri(path: impl AsRef<Path>) -> String {
    format!("file://{}", path.as_ref().display())
}

impl FilesFixture {
    fn uri(&self, name: &str) -> String {
        uri(self.root.join(name))
    }

    fn write(&self, name: &str, bytes: &str, placement: Placement) -> Result<(), ResourceError> {
        let request = WriteRequest {
            uri: &self.uri(name),
            bytes: bytes.as_bytes(),
            placement,
            create_only: false,
            if_match: None,
        };
        self.files.write(&request, &[])
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }

    fn names(&self, name: &str) -> Vec<String> {
        self.files.list(&self.uri(name), &[]).unwrap().into_iter().map(|entry| entry.name).collect()
    }
}

#[test]
fn bytes_go_where_they_are_placed_and_nothing_is_left_beside_them() {
    let f = fixture();
    f.write("new/deep/a", "0123456789", Placement::From(0)).unwrap();
    for (bytes, placement, expected) in [
        ("ab", Placement::From(4), "0123ab"),
        ("XY", Placement::At(1), "0XY123ab"),
        ("-", Placement::BeforeLast(2), "0XY123-ab"),
        ("!", Placement::BeforeLast(0), "0XY123-ab!"),
        ("", Placement::At(3), "0XY123-ab!"),
        ("whole", Placement::From(0), "whole"),
    ] {
        f.write("new/deep/a", bytes, placement).unwrap();
        assert_eq!(f.text("new/deep/a"), expected);
    }
    for placement in [Placement::From(6), Placement::At(6), Placement::BeforeLast(6)] {
        let beyond = f.write("new/deep/a", "x", placement).unwrap_err();
        assert!(matches!(beyond, ResourceError::BeyondEnd { bytes: 5, .. }), "{beyond}");
    }
    assert!(f.write("none", "x", Placement::At(1)).is_err());
    assert_eq!(f.names("new/deep"), ["a"]);
    assert_eq!(f.names("."), ["new"]);
}

#[test]
fn a_mode_stays_and_a_file_without_write_permission_is_left_alone() {
    let f = fixture();
    fs::write(f.root.join("run"), "a").unwrap();
    fs::set_permissions(f.root.join("run"), fs::Permissions::from_mode(0o751)).unwrap();
    f.write("run", "b", Placement::From(0)).unwrap();
    let mode = fs::metadata(f.root.join("run")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o751);
    fs::set_permissions(f.root.join("run"), fs::Permissions::from_mode(0o444)).unwrap();
    for placement in [Placement::From(0), Placement::BeforeLast(0)] {
        let refused = f.write("run", "c", placement).unwrap_err();
        assert!(matches!(refused, ResourceError::PermissionDenied { .. }));
    }
    assert_eq!(f.text("run"), "b");
}

#[test]
fn preconditions_are_kept() {
    let f = fixture();
    let address = f.uri("a");
    let mut request = WriteRequest {
        uri: &address,
        bytes: b"one",
        placement: Placement::From(0),
        create_only: true,
        if_match: None,
    };
    f.files.write(&request, &[]).unwrap();
    let again = f.files.write(&request, &[]).unwrap_err();
    assert!(matches!(again, ResourceError::AlreadyExists { .. }));
    let tag = f.files.resolve(&address, true, &[]).unwrap().etag;
    request.create_only = false;
    request.if_match = Some(&tag);
    request.bytes = b"two";
    f.files.write(&request, &[]).unwrap();
    for placement in [Placement::From(0), Placement::BeforeLast(0)] {
        request.placement = placement;
        let old = f.files.write(&request, &[]).unwrap_err();
        assert!(matches!(old, ResourceError::EtagMismatch { .. }));
    }
    assert_eq!(f.text("a"), "two");
    let missing = f.uri("missing");
    request.uri = &missing;
    let missing = f.files.write(&request, &[]).unwrap_err();
    assert!(matches!(missing, ResourceError::EtagMismatch { .. }));
}

#[test]
fn appenders_lose_nothing() {
    let f = fixture();
    f.write("log", "", Placement::From(0)).unwrap();
    let (threads, lines) = (4, 50);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let f = &f;
            scope.spawn(move || {
                // One of them is another program.
                let mut own = fs::OpenOptions::new().append(true).open(f.root.join("log")).unwrap();
                for line in 0..lines {
                    let text = format!("{thread}:{line}\n");
                    match thread {
                        0 => std::io::Write::write_all(&mut own, text.as_bytes()).unwrap(),
                        _ => f.write("log", &text, Placement::BeforeLast(0)).unwrap(),
                    }
                }
            });
        }
    });
    let mut found: Vec<String> = f.text("log").lines().map(str::to_owned).collect();
    found.sort();
    let mut expected: Vec<String> = (0..threads)
        .flat_map(|thread| (0..lines).map(move |line| format!("{thread}:{line}")))
        .collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn nothing_outside_is_used_by_whatever_name_and_nothing_is_said_of_it() {
    let f = fixture();
    symlink(&f.outside, f.root.join("out")).unwrap();
    symlink(f.outside.join("a"), f.root.join("file")).unwrap();
    fs::create_dir(f.root.join("in")).unwrap();
    let names = [
        uri(f.outside.join("a")),
        uri(f.outside.join("missing")),
        uri(f.outside.join("missing/deep")),
        "file:///".to_owned(),
        f.uri("out/a"),
        f.uri("out/new"),
        f.uri("file"),
        f.uri("in/../../outside/a"),
    ];
    for name in &names {
        let is_outside = |done: Result<(), ResourceError>| {
            let error = done.unwrap_err();
            assert!(matches!(error, ResourceError::Outside { .. }), "{name}: {error}");
        };
        is_outside(f.files.read(name, 100, &[]).map(drop));
        is_outside(f.files.list(name, &[]).map(drop));
        is_outside(f.files.resolve(name, true, &[]).map(drop));
        is_outside(f.files.make_directory(name, &[]));
        is_outside(f.files.copy(name, &f.uri("copy"), false, &[]));
        let request = WriteRequest {
            uri: name,
            bytes: b"x",
            placement: Placement::From(0),
            create_only: false,
            if_match: None,
        };
        is_outside(f.files.write(&request, &[]));
    }
    // The links themselves are inside.
    let link = f.files.resolve(&f.uri("file"), false, &[]).unwrap();
    assert_eq!((link.kind, link.uri), (ResourceKind::Link, f.uri("file")));
    f.files.remove(&f.uri("out"), true, &[]).unwrap();
    f.files.rename(&f.uri("file"), &f.uri("in/file"), false, &[]).unwrap();
    assert_eq!(fs::read_to_string(f.outside.join("a")).unwrap(), "outside");
}

#[test]
fn the_hosts_own_directory_is_neither_seen_nor_touched() {
    let f = fixture();
    fs::create_dir(f.root.join("a")).unwrap();
    symlink("../data", f.root.join("a/link")).unwrap();
    assert_eq!(f.names("."), ["a"]);
    for name in ["data", "data/token", "data/new", "a/link", "a/link/token"] {
        let address = f.uri(name);
        let is_refused = |done: Result<(), ResourceError>| {
            let error = done.unwrap_err();
            assert!(matches!(error, ResourceError::HostOwned { .. }), "{name}: {error}");
        };
        is_refused(f.files.read(&address, 100, &[]).map(drop));
        is_refused(f.files.list(&address, &[]).map(drop));
        is_refused(f.files.resolve(&address, true, &[]).map(drop));
        is_refused(f.files.make_directory(&address, &[]));
        is_refused(f.files.copy(&address, &f.uri("copy"), false, &[]));
        is_refused(f.write(name, "x", Placement::From(0)));
    }
    let data = f.uri("data");
    assert!(f.files.remove(&data, true, &[]).is_err());
    assert!(f.files.rename(&data, &f.uri("b"), false, &[]).is_err());
    assert!(f.files.rename(&f.uri("a"), &data, false, &[]).is_err());
    let grants = [ResourceGrant { path: f.root.join("data"), write: true }];
    assert!(f.files.read(&f.uri("data/token"), 100, &grants).is_err());
    assert_eq!(f.text("data/token"), "secret");
}

#[test]
fn roots_stay_where_they_are() {
    let f = fixture();
    for done in [
        f.files.remove(&uri(&f.root), true, &[]),
        f.files.rename(&uri(&f.root), &f.uri("x"), false, &[]),
        f.files.copy(&uri(&f.root), &f.uri("x"), false, &[]),
    ] {
        assert!(done.is_err());
    }
    assert!(f.root.join("data/token").exists());
}

#[test]
fn what_is_granted_can_be_used_as_it_is_granted() {
    let f = fixture();
    let address = uri(f.outside.join("a"));
    let mut grants = [ResourceGrant { path: f.outside.clone(), write: false }];
    assert_eq!(f.files.read(&address, 100, &grants).unwrap().bytes, b"outside");
    let refused = f.files.remove(&address, false, &grants).unwrap_err();
    let needs = ResourceAccess::Write;
    assert_eq!(
        refused,
        ResourceError::Outside { path: f.outside.join("a").display().to_string(), needs }
    );
    grants[0].write = true;
    f.files.copy(&address, &uri(f.outside.join("b")), true, &grants).unwrap();
    assert!(f.files.remove(&uri(&f.outside), true, &grants).is_err());
    let file = [ResourceGrant { path: f.outside.join("b"), write: false }];
    assert_eq!(f.files.read(&uri(f.outside.join("b")), 100, &file).unwrap().bytes, b"outside");
    assert!(f.files.read(&address, 100, &file).is_err());
}

#[test]
fn trees_are_copied_moved_and_removed_whole() {
    let f = fixture();
    f.write("a/b/c", "c", Placement::From(0)).unwrap();
    f.write("a/d", "d", Placement::From(0)).unwrap();
    symlink("d", f.root.join("a/e")).unwrap();
    let (a, z) = (f.uri("a"), f.uri("new/z"));
    f.files.copy(&a, &z, false, &[]).unwrap();
    assert_eq!((f.text("new/z/b/c"), f.text("new/z/e")), ("c".to_owned(), "d".to_owned()));
    assert!(f.root.join("new/z/e").is_symlink());
    let there = f.files.copy(&a, &z, true, &[]).unwrap_err();
    assert!(matches!(there, ResourceError::AlreadyExists { .. }));
    f.write("a/f", "f", Placement::From(0)).unwrap();
    fs::remove_file(f.root.join("a/d")).unwrap();
    f.files.copy(&a, &z, false, &[]).unwrap();
    assert_eq!(f.names("new/z"), ["b", "e", "f"]);
    assert_eq!(f.names("new"), ["z"]);
    for (from, to) in [("a", "a/b/x"), ("a/b", "a"), ("a", "a")] {
        let nested = f.files.rename(&f.uri(from), &f.uri(to), false, &[]).unwrap_err();
        assert!(matches!(nested, ResourceError::Nested { .. }), "{from} {to}");
    }
    let full = f.files.remove(&a, false, &[]).unwrap_err();
    assert!(matches!(full, ResourceError::NotEmpty { .. }));
    let there = f.files.rename(&a, &z, true, &[]).unwrap_err();
    assert!(matches!(there, ResourceError::AlreadyExists { .. }));
    f.files.rename(&a, &z, false, &[]).unwrap();
    assert_eq!(
        (f.names("."), f.names("new/z")),
        (vec!["new".to_owned()], vec!["b".to_owned(), "e".to_owned(), "f".to_owned()])
    );
    f.files.rename(&f.uri("new/z/f"), &f.uri("new/z/b"), false, &[]).unwrap();
    assert_eq!(f.text("new/z/b"), "f");
    f.files.remove(&f.uri("new"), true, &[]).unwrap();
    assert_eq!(f.names("."), Vec::<String>::new());
}

#[test]
fn directories_are_made_where_nothing_is() {
    let f = fixture();
    f.files.make_directory(&f.uri("a/b/c"), &[]).unwrap();
    f.files.make_directory(&f.uri("a/b"), &[]).unwrap();
    f.write("a/file", "", Placement::From(0)).unwrap();
    for name in ["a/file", "a/file/x"] {
        let there = f.files.make_directory(&f.uri(name), &[]).unwrap_err();
        assert!(matches!(there, ResourceError::AlreadyExists { .. }), "{name}: {there}");
    }
}

#[test]
fn what_is_missing_or_of_another_kind_is_said() {
    let f = fixture();
    symlink("nowhere", f.root.join("dangling")).unwrap();
    f.write("file", "x", Placement::From(0)).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, f.root.join("pipe"), 0o600.into()).unwrap();
    for name in ["missing", "missing/deep", "dangling"] {
        let missing = f.files.resolve(&f.uri(name), true, &[]).unwrap_err();
        assert!(matches!(missing, ResourceError::NotFound { .. }), "{name}: {missing}");
        assert!(f.files.list(&f.uri(name), &[]).is_err());
    }
    let listed = f.files.list(&f.uri("file"), &[]).unwrap_err();
    assert!(matches!(listed, ResourceError::NotADirectory { .. }));
    let read = f.files.read(&uri(&f.root), 10, &[]).unwrap_err();
    assert!(matches!(read, ResourceError::IsDirectory { .. }));
    let read = f.files.read(&f.uri("pipe"), 10, &[]).unwrap_err();
    assert!(matches!(read, ResourceError::NotRegular { .. }));
    let read = f.files.read(&f.uri("file"), 0, &[]).unwrap_err();
    assert!(matches!(read, ResourceError::TooLarge { bytes: 1, most: 0, .. }));
    assert!(f.write("dangling", "x", Placement::From(0)).is_err());
    assert!(!f.root.join("nowhere").exists());
    let local = f.files.read("https://example.org/a", 1, &[]).unwrap_err();
    assert!(matches!(local, ResourceError::NotLocal { .. }));
}

/// A path that is a link to the outside every other moment never leads there.
#[test]
fn a_swap_between_check_and_use_leads_nowhere() {
    let f = fixture();
    fs::create_dir(f.root.join("d")).unwrap();
    fs::write(f.root.join("d/a"), "inside").unwrap();
    symlink(&f.outside, f.root.join("link")).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            let (one, other) = (f.root.join("d"), f.root.join("link"));
            let cwd = rustix::fs::CWD;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                rustix::fs::renameat_with(cwd, &one, cwd, &other, flags).unwrap();
            }
        });
        for _ in 0..2_000 {
            if let Ok(read) = f.files.read(&f.uri("d/a"), 100, &[]) {
                assert_ne!(read.bytes, b"outside");
            }
            let _ = f.write("d/new", "x", Placement::From(0));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let names: Vec<_> = fs::read_dir(&f.outside).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(fs::read_to_string(f.outside.join("a")).unwrap(), "outside");
}
