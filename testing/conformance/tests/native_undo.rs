//! Files that the agent changed are restored at the user's command: `/undo`, `/redo`, `/rewind` (G-67).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use conformance::native::{NativeHarness, calls_of, ends, error_of, parts_of, texts_in};
use serde_json::{Value, json};
use testkit::{Answer, Call};

fn write(path: &str, content: &str) -> Call {
    let id = format!("w-{path}").replace('/', "-");
    Call::new(&id, "write", &json!({"path": path, "content": content}))
}

fn edit(path: &str, old: &str, new: &str) -> Call {
    let edits = json!([{"old_text": old, "new_text": new}]);
    let id = format!("e-{path}").replace('/', "-");
    Call::new(&id, "edit", &json!({"path": path, "edits": edits}))
}

async fn start() -> NativeHarness {
    NativeHarness::start_with(json!({"approvals": "full-access"})).await
}

/// A turn in which the model makes these calls.
async fn changes(
    harness: &mut NativeHarness,
    text: &str,
    calls: impl IntoIterator<Item = Call>,
) -> Value {
    let turn = harness.talk(text, [Answer::calls(calls), ends()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    turn
}

/// A command that asks; the question, and the turn once it is over.
async fn commands(harness: &mut NativeHarness, text: &str, option: &str) -> (Value, Value) {
    harness.ann.sends_message(text).await;
    let request = harness.ann.chooses(option).await;
    (request, harness.ann.turn_over().await)
}

/// A command that finds nothing to ask about; what it says.
async fn says(harness: &mut NativeHarness, text: &str) -> Vec<String> {
    harness.ann.sends_message(text).await;
    let turn = harness.ann.completed_turn().await;
    assert!(calls_of(&turn).is_empty(), "{turn:#}");
    texts_in(&turn, "systemNotification")
}

fn options(request: &Value) -> Vec<&str> {
    let options = request["questions"][0]["options"].as_array().unwrap();
    let ids = options.iter().map(|option| option["id"].as_str().unwrap());
    ids.collect()
}

fn mode_of(harness: &NativeHarness, path: &str) -> u32 {
    let metadata = fs::metadata(harness.work().join(path)).unwrap();
    metadata.permissions().mode() & 0o777
}

#[tokio::test]
async fn undo_restores_what_the_last_turn_changed_and_leaves_the_chat() {
    let mut harness = start().await;
    harness.write("a.sh", "one\ntwo\n");
    let path = harness.work().join("a.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let calls =
        [edit("a.sh", "two", "2\n3"), write("new/deep/b.txt", "b\n"), edit("a.sh", "one", "1")];
    changes(&mut harness, "change it", calls).await;
    assert_eq!(harness.read("a.sh"), "1\n2\n3\n");

    let (request, turn) = commands(&mut harness, "/undo", "restore").await;
    let expected = "Undo the file changes of “change it”:\n\n\
        - `a.sh` will be restored (+2 -3)\n- `new/deep/b.txt` will be removed (+0 -1)";
    assert_eq!(request["message"], expected);
    assert_eq!(options(&request), ["restore", "keep"]);
    assert_eq!(harness.read("a.sh"), "one\ntwo\n");
    assert_eq!(mode_of(&harness, "a.sh"), 0o751);
    assert!(!harness.work().join("new").exists());

    assert_eq!(turn["state"], "complete", "{turn:#}");
    let calls = calls_of(&turn);
    assert_eq!(calls.len(), 1, "{turn:#}");
    let edits: Vec<&Value> = calls[0]["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["type"] == "fileEdit")
        .collect();
    assert_eq!(edits.len(), 2, "what was done is shown as edits");
    let chat = harness.ann.sees();
    let turns = chat["turns"].as_array().unwrap().iter();
    let texts: Vec<&Value> = turns.map(|turn| &turn["message"]["text"]).collect();
    assert_eq!(texts, ["change it", "/undo"]);
}

#[tokio::test]
async fn the_model_is_told_and_sees_neither_the_command_nor_the_call() {
    let mut harness = start().await;
    harness.write("a.txt", "one\n");
    changes(&mut harness, "change it", [edit("a.txt", "one", "1")]).await;
    commands(&mut harness, "/undo", "restore").await;
    harness.talk("and now?", [ends()]).await;
    let messages = harness.last_messages();
    let last = messages.last().unwrap().to_string();
    assert!(last.contains("and now?"), "{last}");
    let told =
        "The user undid the file changes of “change it”: these files are as they were before it.";
    assert!(last.contains(told), "{last}");
    assert!(last.contains("`a.txt` restored (+1 -1)"), "{last}");
    let all = json!(messages).to_string();
    assert!(!all.contains("/undo") && !all.contains("restore_files"), "{all}");
    // It must read the file again before it replaces it: what it knows of it is not true any more.
    let stale = [write("a.txt", "mine\n")];
    let turn = changes(&mut harness, "replace it", stale).await;
    assert_eq!(calls_of(&turn)[0]["success"], false, "{turn:#}");
    assert_eq!(harness.read("a.txt"), "one\n");
}

#[tokio::test]
async fn undo_goes_further_back_each_time_and_redo_forth() {
    let mut harness = start().await;
    harness.write("a.txt", "0\n");
    changes(&mut harness, "first", [edit("a.txt", "0", "1")]).await;
    harness.talk("no change", [ends()]).await;
    changes(&mut harness, "second", [edit("a.txt", "1", "2"), write("b.txt", "b\n")]).await;

    let (request, _) = commands(&mut harness, "/undo", "restore").await;
    assert!(request["message"].as_str().unwrap().contains("“second”"));
    assert_eq!(harness.read("a.txt"), "1\n");
    let (request, _) = commands(&mut harness, "/undo", "restore").await;
    assert!(request["message"].as_str().unwrap().contains("“first”"));
    assert_eq!(harness.read("a.txt"), "0\n");
    let nothing = says(&mut harness, "/undo").await;
    assert!(nothing[0].starts_with("There is nothing to undo"), "{nothing:?}");

    harness.restart().await;
    commands(&mut harness, "/redo", "restore").await;
    assert_eq!(harness.read("a.txt"), "1\n");
    let (request, _) = commands(&mut harness, "/redo", "restore").await;
    let message = request["message"].as_str().unwrap();
    assert!(message.contains("`b.txt` will be re-created (+1 -0)"), "{message}");
    assert_eq!((harness.read("a.txt").as_str(), harness.read("b.txt").as_str()), ("2\n", "b\n"));
    assert_eq!(says(&mut harness, "/redo").await, ["There is nothing to redo."]);

    // What was redone can be undone, and a new change ends the way forth.
    commands(&mut harness, "/undo", "restore").await;
    assert_eq!(harness.read("a.txt"), "1\n");
    assert!(!harness.work().join("b.txt").exists());
    changes(&mut harness, "third", [write("c.txt", "c\n")]).await;
    assert_eq!(says(&mut harness, "/redo").await, ["There is nothing to redo."]);
}

#[tokio::test]
async fn a_file_that_somebody_changed_is_named_and_kept_unless_the_user_says_otherwise() {
    let mut harness = start().await;
    for (name, text) in [("a.txt", "a\n"), ("b.txt", "b\n")] {
        harness.write(name, text);
    }
    let calls = [edit("a.txt", "a", "A"), edit("b.txt", "b", "B")];
    changes(&mut harness, "change both", calls).await;
    harness.write("b.txt", "B and mine\n");

    let (request, turn) = commands(&mut harness, "/undo", "keep").await;
    assert_eq!(options(&request), ["restore", "restore-all", "keep"]);
    let message = request["message"].as_str().unwrap();
    assert!(message.contains("`b.txt` was changed after the agent's edit"), "{message}");
    assert!(calls_of(&turn).is_empty());
    assert_eq!(
        (harness.read("a.txt"), harness.read("b.txt")),
        ("A\n".to_owned(), "B and mine\n".to_owned())
    );

    commands(&mut harness, "/undo", "restore").await;
    assert_eq!(
        (harness.read("a.txt"), harness.read("b.txt")),
        ("a\n".to_owned(), "B and mine\n".to_owned())
    );
    commands(&mut harness, "/redo", "restore").await;
    assert_eq!(harness.read("a.txt"), "A\n");

    // Overwritten, it is not lost: the undo itself can be taken back.
    let calls = [edit("b.txt", "mine", "ours")];
    changes(&mut harness, "again", calls).await;
    harness.write("b.txt", "all mine\n");
    let (request, _) = commands(&mut harness, "/undo", "restore-all").await;
    assert_eq!(options(&request), ["restore-all", "keep"]);
    assert_eq!(harness.read("b.txt"), "B and mine\n");
    commands(&mut harness, "/redo", "restore").await;
    assert_eq!(harness.read("b.txt"), "all mine\n");
}

#[tokio::test]
async fn files_that_were_deleted_come_back_and_links_are_left_alone() {
    let mut harness = start().await;
    fs::create_dir(harness.work().join("dir")).unwrap();
    for name in ["dir/a.txt", "b.txt"] {
        harness.write(name, "old\n");
    }
    let path = harness.work().join("dir/a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let calls = [edit("dir/a.txt", "old", "new"), edit("b.txt", "old", "new")];
    changes(&mut harness, "change both", calls).await;
    fs::remove_dir_all(harness.work().join("dir")).unwrap();
    fs::remove_file(harness.work().join("b.txt")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("b.txt"), "new\n").unwrap();
    symlink(outside.path().join("b.txt"), harness.work().join("b.txt")).unwrap();

    let (request, turn) = commands(&mut harness, "/undo", "restore").await;
    let message = request["message"].as_str().unwrap();
    assert!(message.contains("`dir/a.txt` will be re-created (+1 -0)"), "{message}");
    assert!(message.contains("b.txt is a symbolic link by now"), "{message}");
    assert_eq!(harness.read("dir/a.txt"), "old\n");
    assert_eq!(mode_of(&harness, "dir/a.txt"), 0o600);
    assert_eq!(fs::read_to_string(outside.path().join("b.txt")).unwrap(), "new\n");
    let told = texts_in(&turn, "systemNotification").join("\n");
    assert!(told.contains("not restored: b.txt is a symbolic link"), "{told}");
}

#[tokio::test]
async fn a_user_may_undo_in_every_mode_and_after_a_denial_there_is_nothing_to_undo() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    harness.model.answers([Answer::calls([edit("a.txt", "one", "1")]), ends()]);
    harness.ann.sends_message("change it").await;
    harness.ann.decides(json!({"approved": false, "reason": "denied"})).await;
    harness.ann.turn_over().await;
    harness.write("a.txt", "one\nmine\n");
    let nothing = says(&mut harness, "/undo").await;
    assert!(nothing[0].starts_with("There is nothing to undo"), "{nothing:?}");

    harness.model.answers([Answer::calls([edit("a.txt", "one", "1")]), ends()]);
    harness.ann.sends_message("change it").await;
    harness.ann.decides(json!({})).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "1\nmine\n");
    let plan = json!({"type": "session/configChanged", "config": {"approvals": "plan"}});
    harness.ann.does_in(conformance::native::SESSION, plan).await;
    commands(&mut harness, "/undo", "restore").await;
    assert_eq!(harness.read("a.txt"), "one\nmine\n");
}

#[tokio::test]
async fn rewind_cuts_the_chat_then_offers_the_files_of_the_turns() {
    let mut harness = start().await;
    harness.write("a.txt", "0\n");
    changes(&mut harness, "first", [edit("a.txt", "0", "1")]).await;
    changes(&mut harness, "second", [edit("a.txt", "1", "2")]).await;
    changes(&mut harness, "third", [edit("a.txt", "2", "3"), write("b.txt", "b\n")]).await;
    let texts = |chat: &Value| -> Vec<String> {
        let turns = chat["turns"].as_array().unwrap().iter();
        turns.map(|turn| turn["message"]["text"].as_str().unwrap().to_owned()).collect()
    };

    // The turns are gone before the question is answered.
    harness.ann.sends_message("/rewind 2").await;
    let request = harness.ann.questioned().await;
    assert_eq!(texts(&harness.ann.sees()), ["first"]);
    let message = request["message"].as_str().unwrap();
    assert!(
        message.contains("“second”") && message.contains("`a.txt` will be restored (+1 -1)"),
        "{message}"
    );
    assert!(message.contains("`b.txt` will be removed (+0 -1)"), "{message}");
    // It survives a restart: the turn is resumed, and asks again.
    harness.restart().await;
    let chat = harness.ann.sees();
    let turn = chat["turns"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(error_of(&turn)["resumable"], true);
    harness.ann.resumes(&turn).await;
    harness
        .ann
        .until("it asks again", |chat| parts_of(&chat["activeTurn"], "inputRequest").len() == 2)
        .await;
    harness.ann.chooses("restore").await;
    harness.ann.until("it ends", |chat| chat["activeTurn"].is_null()).await;
    assert_eq!(harness.read("a.txt"), "1\n");
    assert!(!harness.work().join("b.txt").exists());
    assert_eq!(texts(&harness.ann.sees()), ["first", "/rewind 2"]);

    // What a rewind did to files can be undone like anything else.
    commands(&mut harness, "/undo", "restore").await;
    assert_eq!(
        (harness.read("a.txt"), harness.read("b.txt")),
        ("3\n".to_owned(), "b\n".to_owned())
    );

    // Kept files stay; a rewind over turns that changed none asks nothing.
    let (_, turn) = commands(&mut harness, "/rewind 1", "keep").await;
    assert_eq!(texts_in(&turn, "systemNotification")[1], "The files were left as they are.");
    assert_eq!(harness.read("a.txt"), "3\n");
    harness.talk("chat", [ends()]).await;
    assert_eq!(says(&mut harness, "/rewind 1").await, ["One turn was taken back."]);
}

#[tokio::test]
async fn a_fork_can_undo_what_it_was_forked_with() {
    let mut harness = start().await;
    harness.write("a.txt", "0\n");
    let turn = changes(&mut harness, "first", [edit("a.txt", "0", "1")]).await;
    let chat = harness.ann.chat.as_str().to_owned();
    let source = json!({"kind": "fork", "chat": chat, "turnId": turn["id"]});
    harness.ann.opens_chat("ahp-chat:/fork", source.clone()).await;
    commands(&mut harness, "/undo", "restore").await;
    assert_eq!(harness.read("a.txt"), "0\n");
    commands(&mut harness, "/redo", "restore").await;
    assert_eq!(harness.read("a.txt"), "1\n");
    // Turns that came with the fork can be cut off there, with their files.
    harness.ann.opens_chat("ahp-chat:/other", source).await;
    commands(&mut harness, "/rewind 1", "restore").await;
    assert_eq!(harness.read("a.txt"), "0\n");
}

#[tokio::test]
async fn a_declined_or_cancelled_question_changes_nothing() {
    let mut harness = start().await;
    harness.write("a.txt", "0\n");
    changes(&mut harness, "first", [edit("a.txt", "0", "1")]).await;
    harness.ann.sends_message("/undo").await;
    let request = harness.ann.questioned().await;
    let decline =
        json!({"type": "chat/inputCompleted", "requestId": request["id"], "response": "decline"});
    harness.ann.does(decline).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(texts_in(&turn, "systemNotification"), ["Nothing was undone; no file was changed."]);
    harness.ann.sends_message("/undo").await;
    harness.ann.questioned().await;
    harness.ann.cancels().await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(turn["state"], "cancelled");
    assert_eq!(harness.read("a.txt"), "1\n");
    // Neither counts as an undo.
    commands(&mut harness, "/undo", "restore").await;
    assert_eq!(harness.read("a.txt"), "0\n");
}

#[tokio::test]
async fn a_file_that_changes_while_the_question_is_open_is_left_alone() {
    let mut harness = start().await;
    harness.write("a.txt", "0\n");
    changes(&mut harness, "first", [edit("a.txt", "0", "1"), write("b.txt", "b\n")]).await;
    harness.ann.sends_message("/undo").await;
    harness.ann.questioned().await;
    harness.write("a.txt", "mine\n");
    harness.ann.chooses("restore").await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "mine\n");
    assert!(!harness.work().join("b.txt").exists());
    let told = texts_in(&turn, "systemNotification").join("\n");
    assert!(
        told.contains("`b.txt` removed") && told.contains("not restored: a.txt has changed"),
        "{told}"
    );
}

#[tokio::test]
async fn a_word_after_the_command_is_an_error_that_says_what_to_do() {
    let mut harness = start().await;
    harness.ann.sends_message("/undo 2").await;
    let turn = harness.ann.turn_over().await;
    let message = error_of(&turn)["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("/undo takes nothing after it"), "{message}");
}

#[tokio::test]
async fn rewind_without_a_number_asks_how_far() {
    let mut harness = start().await;
    harness.write("a.txt", "0\n");
    changes(&mut harness, "first", [edit("a.txt", "0", "1")]).await;
    changes(&mut harness, "second", [edit("a.txt", "1", "2")]).await;
    harness.talk("third", [ends()]).await;
    let (request, turn) = commands(&mut harness, "/rewind", "keep").await;
    assert_eq!(options(&request), ["1", "2", "3", "keep"]);
    let labels = request["questions"][0]["options"].to_string();
    assert!(labels.contains("second (2 turns)"), "{labels}");
    assert_eq!(texts_in(&turn, "systemNotification"), ["Nothing was taken back."]);

    // One more turn by now: that of the command before. The turn of this one goes, too, and begins anew.
    harness.ann.sends_message("/rewind").await;
    harness.ann.chooses("3").await;
    harness
        .ann
        .until("it begins anew", |chat| chat["activeTurn"]["message"]["text"] == "/rewind 3")
        .await;
    let request = harness.ann.chooses("restore").await;
    assert!(request["message"].as_str().unwrap().contains("“second”"), "{request}");
    let chat = harness.ann.until("it ends", |chat| chat["activeTurn"].is_null()).await;
    let turns = chat["turns"].as_array().unwrap().iter();
    let texts: Vec<&Value> = turns.map(|turn| &turn["message"]["text"]).collect();
    assert_eq!(texts, ["first", "/rewind 3"]);
    assert_eq!(harness.read("a.txt"), "1\n");
    harness.talk("go on", [ends()]).await;
    let all = json!(harness.last_messages()).to_string();
    assert!(!all.contains("second") || all.contains("before “second”"), "{all}");
    assert!(!all.contains("/rewind"), "{all}");
}
