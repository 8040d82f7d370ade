//! `greenroom chat --plain` through a pipe: what scripts see of it.

use crate::running;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::running::{Host, text};
use crate::terminal::{CTRL_D, Terminal};

#[test]
fn each_line_is_a_message_and_the_exit_code_is_that_of_the_last() {
    let host = Host::start();
    let output = host.run_with(&["chat", "--plain"], "hello\n\nthink\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        "Hello! This session is alive: every client that watches it sees the same words. Say `help` for more.\n\
         I have thought about it. The answer is 42.\n"
    );
    let failed = host.run_with(&["chat"], "hello\nfail\n");
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    assert!(text(&failed.stderr).contains("✗ failed: this turn failed"));
    let recovered = host.run_with(&["chat"], "fail\n/resume\n");
    assert_eq!(recovered.status.code(), Some(0), "{}", text(&recovered.stderr));
    assert!(text(&recovered.stdout).ends_with("Resumed: here is the rest.\n"));
}

#[test]
fn questions_are_answered_by_lines() {
    let host = Host::start();
    let answered = host.run_with(&["chat"], "tool\nwhat?\n1\nedit\n4\n{\"path\":\"ode.txt\"}\n1\n");
    let (out, err) = (text(&answered.stdout), text(&answered.stderr));
    assert_eq!(answered.status.code(), Some(0), "{err}");
    assert!(err.contains("  1 Approve") && err.contains("Not an answer"), "{err}");
    assert!(err.contains("✓ Listed 2 files"), "{err}");
    assert!(out.contains("\"approved\":true") && out.contains("ode.txt"), "{out}");
    assert!(!out.contains("1 Approve"), "{out}");

    let asked = host.run_with(&["chat"], "ask\n1\nAnn\n7\n2\n1\n3\n7\nNo\n");
    let (out, err) = (text(&asked.stdout), text(&asked.stderr));
    assert_eq!(asked.status.code(), Some(0), "{err}");
    assert!(out.contains("\"response\":\"accept\"") && out.contains("chorus"), "{out}");

    let unanswered = host.run_with(&["chat"], "tool\n");
    assert_eq!(unanswered.status.code(), Some(1));
    let err = text(&unanswered.stderr);
    assert!(err.contains("the agent is waiting"), "{err}");
}

#[test]
fn on_a_terminal_a_line_answers_only_the_question_that_it_was_typed_at() {
    let host = Host::start();
    let mut command = host.greenroom();
    command.args(["chat", "--plain"]);
    let mut ann = Terminal::start("ann", command);
    ann.sees("\n›");
    // The second line is there before the question is.
    ann.press("tool\r1\r");
    ann.sees("3 Deny and say why");
    // A doubled answer counts once, also for the question behind it.
    ann.answer("2\r2\r");
    ann.sees("⊘ List files: denied");
    ann.sees("\"approved\":false");
    ann.type_line("ask");
    // Before its last line it could not have been read.
    ann.sees("0 Dismiss");
    ann.answer("9\r1\r");
    ann.sees("declined");
    ann.press(CTRL_D);
    ann.ends();
    let screen = ann.screen();
    assert!(!screen.contains("\"approved\":true"), "{screen}");
}

#[test]
fn what_is_typed_behind_a_command_that_changes_the_chat_is_not_dropped() {
    let host = Host::start();
    let mut command = host.greenroom();
    command.args(["chat", "--plain"]);
    let mut ann = Terminal::start("ann", command);
    ann.sees("\n›");
    ann.press("/new\rhello\r");
    let screen = ann.sees("Hello! This session is alive");
    assert!(!screen.contains("dropped"), "{screen}");
}

#[test]
fn a_question_that_waits_is_answered_by_a_script() {
    let host = Host::start();
    let unanswered = host.run_with(&["chat"], "tool\n");
    let err = text(&unanswered.stderr);
    let session = err.lines().find_map(|line| line.strip_prefix("session ")).unwrap();
    let answered = host.run_with(&["chat", "--session", session], "2\n");
    let err = text(&answered.stderr);
    assert!(err.contains("⊘ List files: denied"), "{err}");
    assert_eq!(answered.status.code(), Some(0), "{err}");
}

#[test]
fn a_current_directory_that_is_gone_is_an_error_and_starts_nothing() {
    let data = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \"$@\"";
    shell
        .args(["-c", script, env!("CARGO_BIN_EXE_greenroom")])
        .args(["chat", "--continue"])
        .env("XDG_DATA_HOME", data.path())
        .current_dir(data.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(b"hello\n");
    let output = child.wait_with_output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("the current directory cannot be used"), "{err}");
    assert!(!running::data_directory(data.path()).exists(), "{err}");
}

#[test]
fn a_session_is_gone_on_with_and_left() {
    let host = Host::start();
    let session = host.new_session("hello");
    let output = host.run_with(&["chat", "--session", &session], "/sessions\nthink\n/quit\nfail\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "I have thought about it. The answer is 42.\n");
    assert!(text(&output.stderr).contains("(here)"));
    let turns = text(&host.run(&["export", &session]).stdout);
    assert_eq!(turns.matches("\"role\":\"user\"").count(), 2, "{turns}");
}

#[test]
fn an_interrupt_cancels_the_turn() {
    let host = Host::start();
    let mut child =
        host.greenroom().args(["chat", "--plain"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "hang").unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut begun = [0; 4];
    std::io::Read::read_exact(&mut out, &mut begun).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    writeln!(input, "hello").unwrap();
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.clear();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("Hello!"), "{line}");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let mut child =
        host.greenroom().args(["chat", "--plain"]).stdin(Stdio::piped()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "hang").unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    std::io::Read::read_exact(&mut out, &mut begun).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn nothing_is_started_for_nothing() {
    let data = tempfile::tempdir().unwrap();
    let output = running::greenroom(data.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!running::data_directory(data.path()).exists());

    let mut nowhere = running::greenroom(data.path());
    nowhere.args(["chat", "--host", "ws://127.0.0.1:1/"]);
    let mut child = nowhere.stdin(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(b"hello\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("no host answers at ws://127.0.0.1:1/"));
}

#[test]
fn a_host_that_fails_to_start_is_reported_with_its_last_output() {
    let data = tempfile::tempdir().unwrap();
    let directory = running::data_directory(data.path());
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("journal.sqlite"), "no journal ".repeat(20)).unwrap();
    let mut command = running::greenroom(data.path());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(b"hello\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let err = text(&output.stderr);
    assert!(err.contains("the journal cannot be read"), "{err}");
    assert!(err.contains("host.log"), "{err}");
}
