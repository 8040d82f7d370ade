//! What statuses say: of a chat, in the catalogue, in the list; and the flags that people set.

use agent_api::AgentEvent;
use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};

const B: &str = "ahp-chat:/b";
const READ: u64 = 32;
const ARCHIVED: u64 = 64;

fn status(client: &ScenarioClient, channel: &str) -> u64 {
    client.sees(channel)["status"].as_u64().unwrap()
}

fn listed_status(client: &ScenarioClient, chat: &str) -> u64 {
    client.listed(chat)["status"].as_u64().unwrap()
}

/// The summary of the client's session, as the list has it.
fn summary(client: &ScenarioClient) -> Value {
    let list = client.asks("listSessions", json!({"channel": ROOT})).unwrap();
    let items = list["items"].as_array().cloned().unwrap();
    let session = client.session();
    let mine = items.into_iter().find(|item| item["resource"] == session.as_str());
    mine.unwrap()
}

fn summary_status(client: &ScenarioClient) -> u64 {
    summary(client)["status"].as_u64().unwrap()
}

fn flags(client: &ScenarioClient, channel: &str, read: bool, archived: bool) {
    let kind = if channel == client.session() { "session" } else { "chat" };
    let read = json!({"type": format!("{kind}/isReadChanged"), "isRead": read});
    let archived = json!({"type": format!("{kind}/isArchivedChanged"), "isArchived": archived});
    client.tries(channel, read).unwrap();
    client.tries(channel, archived).unwrap();
}

// H-178: 1, 8, 24, 8, 1, 2
#[test]
fn a_chats_status_follows_its_turn() {
    let (mut s, ann) = Scenario::with_chat();
    let chat = ann.chat();
    assert_eq!(status(&ann, &chat), 1);
    s.model().asks_tool("shell", "ls").hangs();
    let turn = ann.sends_message("go");
    assert_eq!(
        (status(&ann, &chat), listed_status(&ann, &chat), summary_status(&ann)),
        (24, 24, 24)
    );
    ann.confirms().unwrap();
    assert_eq!((status(&ann, &chat), listed_status(&ann, &chat), summary_status(&ann)), (8, 8, 8));
    ann.cancels(&turn).unwrap();
    assert_eq!((status(&ann, &chat), listed_status(&ann, &chat), summary_status(&ann)), (1, 1, 1));
    s.model().fails_resumably();
    let turn = ann.sends_message("go");
    assert_eq!((status(&ann, &chat), listed_status(&ann, &chat), summary_status(&ann)), (2, 2, 2));
    s.model().hangs();
    ann.resumes(&turn).unwrap();
    assert_eq!((status(&ann, &chat), listed_status(&ann, &chat), summary_status(&ann)), (8, 8, 8));
    ann.truncates_all().unwrap();
    assert_eq!((status(&ann, &chat), listed_status(&ann, &chat), summary_status(&ann)), (1, 1, 1));
}

// H-178: flags stay what they are, but for the read flag when something new comes
#[test]
fn flags_survive_turns_but_for_the_read_flag() {
    let (mut s, ann) = Scenario::with_chat();
    let (session, chat) = (ann.session(), ann.chat());
    for channel in [&session, &chat] {
        flags(&ann, channel, true, true);
        assert_eq!(status(&ann, channel) & (READ | ARCHIVED), READ | ARCHIVED);
    }
    s.model().fails_resumably();
    let turn = ann.sends_message("go");
    for channel in [&session, &chat] {
        assert_eq!(status(&ann, channel) & (READ | ARCHIVED), ARCHIVED, "turn start");
        flags(&ann, channel, true, true);
    }
    s.model().hangs();
    ann.resumes(&turn).unwrap();
    for channel in [&session, &chat] {
        assert_eq!(status(&ann, channel) & (READ | ARCHIVED), ARCHIVED, "resume");
        flags(&ann, channel, true, true);
    }
    ann.cancels(&turn).unwrap();
    for channel in [&session, &chat] {
        assert_eq!(status(&ann, channel) & (READ | ARCHIVED), READ | ARCHIVED, "an end is no news");
    }
    s.host_restarts_for([&ann]);
    assert_eq!(summary_status(&ann) & (READ | ARCHIVED), READ | ARCHIVED);
}

// H-160, H-101: a chat's flags are its own
#[test]
fn flags_of_a_chat_are_not_those_of_its_session_or_its_siblings() {
    let (_s, ann, bob) = Scenario::with_shared_chat();
    ann.sends_message("before");
    ann.creates_chat(B);
    flags(&ann, B, true, true);
    assert_eq!(listed_status(&bob, B), 1 | READ | ARCHIVED);
    assert_eq!(listed_status(&bob, &ann.chat()) & (READ | ARCHIVED), 0);
    assert_eq!(status(&bob, &ann.session()) & (READ | ARCHIVED), 0);
    let listed = summary(&bob);
    assert_eq!(listed["status"].as_u64().unwrap() & (READ | ARCHIVED), 0);
    assert_eq!(listed["chats"][1]["status"], 1 | READ | ARCHIVED);
    flags(&ann, &ann.session(), true, false);
    assert_eq!(summary_status(&bob) & (READ | ARCHIVED), READ);
    assert_eq!(listed_status(&bob, &ann.chat()) & (READ | ARCHIVED), 0);
    ann.in_chat(B).sends_message("news");
    assert_eq!(listed_status(&bob, B) & (READ | ARCHIVED), ARCHIVED);
    assert_eq!(summary_status(&bob) & READ, 0, "G-24: a turn in any chat is news");
}

// H-123: whose status the session has
#[test]
fn a_sessions_status_is_that_of_its_default_chat_unless_another_needs_input() {
    let (mut s, ann) = Scenario::with_chat();
    let there = ann.creates_chat(B);
    let cem = s.client("cem").arrives();
    // Work in another chat does not make the session busy; its default chat decides.
    s.model().asks_tool("shell", "ls").hangs();
    let turn = there.sends_message("go");
    assert_eq!(summary_status(&ann), 24, "a question from anywhere counts");
    there.denies().unwrap();
    assert_eq!(summary_status(&ann), 1);
    s.model().hangs();
    let mine = ann.sends_message("go");
    assert_eq!(summary_status(&ann), 8);
    there.cancels(&turn).unwrap();
    s.model().fails();
    there.sends_message("risky");
    assert_eq!(summary_status(&ann), 2, "an error from anywhere counts");
    s.model().asks_tool("shell", "ls");
    there.sends_message("ask");
    assert_eq!(summary_status(&ann), 24);
    there.denies().unwrap();
    assert_eq!(summary_status(&ann), 8);
    ann.cancels(&mine).unwrap();
    let action = json!({"type": "session/defaultChatChanged", "defaultChat": B});
    s.model().hangs();
    there.sends_message("busy");
    assert_eq!(summary_status(&ann), 1);
    ann.tries(&ann.session(), action).unwrap();
    assert_eq!(summary_status(&ann), 8, "the status is that of the new default");
    ann.disposes_of(&ann.chat()).unwrap();
    assert_eq!(summary_status(&ann), 8);
    let notifications = cem.notifications("root/sessionSummaryChanged");
    let last =
        notifications.iter().rev().find_map(|params| params["changes"].get("status").cloned());
    assert_eq!(last, Some(json!(8)));
}

// H-099: only what changed, and nothing that identifies
#[test]
fn the_list_gets_only_what_changed() {
    let (mut s, ann) = Scenario::with_chat();
    let cem = s.client("cem").arrives();
    s.model().asks_tool("shell", "ls");
    ann.sends_message("go");
    ann.confirms().unwrap();
    let notifications = cem.notifications("root/sessionSummaryChanged");
    assert!(!notifications.is_empty());
    for params in &notifications {
        let changes = params["changes"].as_object().unwrap();
        assert!(!changes.is_empty());
        for identity in ["resource", "provider", "createdAt"] {
            assert!(!changes.contains_key(identity), "{params}");
        }
    }
}

// G-05, H-102, H-149: what a second chat is at
#[test]
fn activity_of_a_chat_is_set_and_cleared_in_chat_catalogue_and_session() {
    let (mut s, ann) = Scenario::with_chat();
    let there = ann.creates_chat(B);
    s.model()
        .emits(AgentEvent::Activity(Some("reading".into())))
        .asks_tool("shell", "ls")
        .emits(AgentEvent::Activity(None))
        .hangs();
    there.sends_message("go");
    assert_eq!(ann.listed(B)["activity"], "reading");
    assert!(ann.listed(&ann.chat()).get("activity").is_none());
    there.confirms().unwrap();
    assert!(ann.listed(B).get("activity").is_none());
    assert!(there.sees(B).get("activity").is_none());
}

// G-23: clients of 0.9 receive nothing of a chat's flags, and see the rest
#[test]
fn an_older_client_gets_activity_bits_but_no_flags() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client_of("bob", "0.9.0").joins(&ann);
    flags(&ann, &ann.chat(), true, true);
    let actions = bob.received_actions();
    assert!(!actions.iter().any(|kind| kind.starts_with("chat/is")), "{actions:?}");
    s.model().asks_tool("shell", "ls").hangs();
    ann.sends_message("go");
    assert_eq!(status(&bob, &ann.chat()) & 31, 24);
    bob.confirms().unwrap();
    assert_eq!(status(&bob, &ann.chat()) & 31, 8);
}

// G-11: the list is ordered by the host's clock, whatever a client says
#[test]
fn the_list_is_ordered_by_the_last_real_change() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    s.advances_ms(1_000);
    let mut action = ann.turn_started("t", "from the past");
    action["startedAt"] = json!("2001-01-01T00:00:00.000Z");
    ann.tries(&ann.chat(), action).unwrap();
    let list = bob.asks("listSessions", json!({"channel": ROOT})).unwrap();
    assert_eq!(list["items"][0]["resource"], ann.session().as_str());
    s.advances_ms(1_000);
    s.model().asks_tool("shell", "ls");
    bob.sends_message("later");
    let list = bob.asks("listSessions", json!({"channel": ROOT})).unwrap();
    assert_eq!(list["items"][0]["resource"], bob.session().as_str());
}

// What a chat was at when its turn ended, it is not at any more
#[test]
fn activity_does_not_outlive_the_chat_that_had_it() {
    let (mut s, ann) = Scenario::with_chat();
    ann.creates_chat("ahp-chat:/b");
    s.model().emits(AgentEvent::Activity(Some("reading".into()))).hangs();
    ann.in_chat("ahp-chat:/b").sends_message("go");
    assert_eq!(ann.sees(&ann.session())["activity"], "reading");
    ann.disposes_of("ahp-chat:/b").unwrap();
    let session = ann.sees(&ann.session());
    assert!(session.get("activity").is_none(), "{}", session["activity"]);
}

// H-123, G-05: what another chat is still at
#[test]
fn activity_that_is_cleared_in_one_chat_is_not_cleared_for_the_other() {
    let (mut s, ann) = Scenario::with_chat();
    let there = ann.creates_chat("ahp-chat:/b");
    s.model().emits(AgentEvent::Activity(Some("reading".into()))).hangs();
    ann.sends_message("go");
    s.model().emits(AgentEvent::Activity(Some("writing".into()))).emits(AgentEvent::Activity(None));
    there.sends_message("go");
    assert_eq!(ann.sees(&ann.session())["activity"], "reading");
}
