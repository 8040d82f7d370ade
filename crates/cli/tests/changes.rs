//! What a session changed, listed, shown, reviewed, taken back, committed and merged in a real terminal by the real binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use conformance::native::{ChatClient, bash};
use serde_json::json;
use testkit::{Answer, Call, ModelServer};

use crate::running::Host;
use crate::terminal::{DOWN, ENTER, ESCAPE, ScreenSize, Terminal};

const SESSION: &str = "native:/changes";

fn git(directory: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    let output = command.current_dir(directory).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with two files.
fn make_repository(work: &Path) {
    fs::create_dir(work).unwrap();
    fs::write(work.join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(work.join("gone.txt"), "gone\n").unwrap();
    git(work, &["init", "--quiet", "--initial-branch=main"]);
    git(work, &["config", "user.name", "Test"]);
    git(work, &["config", "user.email", "test@example.com"]);
    git(work, &["add", "--all"]);
    git(work, &["commit", "--quiet", "-m", "first"]);
}

/// A host whose agent answers as given, with a session in a repository.
async fn host_with(
    answers: impl IntoIterator<Item = Answer>,
    prepare: impl FnOnce(&Path),
) -> (Host, PathBuf, ModelServer) {
    let server = ModelServer::start().await;
    let model = format!("{}#echo", server.url());
    let data = tempfile::tempdir().unwrap();
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &["--model", &model]));
    let host = started.await.unwrap();
    let work = host.data.path().canonicalize().unwrap().join("project");
    make_repository(&work);
    prepare(&work);
    server.answers(answers);
    let mut ann = ChatClient::arrives_at(&host.target(), "ann").await;
    let config = json!({"approvals": "full-access"});
    ann.creates_session(SESSION, &work, config).await;
    (host, work, server)
}

fn chat(host: &Host) -> Terminal {
    let mut command = host.greenroom();
    command.args(["chat", "--session", SESSION]);
    let ann = Terminal::start_sized("ann", command, ScreenSize::new(100, 40));
    ann.sees("\n›");
    ann
}

/// Sends a message and waits until its turn is over: what commands changed is known then.
fn send(ann: &mut Terminal, message: &str, answer: &str) {
    ann.type_line(message);
    ann.wait_until(|screen| {
        let behind = screen.rsplit_once(answer);
        behind.is_some_and(|(_, behind)| behind.contains(" out"))
    });
}

/// Says yes to the question that is shown.
fn say_yes(ann: &mut Terminal, yes: &str) {
    ann.press(DOWN);
    ann.sees(&format!("❯ {yes}"));
    ann.press(ENTER);
}

fn edit(old: &str, new: &str) -> Answer {
    let edits = json!([{"old_text": old, "new_text": new}]);
    let arguments = json!({"path": "a.txt", "edits": edits});
    Answer::calls([Call::new("e", "edit", &arguments)])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_listed_shown_taken_back_and_committed() {
    let answers = [
        edit("two", "2"),
        Answer::calls([bash("rm gone.txt && echo new > new.txt")]),
        Answer::streams(["All changed."]),
    ];
    let (host, work, _server) = host_with(answers, |_| {}).await;
    let typed = tokio::task::spawn_blocking(move || {
        let mut ann = chat(&host);
        send(&mut ann, "change them", "All changed.");
        ann.type_line("/changes");
        let screen = ann.sees("Other changes: /changes turn, /changes uncommitted");
        for text in [
            "All changes of this session: 3 files +2 -2",
            "1 M a.txt +1 -1",
            "2 D gone.txt +0 -1",
            "3 A new.txt +1 -0",
            "/changes discard N|all",
        ] {
            assert!(screen.contains(text), "{text}:\n{screen}");
        }
        ann.type_line("/changes 1");
        // The call showed it once already.
        ann.wait_until(|screen| screen.matches("2 + 2").count() == 2);
        ann.type_line("/changes 7");
        ann.sees("the list has no file 7: it goes from 1 to 3");
        ann.type_line("/discard 2");
        let screen = ann.sees("Make these files what they were before this session?");
        assert!(screen.contains("❯ Leave it as it is"), "{screen}");
        ann.press(ESCAPE);
        ann.wait_until(|screen| !screen.contains("❯ Leave"));
        assert!(!work.join("gone.txt").exists(), "nobody said yes");
        ann.type_line("/discard 2");
        ann.sees("❯ Leave it as it is");
        say_yes(&mut ann, "Discard");
        ann.sees("1 file is what it was.");
        // The list is older than that: nothing is discarded that it does not show as it is.
        ann.type_line("/discard all");
        ann.sees("❯ Leave it as it is");
        say_yes(&mut ann, "Discard");
        let screen = ann.sees("nothing was done: the files changed since they were listed");
        assert!(screen.contains("All changes of this session: 2 files"), "{screen}");
        assert!(work.join("new.txt").exists());
        assert_eq!(fs::read_to_string(work.join("gone.txt")).unwrap(), "gone\n");
        // Nothing is committed without a message.
        ann.type_line("/changes uncommitted");
        ann.sees("Uncommitted changes: 2 files +2 -1");
        ann.type_line("/changes commit");
        ann.sees("commit needs its message: /changes commit MESSAGE");
        ann.type_line("/commit Change a and add new");
        ann.sees("Committed ");
        let subject = git(&work, &["log", "-1", "--format=%s"]);
        assert_eq!(subject, "Change a and add new");
        assert_eq!(git(&work, &["status", "--short"]), "");
    });
    typed.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_turns_and_branches_are_offered_by_the_host() {
    let answers = [
        edit("two", "2"),
        Answer::streams(["First done."]),
        edit("one", "1"),
        Answer::calls([bash("echo new > new.txt")]),
        Answer::streams(["Second done."]),
    ];
    let on_branch = |work: &Path| {
        git(work, &["checkout", "--quiet", "-b", "work"]);
    };
    let (host, work, _server) = host_with(answers, on_branch).await;
    let typed = tokio::task::spawn_blocking(move || {
        let mut ann = chat(&host);
        ann.type_line("/changes turn");
        ann.sees("no turn of this chat is over yet");
        send(&mut ann, "change the second", "First done.");
        send(&mut ann, "change the first", "Second done.");
        // Of two turns one is chosen, the newest first.
        ann.type_line("/changes turn");
        let screen = ann.sees("❯ change the first");
        assert!(screen.contains("  change the second"), "{screen}");
        ann.press(ENTER);
        let screen = ann.sees("Changes of one turn (change the first): 2 files +2 -1");
        assert!(screen.contains("/changes restore N|all"), "{screen}");
        ann.type_line("/changes restore all");
        ann.sees("Make these files what they were before this turn?");
        say_yes(&mut ann, "Restore");
        ann.sees("2 files are what they were.");
        assert_eq!(fs::read_to_string(work.join("a.txt")).unwrap(), "one\n2\n");
        assert!(!work.join("new.txt").exists());
        // What differs from the last commit is staged and committed, and the branch merged.
        ann.type_line("/changes uncommitted");
        ann.sees("Uncommitted changes: 1 file +1 -1");
        ann.type_line("/changes merge");
        ann.sees("`merge` is unknown: /changes takes");
        ann.type_line("/changes stage 1");
        ann.sees("Staged.");
        assert_eq!(git(&work, &["diff", "--cached", "--name-only"]), "a.txt");
        ann.type_line("/changes commit The second line");
        ann.sees("Committed ");
        ann.type_line("/changes branch");
        let screen = ann.sees("Changes since main: 1 file +1 -1");
        assert!(screen.contains("Merges what is committed here"), "{screen}");
        ann.type_line("/changes merge 1");
        ann.sees("merge is for all files: /changes merge");
        ann.type_line("/changes merge");
        ann.sees("Merge into main?");
        say_yes(&mut ann, "Merge");
        ann.sees("Merged into main");
        assert_eq!(git(&work, &["show", "main:a.txt"]), "one\n2");
    });
    typed.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviews_are_marks_on_what_was_read_and_conflicts_are_asked_about() {
    let answers = [
        edit("two", "2"),
        Answer::calls([bash("echo new > new.txt")]),
        Answer::streams(["First done."]),
        edit("one", "1"),
        Answer::streams(["Second done."]),
    ];
    let (host, work, _server) = host_with(answers, |_| {}).await;
    let typed = tokio::task::spawn_blocking(move || {
        let mut ann = chat(&host);
        ann.type_line("/changes reviewed 1");
        ann.sees("no files are listed yet; run /changes first");
        send(&mut ann, "change them", "First done.");
        ann.type_line("/changes");
        ann.sees("All changes of this session: 2 files +2 -1");
        ann.type_line("/changes reviewed all");
        let screen = ann.sees("2 files +2 -1 · 2 of 2 reviewed");
        assert!(screen.contains("1 M a.txt +1 -1  ✓ reviewed"), "{screen}");
        ann.type_line("/changes unreviewed 2");
        ann.sees("2 files +2 -1 · 1 of 2 reviewed");
        // Another client, or another run of this one, finds the mark; it goes with what it was about.
        drop(ann);
        let mut ann = chat(&host);
        ann.type_line("/changes");
        ann.sees("2 files +2 -1 · 1 of 2 reviewed");
        send(&mut ann, "and the first", "Second done.");
        ann.type_line("/changes reviewed 1");
        ann.sees("a.txt changed since it was listed");
        ann.type_line("/changes");
        let screen = ann.sees("2 files +3 -2");
        let list = screen.rsplit("All changes").next().unwrap();
        assert!(!list.contains("✓"), "nobody read it as it is now:\n{screen}");
        // What the user changed since is not replaced without another yes.
        fs::write(work.join("a.txt"), "mine\n").unwrap();
        ann.type_line("/discard 1");
        ann.sees("❯ Leave it as it is");
        say_yes(&mut ann, "Discard");
        let screen = ann.sees("❯ Leave it as it is");
        assert!(!screen.contains("_meta"), "plain words:\n{screen}");
        ann.sees("changed since");
        say_yes(&mut ann, "Discard anyway");
        ann.sees("1 file is what it was.");
        assert_eq!(fs::read_to_string(work.join("a.txt")).unwrap(), "one\ntwo\n");
    });
    typed.await.unwrap();
}

/// Makes a directory with a `git` that makes no worktree before there is a file `go` in it; the `PATH` that finds it first.
fn make_slow_git(directory: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir(directory).unwrap();
    let path = std::env::var("PATH").unwrap();
    let (script, go) = (directory.join("git"), directory.join("go"));
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in *\" worktree add \"*) until [ -e '{}' ]; do sleep 0.05; done;; esac\n\
         PATH='{path}' exec git \"$@\"\n",
        go.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{path}", directory.display())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_with_a_worktree_shows_how_far_it_is_and_is_merged_back() {
    let server = ModelServer::start().await;
    let model = format!("{}#echo", server.url());
    let typed = tokio::task::spawn_blocking(move || {
        let data = tempfile::tempdir().unwrap();
        let programs = data.path().join("programs");
        let path = make_slow_git(&programs);
        let host = Host::start_in(data, &["--model", &model], &[("PATH", path.as_str())]);
        let work = host.data.path().canonicalize().unwrap().join("project");
        make_repository(&work);
        let start = |arguments: &[&str], directory: &Path| {
            let mut command = host.greenroom();
            command.arg("chat").args(arguments).current_dir(directory);
            Terminal::start_sized("ann", command, ScreenSize::new(100, 40))
        };
        let mut ann = start(&["--worktree"], &work);
        ann.sees("▰▰▰▱▱▱▱▱▱▱ making a worktree …");
        fs::write(programs.join("go"), "").unwrap();
        ann.wait_until(|screen| screen.contains("\n›") && !screen.contains('▰'));
        ann.type_line("!echo its > its.txt; pwd | grep -q worktrees/ && echo be''side");
        ann.sees("beside");
        assert!(!work.join("its.txt").exists(), "it works beside it");
        // So does a shell.
        ann.type_line("/terminals new");
        ann.wait_for_status(|status| status.contains("Ctrl-] leaves"));
        ann.press("pwd | grep -q worktrees/ && echo al''so");
        ann.press(ENTER);
        ann.sees("also");
        ann.press("\x1d");
        // The prompt is back below it.
        ann.wait_until(|screen| {
            let behind = screen.split_once("it goes on");
            behind.is_some_and(|(_, behind)| behind.contains('›'))
        });
        ann.type_line("/commit Add its");
        ann.sees("Committed ");
        ann.type_line("/changes branch");
        ann.sees("Changes since main: 1 file +1 -0");
        ann.type_line("/changes merge");
        ann.sees("Merge into main?");
        say_yes(&mut ann, "Merge");
        ann.sees("Merged into main");
        assert_eq!(fs::read_to_string(work.join("its.txt")).unwrap(), "its\n");

        // It is the latest session of the directory that it is of.
        drop(ann);
        start(&["--continue"], &work).sees("echo be''side");

        // Where there can be none, nothing is begun in the directory itself.
        let elsewhere = host.data.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let refused = host.run(&["chat", "--plain", "--worktree", "--session", "x:/y"]);
        assert_eq!(refused.status.code(), Some(2));
        let other = start(&["--worktree"], &elsewhere);
        other.sees("session could not be started");
    });
    typed.await.unwrap();
}
