//! Files of a workspace, read by the paths in messages: C-019 against whoever tries to get out, or to block a reader.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use compositor::Part;
use compositor::resolve::{
    FileRead, InlineLimits, Resolved, Scanned, Sources as _, WhyOmitted, WhyUnavailable, resolve,
};
use rustix::fs::{CWD, Mode, RenameFlags};
use serde_json::{Value, json};
use workspace::{Confinement, EmptyStore, Workspace, WorkspaceSources};

const LIMIT: u64 = 1_000;

fn open(roots: &[&Path]) -> Workspace {
    let uris = roots.iter().map(|root| format!("file://{}", root.display()));
    Workspace::open(&uris.collect::<Vec<_>>(), &Confinement::none()).unwrap()
}

fn sources(files: &Workspace) -> WorkspaceSources<EmptyStore> {
    WorkspaceSources { workspace: Some(files.clone()), store: EmptyStore }
}

fn unavailable(files: &Workspace, path: &str) -> WhyUnavailable {
    match sources(files).file(path, LIMIT) {
        FileRead::Unavailable(why) => {
            let scanned = sources(files).scan(path, &mut |_| ControlFlow::Continue(()));
            assert_eq!(scanned, Scanned::Unavailable(why), "{path}");
            why
        }
        read => panic!("{path} was read: {read:?}"),
    }
}

fn bytes(files: &Workspace, path: &str) -> Vec<u8> {
    match sources(files).file(path, LIMIT) {
        FileRead::Bytes { bytes } => bytes,
        read => panic!("{path}: {read:?}"),
    }
}

fn of_ref(files: &Workspace, path: &str, range: Option<Value>) -> Resolved {
    let mut part = json!({"type": "file-ref", "ref": {"kind": "path", "path": path}});
    if let Some(range) = range {
        part["ref"]["range"] = range;
    }
    let part = Part::from_value(part).unwrap();
    resolve(&part, &mut sources(files), &InlineLimits::default()).unwrap()
}

#[test]
fn paths_are_relative_to_the_first_root_or_absolute_in_any() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(one.path().join("d")).unwrap();
    fs::write(one.path().join("d/a"), "one").unwrap();
    fs::write(two.path().join("a"), "two").unwrap();
    let files = open(&[one.path(), two.path()]);
    assert_eq!(bytes(&files, "d/a"), b"one");
    assert_eq!(bytes(&files, "d/../d/./a"), b"one");
    assert_eq!(unavailable(&files, "a"), WhyUnavailable::NotFound);
    let second = two.path().join("a");
    assert_eq!(bytes(&files, second.to_str().unwrap()), b"two");
    let absolute = one.path().join("d/a");
    assert_eq!(sources(&files).absolute("d/a"), absolute.to_str().unwrap());
    assert_eq!(sources(&files).absolute(second.to_str().unwrap()), second.to_str().unwrap());
}

#[test]
fn files_outside_are_not_read_however_they_are_named() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let secret = outside.path().join("secret");
    let root = tempfile::tempdir().unwrap();
    symlink(&secret, root.path().join("absolute")).unwrap();
    symlink(outside.path(), root.path().join("directory")).unwrap();
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    symlink(format!("../{name}/secret"), root.path().join("climbing")).unwrap();
    symlink("/proc/self/environ", root.path().join("environ")).unwrap();
    symlink("/proc/self/cwd/Cargo.toml", root.path().join("magic")).unwrap();
    symlink("circle", root.path().join("circle")).unwrap();
    fs::write(root.path().join("inside"), "inside").unwrap();
    symlink("inside", root.path().join("fine")).unwrap();
    let files = open(&[root.path()]);
    let beside = format!("{}/../{name}/secret", root.path().display());
    for path in [
        secret.to_str().unwrap(),
        "/etc/passwd",
        "../secret",
        &format!("../{name}/secret"),
        &beside,
        "absolute",
        "directory/secret",
        "climbing",
        "environ",
        "magic",
        "circle",
    ] {
        assert_eq!(unavailable(&files, path), WhyUnavailable::OutsideWorkspace, "{path}");
    }
    assert_eq!(bytes(&files, "fine"), b"inside");
}

#[test]
fn nothing_is_read_without_a_root() {
    let files = Workspace::open(&[], &Confinement::none()).unwrap();
    assert_eq!(unavailable(&files, "a"), WhyUnavailable::OutsideWorkspace);
    assert_eq!(unavailable(&files, "/etc/passwd"), WhyUnavailable::OutsideWorkspace);
}

#[test]
fn only_regular_files_are_read_and_nothing_is_waited_for() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("d")).unwrap();
    rustix::fs::mknodat(
        CWD,
        root.path().join("pipe"),
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
    symlink("pipe", root.path().join("to_pipe")).unwrap();
    symlink("nowhere", root.path().join("dangling")).unwrap();
    fs::write(root.path().join("f"), "x").unwrap();
    let files = open(&[root.path()]);
    for path in ["d", ".", "d/", "pipe", "to_pipe", "socket", "a\0b", ""] {
        assert_eq!(unavailable(&files, path), WhyUnavailable::InvalidPath, "{path:?}");
    }
    let long = "x".repeat(5_000);
    assert_eq!(unavailable(&files, &long), WhyUnavailable::InvalidPath);
    for path in ["gone", "dangling", "f/g", "d/gone/x"] {
        assert_eq!(unavailable(&files, path), WhyUnavailable::NotFound, "{path}");
    }
}

#[test]
fn magic_links_are_not_followed_even_where_they_are_inside() {
    let files = open(&[Path::new("/proc/self")]);
    for path in ["root", "cwd/Cargo.toml", "exe", "fd/0"] {
        assert_eq!(unavailable(&files, path), WhyUnavailable::OutsideWorkspace, "{path}");
    }
    // Files that say they are empty are bounded by what is asked for.
    let read = sources(&files).file("maps", 10);
    assert!(matches!(read, FileRead::TooLarge { .. }), "{read:?}");
}

#[test]
fn a_link_that_is_swapped_again_and_again_never_leads_out() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f"), "secret").unwrap();
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("d")).unwrap();
    fs::write(root.path().join("d/f"), "inside").unwrap();
    symlink(outside.path(), root.path().join("other")).unwrap();
    let files = open(&[root.path()]);
    let is_over = AtomicBool::new(false);
    let mut seen = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (root.path().join("d"), root.path().join("other"));
            while !is_over.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..5_000 {
            match sources(&files).file("d/f", LIMIT) {
                FileRead::Bytes { bytes } => {
                    assert_eq!(bytes, b"inside");
                    seen += 1;
                }
                FileRead::Unavailable(_) => {}
                read => panic!("{read:?}"),
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(seen > 0, "the file was there half of the time");
}

#[test]
fn a_huge_file_passes_by_in_small_pieces() {
    let root = tempfile::tempdir().unwrap();
    let mut huge = fs::File::create(root.path().join("huge.log")).unwrap();
    let line = [b'x'; 9_999];
    huge.write_all(&line).unwrap();
    huge.write_all(b"\nsecond\nthird\n").unwrap();
    huge.seek(std::io::SeekFrom::Start(100_000_000)).unwrap();
    huge.write_all(b"\nlast").unwrap();
    let files = open(&[root.path()]);

    let mut largest = 0;
    let scanned = sources(&files).scan("huge.log", &mut |piece| {
        largest = largest.max(piece.len());
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Scanned::Complete { size: 100_000_005 });
    assert!(largest <= 64 * 1_024);
    match sources(&files).file("huge.log", LIMIT) {
        FileRead::TooLarge { size, head } => {
            assert_eq!((size, head.len()), (100_000_005, 8 * 1_024))
        }
        read => panic!("{read:?}"),
    }

    let lines = |start: u64, end: u64| Some(json!({"start": start, "end": end}));
    let Resolved::Text { text, label, size, .. } = of_ref(&files, "huge.log", lines(2, 3)) else {
        panic!("no text");
    };
    assert_eq!((text.as_str(), label.as_str()), ("second\nthird\n", "huge.log:2-3"));
    assert_eq!(size, 100_000_005);
    let Resolved::Text { text, .. } = of_ref(&files, "huge.log", lines(5, 9)) else {
        panic!("no text");
    };
    assert_eq!(text, "last");
    // The fourth line is a hundred million bytes long.
    let Resolved::Omitted { why, .. } = of_ref(&files, "huge.log", lines(4, 4)) else {
        panic!("not omitted");
    };
    assert_eq!(why, WhyOmitted::TooLarge);
    let Resolved::Unavailable { lines, .. } = of_ref(&files, "huge.log", lines(9, 9)) else {
        panic!("not unavailable");
    };
    assert_eq!(lines, Some(5));
}

#[test]
fn a_picture_of_a_hundred_megabytes_is_not_read() {
    let root = tempfile::tempdir().unwrap();
    let mut huge = fs::File::create(root.path().join("huge.png")).unwrap();
    huge.write_all(b"\x89PNG\r\n\x1a\n").unwrap();
    huge.set_len(100_000_000).unwrap();
    let expected = Resolved::Omitted {
        why: WhyOmitted::TooLarge,
        size: 100_000_000,
        mime: "image/png".to_owned(),
    };
    assert_eq!(of_ref(&open(&[root.path()]), "huge.png", None), expected);
}

#[test]
fn c021_a_frozen_file_is_the_same_after_it_changed_or_was_removed() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a"), "first").unwrap();
    let files = open(&[root.path()]);
    let resolved = of_ref(&files, "a", None);
    let frozen = resolved.to_stored();
    fs::write(root.path().join("a"), "second").unwrap();
    assert_ne!(of_ref(&files, "a", None), resolved);
    assert_eq!(Resolved::from_stored(frozen), Some(resolved));
}
