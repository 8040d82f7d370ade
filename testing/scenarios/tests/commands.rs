//! Commands that the host carries out, and messages that are understood before they are recorded (C-040 to C-054, C-080).

use host::journal::Journal as _;
use kernel::{Answer, Query, StoredMessage};
use serde_json::{Value, json};
use testkit::{Kill, Scenario, ScenarioClient};

/// The host's notices in the latest turn.
fn notices(client: &ScenarioClient) -> Vec<String> {
    let turn = client.latest_turn();
    let parts = turn["responseParts"].as_array().cloned().unwrap_or_default().into_iter();
    parts
        .filter(|part| part["kind"] == "systemNotification")
        .map(|part| part["content"].as_str().unwrap().to_owned())
        .collect()
}

fn turn_texts(client: &ScenarioClient, chat: &str) -> Vec<String> {
    let state = client.sees(chat);
    let turns = state["turns"].as_array().cloned().unwrap_or_default();
    turns.iter().map(|turn| turn["message"]["text"].as_str().unwrap().to_owned()).collect()
}

/// The rows of the messages of some turns.
pub fn rows(s: &Scenario, chat: &str, turns: &[&str]) -> Vec<StoredMessage> {
    let world = s.look();
    let mut reader = world.memory.reader().unwrap();
    let uri = wire::ChannelUri::parse(chat).unwrap();
    let answer = reader.read(&Query::Channel { uri, turns_max: 1, bytes_max: 1 });
    let Ok(Answer::Channel(Some(channel))) = answer else {
        panic!("{chat} is not there");
    };
    let answer = reader.read(&Query::Messages {
        chat: channel.id,
        turn_ids: turns.iter().map(|id| (*id).to_owned()).collect(),
    });
    match answer {
        Ok(Answer::Messages(messages)) => messages,
        other => panic!("{other:?}"),
    }
}

pub fn parts_of(message: &StoredMessage) -> Vec<Value> {
    let parts = message.parts.iter();
    parts.map(|(part, _)| serde_json::from_slice(&part.json).unwrap()).collect()
}

// C-053, V23: persisted, carried out, complete, and no agent runs
#[test]
fn archive_archives_the_session_and_asks_no_agent() {
    let (s, ann, bob) = Scenario::with_shared_chat();
    let turn = ann.sends_message("/archive");
    assert_eq!(bob.latest_turn()["state"], "complete");
    assert_eq!(notices(&bob), ["This session is archived."]);
    let status = bob.sees(&ann.session())["status"].as_u64().unwrap();
    assert_eq!(status & 64, 64, "archived");
    assert!(s.asked().is_empty());
    let rows = rows(&s, &ann.chat(), &[&turn]);
    let command = json!({"type": "command", "id": "/archive", "args": {}});
    assert_eq!(parts_of(&rows[0]), [command]);
}

// C-080: the rows are there before any agent is, also when the host dies right after
#[test]
fn a_message_has_its_rows_before_its_agent_runs() {
    let (mut s, ann) = Scenario::with_chat();
    s.host_dies_at(Kill::BeforeAct);
    let turn = ann.starts("see @file:a.txt and @skill:nope");
    s.settles();
    assert!(s.asked().is_empty());
    let stored = rows(&s, &ann.chat(), &[&turn]);
    let kinds: Vec<&str> = stored[0].parts.iter().map(|(part, _)| part.kind.as_str()).collect();
    assert_eq!(kinds, ["text", "mention", "text", "mention"]);
    assert!(stored[0].id.starts_with("msg_") && stored[0].id.len() == 30);
    assert!(stored[0].parts.iter().all(|(part, _)| part.id.len() == 30));
    let metadata: Value = serde_json::from_slice(&stored[0].metadata).unwrap();
    assert_eq!(metadata["schema_version"], 1);
    s.ends_unchecked();
}

// C-064: reported to the user, and the turn goes on
#[test]
fn an_unknown_skill_is_reported_and_the_turn_continues() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["ok"]);
    ann.sends_message("use @skill:nope");
    assert_eq!(notices(&ann), ["mention: unknown skill 'nope' (dropped from model view)"]);
    assert_eq!(ann.reads(), "ok");
}

#[test]
fn branch_forks_the_chat_where_it_stands() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["one"]);
    ann.sends_message("first");
    s.model().streams(["two"]);
    ann.sends_message("second");
    ann.sends_message("/branch");
    assert_eq!(ann.latest_turn()["state"], "complete");
    let texts = notices(&ann);
    let branch = texts[0].rsplit(' ').next().unwrap().to_owned();
    let chats = ann.sees(&ann.session())["chats"].clone();
    let added: Vec<&Value> =
        chats.as_array().unwrap().iter().filter(|chat| chat["resource"] == *branch).collect();
    assert_eq!(added[0]["origin"]["kind"], "fork");
    ann.watches(&branch);
    assert_eq!(turn_texts(&ann, &branch), ["first", "second"]);
    // A branch of an empty chat is impossible.
    let bob = s.client("bob").opens_chat();
    bob.sends_message("/branch");
    assert_eq!(bob.latest_turn()["state"], "error");
}

// C-054, G-08: the turn ends in an error, no agent is asked, the queue is held
#[test]
fn a_command_that_fails_ends_its_turn_and_holds_the_queue() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["..."]).waits_ms(100);
    ann.starts("busy");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), ann.pending_set("queued", "q1", "/rewind many"));
    ann.dispatches(&ann.chat(), ann.pending_set("queued", "q2", "later"));
    s.settles();
    assert_eq!(s.asked(), ["busy"]);
    let turn = ann.latest_turn();
    assert_eq!(turn["state"], "error");
    let error = turn["responseParts"].as_array().unwrap().last().unwrap();
    assert!(error["resumable"].is_null(), "{error}");
    assert_eq!(ann.queue(), ["q2"]);
}

#[test]
fn rewind_takes_turns_back_and_stays_as_the_record_of_it() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    for text in ["one", "two", "three"] {
        s.model().streams(["ok"]);
        ann.sends_message(text);
    }
    ann.sends_message("/rewind 2");
    assert_eq!(turn_texts(&bob, &ann.chat()), ["one", "/rewind 2"]);
    assert_eq!(notices(&bob), ["2 turns were taken back."]);
    s.model().streams(["ok"]);
    ann.sends_message("four");
    assert_eq!(turn_texts(&bob, &ann.chat()), ["one", "/rewind 2", "four"]);
    ann.sends_message("/rewind 99");
    assert_eq!(turn_texts(&bob, &ann.chat()), ["/rewind 99"]);
    s.host_restarts_for([&bob, &ann]);
}

#[test]
fn a_rewind_below_a_small_window_reaches_all_clients() {
    let (mut s, ann) = Scenario::with_chat();
    for n in 0..6 {
        s.model().streams(["ok"]);
        ann.sends_message(&n.to_string());
    }
    let bob = s.client("bob").arrives();
    bob.watches(&ann.session());
    bob.watches_turns(&ann.chat(), 1);
    ann.sends_message("/rewind 4");
    s.all_agree();
    assert!(turn_texts(&bob, &ann.chat()).ends_with(&["1".to_owned(), "/rewind 4".to_owned()]));
}

// The agent shortens its own view; what it forgot comes back when the cut goes below it
#[test]
fn compact_is_the_agents_work_and_a_truncate_below_takes_it_back() {
    let (mut s, ann) = Scenario::with_chat();
    for text in ["one", "two", "three"] {
        s.model().streams(["ok"]);
        ann.sends_message(text);
    }
    s.model().emits(agent_api::AgentEvent::Compacted {
        keep_turns: 1,
        rounds: 0,
        summary: Some("short".to_owned()),
    });
    ann.sends_message("/compact keep the names");
    let asked = s.look().models.asked.last().cloned().unwrap();
    assert_eq!(asked.compact.as_deref(), Some("keep the names"));
    assert!(!asked.reaches_model);
    s.host_restarts_for([&ann]);
    s.model().streams(["ok"]);
    ann.sends_message("four");
    let compacted = |s: &Scenario| {
        let asked = s.look().models.asked.last().cloned().unwrap();
        asked.history.compacted
    };
    let compaction = compacted(&s).unwrap();
    assert_eq!((compaction.from_n, compaction.summary.as_deref()), (2, Some("short")));
    ann.sends_message("/rewind 4");
    s.model().streams(["ok"]);
    ann.sends_message("five");
    assert_eq!(compacted(&s), None);
}

// C-007
#[test]
fn a_message_without_anything_in_it_is_refused() {
    let (_s, ann) = Scenario::with_chat();
    let refused = ann.tries(&ann.chat(), ann.turn_started("t1", ""));
    assert!(refused.unwrap_err().starts_with("empty_message"));
    let mut action = ann.turn_started("t2", "");
    action["message"]["attachments"] = json!([{"type": "simple", "label": "l", "displayKind": "open",
        "modelRepresentation": "", "_meta": {"compositor/part":
            {"type": "editor-context", "kind": "open", "payload": {}, "emitted_at": 1}}}]);
    let refused = ann.tries(&ann.chat(), action);
    assert!(refused.unwrap_err().starts_with("empty_message"));
    assert_eq!(ann.sees(&ann.chat())["turns"], json!([]));
}

// compositor 3.5
#[test]
fn a_command_cannot_steer() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["..."]).hangs();
    ann.sends_message("busy");
    let refused = ann.tries(&ann.chat(), ann.pending_set("steering", "s1", "/compact"));
    assert_eq!(refused.unwrap_err(), "/compact cannot steer a turn: send it when the turn is over");
}

// compositor 3.5: understood when it is set, carried out when its turn comes; rows move with it
#[test]
fn a_pending_message_is_composed_when_set_and_deleted_when_removed() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["..."]).hangs();
    ann.sends_message("busy");
    for (id, text) in [("q1", "@file:a"), ("q2", "/archive"), ("q1", "see @file:b")] {
        ann.tries(&ann.chat(), ann.pending_set("queued", id, text)).unwrap();
    }
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    s.model().streams(["ok"]);
    // The queue is held after a crash; setting a message again starts it (G-08).
    ann.tries(&ann.chat(), ann.pending_set("queued", "q3", "last")).unwrap();
    s.model().streams(["ok"]);
    s.settles();
    assert_eq!(turn_texts(&ann, &ann.chat())[1..], ["see @file:b", "/archive", "last"]);
    let ids: Vec<String> = ann.sees(&ann.chat())["turns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| turn["id"].as_str().unwrap().to_owned())
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let stored = rows(&s, &ann.chat(), &ids);
    let kinds: Vec<Vec<&str>> = stored
        .iter()
        .map(|message| message.parts.iter().map(|(part, _)| part.kind.as_str()).collect())
        .collect();
    assert_eq!(kinds, [vec!["text"], vec!["text", "mention"], vec!["command"], vec!["text"]]);
}

#[test]
fn help_lists_the_commands() {
    let (s, ann) = Scenario::with_chat();
    ann.sends_message("/help");
    let texts = notices(&ann).join("\n");
    for name in [
        "/archive",
        "/branch",
        "/compact",
        "/help",
        "/redo",
        "/retry-attachments",
        "/rewind",
        "/undo",
    ] {
        assert!(texts.contains(name), "{texts}");
    }
    assert!(s.asked().is_empty());
}
