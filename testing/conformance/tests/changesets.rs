//! What turns changed in files, as a published client sees it: catalogue, channels, reviews, operations; and that every byte comes back
//! (G-53, G-72, H-285 to H-289).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ahp::reducers::{apply_action_to_changeset, apply_action_to_session};
use ahp::{Client, ClientError, ClientEventStream, SubscriptionEvent};
use ahp_types::actions::{ChangesetFilesReviewChangedAction, StateAction};
use ahp_types::state::{ChangesetState, SnapshotState};
use conformance::file_tree::read_tree;
use conformance::native::{NativeHarness, SESSION, bash, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};
use tokio::time::timeout;

use crate::published_client::arrives;

pub(crate) fn git(directory: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    let command = command.current_dir(directory).args(args);
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Makes the working directory a repository with all its files committed.
pub(crate) fn commit_all(directory: &Path) {
    git(directory, &["init", "--quiet", "--initial-branch=main"]);
    git(directory, &["config", "user.name", "Test"]);
    git(directory, &["config", "user.email", "test@example.com"]);
    git(directory, &["add", "--all"]);
    git(directory, &["commit", "--quiet", "-m", "first"]);
}

fn prepare(harness: &NativeHarness) {
    harness.write("edited.txt", "one\ntwo\n");
    harness.write("formatted.txt", "a   b\r\nc\n");
    harness.write("gone.txt", "gone\n");
    harness.write("moved.txt", "this file moves\n");
    harness.write("mode.sh", "echo\n");
    let work = harness.work();
    fs::write(work.join("binary"), b"\0\xff\xfe\0").unwrap();
    symlink("edited.txt", work.join("link")).unwrap();
}

/// A turn that does all that can be done to files, by tools and by commands.
async fn do_everything(harness: &mut NativeHarness) -> String {
    let edits = json!([{"old_text": "two", "new_text": "2\n3"}]);
    let tools = [
        Call::new("e1", "edit", &json!({"path": "edited.txt", "edits": edits})),
        Call::new("w1", "write", &json!({"path": "new/tool.txt", "content": "tool\n"})),
    ];
    let commands = "rm gone.txt && mkdir -p sub/dir && mv moved.txt sub/dir/there.txt && \
        sed -i 's/   / /' formatted.txt && chmod 755 mode.sh && printf '\\0\\1' > binary && \
        echo more >> edited.txt && echo made > made.txt && rm link && ln -s made.txt link";
    let last = json!([{"old_text": "made", "new_text": "made better"}]);
    let answers = [
        Answer::calls(tools),
        Answer::calls([bash(commands)]),
        Answer::calls([Call::new("r", "read", &json!({"path": "made.txt"}))]),
        Answer::calls([Call::new("e2", "edit", &json!({"path": "made.txt", "edits": last}))]),
        ends(),
    ];
    let turn = harness.talk("do everything", answers).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    turn["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn connect(harness: &NativeHarness, name: &str) -> (Client, ClientEventStream) {
    let client = arrives(&harness.host().url, name).await;
    let events = client.events();
    (client, events)
}

/// A changeset that a published client follows by its own reducers.
pub(crate) struct Followed {
    pub(crate) uri: String,
    pub(crate) state: ChangesetState,
    /// The kinds of actions that came.
    seen: Vec<String>,
}

impl Followed {
    pub(crate) async fn subscribe(client: &Client, name: &str) -> Self {
        Self::subscribe_in(client, SESSION, name).await
    }

    pub(crate) async fn subscribe_in(client: &Client, session: &str, name: &str) -> Self {
        let uri = format!("{session}/changeset/{name}");
        let (result, _) = client.subscribe(uri.clone()).await.unwrap();
        let SnapshotState::Changeset(state) = result.snapshot.unwrap().state else {
            panic!("a changeset")
        };
        let (state, seen) = (*state, Vec::new());
        Self { uri, state, seen }
    }

    pub(crate) async fn until(
        &mut self,
        events: &mut ClientEventStream,
        is_so: impl Fn(&Value) -> bool,
    ) {
        let follows = async {
            while !is_so(&json!(self.state)) {
                let event = events.recv().await.expect("the stream goes on");
                let SubscriptionEvent::Action(envelope) = event.event else { continue };
                let action = &envelope.action;
                assert!(!matches!(action, StateAction::Unknown(_)), "{action:?}");
                if envelope.channel == self.uri {
                    let kind = json!(action)["type"].as_str().unwrap().to_owned();
                    self.seen.push(kind);
                    apply_action_to_changeset(&mut self.state, action);
                }
            }
        };
        let waited = timeout(Duration::from_secs(60), follows).await;
        assert!(waited.is_ok(), "{:#?} {:#?}", self.seen, self.state);
    }

    pub(crate) async fn ready(&mut self, events: &mut ClientEventStream) {
        self.until(events, |state| state["status"] == "ready").await;
    }

    /// They have no order.
    pub(crate) fn names(&self) -> Vec<String> {
        let files = self.state.files.iter();
        let mut names: Vec<String> = files
            .map(|file| {
                file.id
                    .rsplit_once("/work")
                    .map(|(_, name)| name.trim_start_matches('/'))
                    .unwrap()
                    .to_owned()
            })
            .collect();
        names.sort();
        names
    }
}

pub(crate) async fn invoke(
    client: &Client,
    uri: &str,
    operation: &str,
    more: Value,
) -> Result<Value, ClientError> {
    let mut params = json!({"channel": uri, "operationId": operation});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    client.request("invokeChangesetOperation", params).await
}

pub(crate) fn code(error: ClientError) -> String {
    format!("{error:?}")
}

#[tokio::test]
async fn a_turn_that_did_everything_is_undone_byte_for_byte() {
    for in_git in [true, false] {
        let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
        prepare(&harness);
        if in_git {
            commit_all(&harness.work());
        }
        let before = read_tree(&harness.work());
        do_everything(&mut harness).await;
        let after = read_tree(&harness.work());
        assert_ne!(before, after);
        harness.ann.sends_message("/undo").await;
        let request = harness.ann.chooses("restore").await;
        harness.ann.turn_over().await;
        assert_eq!(read_tree(&harness.work()), before, "git: {in_git}; {request:#}");
        harness.ann.sends_message("/redo").await;
        harness.ann.chooses("restore").await;
        harness.ann.turn_over().await;
        assert_eq!(read_tree(&harness.work()), after, "git: {in_git}");
    }
}

#[tokio::test]
async fn a_published_client_sees_the_changes_of_a_turn_and_restores_them() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    prepare(&harness);
    commit_all(&harness.work());
    let before = read_tree(&harness.work());
    let turn = do_everything(&mut harness).await;
    let (client, mut events) = connect(&harness, "bob").await;
    let name = format!("turn/{turn}");
    let mut changes = Followed::subscribe(&client, &name).await;
    let expected = [
        "binary",
        "edited.txt",
        "formatted.txt",
        "gone.txt",
        "link",
        "made.txt",
        "mode.sh",
        "new/tool.txt",
        "sub/dir/there.txt",
    ];
    assert_eq!(changes.names(), expected);
    let state = json!(changes.state);
    let edit = |name: &str| {
        let mut files = state["files"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|file| file["id"].as_str().unwrap().ends_with(name));
        files.next().unwrap()["edit"].clone()
    };
    assert_eq!(edit("edited.txt")["diff"], json!({"added": 3, "removed": 1}));
    assert!(edit("gone.txt")["after"].is_null() && edit("made.txt")["before"].is_null());
    let moved = edit("there.txt");
    assert!(moved["before"]["uri"].as_str().unwrap().ends_with("moved.txt"), "{moved}");
    // What it was is content that can be read.
    let content = edit("gone.txt")["before"]["content"]["uri"].clone();
    let read: Value = client
        .request("resourceRead", json!({"channel": "ahp-root://", "uri": content}))
        .await
        .unwrap();
    assert_eq!(read["data"], "gone\n", "{read}");

    // Somebody changed a file since: nothing is done unless that is wanted.
    harness.write("made.txt", "mine\n");
    let at_hand = read_tree(&harness.work());
    let refused = invoke(&client, &changes.uri, "restore", json!({})).await.unwrap_err();
    let refused = code(refused);
    assert!(refused.contains("-32011") && refused.contains("made.txt"), "{refused}");
    assert_eq!(read_tree(&harness.work()), at_hand);
    let forced = json!({"_meta": {"force": true}});
    invoke(&client, &changes.uri, "restore", forced).await.unwrap();
    assert_eq!(read_tree(&harness.work()), before);
    changes
        .until(&mut events, |state| {
            let mut operations = state["operations"].as_array().unwrap().iter();
            operations.all(|operation| operation["status"] == "idle")
        })
        .await;
    let mut session = Followed::subscribe(&client, "session").await;
    session.ready(&mut events).await;
    assert_eq!(session.names(), [""; 0], "all of it was taken back");
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one conversation, told in order")]
async fn operations_on_what_is_not_committed() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    prepare(&harness);
    commit_all(&harness.work());
    let before = read_tree(&harness.work());
    harness.talk("look", [Answer::calls([bash("true")]), ends()]).await;
    let (client, mut events) = connect(&harness, "bob").await;
    let (result, _) = client.subscribe(SESSION.to_owned()).await.unwrap();
    let SnapshotState::Session(mut session) = result.snapshot.unwrap().state else {
        panic!("a session")
    };
    let found = timeout(Duration::from_secs(60), async {
        while json!(session)["_meta"]["git"]["branchName"] != "main" {
            if let SubscriptionEvent::Action(envelope) = events.recv().await.unwrap().event {
                apply_action_to_session(&mut session, &envelope.action);
            }
        }
    });
    found.await.unwrap();
    let kinds: Vec<String> =
        session.changesets.clone().unwrap().into_iter().map(|it| it.change_kind).collect();
    assert_eq!(kinds, ["session", "turn", "uncommitted"]);
    let mut open = Followed::subscribe(&client, "uncommitted").await;
    open.ready(&mut events).await;
    assert_eq!(open.names(), [""; 0]);
    do_everything(&mut harness).await;
    open.until(&mut events, |state| {
        state["status"] == "ready" && state["files"].as_array().unwrap().len() == 9
    })
    .await;

    // A review stays until the content changes.
    let files: Vec<String> = open.state.files.iter().map(|file| file.id.clone()).take(2).collect();
    let review = StateAction::ChangesetFilesReviewChanged(ChangesetFilesReviewChangedAction {
        files: files.clone(),
        reviewed: true,
    });
    client.dispatch(open.uri.clone(), review).await.unwrap();
    open.until(&mut events, |state| state["files"][1]["reviewed"] == true).await;
    let path = harness.work().join("binary");
    fs::write(path, "other").unwrap();
    harness.talk("again", [Answer::calls([bash("echo x >> made.txt")]), ends()]).await;
    open.until(&mut events, |state| {
        state["status"] == "ready"
            && state["files"][0]["reviewed"] != true
            && state["files"][1]["reviewed"] == true
    })
    .await;

    let no_message = code(invoke(&client, &open.uri, "commit", json!({})).await.unwrap_err());
    assert!(no_message.contains("-32602"), "{no_message}");
    let unknown = code(invoke(&client, &open.uri, "merge", json!({})).await.unwrap_err());
    assert!(unknown.contains("-32602"), "{unknown}");
    let target = |name: &str| {
        let file = open.state.files.iter().find(|file| file.id.ends_with(name)).unwrap();
        json!({"target": {"kind": "resource", "resource": file.id}})
    };
    invoke(&client, &open.uri, "stage", target("edited.txt")).await.unwrap();
    assert_eq!(git(&harness.work(), &["diff", "--cached", "--name-only"]), "edited.txt");
    let message = json!({"_meta": {"message": "Only this"}});
    let committed = invoke(&client, &open.uri, "commit", message).await.unwrap();
    assert!(committed["message"].as_str().unwrap().contains("hooks"), "{committed}");
    assert_eq!(git(&harness.work(), &["log", "-1", "--format=%s"]), "Only this");
    invoke(&client, &open.uri, "discard", target("gone.txt")).await.unwrap();
    assert_eq!(harness.read("gone.txt"), "gone\n");
    invoke(&client, &open.uri, "discard", json!({})).await.unwrap();
    let after = read_tree(&harness.work());
    let differs: Vec<&String> = before
        .iter()
        .filter(|(name, it)| after.get(*name) != Some(it))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(differs, ["edited.txt"], "what was committed stays");
    open.until(&mut events, |state| state["status"] == "ready" && state["files"] == json!([]))
        .await;
    let kinds = [
        "changeset/statusChanged",
        "changeset/contentChanged",
        "changeset/operationStatusChanged",
        "changeset/filesReviewChanged",
    ];
    for kind in kinds {
        assert!(open.seen.iter().any(|seen| seen == kind), "{kind} in {:?}", open.seen);
    }
    // The end of the session empties it.
    let last = [Answer::calls([bash("echo last > last.txt")]), ends()];
    harness.talk("last", last).await;
    open.until(&mut events, |state| {
        state["status"] == "ready"
            && state["files"].as_array().is_some_and(|files| files.len() == 1)
    })
    .await;
    let dispose: Value =
        client.request("disposeSession", json!({"channel": SESSION})).await.unwrap();
    assert!(dispose.is_null());
    let cleared = timeout(Duration::from_secs(60), async {
        loop {
            let event = events.recv().await.expect("the stream goes on");
            if let SubscriptionEvent::Action(envelope) = event.event
                && matches!(envelope.action, StateAction::ChangesetCleared(_))
            {
                return;
            }
        }
    });
    cleared.await.unwrap();
}

#[tokio::test]
async fn what_the_user_changes_between_calls_is_not_the_agents() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "ask"})).await;
    harness.write("mine.txt", "mine\n");
    harness.write("its.txt", "its\n");
    commit_all(&harness.work());
    harness.model.answers([
        Answer::calls([bash("echo changed > its.txt")]),
        Answer::calls([bash("true")]),
        ends(),
    ]);
    harness.ann.sends_message("go").await;
    let approve = json!({"selectedOptionId": "approve"});
    harness.ann.decides(approve.clone()).await;
    // It asks again: no call runs.
    harness
        .ann
        .until("the second question", |chat| {
            let parts = chat["activeTurn"]["responseParts"].as_array().unwrap();
            let calls = parts.iter().filter(|part| part["kind"] == "toolCall");
            calls.filter(|part| part["toolCall"]["status"] == "pending-confirmation").count() == 1
                && parts.iter().any(|part| part["toolCall"]["status"] == "completed")
        })
        .await;
    let mut tick = tokio::time::interval(Duration::from_millis(60));
    tick.tick().await;
    tick.tick().await; // the clock of files goes by ticks
    harness.write("mine.txt", "changed by me\n");
    tick.tick().await;
    harness.ann.decides(approve).await;
    let turn = harness.ann.turn_over().await;
    let (client, _) = connect(&harness, "bob").await;
    let name = format!("turn/{}", turn["id"].as_str().unwrap());
    let changes = Followed::subscribe(&client, &name).await;
    assert_eq!(changes.names(), ["its.txt"]);
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let mut harness = NativeHarness::start().await;
    let turn = harness.talk("hello", [ends()]).await;
    let (client, _) = connect(&harness, "bob").await;
    for (uri, expected) in [
        (format!("{SESSION}/changeset/turn/none"), "-32008"),
        (format!("{SESSION}/changeset/uncommitted"), "-32008"),
        ("ahp-session:/none/changeset/session".to_owned(), "-32001"),
    ] {
        let refused = code(client.subscribe(uri).await.err().unwrap());
        assert!(refused.contains(expected), "{refused}");
    }
    // A turn that changed nothing has an empty one.
    let name = format!("turn/{}", turn["id"].as_str().unwrap());
    let empty = Followed::subscribe(&client, &name).await;
    assert_eq!((empty.names().len(), json!(empty.state)["status"].clone()), (0, json!("ready")));
}
