//! Repositories as sessions meet them: a branch that is merged back over the wire, and one in the middle of a rebase (G-53, G-72).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ahp::Client;
use conformance::file_tree::read_tree;
use conformance::native::{NativeHarness, SESSION, bash, ends};
use serde_json::{Value, json};
use testkit::Answer;
use tokio::time::timeout;

use crate::changesets::{Followed, code, commit_all, connect, git, invoke};

const APART: &str = "native:/apart";

/// A session in a worktree of its own; where that is.
async fn with_worktree(harness: &NativeHarness, client: &Client) -> PathBuf {
    let directory = format!("file://{}", harness.work().display());
    let create = json!({"channel": APART, "provider": "native", "workingDirectories": [directory],
        "config": {"isolation": "worktree"}});
    let _: Value = client.request("createSession", create).await.unwrap();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let wait = async {
        loop {
            ticks.tick().await;
            let (result, _) = client.subscribe(APART.to_owned()).await.unwrap();
            let state = json!(result.snapshot.unwrap().state);
            if state["_meta"]["git"]["baseBranchName"] == "main" {
                return state;
            }
        }
    };
    let state = timeout(Duration::from_secs(60), wait).await.unwrap();
    let directory = state["workingDirectories"][0].as_str().unwrap();
    PathBuf::from(directory.strip_prefix("file://").unwrap())
}

fn commit(directory: &Path, name: &str, text: &str) {
    std::fs::write(directory.join(name), text).unwrap();
    git(directory, &["add", "--all"]);
    git(directory, &["commit", "--quiet", "-m", name]);
}

fn has_files(count: usize) -> impl Fn(&Value) -> bool {
    move |state| {
        let files = state["files"].as_array().unwrap();
        state["status"] == "ready" && files.len() == count
    }
}

/// The operation `merge` of the changeset, as it stands there.
fn merge(state: &Value) -> Value {
    let operations = state["operations"].as_array().unwrap();
    let merge = operations.iter().find(|operation| operation["id"] == "merge");
    merge.expect("it can be merged").clone()
}

#[tokio::test]
async fn a_worktree_is_merged_back_over_the_wire() {
    let harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let work = harness.work();
    commit_all(&work);
    let (client, mut events) = connect(&harness, "bob").await;
    let top = with_worktree(&harness, &client).await;
    let mut branch = Followed::subscribe_in(&client, APART, "branch").await;
    branch.until(&mut events, has_files(0)).await;
    commit(&top, "b.txt", "from the worktree\n");
    std::fs::write(top.join("open.txt"), "not committed\n").unwrap();
    branch = Followed::subscribe_in(&client, APART, "branch").await;
    branch.until(&mut events, has_files(2)).await;
    let offered = merge(&json!(branch.state));
    assert_eq!(offered["scopes"], json!(["changeset"]), "{offered}");
    assert_eq!(offered["confirmation"], "Merge into main?", "{offered}");

    // It is about all of it, and only what is offered is done.
    let file = json!({"target": {"kind": "resource", "resource": branch.state.files[0].id}});
    for (operation, more) in [("merge", file), ("commit", json!({}))] {
        let refused = invoke(&client, &branch.uri, operation, more).await;
        let refused = code(refused.unwrap_err());
        assert!(refused.contains("-32602"), "{refused}");
    }

    // Changes in the way where the branch is checked out: nothing moves.
    harness.write("b.txt", "in the way\n");
    let (before, head) = (read_tree(&work), git(&work, &["rev-parse", "main"]));
    let refused = invoke(&client, &branch.uri, "merge", json!({})).await;
    let refused = code(refused.unwrap_err());
    assert!(refused.contains("-32011"), "{refused}");
    assert_eq!(git(&work, &["rev-parse", "main"]), head);
    assert_eq!(read_tree(&work), before);
    branch.until(&mut events, |state| merge(state)["status"] == "error").await;
    std::fs::remove_file(work.join("b.txt")).unwrap();

    let merged = invoke(&client, &branch.uri, "merge", json!({})).await.unwrap();
    let said = merged["message"].as_str().unwrap();
    assert!(said.starts_with("Merged into main"), "{said}");
    assert_eq!(harness.read("b.txt"), "from the worktree\n");
    assert_eq!(git(&work, &["status", "--short"]), "");
    assert!(top.join("open.txt").exists(), "what was not committed stays");
    branch
        .until(&mut events, |state| has_files(1)(state) && merge(state)["status"] == "idle")
        .await;
    let left = branch.state.files[0].id.clone();
    assert!(left.ends_with("open.txt"), "{left}");
}

#[tokio::test]
async fn a_conflict_is_said_over_the_wire_and_nothing_is_touched() {
    let harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let work = harness.work();
    commit_all(&work);
    let (client, mut events) = connect(&harness, "bob").await;
    let top = with_worktree(&harness, &client).await;
    commit(&top, "a.txt", "theirs\n");
    commit(&work, "a.txt", "ours\n");
    let mut branch = Followed::subscribe_in(&client, APART, "branch").await;
    branch.until(&mut events, has_files(1)).await;
    let looks = || {
        let refs = git(&work, &["for-each-ref"]);
        (read_tree(&work), read_tree(&top), refs)
    };
    let before = looks();
    let refused = invoke(&client, &branch.uri, "merge", json!({})).await;
    let refused = code(refused.unwrap_err());
    let is_said = refused.contains("-32011") && refused.contains("conflicts in a.txt");
    assert!(is_said, "{refused}");
    assert_eq!(looks(), before);
    branch.until(&mut events, |state| merge(state)["status"] == "error").await;
    // Both changed something else: a merge is made.
    commit(&top, "a.txt", "one\n");
    commit(&top, "b.txt", "theirs\n");
    let merged = invoke(&client, &branch.uri, "merge", json!({})).await;
    merged.unwrap();
    assert_eq!(harness.read("a.txt"), "ours\n");
    assert_eq!(harness.read("b.txt"), "theirs\n");
}

/// A repository in which a rebase stopped at a conflict in `a.txt`.
fn begin_rebase(work: &Path) {
    commit_all(work);
    git(work, &["checkout", "--quiet", "-b", "side"]);
    commit(work, "a.txt", "side\n");
    git(work, &["checkout", "--quiet", "main"]);
    commit(work, "a.txt", "main\n");
    let mut rebase = Command::new("git");
    let rebase = rebase.current_dir(work).args(["rebase", "side"]).output();
    assert!(!rebase.unwrap().status.success(), "it stops");
}

#[tokio::test]
async fn in_the_middle_of_a_rebase_turns_are_seen_and_nothing_is_committed() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    harness.write("a.txt", "one\n");
    let work = harness.work();
    begin_rebase(&work);
    let command = [Answer::calls([bash("echo new > new.txt")]), ends()];
    let turn = harness.talk("command", command).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let is_unfinished = |state: &Value| state["_meta"]["git"]["unfinished"] == "rebase";
    harness.ann.until_session(SESSION, is_unfinished).await;
    let (client, mut events) = connect(&harness, "bob").await;
    let name = format!("turn/{}", turn["id"].as_str().unwrap());
    let changes = Followed::subscribe(&client, &name).await;
    assert_eq!(changes.names(), ["new.txt"], "what was there is not the turn's");

    let mut open = Followed::subscribe(&client, "uncommitted").await;
    open.ready(&mut events).await;
    assert_eq!(open.names(), ["a.txt", "new.txt"]);
    let before = (read_tree(&work), git(&work, &["status", "--porcelain"]));
    let message = json!({"_meta": {"message": "in between"}});
    for (operation, more) in [("stage", json!({})), ("commit", message), ("discard", json!({}))] {
        let refused = invoke(&client, &open.uri, operation, more).await;
        let refused = code(refused.unwrap_err());
        let is_said = refused.contains("-32011") && refused.contains("in the middle of a rebase");
        assert!(is_said, "{operation}: {refused}");
    }
    let after = (read_tree(&work), git(&work, &["status", "--porcelain"]));
    assert_eq!(after, before);

    // The agent ends it: what it decided is its turn's, what the commits brought along is in it, and the repository is usable again.
    let resolve = "echo both > a.txt && git add a.txt && git -c core.editor=true rebase --continue";
    let resolve = [Answer::calls([bash(resolve)]), ends()];
    let turn = harness.talk("resolve it", resolve).await;
    let is_finished = |state: &Value| {
        let git = &state["_meta"]["git"];
        git["branchName"] == "main" && git["unfinished"].is_null()
    };
    harness.ann.until_session(SESSION, is_finished).await;
    let name = format!("turn/{}", turn["id"].as_str().unwrap());
    let changes = Followed::subscribe(&client, &name).await;
    assert_eq!(changes.names(), ["a.txt"]);
    open.until(&mut events, has_files(1)).await;
    let message = json!({"_meta": {"message": "after it"}});
    invoke(&client, &open.uri, "commit", message).await.unwrap();
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
}
