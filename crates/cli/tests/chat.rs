//! `greenroom chat` in a real terminal, against a real host.

use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::running::{Host, data_directory, greenroom, lines};
use crate::terminal::{CTRL_C, CTRL_D, CTRL_S, ENTER, Terminal, UP};

fn open(data: &Path, name: &'static str, arguments: &[&str]) -> Terminal {
    let mut command: Command = greenroom(data);
    command.args(arguments);
    let terminal = Terminal::start(name, command);
    terminal.sees("\n›");
    terminal
}

fn chat(host: &Host, name: &'static str, arguments: &[&str]) -> Terminal {
    let arguments: Vec<&str> = [&["chat"], arguments].concat();
    open(host.data.path(), name, &arguments)
}

/// A second person in the same session.
fn join(host: &Host, name: &'static str, first: &Terminal) -> Terminal {
    chat(host, name, &["--session", &session_of(first)])
}

/// The header of the screen names it.
fn session_of(terminal: &Terminal) -> String {
    let screen = terminal.screen();
    let start = screen.find("scripted:/").expect("the session is named");
    let uri = screen[start..].split_whitespace().next();
    uri.unwrap().to_owned()
}

/// The chat's text, without the lines above and below it.
fn conversation(screen: &str) -> String {
    let start = screen.find("› ").expect("there is a message");
    let end = screen.rfind("\n›").expect("the prompt is there");
    screen[start..end].trim_end().to_owned()
}

#[test]
fn a_message_is_answered_and_the_terminal_is_left_as_it_was() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("hello");
    ann.sees("Say help for more.");
    ann.type_line("think");
    ann.sees("The answer is 42.");
    let screen = ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    let conversation = conversation(&screen);
    let (before, after) = conversation.split_once("∴ thought").unwrap();
    assert_eq!(
        before,
        "› hello\n\n\
         Hello! This session is alive: every client that watches it sees the\n\
         same words. Say help for more.\n\n\
         › think\n\n"
    );
    assert!(
        after.contains(" (Ctrl-T)\n\nI have thought about it. The answer is 42.\n\n7 in · 12 out"),
        "{screen}"
    );
    assert!(ann.wrote("\x1b[2m∴ thought".as_bytes()), "reasoning is dim");
    ann.press(CTRL_D);
    assert_eq!(ann.ends(), Some(0));
    assert!(ann.wrote(b"\x1b[?2004h") && ann.wrote(b"\x1b[?2004l"));
}

#[test]
fn an_interrupt_cancels_and_two_leave() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("hang");
    ann.sees("working · Esc interrupts");
    ann.press(CTRL_C);
    ann.sees("⊘ cancelled");
    ann.type_line("hello");
    ann.sees("Say help for more.");
    ann.type_line("hang");
    ann.sees("working");
    ann.press(CTRL_C);
    ann.sees("Ctrl-C again leaves");
    ann.press(CTRL_C);
    assert_eq!(ann.ends(), Some(0));
}

#[test]
fn two_terminals_stay_in_step() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("hello");
    ann.sees("Say help for more.");
    let mut bob = join(&host, "bob", &ann);
    bob.sees("Say help for more.");
    bob.type_line("hello again");
    ann.wait_until(|screen| screen.matches("for more.").count() == 2);
    ann.type_line("stream 3");
    let last = "\nabcdefghijk2 abcdefghijklmnopqrstuvwxyz abcdefghijk\n";
    let done = |screen: &str| screen.contains(last) && !screen.contains("working");
    let seen = bob.wait_until(done);
    assert_eq!(conversation(&ann.wait_until(done)), conversation(&seen));
}

#[test]
fn a_call_is_confirmed_in_place() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("tool");
    ann.sees("? List files\n  directory: .\n\n  1 Approve");
    ann.decide('1');
    let screen = ann.sees("\"approved\":true");
    assert!(screen.contains("✓ Listed 2 files\n  README.md"), "{screen}");
    assert!(!screen.contains("1 Approve"), "{screen}");
    // What stood above the question is still there.
    assert!(screen.contains("It only pretends: no file is read."), "{screen}");

    ann.type_line("options");
    ann.sees("1 Approve: Allow once");
    ann.decide('5');
    ann.sees("\"id\":\"session\"");
}

#[test]
fn a_question_answered_by_another_client_disappears() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    let mut bob = join(&host, "bob", &ann);
    ann.type_line("tool");
    ann.sees("1 Approve");
    bob.sees("1 Approve");
    bob.decide('2');
    ann.sees("⊘ List files: denied");
    ann.wait_until(|screen| !screen.contains("1 Approve") && screen.ends_with('›'));
}

#[test]
fn messages_wait_in_the_queue_while_the_agent_works() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("hang");
    ann.sees("working");
    ann.type_line("first");
    ann.type_line("hello");
    ann.sees("queued: first\nqueued: hello");
    ann.press(UP);
    ann.sees("❯ queued: hello");
    ann.press(ENTER);
    ann.wait_until(|screen| screen.ends_with("› hello") && !screen.contains("queued: hello"));
    ann.press(ENTER);
    ann.sees("queued: first\nqueued: hello");
    ann.press(CTRL_C);
    ann.sees("⊘ cancelled");
    ann.press("\x15"); // any other key: the next Ctrl-C is a first one again
    ann.sees("paused: first\npaused: hello");
    ann.sees("Queue paused: Enter on an empty line sends the next, Up edits");
    ann.press(ENTER);
    let screen = ann.sees("Say help for more.");
    let first = screen.find("› first").expect("the first message");
    assert!(first < screen.find("› hello").expect("the second message"), "{screen}");
}

#[test]
fn the_agent_is_steered_while_it_works() {
    let host = Host::scripted(&json!([{"steps": [
        {"tool": {"name": "wait", "display": "Wait", "confirm": "ask"}},
        {"steer": true},
        {"say": ["steered by {{steering}}"]},
    ]}]));
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("go");
    ann.sees("1 Approve");
    ann.press("left a bit");
    ann.press(CTRL_S);
    ann.sees("steering: left a bit");
    ann.decide('1');
    ann.sees("steered by left a bit");
}

#[test]
fn a_draft_is_stored_and_removed_once_it_is_sent() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("hello");
    ann.sees("Say help for more.");
    let session = session_of(&ann);
    ann.press("help me, ple");
    ann.sees("› help me, ple");
    ann.signal(Signal::TERM);
    assert_eq!(ann.ends(), Some(0));
    let chat_uri = lines(&host.run(&["export", &session]).stdout)[0]["data"]["defaultChat"].clone();
    let draft = || {
        let state = host.state(chat_uri.as_str().unwrap());
        state["draft"]["text"].clone()
    };
    assert_eq!(draft(), "help me, ple");

    let mut ann = open(host.data.path(), "ann", &["--continue"]);
    ann.sees("› help me, ple");
    ann.press("ase");
    ann.press(ENTER);
    ann.sees("So try everything:");
    ann.press(CTRL_D);
    assert_eq!(ann.ends(), Some(0));
    assert_eq!(draft(), Value::Null);
}

#[test]
fn chats_are_forked_and_sessions_changed() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("hello");
    ann.sees("Say help for more.");
    let first = session_of(&ann);
    // A command that is typed while the turn still runs is queued.
    let chat = host.state(&first)["defaultChat"].as_str().unwrap().to_owned();
    ann.wait_until(|_| host.state(&chat)["activeTurn"].is_null());
    ann.type_line("/fork");
    let screen = ann.sees("· You are now in a new branch: ahp-chat:/");
    let fork =
        screen.split("new branch: ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    ann.type_line("think");
    ann.sees("The answer is 42.");
    let turns = |chat: &str| host.state(chat)["turns"].as_array().map(Vec::len);
    assert_eq!(turns(&fork), Some(2));
    let original = lines(&host.run(&["export", &first]).stdout)[0]["data"]["defaultChat"].clone();
    // The request for the branch is in the old chat.
    assert_eq!(turns(original.as_str().unwrap()), Some(2));

    ann.type_line("/new");
    ann.wait_until(|screen| {
        let newest = screen.rsplit_once("greenroom · scripted · ");
        newest.is_some_and(|(_, newest)| !newest.starts_with(&first))
    });
    ann.type_line("/sessions");
    // The new one is not listed before its first message.
    ann.sees("sessions ›");
    ann.sees("❯ ");
    ann.press(ENTER);
    ann.wait_until(|screen| {
        screen.matches(&format!("· {first}")).count() > 0 && screen.ends_with('›')
    });
    ann.type_line("/quit");
    assert_eq!(ann.ends(), Some(0));
}

#[test]
fn a_failed_turn_is_resumed() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("fail");
    ann.sees("/resume continues the turn");
    ann.type_line("/resume");
    ann.sees("Resumed: here is the rest.");
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    ann.type_line("/resume");
    ann.sees("did not fail in a way that can be resumed");
}

#[test]
fn the_chat_reconnects_after_the_host_restarts() {
    let host = Host::start();
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("hello");
    ann.sees("Say help for more.");
    // While the turn runs, a message would be queued.
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    let data = host.kill();
    ann.sees("connection lost, trying again");
    ann.type_line("think");
    ann.sees("› think");
    let _host = Host::start_with(data, &[]);
    ann.sees("The answer is 42.");
}

#[test]
fn a_question_of_a_worker_is_answered_here_or_in_its_own_chat() {
    let host = Host::scripted(&json!([{"steps": [
        {"spawn": {"title": "Helper", "steps": [
            {"tool": {"name": "x", "display": "Dig", "confirm": "ask"}},
            {"say": ["dug"]},
        ]}},
        {"say": ["all is done"]},
    ]}]));
    let mut ann = chat(&host, "ann", &[]);
    let session = session_of(&ann);
    ann.type_line("go");
    let screen = ann.sees("worker Helper\n? Dig\n\n  1 Approve");
    assert!(!screen.contains("Another chat"), "{screen}");
    ann.decide('1');
    ann.sees("all is done");
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    ann.type_line("go");
    ann.sees("worker Helper\n? Dig\n\n  1 Approve");
    let chats = host.state(&session)["chats"].clone();
    let chats = chats.as_array().unwrap().iter();
    let mut workers = chats.filter_map(|chat| chat["resource"].as_str());
    let worker = workers.rfind(|chat| chat.starts_with("ahp-chat:/")).unwrap();
    ann.type_line(&format!("/open {worker}"));
    ann.sees("› Helper\n\n? Dig\n\n  1 Approve");
    ann.decide('1');
    ann.wait_until(|screen| !screen.contains("1 Approve"));
    ann.type_line("hello?");
    ann.sees("the host refused it");
    ann.sees("› hello?"); // given back
    ann.press("\x15");
    ann.type_line(&format!("/open {session}"));
    ann.sees("all is done");
}

#[test]
fn agent_text_cannot_control_the_terminal() {
    let host = Host::scripted(&json!([{"steps": [
        {"say": ["\u{1b}]0;own", "ed\u{7}", "\u{1b}[2J\u{1b}[31m", "harmless"]},
        {"tool": {"name": "x", "display": "a\u{1b}[41mb", "input": {"c": "\u{9b}2J\u{202e}d"}, "confirm": "ask"}},
    ]}]));
    let mut ann = chat(&host, "ann", &[]);
    ann.type_line("go");
    let screen = ann.sees("1 Approve");
    assert!(screen.contains("\\x1b[31mharmless") && screen.contains("? a\\x1b[41mb"), "{screen}");
    assert!(screen.contains("c: \\u{9b}2J\\u{202e}d"), "{screen}");
    for sequence in [&b"\x1b]0;"[..], b"\x1b[2J", b"\x1b[31m", b"\x1b[41m", "\u{9b}".as_bytes()] {
        assert!(!ann.wrote(sequence), "{sequence:?}");
    }
}

/// A data directory whose host, whoever started it, is gone when the test is.
struct Unserved(tempfile::TempDir);

impl Unserved {
    fn endpoint(&self) -> Option<Value> {
        let file = data_directory(self.0.path()).join("endpoint.json");
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }
}

impl Drop for Unserved {
    fn drop(&mut self) {
        let pid = self.endpoint().and_then(|endpoint| endpoint["pid"].as_i64());
        let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[test]
fn without_a_host_one_is_started_and_stays() {
    let data = Unserved(tempfile::tempdir().unwrap());
    let path = data.0.path();
    let mut ann = open(path, "ann", &[]);
    ann.sees("started a host in the background: `greenroom stop");
    ann.type_line("hello");
    ann.sees("Say help for more.");
    ann.press(CTRL_D);
    assert_eq!(ann.ends(), Some(0));

    let listed = greenroom(path).args(["sessions", "--json"]).output().unwrap();
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(sessions.as_array().map(Vec::len), Some(1));
    let log = std::fs::read_to_string(data_directory(path).join("host.log")).unwrap();
    let endpoint = data.endpoint().expect("the host is still there");
    let token = endpoint["token"].as_str().unwrap();
    assert!(log.contains("ready") && !log.contains(token), "{log}");
}
