//! How often git is asked, and what becomes of a turn when it does not answer. The tests run once more in a process of their own, with a
//! `git` on the path that notes how it is called, and that hangs when it is told to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use conformance::native::{NativeHarness, SESSION, bash, ends, texts_in};
use serde_json::{Value, json};
use testkit::{Answer, Call};

use crate::changesets::{Followed, commit_all, connect, git};

/// Where the other git keeps its notes.
const NOTES: &str = "RECORDED_GIT_NOTES";

/// Runs a test of this executable with a git that is watched: in the process that this starts, `inner` runs.
fn run_with_recorded_git(test: &str, inner: impl Future<Output = ()>) {
    if std::env::var_os(NOTES).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.unwrap().block_on(inner);
    }
    let notes = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut known = std::env::split_paths(&path).map(|directory| directory.join("git"));
    let real = known.find(|git| git.is_file()).expect("git is installed");
    let script = format!(
        "#!/bin/sh\n\
         printf '%s\\n' \"$*\" >> '{notes}/calls'\n\
         if [ \"$1\" = status ] && [ -e '{notes}/hang' ]; then exec tail -f /dev/null; fi\n\
         exec '{real}' \"$@\"\n",
        notes = notes.path().display(),
        real = real.display(),
    );
    let program = notes.path().join("git");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", &format!("recorded_git::{test}")])
        .env("PATH", format!("{}:{path}", notes.path().display()))
        .env(NOTES, notes.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{problems}");
    assert!(said.contains("1 passed"), "{said}");
}

/// What was noted.
struct Notes(PathBuf);

impl Notes {
    fn find() -> Self {
        let notes = std::env::var_os(NOTES).expect("it is run with a git that is watched");
        Self(PathBuf::from(notes))
    }

    fn calls(&self) -> usize {
        let calls = fs::read_to_string(self.0.join("calls")).unwrap_or_default();
        calls.lines().count()
    }

    /// How often the whole tree was looked at: by `git status`, or by a `git diff` of the working tree.
    fn looks(&self) -> usize {
        let calls = fs::read_to_string(self.0.join("calls")).unwrap_or_default();
        let looks = |call: &&str| call.starts_with("status ") || call.starts_with("diff ");
        calls.lines().filter(looks).count()
    }

    fn hang(&self) -> PathBuf {
        self.0.join("hang")
    }
}

/// A session on a branch of its own, in a repository with a file; the host has looked at it.
async fn on_a_branch() -> NativeHarness {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    harness.write("a.txt", "one\n");
    commit_all(&harness.work());
    git(&harness.work(), &["checkout", "--quiet", "-b", "side"]);
    let look = [Answer::calls([bash("true")]), ends()];
    harness.talk("look", look).await;
    let is_known = |state: &Value| state["_meta"]["git"]["baseBranchName"] == "main";
    harness.ann.until_session(SESSION, is_known).await;
    harness
}

fn has_names(names: &'static [&'static str]) -> impl Fn(&Value) -> bool {
    move |state| {
        let files = state["files"].as_array().unwrap().iter();
        let mut found: Vec<&str> =
            files.filter_map(|file| file["id"].as_str()?.rsplit('/').next()).collect();
        found.sort_unstable();
        state["status"] == "ready" && found == names
    }
}

#[test]
fn each_edge_of_a_turn_costs_one_look_whoever_watches() {
    run_with_recorded_git("each_edge_of_a_turn_costs_one_look_whoever_watches", looks_of_turns());
}

async fn looks_of_turns() {
    let notes = Notes::find();
    let mut harness = on_a_branch().await;
    assert_eq!(notes.looks(), 2, "one before the command, one after it");
    let (client, mut events) = connect(&harness, "bob").await;
    let mut open = Followed::subscribe(&client, "uncommitted").await;
    open.ready(&mut events).await;
    let (other, mut other_events) = connect(&harness, "eve").await;
    let mut branch = Followed::subscribe(&other, "branch").await;
    branch.ready(&mut other_events).await;
    let before = notes.looks();

    // A command: one look before it, and one that serves the turn and both that are watched.
    let command = [Answer::calls([bash("echo new > new.txt")]), ends()];
    let turn = harness.talk("command", command).await;
    open.until(&mut events, has_names(&["new.txt"])).await;
    branch.until(&mut other_events, has_names(&["new.txt"])).await;
    assert_eq!(notes.looks(), before + 2);

    // Our own tools alone: none before, and one for both that are watched.
    let input = json!({"path": "own.txt", "content": "own\n"});
    let own = [Answer::calls([Call::new("w", "write", &input)]), ends()];
    harness.talk("own tool", own).await;
    open.until(&mut events, has_names(&["new.txt", "own.txt"])).await;
    branch.until(&mut other_events, has_names(&["new.txt", "own.txt"])).await;
    assert_eq!(notes.looks(), before + 3);

    // A commit changes no file, and what is not committed all the same.
    let commit = "git add --all && git commit --quiet -m second";
    let commit = [Answer::calls([bash(commit)]), ends()];
    harness.talk("commit", commit).await;
    open.until(&mut events, has_names(&[])).await;
    branch.until(&mut other_events, has_names(&["new.txt", "own.txt"])).await;
    assert_eq!(notes.looks(), before + 5);

    // What a turn changed is looked up, however often.
    let calls = notes.calls();
    let name = format!("turn/{}", turn["id"].as_str().unwrap());
    for _ in 0..1_000 {
        let changes = Followed::subscribe(&other, &name).await;
        assert_eq!(changes.names(), ["new.txt"]);
    }
    assert_eq!(notes.calls(), calls);
    assert_eq!(notes.looks(), before + 5, "nor was anything computed since");
}

#[test]
fn a_git_that_hangs_before_a_command_costs_time_and_not_the_turn() {
    run_with_recorded_git(
        "a_git_that_hangs_before_a_command_costs_time_and_not_the_turn",
        hangs_before_a_command(),
    );
}

async fn hangs_before_a_command() {
    let notes = Notes::find();
    let mut harness = on_a_branch().await;
    fs::write(notes.hang(), "").unwrap();
    let command = [Answer::calls([bash("echo new > new.txt")]), ends()];
    let turn = harness.talk("command", command).await;
    is_told(&harness, &turn).await;
    assert_eq!(harness.read("new.txt"), "new\n");
    goes_on(&mut harness, &notes.hang()).await;
}

#[test]
fn a_git_that_hangs_after_a_command_costs_time_and_not_the_turn() {
    run_with_recorded_git(
        "a_git_that_hangs_after_a_command_costs_time_and_not_the_turn",
        hangs_after_a_command(),
    );
}

async fn hangs_after_a_command() {
    let notes = Notes::find();
    let mut harness = on_a_branch().await;
    let (client, mut events) = connect(&harness, "bob").await;
    let mut open = Followed::subscribe(&client, "uncommitted").await;
    open.ready(&mut events).await;
    let hang = format!("touch '{}'; echo new > new.txt", notes.hang().display());
    let command = [Answer::calls([bash(&hang)]), ends()];
    let turn = harness.talk("command", command).await;
    is_told(&harness, &turn).await;
    // What is watched says so, too, from the same look.
    open.until(&mut events, |state| state["status"] == "error").await;
    let why = json!(open.state)["error"]["message"].clone();
    assert!(why.as_str().unwrap().contains("git did not finish"), "{why}");
    goes_on(&mut harness, &notes.hang()).await;
    open.until(&mut events, has_names(&["later.txt", "new.txt"])).await;
}

/// The turn is complete and says what is not known; its changeset says it too.
async fn is_told(harness: &NativeHarness, turn: &Value) {
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let notices = texts_in(turn, "systemNotification");
    let is_said = notices.iter().any(|text| {
        text.contains("What commands changed in this turn is not known")
            && text.contains("git did not finish within 30 s")
    });
    assert!(is_said, "{notices:?}");
    let (client, _) = connect(harness, "carol").await;
    let name = format!("turn/{}", turn["id"].as_str().unwrap());
    let changes = Followed::subscribe(&client, &name).await;
    let state = json!(changes.state);
    assert_eq!(state["status"], "error", "{state:#}");
    let why = state["error"]["message"].as_str().unwrap();
    assert!(why.contains("git did not finish within 30 s"), "{why}");
}

/// Git answers again: the next turn is seen, and nothing is forgotten of the repository.
async fn goes_on(harness: &mut NativeHarness, hang: &Path) {
    fs::remove_file(hang).unwrap();
    let command = [Answer::calls([bash("echo later > later.txt")]), ends()];
    let turn = harness.talk("once more", command).await;
    assert!(texts_in(&turn, "systemNotification").is_empty(), "{turn:#}");
    let (client, _) = connect(harness, "dave").await;
    let name = format!("turn/{}", turn["id"].as_str().unwrap());
    let changes = Followed::subscribe(&client, &name).await;
    assert_eq!(changes.names(), ["later.txt"]);
    let is_known = |state: &Value| {
        let kinds: Vec<&str> = state["changesets"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["changeKind"].as_str())
            .collect();
        kinds == ["session", "turn", "uncommitted", "branch"]
    };
    harness.ann.until_session(SESSION, is_known).await;
}
