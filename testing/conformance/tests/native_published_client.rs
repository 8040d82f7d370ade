//! The published client follows the native agent: what its own reducers make of the stream equals a fresh snapshot.

use std::time::Duration;

use ahp::reducers::{apply_action_to_chat, apply_action_to_session};
use ahp::{Client, SubscriptionEvent};
use ahp_types::actions::StateAction;
use ahp_types::state::{ChatState, ResponsePart, SessionState, SnapshotState};
use conformance::native::{NativeHarness, SESSION};
use serde_json::{Value, json};
use testkit::{Answer, Call};
use tokio::time::timeout;

use crate::published_client;

async fn arrives(harness: &NativeHarness) -> (Client, SessionState, ChatState) {
    let client = published_client::arrives(&harness.host().url, "bob").await;
    let (session, chat) = snapshots(&client, harness).await;
    (client, session, chat)
}

async fn snapshots(client: &Client, harness: &NativeHarness) -> (SessionState, ChatState) {
    let (session, _) = client.subscribe(SESSION.to_owned()).await.unwrap();
    let SnapshotState::Session(session) = session.snapshot.unwrap().state else {
        panic!("a session")
    };
    let (chat, _) = client.subscribe(harness.ann.chat.as_str().to_owned()).await.unwrap();
    let SnapshotState::Chat(chat) = chat.snapshot.unwrap().state else { panic!("a chat") };
    (*session, *chat)
}

/// Titles are in no chat action (H-150).
fn comparable(mut chat: ChatState) -> Value {
    chat.title.clear();
    serde_json::to_value(chat).unwrap()
}

/// Applies what comes, all of it known, until no turn runs and the chat is as expected.
async fn follow(
    events: &mut ahp::ClientEventStream,
    session: &mut SessionState,
    chat: &mut ChatState,
    is_so: impl Fn(&ChatState) -> bool,
) {
    let follows = async {
        while chat.active_turn.is_some() || !is_so(chat) {
            let event = events.recv().await.expect("the stream goes on");
            let SubscriptionEvent::Action(envelope) = event.event else { continue };
            assert!(!matches!(envelope.action, StateAction::Unknown(_)), "{:?}", envelope.action);
            apply_action_to_session(session, &envelope.action);
            if envelope.channel == chat.resource {
                apply_action_to_chat(chat, &envelope.action);
            }
        }
    };
    timeout(Duration::from_secs(60), follows).await.expect("it sees the end");
}

// G-67: questions and the host's own calls are nothing new to it
#[tokio::test]
async fn an_undo_and_a_rewind_come_to_the_same() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    harness.write("a.txt", "one\n");
    let (client, mut session, mut chat) = arrives(&harness).await;
    let mut events = client.events();
    let edits = json!([{"old_text": "one", "new_text": "1"}]);
    let edit = json!({"path": "a.txt", "edits": edits});
    let answers = [Answer::calls([Call::new("e", "edit", &edit)]), Answer::streams(["Done."])];
    harness.talk("go", answers).await;
    harness.ann.sends_message("/undo").await;
    harness.ann.chooses("restore").await;
    harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "one\n");
    harness.ann.sends_message("/redo").await;
    harness.ann.chooses("restore").await;
    harness.ann.turn_over().await;
    harness.ann.sends_message("/rewind 3").await;
    harness.ann.chooses("restore").await;
    harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "one\n");
    follow(&mut events, &mut session, &mut chat, |chat| {
        let last = chat.turns.last();
        last.is_some_and(|turn| turn.message.text == "/rewind 3")
    })
    .await;
    assert_eq!(chat.turns.len(), 1);
    let parts = &chat.turns[0].response_parts;
    let is_unknown = |part: &ResponsePart| matches!(part, ResponsePart::Unknown(_));
    assert!(!parts.iter().any(is_unknown), "{parts:#?}");
    let (_, fresh) = snapshots(&arrives(&harness).await.0, &harness).await;
    assert_eq!(comparable(chat), comparable(fresh));
}

#[tokio::test]
async fn all_that_the_agent_does_is_known_to_it_and_comes_to_the_same() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let (client, mut session, mut chat) = arrives(&harness).await;
    let mut events = client.events();
    let edits = json!([{"old_text": "one", "new_text": "1"}]);
    harness.model.answers([
        Answer::thinks(["hm"]).then_streams(["Look:"]).then_calls([
            Call::new("r", "read", &json!({"path": "a.txt"})),
            Call::new("u", "unknown", &json!({})),
        ]),
        Answer::error(429, "slow").with_header("retry-after", "0"),
        Answer::calls([Call::new("e", "edit", &json!({"path": "a.txt", "edits": edits}))]),
        Answer::calls([Call::new("b", "bash", &json!({"command": "seq 1 20000"}))]),
        Answer::streams(["half"]).cuts(),
    ]);
    harness.ann.sends_message("go").await;
    let choice = json!({"selectedOptionId": "approve-session"});
    harness.ann.decides(choice.clone()).await;
    harness.ann.decides(choice).await;
    let turn = harness.ann.turn_over().await;
    harness.model.answers([Answer::streams([" and the rest"])]);
    harness.ann.resumes(&turn).await;
    harness.ann.until("it goes on", |chat| chat["turns"][0]["state"] == "complete").await;
    follow(&mut events, &mut session, &mut chat, |chat| {
        chat.turns.iter().any(|turn| state_of(turn) == "complete")
    })
    .await;
    let parts = &chat.turns[0].response_parts;
    assert!(!parts.iter().any(|part| matches!(part, ResponsePart::Unknown(_))), "{parts:#?}");
    let (_, fresh) = snapshots(&arrives(&harness).await.0, &harness).await;
    assert_eq!(comparable(chat), comparable(fresh));
}

fn state_of(turn: &ahp_types::state::Turn) -> Value {
    serde_json::to_value(turn.state).unwrap()
}
