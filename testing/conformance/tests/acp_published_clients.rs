//! The published clients, 1.0.0 and 0.9.0, follow a session of an ACP agent: what their own reducers make of the stream equals a
//! fresh snapshot.

use std::time::Duration;

use conformance::acp::{AcpHarness, scene};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Everything that an agent does in a turn.
fn everything() -> Value {
    let read = json!({"title": "Read", "kind": "read", "outputs": ["one", "one two"]});
    let make = json!({
        "title": "Make", "kind": "execute", "announced": "by-question", "ask": {},
        "terminal": {"output": ["made\n"], "exit_code": 0},
    });
    let plan = json!({"sessionUpdate": "plan", "entries": [{"content": "look", "priority": "high", "status": "pending"}]});
    let notice = json!({"sessionUpdate": "notice", "severity": "info", "title": "Look out"});
    let usage = json!({"inputTokens": 1, "outputTokens": 2, "totalTokens": 3});
    json!([
        {"think": ["hm"]}, {"say": ["Look", ":"]}, {"tool": read}, {"update": plan}, {"tool": make},
        {"update": notice}, {"say": ["done"]}, {"end": {"usage": usage}},
    ])
}

/// Ann has everything done, then a turn that fails.
async fn works(harness: &mut AcpHarness) {
    harness.ann.sends_message("everything").await;
    harness.ann.decides(json!({})).await;
    harness.ann.completed_turn().await;
    let turn = harness.talk("fail").await;
    assert_eq!(turn["state"], "error", "{turn:#}");
}

async fn start() -> AcpHarness {
    let scenes =
        json!([scene("^fail", json!([{"say": ["half"]}, {"exit": 1}])), scene("", everything())]);
    AcpHarness::start(scenes).await
}

/// One published client, by the names of its crates.
macro_rules! published_client {
    ($test:ident, $ahp:ident, $types:ident, $ws:ident, $version:literal) => {
        mod $test {
            use super::*;

            use $ahp::reducers::apply_action_to_chat;
            use $ahp::{Client, ClientConfig, SubscriptionEvent};
            use $types::actions::StateAction;
            use $types::state::{ChatState, ResponsePart, SnapshotState};
            use $ws::WebSocketTransport;

            async fn arrives(harness: &AcpHarness, name: &str) -> (Client, ChatState) {
                let url = &harness.host().url;
                let transport = WebSocketTransport::connect(url).await.unwrap();
                let config = ClientConfig::default();
                let client = Client::connect(transport, config).await.unwrap();
                let versions = vec![$version.to_owned()];
                let ready = client.initialize(name.to_owned(), versions, Vec::new());
                assert_eq!(ready.await.unwrap().protocol_version, $version);
                let chat = harness.ann.chat.as_str().to_owned();
                let (chat, _) = client.subscribe(chat).await.unwrap();
                let SnapshotState::Chat(mut chat) = chat.snapshot.unwrap().state else {
                    panic!("a chat")
                };
                // Titles are in no chat action (H-150).
                chat.title.clear();
                (client, *chat)
            }

            #[tokio::test]
            async fn it_makes_the_same_of_all_that_the_agent_does() {
                let mut harness = start().await;
                let (client, mut chat) = arrives(&harness, "bob").await;
                let mut events = client.events();
                works(&mut harness).await;
                let follows = async {
                    while chat.active_turn.is_some() || chat.turns.len() < 2 {
                        let event = events.recv().await.expect("the stream goes on");
                        let SubscriptionEvent::Action(envelope) = event.event else {
                            continue;
                        };
                        let is_unknown = matches!(envelope.action, StateAction::Unknown(_));
                        assert!(!is_unknown, "{:?}", envelope.action);
                        if envelope.channel == chat.resource {
                            apply_action_to_chat(&mut chat, &envelope.action);
                        }
                    }
                };
                let followed = timeout(Duration::from_secs(60), follows).await;
                followed.expect("it sees the end");
                let parts = chat.turns.iter().flat_map(|turn| &turn.response_parts);
                let is_unknown = |part: &&ResponsePart| matches!(part, ResponsePart::Unknown(_));
                let unknown: Vec<&ResponsePart> = parts.filter(is_unknown).collect();
                assert!(unknown.is_empty(), "{unknown:#?}");
                let (_, fresh) = arrives(&harness, "carl").await;
                let json = |chat: &ChatState| serde_json::to_value(chat).unwrap();
                assert_eq!(json(&chat), json(&fresh));
            }
        }
    };
}

published_client!(client_of_1_0, ahp, ahp_types, ahp_ws, "1.0.0");
published_client!(client_of_0_9, ahp_09, ahp_types_09, ahp_ws_09, "0.9.0");
