//! The input line in a real terminal: what waits and can be taken back, what Escape does, what a line keeps.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::running::{Host, data_directory, greenroom};
use crate::terminal::{
    BACKSPACE, CTRL_D, CTRL_S, DOWN, ENTER, ESCAPE, SIZES, ScreenSize, Terminal, UP,
};

const ALT_UP: &str = "\x1b[1;3A";
const CTRL_R: &str = "\x12";
const CTRL_U: &str = "\x15";
const UNDO: &str = "\x1f";

fn start(command: Command, size: ScreenSize) -> Terminal {
    let terminal = Terminal::start_sized("ann", command, size);
    terminal.sees("\n›");
    terminal
}

fn chat(host: &Host, size: ScreenSize) -> Terminal {
    let mut command = host.greenroom();
    command.arg("chat");
    start(command, size)
}

fn newest_chat(host: &Host) -> String {
    let listed = host.run(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let session = sessions[0]["resource"].as_str().unwrap().to_owned();
    let state = host.state(&session);
    state["defaultChat"].as_str().unwrap().to_owned()
}

/// The texts of the messages in the newest chat.
fn sent_texts(host: &Host) -> Vec<String> {
    let state = host.state(&newest_chat(host));
    let turns = state["turns"].as_array().unwrap().iter();
    turns
        .chain(Some(&state["activeTurn"]).filter(|turn| !turn.is_null()))
        .map(|turn| turn["message"]["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_message_that_waits_is_chosen_edited_and_removed() {
    let host = Host::start();
    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.type_line("hang");
        ann.sees("Esc interrupts");
        ann.type_line("one");
        ann.sees("queued: one");
        ann.press(UP);
        ann.wait_until(|screen| screen.ends_with("\n› one") && !screen.contains("queued:"));
        ann.press(ENTER);
        ann.type_line("two");
        ann.type_line("three");
        ann.sees("queued: three");
        ann.press(UP);
        ann.sees("❯ queued: three");
        ann.press(UP);
        ann.sees("❯ queued: two");
        ann.press(UP);
        ann.sees("❯ queued: one");
        ann.press("\x1b[3~");
        ann.wait_until(|screen| {
            screen.contains("❯ queued: two") && !screen.contains("queued: one")
        });
        ann.press(ENTER);
        ann.sees("\n› two");
        ann.press(" and a half");
        ann.press(ENTER);
        ann.sees("queued: three\nqueued: two and a half");
        // With something typed the list is still one key away.
        ann.press("draft");
        ann.press(ALT_UP);
        ann.sees("❯ queued: two and a half");
        ann.press(ESCAPE);
        ann.wait_until(|screen| !screen.contains('❯') && screen.ends_with("\n› draft"));
        ann.press(CTRL_U);
        ann.press(ESCAPE);
        ann.sees("paused: three\npaused: two and a half");
        ann.sees("Queue paused: Enter on an empty line");
        ann.press(DOWN); // any key: the next Escape is a first one
        ann.press(ENTER);
        ann.wait_until(|screen| !screen.contains("paused:"));
        ann.wait_until(|screen| !screen.contains("Esc interrupts"));
        assert_eq!(sent_texts(&host), ["hang", "three", "two and a half"]);
    }
}

#[test]
fn steering_that_was_never_delivered_heads_the_paused_queue() {
    let host = Host::start();
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("hang");
    ann.sees("Esc interrupts");
    ann.type_line("later");
    ann.press("left a bit");
    ann.press(CTRL_S);
    ann.sees("steering: left a bit\nqueued: later");
    ann.press(ESCAPE);
    ann.sees("paused: left a bit\npaused: later");
    ann.press(CTRL_U);
    ann.press(UP);
    ann.sees("❯ paused: later");
    ann.press(UP);
    ann.press(ENTER);
    ann.sees("\n› left a bit");
}

#[test]
fn escape_twice_edits_the_last_message_and_asks_before_it_replaces_it() {
    for size in SIZES {
        let host = Host::start();
        let mut ann = chat(&host, size);
        ann.type_line("hello");
        ann.sees("for more.");
        ann.wait_until(|screen| !screen.contains("Esc interrupts"));
        ann.type_line("hang");
        ann.sees("Esc interrupts");
        // Two presses in one go, as a terminal that reports Escape by a code sends them.
        ann.press("\x1b[27u\x1b[27u");
        ann.wait_until(|screen| screen.ends_with("edit › hang"));
        ann.press(ESCAPE);
        ann.wait_until(|screen| screen.ends_with("\n›"));
        ann.press("\x1b[27u\x1b[27u");
        ann.sees("edit › hang");
        for _ in 0..4 {
            ann.press(BACKSPACE);
        }
        ann.press("think");
        ann.press(ENTER);
        ann.sees("1 Replace\n  2 Go on editing\n  3 Send it as a new message");
        assert_eq!(sent_texts(&host), ["hello", "hang"]);
        ann.decide('2');
        let is_closed = |screen: &str| !screen.contains("2 Go on editing");
        ann.wait_until(|screen| is_closed(screen) && screen.ends_with("edit › think"));
        ann.press(ENTER);
        ann.sees("2 Go on editing");
        // What is typed edits the text on, and decides nothing.
        ann.press("1!");
        ann.wait_until(|screen| is_closed(screen) && screen.ends_with("edit › think1!"));
        ann.press(BACKSPACE);
        ann.press(BACKSPACE);
        ann.press(ENTER);
        ann.sees("2 Go on editing");
        // Both keys at once, as a script or a paste sends them, replace nothing.
        ann.press("1\r");
        ann.sees("Press Enter by itself");
        assert_eq!(sent_texts(&host), ["hello", "hang"]);
        ann.press(ENTER);
        ann.sees("I have thought about it.");
        ann.wait_until(|screen| !screen.contains("Esc interrupts"));
        assert_eq!(sent_texts(&host), ["hello", "think"]);
    }
}

#[test]
fn nothing_is_replaced_by_what_cannot_be_sent() {
    let host = Host::start();
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("hello");
    ann.sees("for more.");
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    ann.press("half a thought");
    ann.press("\x1b[27u\x1b[27u");
    ann.wait_until(|screen| screen.ends_with("edit › hello"));
    for _ in 0..5 {
        ann.press(BACKSPACE);
    }
    // A command that nobody knows.
    ann.type_line("/nonsense now");
    ann.sees("2 Go on editing");
    ann.decide('1');
    ann.sees("there is no command /nonsense");
    ann.wait_until(|screen| screen.ends_with("edit › /nonsense now"));
    assert_eq!(sent_texts(&host), ["hello"]);
    // A command of the terminal is no message.
    ann.press(CTRL_U);
    ann.type_line("/rename Renamed");
    ann.sees("Renamed to Renamed");
    ann.wait_until(|screen| screen.ends_with("› half a thought"));
    assert_eq!(sent_texts(&host), ["hello"]);
}

#[test]
fn a_question_of_the_agent_comes_before_that_about_a_message() {
    let host = Host::start();
    let mut ann = chat(&host, ScreenSize::new(80, 30));
    ann.type_line("hello");
    ann.sees("for more.");
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    ann.press("\x1b[27u\x1b[27u");
    ann.wait_until(|screen| screen.ends_with("edit › hello"));
    ann.type_line("!");
    ann.sees("2 Go on editing");
    let mut command = host.greenroom();
    command.args(["chat", "--session", &newest_chat(&host)]);
    let mut bob = Terminal::start("bob", command);
    bob.sees("\n›");
    bob.type_line("tool");
    let screen = ann.sees("1 Approve");
    assert!(!screen.contains("2 Go on editing"), "{screen}");
    assert!(screen.ends_with("edit › hello!"), "{screen}");
    ann.press(ENTER);
    let screen = ann.sees("Answer the question above first");
    assert!(!screen.contains("2 Go on editing"), "{screen}");
    bob.decide('2');
    ann.wait_until(|screen| !screen.contains("1 Approve") && !screen.contains("Esc interrupts"));
    // The message is not the last one any more.
    ann.press(ENTER);
    ann.sees("2 Go on editing");
    ann.decide('1');
    ann.sees("nothing is replaced");
    assert_eq!(sent_texts(&host), ["hello", "tool"]);
    ann.wait_until(|screen| screen.ends_with("edit › hello!"));
}

#[test]
fn escape_closes_what_is_open_before_it_interrupts() {
    let host = Host::start();
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("tool");
    ann.sees("1 Approve");
    ann.choose('3');
    ann.press(ESCAPE);
    ann.wait_until(|screen| !screen.contains('❯'));
    ann.decide('3');
    ann.sees("why ›");
    ann.press(ESCAPE);
    ann.sees("3 Deny and say why");
    ann.press("x"); // any key: the next Escape is a first one
    ann.press(BACKSPACE);
    ann.press(ESCAPE);
    ann.sees("⊘ cancelled");
}

#[test]
fn new_lines_are_typed_in_every_way_there_is() {
    let host = Host::start();
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    // Asked for, and turned on only because the terminal answers.
    ann.prints("\x1b[?u");
    assert!(!ann.wrote(b"\x1b[>1u"));
    ann.press("\x1b[?0u\x1b[>4;0m");
    ann.prints("\x1b[>1u");
    ann.press("a\x1b[13;2ub\x1b\rc\\\rd\ne");
    ann.sees("› a\n  b\n  c\n  d\n  e");
    ann.press(ENTER);
    ann.sees("Say help");
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    assert_eq!(sent_texts(&host), ["a\nb\nc\nd\ne"]);
    ann.press(CTRL_D);
    assert_eq!(ann.ends(), Some(0));
    assert!(ann.wrote(b"\x1b[<u") && !ann.wrote(b"\x1b[>4;1m"));
}

#[test]
fn history_is_kept_over_runs_and_searched() {
    let host = Host::start();
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    let mut bob = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("hello from ann");
    bob.type_line("hello from bob");
    ann.sees("for more.");
    bob.sees("for more.");
    ann.press(CTRL_D);
    bob.press(CTRL_D);
    assert_eq!((ann.ends(), bob.ends()), (Some(0), Some(0)));
    let file = data_directory(host.data.path()).join("chat-history.jsonl");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.press("half");
        ann.press(CTRL_R);
        ann.sees("search:");
        ann.press("from");
        ann.sees("› hello from ");
        ann.press(" ann");
        ann.sees("› hello from ann");
        ann.press(ESCAPE);
        ann.wait_until(|screen| screen.ends_with("\n› half"));
        ann.press(CTRL_R);
        ann.press("from b");
        ann.sees("› hello from bob");
        ann.press(ENTER);
        ann.wait_until(|screen| {
            screen.ends_with("\n› hello from bob") && !screen.contains("search:")
        });
        ann.press(UNDO);
        ann.press(CTRL_U);
        ann.press(UP);
        ann.press(UP);
        ann.sees("› hello from");
    }
}

#[test]
fn a_long_paste_is_a_chip_until_it_is_sent() {
    let host = Host::start();
    let page: String = (1..=120).map(|n| format!("line {n}\n")).collect();
    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.press("see ");
        ann.paste(&page);
        ann.press("!");
        ann.sees("› see [pasted 120 lines]!");
        ann.press(BACKSPACE);
        ann.press(BACKSPACE);
        ann.wait_until(|screen| screen.ends_with("› see"));
        ann.press(UNDO);
        ann.sees("› see [pasted 120 lines]");
        ann.press(ENTER);
        ann.prints("I am the scripted agent");
        assert_eq!(sent_texts(&host), [format!("see {page}")]);
    }
}

#[test]
fn a_picture_is_attached_by_its_path() {
    let host = Host::start();
    let path = host.data.path().join("a shot.png");
    std::fs::write(&path, b"\x89PNG\r\n\x1a\n").unwrap();
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.press("what is ");
    ann.paste(&format!("'{}'", path.display()));
    ann.sees("› what is [image a shot.png]");
    ann.press("?");
    ann.press(ENTER);
    ann.prints("I am the scripted agent");
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    let state = host.state(&newest_chat(&host));
    let message = &state["turns"][0]["message"];
    let attachment = &message["attachments"][0];
    assert_eq!(attachment["label"], "a shot.png", "{message}");
    assert_eq!(attachment["contentType"], "image/png", "{message}");
}

#[test]
fn a_message_is_written_in_the_users_own_editor() {
    let host = Host::start();
    let editor = host.data.path().join("editor.sh");
    std::fs::write(&editor, "sed -i s/one/[1]/ \"$1\"\n").unwrap();
    let mut command = greenroom(host.data.path());
    command.env("EDITOR", format!("sh {}", editor.display())).arg("chat");
    let mut ann = start(command, ScreenSize::new(80, 24));
    ann.press("one");
    ann.press("\x18\x05");
    ann.sees("\n› [1]");
    ann.press(UNDO);
    ann.wait_until(|screen| screen.ends_with("\n› one"));
}

#[test]
fn what_is_typed_while_the_agent_works_reaches_it() {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": [
        {"when": "^work", "steps": [
            {"tool": {"name": "wait", "display": "Wait", "confirm": "ask"}},
            {"steer": true},
            {"say": ["steered by {{steering}}"]},
        ]},
        {"steps": [{"say": ["noted {{text}}"]}]},
    ]});
    std::fs::write(data.path().join("script.json"), script.to_string()).unwrap();
    let host = Host::start_with(data, &["--script", "script.json"]);
    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.type_line("work");
        ann.sees("1 Approve");
        ann.type_line("next");
        ann.sees("queued: next");
        ann.press("left a bit");
        ann.press(CTRL_S);
        ann.sees("steering: left a bit\nqueued: next");
        ann.decide('1');
        ann.prints("steered by left a bit");
        ann.prints("noted next");
    }
}
