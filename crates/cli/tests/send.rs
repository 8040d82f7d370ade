//! `greenroom send` from outside: where it works, who is asked, how long it waits, and what its exit code says.

use crate::running;

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{Answer, Call, ModelServer};

use crate::running::{Host, lines, result, text};
use crate::terminal::Terminal;

/// A host that plays these scenes.
fn scripted(scenes: Value) -> Host {
    let data = tempfile::tempdir().unwrap();
    let script = data.path().join("script.json");
    let content = json!({"model": "scripted-1", "scenes": scenes});
    std::fs::write(&script, content.to_string()).unwrap();
    let script = script.to_str().unwrap().to_owned();
    Host::start_with(data, &["--script", &script])
}

fn asking() -> Value {
    json!([{"steps": [
        {"tool": {"name": "rm", "display": "Remove", "input": {"path": "x"}, "confirm": "ask"}},
        {"ask": {"message": "Really?", "questions": [{"kind": "text", "id": "q", "message": "Why?"}]}},
        {"say": ["It went on: {{last}}"]},
    ]}])
}

fn directory_of(host: &Host, session: &str) -> String {
    let state = host.state(session);
    let uri = state["workingDirectories"][0].as_str().unwrap();
    uri.strip_prefix("file://").unwrap().to_owned()
}

fn real(path: &Path) -> String {
    let path = path.canonicalize().unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_new_session_works_where_it_was_sent_from_and_is_continued_there() {
    let host = Host::start();
    let (here, there) = (host.data.path().join("here"), host.data.path().join("there"));
    std::fs::create_dir(&here).unwrap();
    std::fs::create_dir(&there).unwrap();
    let send = |directory: &Path, arguments: &[&str]| {
        let mut command = host.greenroom();
        command.current_dir(directory).args(["send", "--json"]);
        command.args(arguments).output().unwrap()
    };
    let first = result(&send(&here, &["hello"]).stdout);
    let session = first["session"].as_str().unwrap().to_owned();
    assert_eq!(directory_of(&host, &session), real(&here));

    let none = send(&there, &["--continue", "hello"]);
    assert_eq!(none.status.code(), Some(1));
    let why = text(&none.stderr);
    assert!(why.contains("no session was used in") && why.contains("there"), "{why}");
    assert!(why.contains(&format!("--session {session}")) && why.contains("here"), "{why}");

    let other = result(&send(&there, &["hello"]).stdout);
    assert_ne!(other["session"], session.as_str());
    let again = result(&send(&here, &["--continue", "stream 1"]).stdout);
    assert_eq!(again["session"], session.as_str(), "not the newer one elsewhere");
    // By another way there.
    std::os::unix::fs::symlink(&here, host.data.path().join("link")).unwrap();
    let linked = result(&send(&host.data.path().join("link"), &["-c", "hello"]).stdout);
    assert_eq!(linked["session"], session.as_str());
}

#[test]
fn a_directory_outside_of_the_roots_is_told_by_the_turn() {
    let host = Host::start();
    let outside = tempfile::tempdir().unwrap();
    let mut command = host.greenroom();
    let sent = command.current_dir(outside.path()).args(["send", "hello"]).output().unwrap();
    assert_eq!(sent.status.code(), Some(1), "{}", text(&sent.stderr));
    assert!(text(&sent.stderr).contains("the turn failed"), "{}", text(&sent.stderr));
}

#[test]
fn without_a_terminal_whatever_asks_is_denied_and_the_turn_goes_on() {
    let host = scripted(asking());
    let sent = host.run(&["send", "go"]);
    assert_eq!(sent.status.code(), Some(5), "{}", text(&sent.stderr));
    let answer = text(&sent.stdout);
    assert!(answer.starts_with("It went on: ") && answer.contains("cancel"), "{answer}");
    let notes = text(&sent.stderr);
    assert!(notes.contains("Denied, nobody could be asked: "), "{notes}");
    assert!(notes.contains("Dismissed, nobody could be asked: Really?"), "{notes}");
    assert!(notes.contains("2 things were denied"), "{notes}");
}

#[test]
fn another_client_that_watches_is_not_waited_for() {
    let host = scripted(asking());
    let first = result(&host.run(&["send", "--json", "go"]).stdout);
    let session = first["session"].as_str().unwrap().to_owned();
    let mut watching = host.greenroom().args(["watch", &session]).spawn().unwrap();
    let sent = host.run(&["send", "--session", &session, "go"]);
    assert_eq!(sent.status.code(), Some(5), "{}", text(&sent.stderr));
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn what_a_worker_asks_is_denied_too() {
    let host = scripted(json!([{"steps": [
        {"spawn": {"title": "w", "steps": [
            {"tool": {"name": "rm", "display": "Remove", "confirm": "ask"}},
            {"say": ["worker done"]},
        ]}},
        {"say": ["all done"]},
    ]}]));
    let sent = host.run(&["send", "go"]);
    assert_eq!(sent.status.code(), Some(5), "{}", text(&sent.stderr));
    assert_eq!(text(&sent.stdout), "all done\n");
}

#[test]
fn on_a_terminal_the_person_there_decides() {
    let host = scripted(asking());
    let mut command = host.greenroom();
    command.args(["send", "go"]);
    let mut ann = Terminal::start("ann", command);
    ann.wait_until(|screen| screen.contains("Remove") && screen.ends_with("\n?"));
    ann.answer("maybe\r");
    ann.sees("Not an answer");
    ann.type_line("yes please");
    ann.type_line("1");
    // Before its last line the question could not have been read.
    ann.wait_until(|screen| screen.contains("Why?") && screen.ends_with("\n?"));
    ann.answer("1\r");
    ann.sees("Type your answer");
    ann.answer("because\r");
    ann.sees("It went on: ");
    assert_eq!(ann.ends(), Some(0));
    let screen = ann.screen();
    assert!(screen.contains("because"), "{screen}");
}

#[test]
fn what_is_typed_before_a_question_does_not_answer_it() {
    let host = scripted(json!([{"steps": [
        {"say": ["Wait.\n"]},
        {"wait_ms": 1_500},
        {"tool": {"name": "rm", "display": "Remove", "input": {"path": "x"}, "confirm": "ask"}},
        {"tool": {"name": "mv", "display": "Move", "input": {"path": "y"}, "confirm": "ask"}},
        {"say": ["It went on: {{last}}"]},
    ]}]));
    let mut command = host.greenroom();
    command.args(["send", "go"]);
    let mut ann = Terminal::start("ann", command);
    ann.sees("Wait.");
    ann.type_line("1");
    let stands_there = |screen: &str, name: &str| screen.contains(name) && screen.ends_with("\n?");
    ann.wait_until(|screen| stands_there(screen, "Remove"));
    // A doubled answer counts once.
    ann.answer("2\r2\r");
    ann.wait_until(|screen| stands_there(screen, "Move"));
    ann.answer("2\r");
    let screen = ann.sees("It went on: ");
    assert_eq!(ann.ends(), Some(0));
    assert!(
        screen.contains("\"approved\":false") && !screen.contains("\"approved\":true"),
        "{screen}"
    );
}

#[test]
fn an_interrupt_at_a_question_cancels_the_turn() {
    let host = scripted(asking());
    let mut command = host.greenroom();
    command.args(["send", "go"]);
    let mut ann = Terminal::start("ann", command);
    ann.sees("Remove");
    ann.signal(Signal::INT);
    ann.sees("cancelled");
    assert_eq!(ann.ends(), Some(3));
}

#[test]
fn a_turn_that_takes_too_long_is_cancelled() {
    let host = Host::start();
    let sent = host.run(&["send", "--timeout", "1", "hang"]);
    assert_eq!(sent.status.code(), Some(6), "{}", text(&sent.stderr));
    assert!(text(&sent.stderr).contains("--timeout"), "{}", text(&sent.stderr));
    let quick = host.run(&["send", "--timeout", "600", "hello"]);
    assert_eq!(quick.status.code(), Some(0));
    assert_eq!(host.run(&["send", "--timeout", "0", "hello"]).status.code(), Some(2));
}

#[test]
fn programs_get_events_as_they_come_and_the_result_last() {
    let host = scripted(json!([{"steps": [
        {"think": ["hm"]},
        {"say": ["one ", "two"]},
        {"tool": {"name": "ls", "display": "List", "confirm": "auto"}},
        {"tool": {"name": "rm", "display": "Remove", "confirm": "ask"}},
        {"say": ["three"]},
    ]}]));
    let sent = host.run(&["send", "--json", "go"]);
    assert_eq!(sent.status.code(), Some(5));
    let events = lines(&sent.stdout);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("start", "result"));
    let said: String = events
        .iter()
        .filter(|event| event["type"] == "text")
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    assert_eq!(said, "one twothree");
    let calls = events.iter().filter(|event| event["part"]["kind"] == "toolCall");
    let states: Vec<&Value> = calls.map(|event| &event["part"]["toolCall"]["status"]).collect();
    assert_eq!(states, ["completed", "cancelled"]);
    assert!(kinds.contains(&"reasoning") && kinds.contains(&"denied"), "{kinds:?}");
    let result = events.last().unwrap();
    assert_eq!(result["text"], "one twothree");
    assert_eq!((&result["state"], &result["denied"]), (&json!("complete"), &json!(1)));
    assert_eq!(result["turnId"], events[0]["turnId"]);
}

/// A model that is silent for long is told to whoever waits.
#[test]
fn what_an_agent_is_at_is_said_while_nothing_comes() {
    const SILENT: &str = "waiting for the model, 20 s";
    // The turn waits for an answer to the call, so that what was said before is seen.
    let steps = json!([{"steps": [
        {"activity": SILENT},
        {"tool": {"name": "rm", "display": "Remove", "confirm": "ask"}},
        {"say": ["done"]},
    ]}]);
    let host = scripted(steps);
    let sent = host.run(&["send", "go"]);
    let said = String::from_utf8_lossy(&sent.stderr).into_owned();
    assert_eq!(said.matches(SILENT).count(), 1, "{said}");
    assert_eq!(String::from_utf8_lossy(&sent.stdout), "done\n");
    let events = lines(&host.run(&["send", "--json", "go"]).stdout);
    let activity = json!({"type": "activity", "text": SILENT});
    assert!(events.contains(&activity), "{events:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_mode_is_set_before_the_agent_works() {
    let server = ModelServer::start().await;
    let model = format!("{}#echo", server.url());
    let host = Host::start_with(tempfile::tempdir().unwrap(), &["--model", &model]);
    let file = host.data.path().join("new.txt");
    let write = || Call::new("c", "write", &json!({"path": "new.txt", "content": "made\n"}));
    let send = |arguments: &[&str]| {
        server.answers([Answer::calls([write()]), Answer::streams(["So be it."])]);
        host.run(&[&["send", "--json", "--agent", "native", "write it"], arguments].concat())
    };
    let asked = send(&[]);
    assert_eq!(asked.status.code(), Some(5), "{}", text(&asked.stderr));
    assert!(!file.exists());
    let planned = send(&["--approvals", "read-only"]);
    assert_eq!(planned.status.code(), Some(0), "{}", text(&planned.stderr));
    assert!(!file.exists(), "a plan writes nothing");
    let accepted = send(&["--approvals", "accept-edits"]);
    assert_eq!(accepted.status.code(), Some(0), "{}", text(&accepted.stderr));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "made\n");
    let session = result(&accepted.stdout)["session"].as_str().unwrap().to_owned();
    assert_eq!(host.state(&session)["config"]["values"]["approvals"], "accept-edits");

    let session_option = ["send", "--session", &session, "--approvals", "ask", "again"];
    server.answers([Answer::streams(["Fine."])]);
    assert_eq!(host.run(&session_option).status.code(), Some(0));
    assert_eq!(host.state(&session)["config"]["values"]["approvals"], "ask");
    let scripted = host.run(&["send", "--agent", "scripted", "--approvals", "plan", "hello"]);
    assert_eq!(scripted.status.code(), Some(4));
    assert!(
        text(&scripted.stderr).contains("no such permission mode"),
        "{}",
        text(&scripted.stderr)
    );
    assert_eq!(host.run(&["send", "--approvals", "nonsense", "x"]).status.code(), Some(2));
}

#[test]
fn standard_input_and_files_go_along() {
    let host = Host::start();
    std::fs::write(host.data.path().join("notes.txt"), "remember").unwrap();
    let sent =
        host.run_with(&["send", "--json", "-", "--attach", "notes.txt"], "hello from a pipe");
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    let session = result(&sent.stdout)["session"].as_str().unwrap().to_owned();
    let rows = lines(&host.run(&["export", &session]).stdout);
    let parts: Vec<&Value> = rows.iter().map(|row| &row["data"]["data"]).collect();
    assert!(parts.iter().any(|part| part["text"] == "hello from a pipe"), "{rows:?}");
    assert!(parts.iter().any(|part| part["label"] == "notes.txt"), "{rows:?}");
    let missing = host.run(&["send", "x", "--attach", "nowhere.txt"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("nowhere.txt cannot be read"));
}

#[test]
fn a_broken_configuration_is_said_where_no_host_runs_and_disturbs_none_that_does() {
    let data = tempfile::tempdir().unwrap();
    let settings = running::data_directory(data.path());
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("greenroom.toml"), "listen = \n").unwrap();
    let sent = running::greenroom(data.path()).args(["send", "hello"]).output().unwrap();
    let said = text(&sent.stderr);
    assert_eq!(sent.status.code(), Some(4), "{said}");
    assert!(said.contains("greenroom.toml"), "{said}");
    std::fs::remove_file(settings.join("greenroom.toml")).unwrap();
    let host = Host::start_with(data, &[]);
    std::fs::write(settings.join("greenroom.toml"), "listen = \n").unwrap();
    let sent = host.run(&["send", "hello"]);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
}
