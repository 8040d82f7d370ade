//! Nothing outside the working directories is read, listed, searched or written, whatever leads there.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Session, error, open};

/// A session, and a directory outside with a secret.
fn session_and_outside() -> (Session, TempDir) {
    let session = Session::with(&[("inside.txt", "public\n"), ("sub/inside.txt", "public\n")]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("inside.txt"), "secret\n").unwrap();
    (session, outside)
}

/// Every way to a path, and the error of each.
async fn all_ways(session: &Session, path: &str) -> Vec<(&'static str, String)> {
    let edit = json!({"path": path, "edits": [{"old_text": "secret", "new_text": "taken"}]});
    let ways: [(&'static str, Value); 5] = [
        ("read", json!({"path": path})),
        ("list", json!({"path": path})),
        ("grep", json!({"path": path, "pattern": "e"})),
        ("write", json!({"path": path, "content": "taken"})),
        ("edit", edit),
    ];
    let mut answers = Vec::new();
    for (tool, input) in ways {
        if let Ok(plan) = session.plan(tool, input.clone()).await {
            assert!(!format!("{plan:?}").contains("secret"));
        }
        answers.push((tool, error(session.run(tool, input).await)));
    }
    answers
}

fn is_untouched(outside: &TempDir) -> bool {
    let names = fs::read_dir(outside.path()).unwrap().count();
    let secret = fs::read_to_string(outside.path().join("inside.txt")).unwrap();
    names == 1 && secret == "secret\n"
}

#[tokio::test]
async fn names_that_lead_outside_are_refused() {
    let (session, outside) = session_and_outside();
    let secret = outside.path().join("inside.txt");
    let up = format!("../{}/inside.txt", outside.path().file_name().unwrap().to_str().unwrap());
    for path in [secret.to_str().unwrap(), &up, "sub/../../x", "/etc/hostname", "..", "/"] {
        for (tool, why) in all_ways(&session, path).await {
            let expected = why.contains("outside the working directories") || why.contains("`..`");
            assert!(expected, "{tool} {path}: {why}");
        }
    }
    let root = session.directory.path().display();
    let beside = format!("{root}x");
    assert!(session.text_of("read", json!({"path": beside})).await.contains("outside"));
    assert!(is_untouched(&outside));
}

#[tokio::test]
async fn links_that_lead_outside_are_refused() {
    let (session, outside) = session_and_outside();
    let secret = outside.path().join("inside.txt");
    symlink(&secret, session.path("link")).unwrap();
    symlink(outside.path(), session.path("parent")).unwrap();
    symlink("parent", session.path("twice")).unwrap();
    let up = format!("../{}", outside.path().file_name().unwrap().to_str().unwrap());
    symlink(up, session.path("climbs")).unwrap();
    symlink(session.path("inside.txt"), session.path("absolute")).unwrap();
    let paths = [
        "link",
        "parent",
        "parent/inside.txt",
        "parent/missing.txt",
        "parent/new/missing.txt",
        "twice/inside.txt",
        "climbs/inside.txt",
        "absolute",
    ];
    for path in paths {
        for (tool, why) in all_ways(&session, path).await {
            assert!(why.contains("symbolic link out of"), "{tool} {path}: {why}");
        }
    }
    assert!(is_untouched(&outside));
}

#[tokio::test]
async fn walks_pass_links_by() {
    let (session, outside) = session_and_outside();
    symlink(outside.path(), session.path("parent")).unwrap();
    symlink(outside.path().join("inside.txt"), session.path("link")).unwrap();
    symlink(outside.path().join("inside.txt"), session.path(".gitignore")).unwrap();
    let listed = session.text_of("list", json!({"depth": 9})).await;
    assert_eq!(listed, ".gitignore@\ninside.txt\nlink@\nparent@\nsub/\nsub/inside.txt");
    let output =
        session.text_of("grep", json!({"pattern": "secret|public", "files_only": true})).await;
    assert_eq!(output, "inside.txt\nsub/inside.txt\n");
}

#[tokio::test]
async fn links_that_stay_inside_are_followed_and_preserved() {
    let (session, _outside) = session_and_outside();
    symlink("../inside.txt", session.path("sub/link")).unwrap();
    symlink("sub", session.path("folder")).unwrap();
    assert!(session.text_of("read", json!({"path": "folder/link"})).await.contains("public"));
    let listed = session.text_of("list", json!({"path": "folder"})).await;
    assert_eq!(listed, "inside.txt\nlink@");

    let edit =
        json!({"path": "folder/link", "edits": [{"old_text": "public", "new_text": "known"}]});
    let plan = session.plan("edit", edit.clone()).await.unwrap();
    assert_eq!(plan.summary, "Edit inside.txt");
    session.run("edit", edit).await.unwrap();
    assert_eq!(session.text("inside.txt"), "known\n");
    assert!(session.path("sub/link").is_symlink());

    session.run("write", json!({"path": "folder/new/file", "content": "x"})).await.unwrap();
    assert_eq!(session.text("sub/new/file"), "x");
}

#[tokio::test]
async fn a_directory_swapped_for_a_link_between_plan_and_run_is_noticed() {
    let (session, outside) = session_and_outside();
    session.reads("sub/inside.txt").await;
    let inputs = [
        ("write", json!({"path": "sub/new.txt", "content": "taken"})),
        ("write", json!({"path": "sub/inside.txt", "content": "taken"})),
        (
            "edit",
            json!({"path": "sub/inside.txt", "edits": [{"old_text": "public", "new_text": "taken"}]}),
        ),
    ];
    for (tool, input) in &inputs {
        session.plan(tool, input.clone()).await.unwrap();
    }
    fs::rename(session.path("sub"), session.path("moved")).unwrap();
    symlink(outside.path(), session.path("sub")).unwrap();
    for (tool, input) in inputs {
        let why = error(session.run(tool, input).await);
        assert!(why.contains("symbolic link out of"), "{why}");
    }
    assert!(is_untouched(&outside));
    assert_eq!(session.text("moved/inside.txt"), "public\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_swapped_all_the_time_never_leads_outside() {
    let (session, outside) = session_and_outside();
    symlink(outside.path(), session.path("link")).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (done, sub, link) = (Arc::clone(&done), session.path("sub"), session.path("link"));
        std::thread::spawn(move || {
            let mut swaps = 0_u64;
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &sub, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        })
    };
    let (mut seen, mut refused) = (0, 0);
    for round in 0..200 {
        let new = format!("sub/{round}.txt");
        let edit =
            json!({"path": "sub/inside.txt", "edits": [{"old_text": "\n", "new_text": "!\n"}]});
        for (tool, input) in [
            ("read", json!({"path": "sub/inside.txt"})),
            ("list", json!({"path": "sub"})),
            ("grep", json!({"path": "sub", "pattern": "s?e?c?r?e?t?"})),
            ("grep", json!({"pattern": "secret"})),
            ("write", json!({"path": new, "content": "taken"})),
            ("edit", edit),
        ] {
            match session.run(tool, input).await {
                Ok(outcome) => {
                    assert!(!outcome.text.contains("secret"), "{tool}: {}", outcome.text);
                    seen += 1;
                }
                Err(error) => {
                    assert!(!error.0.contains("secret"), "{tool}: {error}");
                    refused += 1;
                }
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    assert!(is_untouched(&outside));
    assert!(seen > 0 && refused > 0, "{seen} seen, {refused} refused, {swaps} swaps");
}

#[tokio::test]
async fn magic_links_are_not_followed() {
    let session = Session {
        directory: tempfile::tempdir().unwrap(),
        workspace: open(std::path::Path::new("/proc")),
        calls: Default::default(),
    };
    for path in ["self/cwd", "self/root"] {
        let why = error(session.run("list", json!({"path": path})).await);
        assert!(why.contains("symbolic link"), "{why}");
    }
    session.run("read", json!({"path": "self/status"})).await.unwrap();
}

#[tokio::test]
async fn pipes_and_devices_are_not_waited_for() {
    let session = Session::new();
    let made = std::process::Command::new("mkfifo").arg(session.path("pipe")).status();
    assert!(made.unwrap().success());
    for (tool, why) in all_ways(&session, "pipe").await {
        let expected = why.contains("is a pipe") || why.contains("is a file, not a directory");
        assert!(expected, "{tool}: {why}");
    }
    let output = session.text_of("grep", json!({"pattern": "x"})).await;
    assert_eq!(output, "[no match]\n");
}

#[tokio::test]
async fn a_second_directory_is_named_in_full() {
    let (first, second) = (Session::with(&[("a", "1\n")]), Session::with(&[("b", "2\n")]));
    let uris =
        [&first, &second].map(|session| format!("file://{}", session.directory.path().display()));
    let session = Session {
        workspace: workspace::Workspace::open(&uris, &workspace::Confinement::none()).unwrap(),
        ..first
    };
    let path = second.path("b").display().to_string();
    let plan = session.plan("read", json!({"path": path})).await.unwrap();
    assert_eq!(plan.summary, format!("Read {path}"));
    assert!(session.text_of("read", json!({"path": path})).await.contains('2'));
    let output =
        session.text_of("grep", json!({"path": second.path("").to_str(), "pattern": "."})).await;
    assert_eq!(output, format!("{path}\n1:2\n"));
    assert!(session.text_of("read", json!({"path": "b"})).await.contains("there is no b"));
    let absolute = session.path("a").display().to_string();
    let plan = session.plan("read", json!({"path": absolute})).await.unwrap();
    assert_eq!(plan.summary, "Read a");
}
