//! `greenroom sessions` from outside: listed, searched, renamed, archived, deleted, exported and imported, with a host and without.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::running::{Host, data_directory, greenroom, lines, text};
use crate::terminal::{CTRL_D, Terminal};

fn run(data: &Path, arguments: &[&str]) -> Output {
    greenroom(data).args(arguments).output().unwrap()
}

fn assert_ok(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

fn listed(data: &Path, more: &[&str]) -> Vec<Value> {
    let output = run(data, &[&["sessions", "--json"], more].concat());
    assert_ok(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn uris(sessions: &[Value]) -> Vec<&str> {
    let uris = sessions.iter().map(|session| session["resource"].as_str());
    uris.map(Option::unwrap).collect()
}

fn found(data: &Path, words: &[&str]) -> Vec<Value> {
    let output = run(data, &[&["sessions", "search", "--json"], words].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn snippet(hit: &Value) -> String {
    let pieces = hit["snippet"].as_array().unwrap().iter();
    let show = |piece: &Value| match piece["match"].as_bool() {
        Some(true) => format!("[{}]", piece["text"].as_str().unwrap()),
        _ => piece["text"].as_str().unwrap().to_owned(),
    };
    pieces.map(show).collect()
}

#[test]
fn sessions_are_renamed_archived_and_deleted_through_a_host_and_without_one() {
    let host = Host::start();
    let (one, two) = (host.new_session("hello"), host.new_session("think"));
    let id = one.rsplit('/').next().unwrap().to_owned();
    assert_ok(&host.run(&["sessions", "rename", &id, "Greeting"]));
    assert_eq!(host.state(&one)["title"], "Greeting");
    assert_ok(&host.run(&["sessions", "archive", "greeting"]));
    let table = host.run(&["sessions"]);
    assert!(!text(&table.stdout).contains("Greeting"), "{}", text(&table.stdout));
    assert!(text(&table.stderr).contains("1 archived"), "{}", text(&table.stderr));
    assert!(text(&host.run(&["sessions", "--all"]).stdout).contains("archived"));
    assert_eq!(listed(host.data.path(), &[]).len(), 2, "programs see it");
    assert_ok(&host.run(&["sessions", "archive", "--undo", "Greeting"]));

    let data = host.kill();
    assert_eq!(uris(&listed(data.path(), &[])), [one.as_str(), two.as_str()]);
    assert_ok(&run(data.path(), &["sessions", "rename", &two, "Thought"]));
    let titles = |data: &Path| -> Vec<Value> {
        listed(data, &[]).iter().map(|session| session["title"].clone()).collect()
    };
    assert_eq!(titles(data.path()), ["Thought", "Greeting"]);
    let refused = run(data.path(), &["sessions", "delete", "Thought"]);
    assert_eq!(refused.status.code(), Some(1), "nobody can be asked");
    assert!(text(&refused.stderr).contains("--yes"), "{}", text(&refused.stderr));
    assert_ok(&run(data.path(), &["sessions", "delete", "Thought", "--yes"]));
    assert_eq!(titles(data.path()), ["Greeting"]);

    // A host that starts afterwards knows the same.
    let host = Host::start_with(data, &[]);
    assert_eq!(titles(host.data.path()), ["Greeting"]);
    assert_eq!(host.state("ahp-root://")["activeSessions"], 1);
    assert_ok(&host.run(&["sessions", "delete", &one, "--yes"]));
    let none = host.run(&["sessions"]);
    assert!(text(&none.stdout).contains("No sessions yet"));
}

#[test]
fn deleting_asks_and_only_yes_deletes() {
    let host = Host::start();
    host.new_session("hello");
    for (answer, left) in [("y", 1), ("", 1), ("yes", 0)] {
        let session = uris(&listed(host.data.path(), &[]))[0].to_owned();
        let mut command = host.greenroom();
        command.args(["sessions", "delete", &session]);
        let mut ann = Terminal::start("ann", command);
        ann.sees("Delete 1 session for every client?");
        ann.type_line(answer);
        ann.ends();
        assert_eq!(listed(host.data.path(), &[]).len(), left, "{answer:?}");
    }
}

#[test]
fn names_that_fit_several_sessions_are_refused_with_what_they_could_be() {
    let host = Host::start();
    let sessions = [host.new_session("hello"), host.new_session("hello")];
    for session in &sessions {
        assert_ok(&host.run(&["sessions", "rename", session, "Same"]));
    }
    let refused = host.run(&["sessions", "archive", "same"]);
    assert_eq!(refused.status.code(), Some(2));
    for session in &sessions {
        assert!(text(&refused.stderr).contains(session), "{}", text(&refused.stderr));
    }
    let id = sessions[0].rsplit('/').next().unwrap();
    let end = &id[id.len() - 8..];
    for arguments in [
        &["export", end][..],
        &["inspect", end],
        &["send", "--session", end, "hello"],
        &["export", "--markdown", end],
    ] {
        assert_ok(&host.run(arguments));
    }
    assert_eq!(host.run(&["export", "no such thing"]).status.code(), Some(2));
}

#[test]
fn what_was_said_is_found_until_it_is_deleted() {
    let host = Host::start();
    let session = host.new_session("hello zebra");
    let other = host.new_session("think about 検索 and zebras");
    let hits = found(host.data.path(), &["ZEBRA"]);
    assert_eq!(hits.len(), 2);
    assert_eq!(hits[0]["session"], other.as_str(), "the newest first");
    assert!(snippet(&hits[1]).contains("hello [zebra]"), "{hits:?}");
    assert_eq!(found(host.data.path(), &["zebra", "検索"]).len(), 1);
    assert_eq!(found(host.data.path(), &["zebra", "--limit", "1"]).len(), 1);
    for odd in ["\"", "a\" OR b", "NEAR(x)", "*", "col:val", "'; DROP TABLE turn; --"] {
        found(host.data.path(), &[odd]);
    }
    // While the host goes on.
    let sent = host.run(&["send", "--session", &session, "hello walrus"]);
    assert_ok(&sent);
    assert_eq!(found(host.data.path(), &["walrus"]).len(), 1);
    assert_ok(&host.run(&["sessions", "rename", &session, "Animals"]));
    assert_eq!(found(host.data.path(), &["animals"])[0].get("turnId"), None);
    let shown = host.run(&["sessions", "search", "walrus"]);
    assert!(text(&shown.stdout).contains("hello *walrus*"), "{}", text(&shown.stdout));

    assert_ok(&host.run(&["sessions", "delete", &session, "--yes"]));
    assert_eq!(found(host.data.path(), &["walrus"]), Vec::<Value>::new());
    let data = host.kill();
    assert_eq!(found(data.path(), &["zebra"]).len(), 1, "without a host");
    std::fs::remove_file(data_directory(data.path()).join("search.sqlite")).unwrap();
    assert_eq!(found(data.path(), &["zebra"]).len(), 1, "made anew");
}

/// An export without what is documented to differ after an import.
fn comparable(exported: &[u8]) -> Vec<String> {
    let mut rows = lines(exported);
    let session = rows[0]["data"].as_object_mut().unwrap();
    for field in ["activeClients", "config", "status", "lifecycle"] {
        session.remove(field);
    }
    rows.iter().map(Value::to_string).collect()
}

#[test]
fn an_export_is_imported_and_exported_again_as_it_was() {
    let host = Host::start();
    let session = host.new_session("think");
    for message in ["image", "stream 3", "edit", "ask", "subagent", "fail", "prompt"] {
        host.run(&["send", "--session", &session, message, "--attach", "script.txt"]);
        host.run(&["send", "--session", &session, message]);
    }
    let before = host.run(&["export", &session]);
    assert_ok(&before);
    let file = host.data.path().join("backup.jsonl");
    std::fs::write(&file, &before.stdout).unwrap();
    let file = file.to_str().unwrap();

    // Its ids are taken: it gets others, in every place.
    let copied = host.run(&["sessions", "import", file]);
    assert_ok(&copied);
    let listed_now = listed(host.data.path(), &[]);
    assert_eq!(listed_now.len(), 2);
    let all = uris(&listed_now);
    let copy = all.into_iter().find(|uri| *uri != session).unwrap().to_owned();
    let (mut rows, original) = (lines(&host.run(&["export", &copy]).stdout), lines(&before.stdout));
    assert_eq!(rows.len(), original.len());
    assert_eq!(rows[0]["data"]["createdAt"], original[0]["data"]["createdAt"]);
    for (row, original) in rows.iter_mut().zip(&original).skip(1) {
        if row["type"] == "message" {
            assert_ne!(row["data"]["chat"], original["data"]["chat"]);
            row["data"]["chat"] = original["data"]["chat"].clone();
        }
        assert_eq!(row, original);
    }

    // Its ids are free: it is the same, byte by byte.
    assert_ok(&host.run(&["sessions", "delete", &session, "--yes"]));
    assert_ok(&host.run(&["sessions", "import", file]));
    let after = host.run(&["export", &session]);
    assert_eq!(comparable(&after.stdout), comparable(&before.stdout));

    // It goes on, and is there after a crash.
    assert_ok(&host.run(&["send", "--session", &session, "hello"]));
    let data = host.kill();
    let rows = lines(&run(data.path(), &["export", &session]).stdout).len();
    assert_eq!(rows, original.len() + 4);
    assert_ok(&run(data.path(), &["sessions", "delete", &session, "--yes"]));
    assert_ok(&run(data.path(), &["sessions", "import", file]));
    let after = run(data.path(), &["export", &session]);
    assert_eq!(comparable(&after.stdout), comparable(&before.stdout), "without a host");
}

#[test]
fn a_bad_file_imports_nothing() {
    let host = Host::start();
    let session = host.new_session("hello");
    let exported = text(&host.run(&["export", &session]).stdout);
    assert_ok(&host.run(&["sessions", "delete", &session, "--yes"]));
    let import = |content: &str| host.run_with(&["sessions", "import", "-"], content);
    let rows: Vec<&str> = exported.lines().collect();
    let cut = rows[..rows.len() - 2].join("\n");
    let mut foreign: Value = serde_json::from_str(rows[3]).unwrap();
    foreign["data"]["chat"] = json!("ahp-chat:/elsewhere");
    let elsewhere = [rows[0], rows[1], rows[2], &foreign.to_string()].join("\n");
    let strange = rows[1].replace("\"origin\":{", "\"origin\":7,\"x\":{");
    assert_ne!(strange, rows[1]);
    let unreadable = exported.replace(rows[1], &strange);
    for (content, why) in [
        ("", "no session"),
        ("hello", "line 1"),
        (&cut, "cut off"),
        (&elsewhere, "another message"),
        (&unreadable, "line 1"),
        (&exported.replace("\"state\":\"complete\"", "\"state\":\"odd\""), "line 1"),
    ] {
        let refused = import(content);
        assert_eq!(refused.status.code().map(|code| code > 0), Some(true), "{why}");
        assert!(text(&refused.stderr).contains(why), "{why}: {}", text(&refused.stderr));
        assert_eq!(listed(host.data.path(), &["--all"]), Vec::<Value>::new(), "{why}");
    }
    assert_ok(&import(&exported));
    assert_eq!(listed(host.data.path(), &[]).len(), 1);
}

#[test]
fn an_imported_session_is_allowed_nothing_that_its_file_says() {
    let host = Host::start();
    let session = host.new_session("hello");
    let exported = text(&host.run(&["export", &session]).stdout);
    assert_ok(&host.run(&["sessions", "delete", &session, "--yes"]));
    let mut rows: Vec<Value> =
        exported.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    rows[0]["data"]["config"] = json!({"schema": {"type": "object", "properties": {}}, "values": {"approvals": "full-access"}});
    rows[0]["data"]["activeClients"] = json!([{"clientId": "mallory", "tools": []}]);
    rows[0]["data"]["modifiedAt"] = json!("2999-01-01T00:00:00Z");
    let content: String = rows.iter().map(|row| format!("{row}\n")).collect();
    assert_ok(&host.run_with(&["sessions", "import", "-"], &content));
    let state = host.state(&session);
    assert_eq!(state["config"]["values"].get("approvals"), None);
    assert_eq!(state["activeClients"], json!([]));
    let modified = listed(host.data.path(), &[])[0]["modifiedAt"].clone();
    assert!(modified.as_str().unwrap() < "2999", "{modified}");
}

#[test]
fn a_document_shows_what_was_said_and_done() {
    let host = Host::start();
    let session = host.new_session("tool\n# not a heading");
    assert_ok(&host.run(&["sessions", "rename", &session, "Look [here](x)"]));
    let exported = host.run(&["export", "--markdown", &session]);
    assert_ok(&exported);
    let document = text(&exported.stdout);
    assert!(document.starts_with("# Look \\[here\\](x)\n"), "{document}");
    assert!(document.contains("> tool\n> # not a heading"), "{document}");
    assert!(document.contains("**List files** (not run)"), "{document}");
    assert!(document.contains("```json\n{\"directory\""), "{document}");
}

#[test]
fn sessions_that_nobody_used_are_not_listed_and_go_with_their_client() {
    let host = Host::start();
    let open = |arguments: &[&str]| {
        let mut command = host.greenroom();
        command.arg("chat").args(arguments);
        Terminal::start("ann", command)
    };
    let all = || listed(host.data.path(), &["--all"]).len();
    let mut ann = open(&[]);
    ann.sees("›");
    assert_eq!(listed(host.data.path(), &[]).len(), 0);
    assert_eq!(all(), 1, "it is there while its client is");
    ann.press(CTRL_D);
    ann.ends();
    assert_eq!(all(), 0);

    // One that was left with a draft stays, and is the newest.
    let mut ann = open(&[]);
    ann.sees("›");
    ann.press("half a thou");
    ann.sees("half a thou");
    ann.signal(rustix::process::Signal::TERM);
    ann.ends();
    assert_eq!(listed(host.data.path(), &[]).len(), 1);
    let mut ann = open(&["--continue"]);
    ann.sees("half a thou");
    ann.signal(rustix::process::Signal::TERM);
    ann.ends();
    assert_eq!(all(), 1);
}

#[test]
fn the_journal_gives_disk_space_back_when_sessions_are_gone() {
    let data = tempfile::tempdir().unwrap();
    let directory = data_directory(data.path());
    std::fs::create_dir(&directory).unwrap();
    let settings = "[limits]\nretention_disposed_s = 0\nsweep_ms = 100\n";
    std::fs::write(directory.join("greenroom.toml"), settings).unwrap();
    let host = Host::start_with(data, &[]);
    let bytes = || std::fs::metadata(directory.join("journal.sqlite")).unwrap().len();
    for _ in 0..2 {
        let session = host.new_session("stream 20000");
        assert!(session.starts_with("scripted:/"));
    }
    let full = bytes();
    assert!(full > 6 << 20, "{full}");
    for session in uris(&listed(host.data.path(), &[])) {
        assert_ok(&host.run(&["sessions", "delete", "--yes", session]));
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while bytes() > 4 << 20 {
        assert!(std::time::Instant::now() < deadline, "{} of {full} are left", bytes());
        // The host serves meanwhile.
        assert_ok(&host.run(&["sessions"]));
    }
    // Stopped, it can be made as small as it gets at once.
    let data = host.kill();
    let compacted = run(data.path(), &["sessions", "compact"]);
    assert_ok(&compacted);
    assert!(text(&compacted.stdout).contains("The journal has"), "{}", text(&compacted.stdout));
}

#[test]
fn a_journal_that_a_host_serves_is_not_compacted() {
    let host = Host::start();
    let refused = host.run(&["sessions", "compact"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("already serves"), "{}", text(&refused.stderr));
}

#[test]
fn a_chat_is_continued_where_it_was_left() {
    let host = Host::start();
    let (here, there) = (host.data.path().join("here"), host.data.path().join("there"));
    std::fs::create_dir(&here).unwrap();
    std::fs::create_dir(&there).unwrap();
    let chat = |directory: &Path, arguments: &[&str]| {
        let mut command = host.greenroom();
        command.current_dir(directory).args(["chat", "--plain"]).args(arguments);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"hello\n").unwrap();
        child.wait_with_output().unwrap()
    };
    let empty = chat(&here, &["--continue"]);
    assert_eq!(empty.status.code(), Some(1));
    assert!(text(&empty.stderr).contains("`greenroom chat` starts one"), "{}", text(&empty.stderr));
    assert_ok(&chat(&here, &[]));
    assert_ok(&chat(&there, &[]));
    assert_ok(&chat(&here, &["--continue"]));
    let sessions = listed(host.data.path(), &[]);
    assert_eq!(sessions.len(), 2);
    let newest = sessions[0]["workingDirectories"][0].as_str().unwrap();
    assert!(newest.ends_with("/here"), "{newest}");
    // Put away, it is not the newest any more.
    assert_ok(&host.run(&["sessions", "archive", sessions[0]["resource"].as_str().unwrap()]));
    let none = chat(&here, &["--continue"]);
    assert_eq!(none.status.code(), Some(1));
    let why = text(&none.stderr);
    let other = sessions[1]["resource"].as_str().unwrap();
    assert!(why.contains(&format!("greenroom chat --session {other}")), "{why}");
}
