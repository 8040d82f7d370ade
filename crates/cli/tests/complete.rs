//! Proposals in `greenroom chat`: what the host proposes for what is typed, and what becomes of it.

use std::path::Path;

use serde_json::{Value, json};

use crate::running::{Host, text};
use crate::terminal::{DOWN, ENTER, ESCAPE, TAB, chat};

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn host() -> Host {
    let host = Host::start();
    let command = "---\ndescription: Reviews a file\nargument-hint: FILE\n---\nReview $1.";
    write(host.data.path(), ".greenroom/commands/review.md", command);
    write(host.data.path(), "notes/alpha.md", "# Alpha\n");
    host
}

/// The first message of the newest session.
fn first_message(host: &Host) -> Value {
    let listed = host.run(&["sessions", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let session = listed[0]["resource"].as_str().unwrap().to_owned();
    let chat = host.state(&session)["defaultChat"].as_str().unwrap().to_owned();
    let state = host.state(&chat);
    let turn = match &state["turns"][0] {
        Value::Null => &state["activeTurn"],
        turn => turn,
    };
    turn["message"].clone()
}

#[test]
fn accepted_completions_are_sent_with_the_message() {
    let host = host();
    let mut ann = chat(&host);
    ann.press("/rev");
    ann.press(TAB);
    ann.wait_until(|screen| screen.ends_with("› /review"));
    ann.press("@alph");
    ann.sees("❯ @file:notes/alpha.md");
    ann.press(TAB);
    ann.wait_until(|screen| screen.ends_with("› /review @file:notes/alpha.md"));
    ann.press("now");
    ann.press(ENTER);
    ann.sees("I am the scripted agent");
    let message = first_message(&host);
    assert_eq!(message["text"], "/review @file:notes/alpha.md now");
    let attachments = message["attachments"].as_array().unwrap();
    assert_eq!(
        attachments[0],
        json!({
            "type": "simple",
            "label": "/review",
            "displayKind": "command",
            "_meta": {
                "compositor/part": {"type": "command", "id": "/review"},
                "command": "review",
                "description": "Reviews a file",
                "argumentHint": "FILE",
            },
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 7}},
        })
    );
    assert_eq!(attachments[1]["displayKind"], "document");
    let range = json!({"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 28}});
    assert_eq!(attachments[1]["range"], range);
}

#[test]
fn proposals_are_gone_through_and_given_up() {
    let host = host();
    let mut ann = chat(&host);
    ann.press("see @");
    // What no client has sent, such as a selection, is not offered.
    let screen = ann.sees("❯ @file:");
    assert!(!screen.contains("@selection"), "{screen}");
    ann.press(DOWN);
    ann.wait_until(|screen| screen.contains("❯") && !screen.contains("see @\n❯"));
    ann.press(ESCAPE);
    ann.wait_until(|screen| screen.ends_with("› see @"));
    ann.press("zzyzx");
    ann.press(TAB);
    ann.sees("No matches");
    ann.press(" and");
    ann.press(TAB);
    ann.sees("› see @zzyzx and");
}

#[test]
fn help_shows_what_the_host_does_too() {
    let host = host();
    let mut ann = chat(&host);
    ann.type_line("/help");
    ann.sees("A message that begins with / is typed with \\ before it");
    for words in ["/quit", "/compact", "/rewind", "/review", "Reviews a file"] {
        ann.prints(words);
    }
    let plain = host.run_with(&["chat", "--plain"], "/help\n");
    let stderr = text(&plain.stderr);
    assert!(stderr.contains("/quit") && stderr.contains("/compact"), "{stderr}");
}
