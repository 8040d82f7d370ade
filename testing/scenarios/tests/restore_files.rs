//! Commands that ask about files, as the kernel carries them out: in a run of the host's own, in the turn of the command (G-67).
//! Here a script stands for who restores the files.

use agent_api::{AgentEvent, FileContent, RecordedEdit, ToolReady, ToolResult, ToolStart};
use host::blobs::Blobs as _;
use kernel::RestoreTask;
use serde_json::{Value, json};
use testkit::{Kill, Scenario, ScenarioClient};

/// What an agent's host stores before the agent names it.
fn content(s: &mut Scenario, body: &str) -> Option<FileContent> {
    let world = s.world();
    let digest = world.blobs.put(body.as_bytes(), world.now).unwrap();
    Some(FileContent { digest, mode: Some(0o644) })
}

fn edits(s: &mut Scenario) -> AgentEvent {
    let edits = vec![RecordedEdit {
        uri: "file:///w/a".to_owned(),
        before: content(s, "before"),
        after: content(s, "after"),
        new_directories: 0,
        is_made: false,
    }];
    AgentEvent::ToolEdits { call: 1, edits }
}

/// The next turn edits a file; with `ends` it says that it is done.
fn edits_next(s: &mut Scenario, ends: bool) {
    let start = Box::new(ToolStart {
        name: "edit".to_owned(),
        display_name: "Edit".to_owned(),
        ..ToolStart::default()
    });
    let ready = Box::new(ToolReady::confirmed("Edit a", "{}".to_owned()));
    let edits = edits(s);
    let script = s
        .model()
        .emits(AgentEvent::ToolStarted { call: 1, start })
        .emits(AgentEvent::ToolReady { call: 1, ready })
        .emits(edits);
    if ends {
        script.emits(AgentEvent::ToolCompleted {
            call: 1,
            result: ToolResult::new(true, "Edited a"),
            review: false,
        });
    } else {
        script.hangs();
    }
}

fn tasks(s: &Scenario) -> Vec<Option<RestoreTask>> {
    let asked = s.look().models.asked.clone();
    asked.into_iter().map(|turn| turn.restore).collect()
}

fn turn_texts(client: &ScenarioClient) -> Vec<String> {
    let state = client.sees(&client.chat());
    let turns = state["turns"].as_array().cloned().unwrap_or_default();
    let texts = turns.iter().map(|turn| turn["message"]["text"].as_str());
    texts.map(|text| text.unwrap().to_owned()).collect()
}

fn edits_in(turn: &Value) -> Value {
    let parts = turn["responseParts"].as_array().unwrap();
    let call = parts.iter().find(|part| part["kind"] == "toolCall").unwrap();
    call["toolCall"]["_meta"][wire::meta::EDITS].clone()
}

#[test]
fn what_a_call_is_about_to_change_stays_with_it_also_if_the_host_dies() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    edits_next(&mut s, true);
    ann.sends_message("change");
    let recorded = edits_in(&bob.latest_turn());
    assert_eq!(recorded[0]["uri"], "file:///w/a");
    assert_eq!(recorded[0]["before"]["mode"], 0o644);

    edits_next(&mut s, false);
    ann.sends_message("change again");
    s.host_is_killed();
    s.host_restarts_for([&ann, &bob]);
    s.settles();
    let turn = bob.latest_turn();
    assert_eq!(turn["state"], "error");
    assert_eq!(edits_in(&turn), recorded);
}

#[test]
fn an_undo_is_a_run_without_an_agent_and_its_end_ends_the_turn() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().emits(AgentEvent::Notice { text: "undone".to_owned() });
    ann.sends_message("/undo");
    assert_eq!(tasks(&s), [Some(RestoreTask::Undo)]);
    assert_eq!(bob.latest_turn()["state"], "complete");
    s.model().streams(["ok"]);
    ann.sends_message("next");
    assert_eq!(tasks(&s), [Some(RestoreTask::Undo), None]);
    ann.sends_message("/redo please");
    assert_eq!(bob.latest_turn()["state"], "error");
}

#[test]
fn an_undo_that_was_cut_off_goes_on_when_it_is_resumed() {
    for kill in [None, Some(Kill::BeforeAct)] {
        let (mut s, ann) = Scenario::with_chat();
        match kill {
            Some(kill) => s.host_dies_at(kill),
            None => {
                s.model().hangs();
            }
        }
        let turn_id = ann.starts("/undo");
        s.settles();
        if kill.is_none() {
            s.host_is_killed();
        }
        s.host_restarts_for([&ann]);
        s.settles();
        let turn = ann.latest_turn();
        assert_eq!(turn["state"], "error", "{turn}");
        s.model().streams(["done"]);
        ann.resumes(&turn_id).unwrap();
        s.settles();
        assert_eq!(tasks(&s).last(), Some(&Some(RestoreTask::Undo)));
        assert_eq!(ann.latest_turn()["state"], "complete");
        s.all_agree();
    }
}

#[test]
fn a_rewind_asks_about_files_only_if_a_turn_changed_some() {
    let (mut s, ann) = Scenario::with_chat();
    for changes in [false, true, false] {
        if changes {
            edits_next(&mut s, true)
        } else {
            s.model().streams(["ok"]);
        }
        ann.sends_message("go");
    }
    let asked = tasks(&s).len();
    ann.sends_message("/rewind 1");
    assert_eq!(tasks(&s).len(), asked, "it changed none");
    s.model().streams(["restored"]);
    ann.sends_message("/rewind 2");
    let Some(Some(RestoreTask::Rewind { turn_ids, numbers, .. })) = tasks(&s).pop() else {
        panic!("{:?}", tasks(&s));
    };
    // The turn that changed a file, and the rewind before; the turn in between is gone already.
    assert_eq!((turn_ids.len(), numbers), (2, 3));
    assert_eq!(turn_texts(&ann), ["go", "/rewind 2"]);
}

#[test]
fn a_chosen_rewind_takes_its_own_turn_with_it_and_begins_anew() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    for text in ["one", "two", "three"] {
        s.model().streams(["ok"]);
        ann.sends_message(text);
    }
    s.model().emits(AgentEvent::Rewind { turns: 2 });
    ann.sends_message("/rewind");
    assert_eq!(tasks(&s).pop(), Some(Some(RestoreTask::ChooseTurns)));
    assert_eq!(turn_texts(&bob), ["one", "/rewind 2"]);
    assert_eq!(bob.latest_turn()["state"], "complete");
    // More than there is, and nothing chosen.
    s.model().emits(AgentEvent::Rewind { turns: 0 });
    ann.sends_message("/rewind");
    assert_eq!(bob.latest_turn()["state"], "error");
    s.model().streams(["nothing"]);
    ann.sends_message("/rewind");
    assert_eq!(turn_texts(&bob), ["one", "/rewind 2", "/rewind", "/rewind"]);
    s.host_restarts_for([&ann, &bob]);
}

// C-053: what stands beside the command would be lost with its turn
#[test]
fn a_rewind_that_asks_how_far_stands_alone() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["ok"]);
    ann.sends_message("one");
    let asked = s.asked().len();
    let with_chip = |turn: &str, text: &str, at: usize| {
        let mut action = ann.turn_started(turn, text);
        let place = |character: usize| json!({"line": 0, "character": character});
        action["message"]["attachments"] = json!([{
            "type": "simple", "label": "/rewind", "displayKind": "command",
            "range": {"start": place(at), "end": place(at + "/rewind".len())},
            "_meta": {"compositor/part": {"type": "command", "id": "/rewind"}},
        }]);
        action
    };
    for (turn, text, at) in [("t2", "say hi /rewind", 7), ("t3", "/help /rewind", 6)] {
        let refused = ann.tries(&ann.chat(), with_chip(turn, text, at)).unwrap_err();
        assert!(refused.contains("send it alone"), "{refused}");
    }
    assert_eq!(turn_texts(&ann), ["one"]);
    assert_eq!(s.asked().len(), asked);
    // With a number nothing is asked, and the rest goes on after it.
    s.model().streams(["hi"]);
    ann.tries(&ann.chat(), with_chip("t4", "say hi /rewind 1", 7)).unwrap();
    s.settles();
    assert_eq!(turn_texts(&ann), ["say hi /rewind 1"]);
}
