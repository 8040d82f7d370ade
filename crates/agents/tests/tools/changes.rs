//! `write` and `edit`: all or nothing, and nothing that was not seen.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agents::tool::PlanSubject;
use serde_json::{Value, json};
use tokio::sync::mpsc;
#[cfg(debug_assertions)]
use wire::content::HashCount;
use wire::published::state::{FileEdit, ToolResultContent};

use crate::{Session, contents, error, named};

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"old_text": old, "new_text": new}]})
}

#[tokio::test]
async fn a_new_file_is_previewed_created_and_reported() {
    let session = Session::new();
    let input = write("a/b/new.txt", "one\ntwo\n");
    let plan = session.plan("write", input.clone()).await.unwrap();
    assert_eq!(plan.summary, "Create a/b/new.txt");
    assert!(!session.path("a").exists());
    let preview: FileEdit = serde_json::from_value(plan.edits[0].clone()).unwrap();
    assert_eq!(preview.before, None);
    assert_eq!(preview.diff.unwrap().added, Some(2));
    assert_eq!(contents(&plan.bodies), [b"one\ntwo\n"]);

    let outcome = session.run("write", input).await.unwrap();
    assert!(outcome.success);
    assert_eq!(outcome.summary, "Created a/b/new.txt (2 lines)");
    assert_eq!(session.text("a/b/new.txt"), "one\ntwo\n");
    let mode = fs::metadata(session.path("a/b/new.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);
    let block = serde_json::from_value(outcome.content[0].clone()).unwrap();
    let ToolResultContent::FileEdit(block) = block else {
        panic!("{block:?}");
    };
    let uri = format!("file://{}", session.path("a/b/new.txt").display());
    assert_eq!(block.after.unwrap().uri, uri);
    assert_eq!(contents(&outcome.bodies), [b"one\ntwo\n"]);
    assert!(session.is_tidy());
}

#[tokio::test]
async fn an_edit_is_previewed_and_preserves_the_file_mode() {
    let session = Session::with(&[("run.sh", "echo a\necho b\n")]);
    fs::set_permissions(session.path("run.sh"), fs::Permissions::from_mode(0o751)).unwrap();
    let input = json!({"path": "run.sh", "edits": [
        {"old_text": "echo a", "new_text": "echo c\necho d"},
        {"old_text": "echo", "new_text": "print", "all": true},
    ]});
    let plan = session.plan("edit", input.clone()).await.unwrap();
    assert_eq!(plan.summary, "Edit run.sh");
    let bodies: [&[u8]; 2] = [b"echo a\necho b\n", b"print c\nprint d\nprint b\n"];
    assert_eq!(contents(&plan.bodies), bodies);
    assert_eq!(session.text("run.sh"), "echo a\necho b\n");

    let outcome = session.run("edit", input).await.unwrap();
    assert_eq!(outcome.text, "Edited run.sh (+3 -2). 4 replacements.");
    assert_eq!(session.text("run.sh"), "print c\nprint d\nprint b\n");
    let mode = fs::metadata(session.path("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o751);
    assert!(session.is_tidy());
}

#[tokio::test]
async fn a_plan_says_which_file_or_command_it_is_about() {
    let session = Session::with(&[("a", "1\n"), ("b", "1\n")]);
    session.reads("a").await;
    let subject = async |tool, input| session.plan(tool, input).await.unwrap().subject;
    let a = PlanSubject::File("a".to_owned());
    assert_eq!(subject("edit", edit("a", "1", "2")).await, a);
    assert_eq!(subject("write", write("a", "x")).await, a);
    assert_ne!(subject("edit", edit("b", "1", "2")).await, a);
    let command = "ls; rm x";
    let run = PlanSubject::Command(command.to_owned());
    assert_eq!(subject("bash", json!({"command": command})).await, run);
}

#[tokio::test]
async fn a_file_that_was_not_read_is_not_replaced() {
    let session = Session::with(&[("a", "precious\n")]);
    for result in [
        session.plan("write", write("a", "x")).await.map(drop),
        session.run("write", write("a", "x")).await.map(drop),
    ] {
        let why = error(result);
        assert!(why.contains("was not read in this session"), "{why}");
    }
    session.put("binary", "\0");
    assert!(session.text_of("read", json!({"path": "binary"})).await.contains("is a binary file"));
    assert!(session.text_of("write", write("binary", "x")).await.contains("was not read"));
    // An edit names what it replaces; but that is not reading all of it.
    session.run("edit", edit("a", "precious", "dear")).await.unwrap();
    assert!(session.text_of("write", write("a", "x")).await.contains("was not read"));
    session.reads("a").await;
    let outcome = session.run("write", write("a", "x")).await.unwrap();
    assert_eq!(outcome.summary, "Replaced a (+1 -1)");
    session.run("write", write("a", "what it wrote itself it knows")).await.unwrap();
}

#[tokio::test]
async fn a_file_changed_since_it_was_read_is_not_overwritten() {
    let session = Session::with(&[("a", "one\n")]);
    session.reads("a").await;
    session.put("a", "one and more\n");
    for (tool, input) in [("write", write("a", "x")), ("edit", edit("a", "one", "two"))] {
        for result in [
            session.plan(tool, input.clone()).await.map(drop),
            session.run(tool, input).await.map(drop),
        ] {
            let why = error(result);
            assert!(why.contains("was changed since it was read"), "{why}");
        }
    }
    assert_eq!(session.text("a"), "one and more\n");
    session.reads("a").await;
    session.run("edit", edit("a", "one", "two")).await.unwrap();
    assert_eq!(session.text("a"), "two and more\n");
}

#[tokio::test]
async fn a_file_changed_since_consent_was_asked_for_is_not_overwritten() {
    let session = Session::with(&[("unread", "one\n"), ("read", "one\n")]);
    session.reads("read").await;
    let inputs = [
        ("edit", edit("unread", "one", "two")),
        ("edit", edit("read", "one", "two")),
        ("write", write("read", "two\n")),
        ("write", write("new", "two\n")),
    ];
    for (tool, input) in &inputs {
        session.plan(tool, input.clone()).await.unwrap();
    }
    for name in ["unread", "read", "new"] {
        session.put(name, "one and more\n");
        // That the model knows of it does not help: whoever consented does not.
        session.reads(name).await;
    }
    for (tool, input) in inputs {
        let why = error(session.run(tool, input.clone()).await);
        assert!(why.contains("has changed since this change was proposed"), "{input}: {why}");
        // Proposed again, for what is there now.
        session.plan(tool, input.clone()).await.unwrap();
    }
    session.run("edit", edit("unread", "one", "two")).await.unwrap();
    assert_eq!(session.text("unread"), "two and more\n");
}

/// What was recorded for an undo is what is written, byte for byte: a change that comes between is not overwritten, whoever
/// made it.
#[tokio::test]
async fn what_is_recorded_before_a_change_is_what_is_written() {
    let session = Session::with(&[("a", "one\ntwo\n")]);
    session.reads("a").await;
    let change = edit("a", "one", "1");
    session.plan("edit", change.clone()).await.unwrap();
    session.edits("edit", &change).await.unwrap();
    // Of this session itself, so that it may follow the proposal; but not what was recorded.
    let between = edit("a", "two", "2");
    session.run("edit", between).await.unwrap();
    let why = error(session.run("edit", change.clone()).await);
    assert!(why.contains("has changed since"), "{why}");
    assert_eq!(session.text("a"), "one\n2\n");
    session.plan("edit", change.clone()).await.unwrap();
    let recorded = session.edits("edit", &change).await.unwrap();
    session.run("edit", change).await.unwrap();
    let written = session.text("a");
    assert_eq!(**recorded.bodies.last().unwrap(), *written.as_bytes());
    // What cannot be done is said before it is tried.
    let again = edit("a", "one", "1");
    assert!(error(session.edits("edit", &again).await).contains("is not in the file"));
}

#[tokio::test]
async fn edits_of_one_round_may_follow_each_other() {
    let session = Session::with(&[("a", "one\ntwo\n")]);
    let (first, second) = (edit("a", "one", "1"), edit("a", "two", "2"));
    let whole = write("a", "all new\n");
    session.reads("a").await;
    for (tool, input) in [("edit", &first), ("edit", &second), ("write", &whole)] {
        session.plan(tool, input.clone()).await.unwrap();
    }
    session.run("edit", first).await.unwrap();
    session.run("edit", second).await.unwrap();
    assert_eq!(session.text("a"), "1\n2\n");
    // But the whole was proposed in place of what is no longer there.
    assert!(session.text_of("write", whole).await.contains("has changed since"));
}

#[tokio::test]
async fn an_edit_that_does_not_fit_changes_nothing() {
    let session = Session::with(&[("a", "one\ntwo\ntwo\n"), ("b", "bin\0")]);
    let several = json!({"path": "a", "edits": [
        {"old_text": "one", "new_text": "1"},
        {"old_text": "two", "new_text": "2"},
    ]});
    for (input, expected) in [
        (several, "edit 2 of 2: `old_text` is in the file 2 times, at line 2, 3."),
        (edit("a", "three", "3"), "`old_text` is not in the file."),
        (edit("missing", "a", "b"), "`write` creates a file"),
        (edit("b", "bin", "x"), "is a binary file"),
        (json!({"path": "a", "edits": []}), "`edits` is empty"),
        (edit(".", "a", "b"), "is a directory"),
        (edit("a/b", "a", "b"), "is a file, not a directory"),
    ] {
        let why = error(session.plan("edit", input.clone()).await);
        assert!(why.contains(expected), "{why}");
        assert_eq!(error(session.run("edit", input).await), why);
    }
    assert_eq!(session.text("a"), "one\ntwo\ntwo\n");
    let same = session.text_of("write", write("c", "")).await;
    assert_eq!(same, "Created c (0 lines).");
    let same = session.text_of("write", write("c", "")).await;
    assert!(same.contains("already has this content"));
}

#[tokio::test]
async fn several_replacements_are_one_change() {
    let session = Session::with(&[("a", "one\ntwo\ntwo\n  four\n")]);
    let input = json!({"path": "a", "edits": [
        {"old": "one", "new": "1"},
        {"old_string": "two", "new_string": "2", "replace_all": true},
        // Each sees what the ones before it made.
        {"old_text": "1\n2", "new_text": "1 2"},
    ]});
    let plan = session.plan("edit", input.clone()).await.unwrap();
    let preview = std::str::from_utf8(&plan.bodies[1]).unwrap();
    assert_eq!(preview, "1 2\n2\n  four\n", "the preview is the result");
    let outcome = session.run("edit", input).await.unwrap();
    assert_eq!(outcome.text, "Edited a (+2 -3). 4 replacements.");
    assert_eq!(session.text("a"), preview);

    let single = json!({"path": "a", "old_string": "2\n", "new_string": "3\n", "all": true});
    session.run("edit", single).await.unwrap();
    assert_eq!(session.text("a"), "1 3\n3\n  four\n");

    let several = json!({"path": "a", "edits": [
        {"old_text": "1", "new_text": "9"},
        {"old_text": "\tfour", "new_text": "4"},
    ]});
    let why = session.text_of("edit", several).await;
    assert_eq!(
        why,
        "edit 2 of 2: `old_text` is not in the file. With other white space it is at line 3: copy it exactly as it is \
         there. Nothing was changed in a."
    );
    assert_eq!(session.text("a"), "1 3\n3\n  four\n");
}

#[tokio::test]
async fn a_read_only_file_stays_as_it_is() {
    let session = Session::with(&[("a", "one\n")]);
    fs::set_permissions(session.path("a"), fs::Permissions::from_mode(0o444)).unwrap();
    let why = session.text_of("edit", edit("a", "one", "two")).await;
    assert!(why.contains("is read-only"), "{why}");
}

#[tokio::test]
async fn too_much_is_not_written() {
    let session = Session::new();
    let huge = "x".repeat(8 * 1_024 * 1_024 + 1);
    let why = session.text_of("write", write("a", &huge)).await;
    assert!(why.contains("would be larger than 8 MiB"), "{why}");
    session.put("a", &huge);
    let why = session.text_of("edit", edit("a", "xx", "y")).await;
    assert!(why.contains("is larger than 8 MiB"), "{why}");
    let read = session.text_of("read", json!({"path": "a"})).await;
    assert!(read.contains("more bytes in this line"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_concurrent_reader_sees_the_old_or_the_new_file_and_never_a_part() {
    let contents = ["a".repeat(60_000), "b".repeat(40_000)];
    let session = Session::with(&[("file", &contents[0])]);
    let done = Arc::new(AtomicBool::new(false));
    let reading = {
        let (done, path, contents) = (Arc::clone(&done), session.path("file"), contents.clone());
        std::thread::spawn(move || {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) {
                let read = fs::read_to_string(&path).unwrap();
                assert!(contents.contains(&read), "{} bytes", read.len());
                reads += 1;
            }
            reads
        })
    };
    session.reads("file").await;
    for round in 1..40 {
        session.run("write", write("file", &contents[round % 2])).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    assert!(reading.join().unwrap() > 0);
    assert!(session.is_tidy());
}

/// A file is read three times on its way, each time to make sure that it still is what it was, and hashed twice.
#[cfg(debug_assertions)] // others do not count
#[tokio::test]
async fn each_side_of_a_change_is_hashed_at_most_twice() {
    let (before, after) = ("one of these\n".repeat(99), "two of these\n".repeat(99));
    let session = Session::with(&[("a", before.as_str())]);
    let counts = [&before, &after].map(|side| HashCount::watch(side.as_bytes()));
    let change =
        json!({"path": "a", "edits": [{"old_text": "one", "new_text": "two", "all": true}]});
    session.plan("edit", change.clone()).await.unwrap();
    session.edits("edit", &change).await.unwrap();
    session.run("edit", change).await.unwrap();
    assert_eq!(session.text("a"), after);
    assert_eq!(counts.each_ref().map(HashCount::get), [2, 2]);
}

#[tokio::test]
async fn a_file_of_the_same_length_is_not_what_was_recorded() {
    let session = Session::with(&[("a", "one 1\n")]);
    let change = edit("a", "one", "two");
    session.plan("edit", change.clone()).await.unwrap();
    session.edits("edit", &change).await.unwrap();
    session.put("a", "one 2\n");
    let why = error(session.run("edit", change).await);
    assert!(why.contains("has changed since"), "{why}");
    assert_eq!(session.text("a"), "one 2\n");
}

/// A link that leads elsewhere by now leads to a file that nobody was shown, whatever it holds.
#[tokio::test]
async fn a_change_is_made_to_the_file_that_was_shown() {
    for (tool, input) in
        [("edit", edit("link/a", "one", "1")), ("write", write("link/new", "text\n"))]
    {
        for is_recorded in [false, true] {
            let session = Session::with(&[("here/a", "one\n"), ("there/a", "one\n")]);
            let link = session.path("link");
            symlink("here", &link).unwrap();
            session.plan(tool, input.clone()).await.unwrap();
            if is_recorded {
                session.edits(tool, &input).await.unwrap();
            }
            fs::remove_file(&link).unwrap();
            symlink("there", &link).unwrap();
            if !is_recorded {
                let why = error(session.edits(tool, &input).await);
                assert!(why.contains("has changed since"), "{why}");
            }
            let why = error(session.run(tool, input.clone()).await);
            assert!(why.contains("has changed since"), "{why}");
            assert_eq!(session.text("there/a"), "one\n");
            assert!(!session.path("there/new").exists());
        }
    }
}

/// Two chats of a session may ask for the same change at once: what the one was shown does not count for the other.
#[tokio::test]
async fn what_another_call_was_shown_does_not_count() {
    let session = Session::with(&[("a", "one\ntwo\n")]);
    let change = edit("a", "one", "1");
    let calls = [session.workspace.for_call(), session.workspace.for_call()];
    let [shown, later] = &calls;
    let tool = named("edit");
    tool.plan(&change, shown).await.unwrap();
    session.put("a", "one\nother\n");
    tool.plan(&change, later).await.unwrap();
    let why = error(tool.edits(&change, shown).await);
    assert!(why.contains("has changed since"), "{why}");
    let (output, _updates) = mpsc::channel(1);
    let why = error(tool.run(&change, shown, &output).await);
    assert!(why.contains("has changed since"), "{why}");
    tool.edits(&change, later).await.unwrap();
    tool.run(&change, later, &output).await.unwrap();
    assert_eq!(session.text("a"), "1\nother\n");
}

/// The second could be made once more, but that is not what was recorded of it.
#[tokio::test]
async fn two_calls_of_the_same_change_are_not_made_twice_on_one_record() {
    let session = Session::with(&[("a", "use a;\n")]);
    let change = edit("a", "use a;", "use a;\nuse b;");
    let calls = [session.workspace.for_call(), session.workspace.for_call()];
    let tool = named("edit");
    for call in &calls {
        tool.plan(&change, call).await.unwrap();
        tool.edits(&change, call).await.unwrap();
    }
    let (output, _updates) = mpsc::channel(1);
    let [first, second] = &calls;
    tool.run(&change, first, &output).await.unwrap();
    let why = error(tool.run(&change, second, &output).await);
    assert!(why.contains("has changed since"), "{why}");
    assert_eq!(session.text("a"), "use a;\nuse b;\n");
}

/// Each of several recorded changes is compared byte by byte, in whatever order they are made.
#[tokio::test]
async fn each_of_several_recorded_changes_is_made_as_it_was_recorded_or_not_at_all() {
    let session = Session::with(&[("a", "one 1\n"), ("b", "one 1\n"), ("c", "one 1\n")]);
    let changes = ["a", "b", "c"].map(|path| edit(path, "one", "two"));
    for change in &changes {
        session.plan("edit", change.clone()).await.unwrap();
        session.edits("edit", change).await.unwrap();
    }
    session.put("b", "one 2\n");
    let [a, b, c] = changes;
    session.run("edit", a).await.unwrap();
    let why = error(session.run("edit", b).await);
    assert!(why.contains("has changed since"), "{why}");
    session.run("edit", c).await.unwrap();
    let texts = ["a", "b", "c"].map(|path| session.text(path));
    assert_eq!(texts, ["two 1\n", "one 2\n", "two 1\n"]);
}
