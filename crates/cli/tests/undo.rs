//! Files are restored by the real binary: asked for in a terminal, and killed in the middle of an edit and of an undo (G-67).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use conformance::native::{ChatClient, ends, texts_in};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, Call, ModelServer};

use crate::running::Host;
use crate::terminal::Terminal;

const SESSION: &str = "native:/undo";

/// Files that one turn changes: enough for a kill to come in between.
const FILES: usize = 40;

async fn start(data: TempDir, server: &ModelServer) -> Host {
    let model = format!("{}#echo", server.url());
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &["--model", &model]));
    started.await.unwrap()
}

async fn arrives(host: &Host) -> ChatClient {
    ChatClient::arrives_at(&host.target(), "ann").await
}

fn edit(path: &str, old: &str, new: &str) -> Call {
    let edits = json!([{"old_text": old, "new_text": new}]);
    let id = format!("call-{path}");
    Call::new(&id, "edit", &json!({"path": path, "edits": edits}))
}

fn file(work: &Path, number: usize) -> PathBuf {
    work.join(format!("{number}.txt"))
}

/// Waits until a file holds a text.
async fn holds(path: &Path, text: &str) {
    let waits = async {
        while fs::read_to_string(path).is_ok_and(|found| found != text) {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), waits).await;
    waited.unwrap();
}

/// The host is killed; another takes over, and Ann comes back.
async fn killed(host: Host, server: &ModelServer, chat: &str) -> (Host, ChatClient) {
    let host = start(host.kill(), server).await;
    let mut ann = arrives(&host).await;
    ann.enters(SESSION, chat).await;
    (host, ann)
}

async fn undoes(ann: &mut ChatClient) -> Value {
    ann.sends_message("/undo").await;
    ann.chooses("restore").await;
    ann.turn_over().await
}

#[tokio::test]
async fn a_killed_edit_can_be_undone_and_a_killed_undo_be_finished() {
    let server = ModelServer::start().await;
    let host = start(tempfile::tempdir().unwrap(), &server).await;
    let work = host.data.path().canonicalize().unwrap();
    for number in 0..FILES {
        fs::write(file(&work, number), "old\n").unwrap();
    }
    let mut ann = arrives(&host).await;
    let config = json!({"approvals": "full-access"});
    ann.creates_session(SESSION, &work, config).await;
    let chat = ann.chat.as_str().to_owned();

    // Killed as soon as a file has changed: whether the call is known to be over or not, it can be undone.
    let call = edit("0.txt", "old", "new");
    server.answers([Answer::calls([call]), ends()]);
    ann.sends_message("change one").await;
    holds(&file(&work, 0), "new\n").await;
    let (host, mut ann) = killed(host, &server, &chat).await;
    undoes(&mut ann).await;
    assert_eq!(fs::read_to_string(file(&work, 0)).unwrap(), "old\n");

    let calls = (0..FILES).map(|number| edit(&format!("{number}.txt"), "old", "new"));
    // The answer after the killed call may not have been asked for.
    server.answers_to("change all", [Answer::calls(calls), ends()]);
    ann.sends_message("change all").await;
    ann.turn_over().await;

    // Killed as soon as the first is restored: each is either as it was or restored, and nothing is left beside them.
    ann.sends_message("/undo").await;
    ann.chooses("restore").await;
    holds(&file(&work, 0), "old\n").await;
    let (_host, mut ann) = killed(host, &server, &chat).await;
    for number in 0..FILES {
        let found = fs::read_to_string(file(&work, number)).unwrap();
        assert!(found == "old\n" || found == "new\n", "{number}: {found:?}");
    }
    // Running it again finishes; if it was finished already, it says so and goes further back, where nothing is left.
    ann.sends_message("/undo").await;
    let chat = ann
        .until("it asks or says", |chat| {
            let is_asked = chat["activeTurn"].to_string().contains("inputRequest");
            is_asked
                || chat["activeTurn"].is_null()
                    && chat["turns"].to_string().contains("nothing to undo")
        })
        .await;
    if chat["activeTurn"].is_object() {
        ann.chooses("restore").await;
    }
    let turn = ann.turn_over().await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    for number in 0..FILES {
        let found = fs::read_to_string(file(&work, number)).unwrap();
        assert_eq!(found, "old\n", "{number}: {:?}", texts_in(&turn, "systemNotification"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undo_is_typed_and_answered_in_a_terminal() {
    let server = ModelServer::start().await;
    let host = start(tempfile::tempdir().unwrap(), &server).await;
    let work = host.data.path().canonicalize().unwrap();
    fs::write(work.join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(work.join("b.txt"), "b\n").unwrap();
    let calls = [
        edit("a.txt", "two", "2"),
        edit("b.txt", "b", "B"),
        Call::new("w", "write", &json!({"path": "new.txt", "content": "n\n"})),
    ];
    server.answers([Answer::calls(calls), Answer::streams(["All changed."])]);
    let mut ann = arrives(&host).await;
    let config = json!({"approvals": "full-access"});
    ann.creates_session(SESSION, &work, config).await;
    let typed = tokio::task::spawn_blocking(move || type_undo(&host, &work));
    typed.await.unwrap();
}

fn type_undo(host: &Host, work: &Path) {
    let mut command = host.greenroom();
    command.args(["chat", "--session", SESSION]);
    let mut ann = Terminal::start("ann", command);
    ann.sees("\n›");
    ann.type_line("change them");
    ann.sees("All changed.");
    fs::write(work.join("b.txt"), "mine\n").unwrap();

    ann.type_line("/undo");
    let screen = ann.sees("Undo these changes?");
    for text in [
        "`a.txt` will be restored (+1 -1)",
        "`new.txt` will be removed (+0 -1)",
        "`b.txt` was changed after the agent's edit",
        "Restore 2 files; keep what was changed since",
        "Restore 3 files; overwrite what was changed since",
        "Leave all files as they are",
    ] {
        assert!(screen.contains(text), "{text}:\n{screen}");
    }
    ann.decide('1');
    ann.sees("The user undid the file changes of");
    let read = |name: &str| fs::read_to_string(work.join(name)).unwrap();
    assert_eq!((read("a.txt").as_str(), read("b.txt").as_str()), ("one\ntwo\n", "mine\n"));
    assert!(!work.join("new.txt").exists());

    ann.type_line("/redo");
    ann.sees("Redo these changes?");
    ann.decide('1');
    ann.sees("The user redid file changes");
    assert_eq!((read("a.txt").as_str(), read("new.txt").as_str()), ("one\n2\n", "n\n"));
}
