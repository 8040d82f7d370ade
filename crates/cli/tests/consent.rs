//! What is consented to is what is read: control characters are shown, in a real terminal and through a pipe, and none of
//! them reaches a terminal by any verb.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod running;
mod terminal;

use std::process::Output;

use serde_json::{Value, json};
use testkit::{Answer, Call, ModelServer};

use running::{Host, lines, text};
use terminal::Terminal;

/// A terminal that obeys it shows `echo hi` and nothing else.
const COMMAND: &str = "echo hi \u{1b}] x; touch PWNED";
const SHOWN: &str = "echo hi \\x1b] x; touch PWNED";
/// Clears the screen, reorders, and is a command of one byte in some terminals.
const TITLE: &str = "T\u{1b}[2Jt \u{202e}exe\u{9b}31m";

fn scripted(scenes: &Value) -> Host {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": scenes});
    std::fs::write(data.path().join("script.json"), script.to_string()).unwrap();
    Host::start_with(data, &["--script", "script.json"])
}

/// An agent whose call, question and words all try to control the terminal.
fn hostile_agent() -> Host {
    let tool = json!({
        "name": "bash", "display": "Run\u{1b}[8m", "title": "Run\u{9b}8m it", "confirm": "ask",
        "input": {"command": COMMAND},
        "options": [
            {"id": "a", "label": "Yes\u{1b}]0;x\u{7}", "kind": "approve"},
            {"id": "d", "label": "No\u{202e}", "kind": "deny"},
        ],
        "result": {"success": false, "message": "Ran\u{1b}c", "error": {"message": "bad\u{1b}[2J"}},
    });
    let long = json!({
        "name": "bash", "title": "Run all", "confirm": "ask",
        "input": {"command": "true\n".repeat(40) + "touch PWNED"},
    });
    let ask = json!({"message": "Who\u{1b}[2J?", "questions": [
        {"id": "q", "kind": "single-select", "message": "Which\u{9b}2J?", "options": [
            {"id": "o", "label": "One\u{1b}[8m", "description": "it\u{202e}"},
        ]},
    ]});
    scripted(&json!([
        {"when": "^tool", "steps": [{"title": TITLE}, {"tool": tool}, {"say": ["said\u{1b}", "]0;x\u{7}."]}]},
        {"when": "^long", "steps": [{"tool": long}, {"say": ["done"]}]},
        {"when": "^ask", "steps": [{"ask": ask}, {"say": ["done"]}]},
    ]))
}

/// Sequences that only somebody else can have written: our own are none of these.
fn assert_obeyed_nothing(terminal: &Terminal) {
    for sequence in [
        "\u{1b}]",
        "\u{1b}[2J",
        "\u{1b}[8m",
        "\u{1b}c",
        "\u{9b}",
        "\u{202e}",
        "\u{7}",
    ] {
        assert!(
            !terminal.wrote_besides_titles(sequence.as_bytes()),
            "{sequence:?} was written"
        );
    }
}

fn chat(host: &Host) -> Terminal {
    let mut command = host.greenroom();
    command.arg("chat");
    let terminal = Terminal::start("ann", command);
    terminal.sees("\n›");
    terminal
}

#[test]
fn a_question_in_a_terminal_shows_every_character() {
    let host = hostile_agent();
    let mut ann = chat(&host);
    ann.type_line("tool");
    let screen = ann.sees("3 Deny and say why");
    assert!(screen.contains(SHOWN), "{screen}");
    assert!(screen.contains("Run\\u{9b}8m it"), "{screen}");
    assert!(screen.contains("1 Approve: Yes\\x1b]0;x\\x07"), "{screen}");
    assert!(screen.contains("2 Deny: No\\u{202e}"), "{screen}");
    ann.decide('2');
    ann.sees("said\\x1b]0;x\\x07.");
    ann.type_line("ask");
    let screen = ann.sees("One\\x1b[8m: it\\u{202e}");
    assert!(screen.contains("Which\\u{9b}2J?"), "{screen}");
    assert_obeyed_nothing(&ann);
}

#[test]
fn a_question_that_does_not_fit_can_be_read_whole_above() {
    let host = hostile_agent();
    let mut ann = chat(&host);
    ann.type_line("long");
    let screen = ann.sees("more lines");
    assert!(screen.contains("1 Approve"), "{screen}");
    assert!(ann.wrote(b"    touch PWNED"), "{screen}");
}

#[test]
fn a_question_through_a_pipe_shows_every_character() {
    let host = hostile_agent();
    let answered = host.run_with(&["chat", "--plain"], "tool\n2\nlong\n1\n");
    let (out, err) = (text(&answered.stdout), text(&answered.stderr));
    assert!(err.contains(SHOWN), "{err}");
    assert!(err.contains("\n    touch PWNED\n"), "{err}");
    assert_eq!(out, "said\\x1b]0;x\\x07.\ndone\n");
    assert!(!has_unsafe(&out) && !has_unsafe(&err), "{out:?}{err:?}");
}

fn has_unsafe(text: &str) -> bool {
    let is_unsafe = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    text.contains(is_unsafe)
}

#[test]
fn no_verb_prints_a_control_character_and_json_still_says_it() {
    let host = hostile_agent();
    let answered = host.run_with(&["chat", "--plain"], "tool\n1\n");
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    let listed = host.run(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(sessions[0]["title"], TITLE);
    let session = sessions[0]["resource"].as_str().unwrap().to_owned();
    let exported = host.run(&["export", &session]);
    let rows = lines(&exported.stdout);
    assert_eq!(rows[0]["data"]["title"], TITLE);
    let parts = rows.iter().filter(|row| row["type"] == "part");
    let said = parts.map(|row| &row["data"]["data"]["content"]);
    assert!(
        said.into_iter()
            .any(|content| content == "said\u{1b}]0;x\u{7}.")
    );
    let sent = host.run(&["send", "--json", "--session", &session, "what\u{202e}"]);
    let inspected = host.run(&["inspect", &session]);
    let inspected_json = host.run(&["inspect", "--json", &session]);
    let table = host.run(&["sessions"]);
    assert!(text(&table.stdout).contains("T\\x1b[2Jt \\u{202e}exe\\u{9b}31m"));
    for Output { stdout, stderr, .. } in [listed, exported, sent, inspected, inspected_json, table]
    {
        let printed = text(&stdout) + &text(&stderr);
        assert!(!printed.is_empty() && !has_unsafe(&printed), "{printed:?}");
    }
}

/// A model that makes one call, and a chat in a terminal in which it does so.
fn chat_with_model(server: &ModelServer, call: Call) -> (Host, Terminal) {
    server.answers([Answer::calls([call]), Answer::streams(["So be it."])]);
    let model = format!("{}#echo", server.url());
    let host = Host::start_with(tempfile::tempdir().unwrap(), &["--model", &model]);
    let mut ann = chat(&host);
    ann.type_line("go");
    (host, ann)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_with_a_control_character_is_refused_and_nothing_runs() {
    let server = ModelServer::start().await;
    let call = Call::new("c", "bash", &json!({"command": COMMAND}));
    let (host, ann) = chat_with_model(&server, call);
    ann.sees("So be it.");
    assert!(!host.data.path().join("PWNED").exists());
    assert_obeyed_nothing(&ann);
    let request = server.requests().last().unwrap().json();
    let messages = request["messages"].as_array().unwrap();
    let answer = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(
        answer.contains("`command` has the control character U+001B"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_a_tool_does_not_know_are_shown_and_ignored() {
    let server = ModelServer::start().await;
    let input = json!({"command": "touch made", "description": "says\u{1b}]0;x\u{7} hello"});
    let (host, mut ann) = chat_with_model(&server, Call::new("c", "bash", &input));
    let screen = ann.sees("1 Approve");
    assert!(screen.contains("command: touch made"), "{screen}");
    assert!(
        screen.contains("description: says\\x1b]0;x\\x07 hello"),
        "{screen}"
    );
    ann.decide('1');
    ann.sees("So be it.");
    assert!(host.data.path().join("made").exists());
    assert_obeyed_nothing(&ann);
}
