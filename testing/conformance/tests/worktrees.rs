//! Sessions that work in a git worktree of their own (G-54).

use std::path::PathBuf;
use std::time::Duration;

use conformance::native::NativeHarness;
use conformance::vscode::{Code, ROOT};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::changesets::{commit_all, connect, git};

#[tokio::test]
async fn a_session_may_have_a_worktree_of_its_own() {
    let harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let work = harness.work();
    commit_all(&work);
    git(&work, &["branch", "side"]);
    let (client, _) = connect(&harness, "bob").await;
    let directory = format!("file://{}", work.display());
    let question = json!({"channel": "ahp-root://", "provider": "native", "workingDirectory": directory, "property": "branch", "query": "si"});
    let offered: Value = client.request("sessionConfigCompletions", question).await.unwrap();
    assert_eq!(offered["items"], json!([{"value": "side", "label": "side"}]));
    let session = "native:/apart";
    let config = json!({"isolation": "worktree", "branch": "side"});
    let create = json!({"channel": session, "provider": "native", "workingDirectories": [directory], "config": config});
    let _: Value = client.request("createSession", create).await.unwrap();
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let state = loop {
        ticks.tick().await;
        let (result, _) = client.subscribe(session.to_owned()).await.unwrap();
        let state = json!(result.snapshot.unwrap().state);
        if state["lifecycle"] == "ready" && state["_meta"]["git"]["branchName"].is_string() {
            break state;
        }
    };
    let top = work.canonicalize().unwrap().join(".greenroom/worktrees/apart");
    assert_eq!(state["workingDirectories"], json!([format!("file://{}", top.display())]));
    assert_eq!(state["_meta"]["git"]["branchName"], "greenroom/apart");
    assert_eq!(state["_meta"]["git"]["baseBranchName"], "side");
    assert_eq!(git(&top, &["branch", "--show-current"]), "greenroom/apart");
    assert_eq!(git(&work, &["status", "--short"]), "", "it is excluded");
    let _: Value = client.request("disposeSession", json!({"channel": session})).await.unwrap();
    let gone = timeout(Duration::from_secs(60), async {
        while top.exists() {
            ticks.tick().await;
        }
    });
    gone.await.unwrap();
}

/// Waits until a session is ready and the host has looked at its repository.
async fn ready(client: &ahp::Client, session: &str) -> Value {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let wait = async {
        loop {
            ticks.tick().await;
            let (result, _) = client.subscribe(session.to_owned()).await.unwrap();
            let state = json!(result.snapshot.unwrap().state);
            if state["lifecycle"] == "ready" && state["_meta"]["git"]["branchName"].is_string() {
                return state;
            }
        }
    };
    let state = timeout(Duration::from_secs(60), wait).await;
    state.expect("the session is ready")
}

fn path(uri: &Value) -> PathBuf {
    PathBuf::from(uri.as_str().unwrap().strip_prefix("file://").unwrap())
}

#[tokio::test]
async fn a_changed_worktree_is_kept_and_a_moved_chat_gets_its_own() {
    let place = tempfile::tempdir().unwrap();
    let worktrees = place.path().canonicalize().unwrap().join("worktrees");
    let place_of_worktrees = worktrees.clone();
    let settings = move |host: &mut host::Config| {
        host.worktree_dir = Some(place_of_worktrees.clone());
    };
    let harness = NativeHarness::start_with_settings(json!({}), |_| {}, settings).await;
    harness.write("a.txt", "one\n");
    let work = harness.work();
    commit_all(&work);
    let (client, _) = connect(&harness, "bob").await;
    let directory = format!("file://{}", work.display());
    let session = "native:/apart";
    let create = json!({"channel": session, "provider": "native", "workingDirectories": [directory],
        "config": {"isolation": "worktree"}});
    let _: Value = client.request("createSession", create).await.unwrap();
    let state = ready(&client, session).await;
    let top = path(&state["workingDirectories"][0]);
    assert!(top.starts_with(&worktrees), "{}", top.display());
    assert!(!work.join(".greenroom").exists());
    std::fs::write(top.join("b.txt"), "committed\n").unwrap();
    git(&top, &["add", "b.txt"]);
    git(&top, &["commit", "--quiet", "-m", "more"]);
    std::fs::write(top.join("a.txt"), "two\n").unwrap();

    // A chat of its own session works elsewhere.
    let chat = "ahp-chat:/side";
    let create = json!({"channel": session, "chat": chat});
    let _: Value = client.request("createChat", create).await.unwrap();
    let target = json!({"channel": chat, "destination": {"kind": "newSession"}});
    let moved: Value = client.request("moveChat", target).await.unwrap();
    let other = moved["session"].as_str().unwrap().to_owned();
    let state = ready(&client, &other).await;
    let own = path(&state["workingDirectories"][0]);
    assert!(own.starts_with(&worktrees) && own != top, "{state:#}");
    assert_eq!(std::fs::read(own.join("b.txt")).unwrap(), b"committed\n");
    assert_eq!(std::fs::read(own.join("a.txt")).unwrap(), b"one\n");

    let dispose = json!({"channel": session});
    let answer: Value = client.request("disposeSession", dispose).await.unwrap();
    let told = answer["_meta"]["greenroom.message"].as_str().unwrap();
    assert!(told.contains(&*top.to_string_lossy()), "{told}");
    assert!(told.contains("1 files are not committed"), "{told}");
    assert!(top.join("a.txt").exists() && own.join("a.txt").exists());
}

/// Whoever waits for a worktree hears how it goes on (H-103), and nothing more once it is done.
#[tokio::test]
async fn the_creation_of_a_worktree_is_told_step_by_step() {
    let harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let work = harness.work();
    commit_all(&work);
    let mut window = Code::opens(harness.host()).await;
    window.initializes(&[ROOT]).await;
    let session = "native:/apart";
    let directory = format!("file://{}", work.display());
    let params = json!({"channel": session, "provider": "native", "workingDirectories": [directory],
        "config": {"isolation": "worktree"}, "progressToken": "p"});
    window.asks("createSession", params).await.unwrap();
    let is_progress = |frame: &Value| frame["method"] == "root/progress";
    let mut told = Vec::new();
    while told.len() < 4 {
        let frame = window.receive("progress", is_progress).await;
        assert_eq!(frame["params"]["progressToken"], "p", "{frame}");
        told.push(frame["params"].clone());
    }
    let of = |params: &Value| (params["progress"].clone(), params["total"].clone());
    let steps: Vec<(Value, Value)> = told.iter().map(of).collect();
    let expected =
        [(json!(0), Value::Null), (json!(1), json!(3)), (json!(2), json!(3)), (json!(3), json!(3))];
    assert_eq!(steps, expected, "{told:#?}");
    assert_eq!(told[1]["message"], "making a worktree");
    assert_eq!(told[2]["message"], "starting the agent");
    let state = window.state(session).await;
    assert_eq!(state["lifecycle"], "ready", "{state:#}");
    assert!(path(&state["workingDirectories"][0]).ends_with(".greenroom/worktrees/apart"));
    assert!(!window.inbox.iter().any(is_progress), "that was the last");
}
