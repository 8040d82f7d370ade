//! Permission rules with the real binary: offered in a terminal and through a pipe, remembered across a kill, listed and
//! changed by `greenroom rules`; and plans that are approved.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};
use testkit::{Answer, Call, ModelServer};

use crate::running::{Host, data_directory, greenroom, text};
use crate::terminal::{ENTER, ScreenSize, TAB, Terminal, chat};

fn bash(command: &str) -> Answer {
    Answer::calls([Call::new("c", "bash", &json!({"command": command}))])
}

fn start(data: tempfile::TempDir, server: &ModelServer) -> Host {
    let model = format!("{}#echo", server.url());
    Host::start_with(data, &["--model", &model])
}

fn rules_of(data: &Path) -> String {
    let text = fs::read_to_string(data_directory(data).join("rules.toml")).unwrap();
    let is_rule = |line: &&str| !line.starts_with('#');
    text.lines().filter(is_rule).map(|line| format!("{line}\n")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_words_that_were_chosen_are_the_rule_and_it_survives_a_kill() {
    let server = ModelServer::start().await;
    server.answers([bash("cargo test -h"), Answer::streams(["First."])]);
    let host = start(tempfile::tempdir().unwrap(), &server);
    let mut ann = chat(&host);
    ann.type_line("go");
    let screen = ann.sees("6 Approve");
    let option = |words: &str| {
        let shown = format!("{words}\n");
        assert!(screen.contains(&shown), "{words}: {screen}");
    };
    option("5 Approve, and allow bash(cargo test:*) in this session");
    option("6 Approve, and always allow bash(cargo test:*) in this project");
    ann.decide('6');
    ann.sees("First.");
    drop(ann);
    let data = host.kill();
    let work = data.path().canonicalize().unwrap();
    let rules =
        format!("\n[project.\"{}\"]\nallow = [\n    \"bash(cargo test:*)\",\n]\n", work.display());
    assert_eq!(rules_of(data.path()), rules);

    server.answers([
        bash("cargo test -h"),
        Answer::streams(["Second."]),
        bash("cargo test -h; touch x"),
        Answer::streams(["Third."]),
    ]);
    let host = start(data, &server);
    let mut ann = chat(&host);
    ann.type_line("again");
    ann.sees("Second.");
    ann.type_line("more");
    let screen = ann.sees("2 Deny");
    assert!(screen.contains("cargo test -h; touch x"), "{screen}");
    ann.decide('2');
    ann.sees("Third.");
    assert!(!work.join("x").exists());
    ann.type_line("/permissions");
    ann.sees("allow  bash(cargo test:*)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_approved_in_a_terminal_and_the_work_goes_on() {
    let server = ModelServer::start().await;
    let plan = "## Plan\n\n1. Write `made`";
    let call = Call::new("p", "exit_plan", &json!({"plan": plan}));
    let write = Call::new("w", "write", &json!({"path": "made", "content": "x"}));
    server.answers([
        Answer::calls([call.clone()]),
        Answer::calls([call]),
        Answer::calls([write]),
        Answer::streams(["Done."]),
    ]);
    let host = start(tempfile::tempdir().unwrap(), &server);
    let mut ann = chat(&host);
    ann.type_line("/approvals plan");
    ann.wait_for_status(|status| status.contains("Plan"));
    ann.type_line("plan it");
    let screen = ann.sees("5 Approve, and accept edits");
    assert!(screen.contains("Carry out this plan?"), "{screen}");
    // Like an answer: without the marks of Markdown.
    assert!(screen.contains("\n  Plan\n\n  1. Write made"), "{screen}");
    assert_eq!(screen.matches("Write made").count(), 1, "{screen}");
    ann.with_screen(|screen| {
        let row = (0..24).find(|row| screen.rows(2, 4).nth(*row).as_deref() == Some("Plan"));
        let row = u16::try_from(row.unwrap()).unwrap();
        assert!(screen.cell(row, 2).unwrap().bold(), "a heading");
    });
    assert!(screen.contains("2 Deny: Keep planning"), "{screen}");
    ann.decide('3');
    ann.sees("why ›");
    ann.press("check it too");
    ann.sees("why › check it too");
    ann.press(ENTER);
    let asked_again = |screen: &str| {
        screen.contains("instead: check it too") && screen.contains("5 Approve, and accept edits")
    };
    ann.wait_until(asked_again);
    ann.decide('5');
    ann.sees("Done.");
    // What the agent works by stays readable.
    ann.sees("✓ Approved the plan\n  Plan\n\n  1. Write made");
    assert!(host.data.path().join("made").exists());
    ann.wait_for_status(|status| status.contains("Accept edits"));
    let messages = server.requests()[1].json()["messages"].to_string();
    assert!(messages.contains("keep planning and says: check it too"), "{messages}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_is_completed_behind_a_wide_blank() {
    let server = ModelServer::start().await;
    let host = start(tempfile::tempdir().unwrap(), &server);
    let mut ann = chat(&host);
    ann.press("/approvals\u{3000}accept");
    ann.sees("accept-edits");
    ann.press(TAB);
    ann.sees("› /approvals\u{3000}accept-edits");
}

#[tokio::test(flavor = "multi_thread")]
async fn through_a_pipe_a_rule_and_a_plan_are_chosen_by_their_digits() {
    let server = ModelServer::start().await;
    let plan = Call::new("p", "exit_plan", &json!({"plan": "1. Look"}));
    server.answers([
        bash("ls -a"),
        bash("ls -l"),
        Answer::streams(["First."]),
        Answer::calls([plan]),
        Answer::streams(["Second."]),
    ]);
    let host = start(tempfile::tempdir().unwrap(), &server);
    let chat = ["chat", "--plain"];
    let answered = host.run_with(&chat, "go\n5\n/approvals plan\nplan\n1\n");
    let (out, err) = (text(&answered.stdout), text(&answered.stderr));
    assert_eq!(out, "First.\nSecond.\n", "{err}");
    assert!(err.contains("5 Approve, and allow bash(ls:*) in this session"), "{err}");
    assert!(err.contains("1. Look"), "{err}");
    let rules = rules_of(host.data.path());
    assert!(rules.contains("allow = [\n    \"bash(ls:*)\",\n]\n"), "{rules}");
    let asked = err.matches("in this project").count();
    assert_eq!(asked, 1, "the second one is not asked about: {err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_gone_is_said_where_its_rules_would_be_listed() {
    let server = ModelServer::start().await;
    let host = start(tempfile::tempdir().unwrap(), &server);
    let work = host.data.path().canonicalize().unwrap().join("work");
    fs::create_dir(&work).unwrap();
    let directory = work.to_str().unwrap();
    let added = host.run(&["rules", "add", "bash(make:*)", "--directory", directory]);
    assert!(added.status.success(), "{}", text(&added.stderr));
    let mut command = host.greenroom();
    command.arg("chat").current_dir(&work);
    let mut ann = Terminal::start_sized("ann", command, ScreenSize::new(100, 40));
    ann.sees("\n›");
    ann.type_line("/permissions");
    ann.sees("allow  bash(make:*)");
    fs::remove_dir(&work).unwrap();
    ann.type_line("/permissions");
    let screen = ann.sees("cannot be found (No such file or directory");
    assert!(!screen.contains("No rules apply here"), "{screen}");
}

#[test]
fn rules_are_added_listed_checked_and_removed() {
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    fs::create_dir_all(work.join("src")).unwrap();
    let work = work.canonicalize().unwrap();
    let rules = |arguments: &[&str]| {
        let mut command = greenroom(home.path());
        command.arg("rules").args(arguments).current_dir(&work);
        let output = command.output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        (output.status.code(), said.replace(work.to_str().unwrap(), "WORK"))
    };
    let (code, none) = rules(&["list"]);
    assert!(code == Some(0) && none.starts_with("There are no rules"), "{none}");
    // No host has run here: the first rule makes the data directory, for its owner alone.
    for arguments in [
        &["add", "bash(cargo test:*)"][..],
        &["add", "Edit(src/**)"],
        &["add", "--deny", "--always", "bash(rm:*)"],
        &["add", "--ask", "--session", "native:/x", "bash(git push:*)"],
    ] {
        let (code, said) = rules(arguments);
        assert_eq!(code, Some(0), "{said}");
    }
    let created = fs::metadata(data_directory(home.path())).unwrap();
    assert_eq!(created.permissions().mode() & 0o777, 0o700);
    let (code, said) = rules(&["add", "bash(env:*)", "--session", "native:/x"]);
    assert!(code == Some(0) && said.contains("runs other programs"), "{said}");
    expect![[r#"
        project WORK
          allow  bash(cargo test:*)
          allow  edit(src/**)
        always
          deny   bash(rm:*)
        session native:/x
          ask    bash(git push:*)
          allow  bash(env:*)
    "#]]
    .assert_eq(&rules(&["list"]).1);
    let (_, listed) = rules(&["list", "--json", "--directory", "."]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let first = json!({"rule": "bash(cargo test:*)", "list": "allow", "scope": "project", "session": null, "directory": "WORK"});
    assert_eq!(listed[0], first);
    assert_eq!(listed.as_array().unwrap().len(), 3, "{listed:#}");
    for (tool, input, said) in [
        ("bash", "cargo test -q", "allow bash(cargo test:*): project WORK\n"),
        ("bash", "cargo test; rm -rf x", "deny bash(rm:*): always\n"),
        ("bash", "cargo test > x", "No rule matches: the mode of the session decides.\n"),
        ("write", "src/a.rs", "allow edit(src/**): project WORK\n"),
        (
            "edit",
            ".github/x",
            "No rule matches: the user is asked, even where edits are accepted, because this file controls tools or agents.\n",
        ),
    ] {
        assert_eq!(rules(&["check", tool, input]), (Some(0), said.to_owned()));
    }
    let (code, said) = rules(&["check", "edit", "/etc/passwd"]);
    assert!(code == Some(2) && said.contains("outside"), "{said}");
    let (code, said) = rules(&["add", "bash(git * x)"]);
    assert!(code == Some(2) && said.contains("`*` can only stand at the end"), "{said}");
    assert_eq!(rules(&["remove", "edit(src/**)"]).0, Some(0));
    let (code, said) = rules(&["remove", "edit(src/**)"]);
    assert!(code == Some(1) && said.contains("there is no such rule"), "{said}");
    fs::write(data_directory(home.path()).join("rules.toml"), "[always]\ndeny = 3\n").unwrap();
    for arguments in [&["list"][..], &["add", "grep"], &["check", "bash", "ls"]] {
        let (code, said) = rules(arguments);
        assert!(
            code == Some(1) && said.contains("rules.toml: line 2: this must be a list"),
            "{said}"
        );
    }
}

#[test]
fn the_file_is_edited_as_a_copy_that_must_be_right() {
    let home = tempfile::tempdir().unwrap();
    let edit = |script: &str| {
        let editor = home.path().join("editor");
        fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = greenroom(home.path());
        let output = command.args(["rules", "edit"]).env("EDITOR", &editor).output().unwrap();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (code, said) = edit("printf '[always]\\nallow = [\"grep\"]\\n' >> \"$1\"");
    assert!(code == Some(0) && said.contains("follows it at once"), "{said}");
    assert_eq!(rules_of(home.path()), "[always]\nallow = [\"grep\"]\n");
    let (code, said) = edit("printf 'x = 1\\n' >> \"$1\"");
    assert!(code == Some(2) && said.contains("there is no `x`"), "{said}");
    assert_eq!(rules_of(home.path()), "[always]\nallow = [\"grep\"]\n");
}
