//! Rewriting system prompts over real sockets: by the published client's own request handler, and by ours against a model
//! server that records its requests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ahp::{Client, ClientConfig, ClientEventStream, SubscriptionEvent};
use ahp_types::actions::StateAction;
use ahp_ws::WebSocketTransport;
use client::transform::{Rewrite, TransformHandler};
use conformance::TestHost;
use conformance::native::{NativeHarness, SESSION};
use serde_json::{Value, json};
use testkit::{Answer, Call};
use tokio::time::timeout;
use wire::ext::system_message_transform::{
    SystemMessageTransformParams, SystemMessageTransformResult,
};

const INTEROP: &str = "ahp-session:/interop";

fn action(value: Value) -> StateAction {
    serde_json::from_value(value).expect("an action")
}

/// The text of a turn, when it is complete.
async fn read_turn(events: &mut ClientEventStream) -> String {
    let mut said = String::new();
    loop {
        let event = events.recv().await.expect("the stream goes on");
        let SubscriptionEvent::Action(envelope) = event.event else { continue };
        match &envelope.action {
            StateAction::ChatDelta(delta) => said.push_str(&delta.content),
            StateAction::ChatTurnComplete(_) => return said,
            _ => {}
        }
    }
}

#[tokio::test]
async fn the_published_client_answers_by_its_own_handler() {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": [{"steps": [{"show_prompt": true}]}]});
    let host = TestHost::start(data.path(), &script).await;
    let transport = WebSocketTransport::connect(&host.url).await.unwrap();
    let client = Client::connect(transport, ClientConfig::default()).await.unwrap();
    let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let noted = Arc::clone(&asked);
    client.set_server_request_handler(move |method, params| {
        noted.lock().unwrap().push((method, params));
        async {
            Ok(json!({"sections": {"tone": {"content": "Sing."}, "safety": {"content": "None."}}}))
        }
    });
    let versions = vec!["1.0.0".to_owned()];
    let init = client
        .initialize("pub".to_owned(), versions, vec!["ahp-root://".to_owned()])
        .await
        .unwrap();
    assert_eq!(init.meta.unwrap()["x-systemMessageTransform"], json!({"version": 1}));
    let active = json!({"clientId": "pub", "tools": []});
    let _: Value = client
        .request(
            "createSession",
            json!({"channel": INTEROP, "provider": "scripted", "activeClient": active}),
        )
        .await
        .unwrap();
    let mut events = client.events();
    client.subscribe(INTEROP.to_owned()).await.unwrap();
    // The typed SDK cannot send the field: the action is what it can send.
    let set = json!({"type": "x-session/systemMessageTransformSet", "sections": ["tone", "safety", "what"]});
    client.dispatch(INTEROP.to_owned(), action(set)).await.unwrap();
    let chat = testkit::default_chat(INTEROP);
    client.subscribe(chat.clone()).await.unwrap();
    let start = json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "go", "origin": {"kind": "user"}}});
    client.dispatch(chat.clone(), action(start)).await.unwrap();
    let text =
        timeout(Duration::from_secs(60), read_turn(&mut events)).await.expect("the turn ends");
    let sections: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(sections[1], json!({"id": "tone", "content": "Sing."}));
    let safety = &sections[6];
    assert_eq!((&safety["id"], &safety["restricted"]), (&json!("safety"), &json!(true)));
    assert_eq!(safety["sha256"].as_str().unwrap().len(), 64);
    assert!(safety.get("content").is_none() && !text.contains("Stay inside"), "{text}");
    let asked = asked.lock().unwrap().clone();
    let [(method, params)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(method, "x-systemMessageTransform");
    let ids: Vec<&String> = params["sections"].as_object().unwrap().keys().collect();
    assert_eq!(ids, ["tone"]);
    host.stop().await;
}

/// Counts the renders it sees.
struct Counts(Mutex<usize>);

impl TransformHandler for Counts {
    fn sections(&self) -> Vec<String> {
        vec!["last_instructions".to_owned()]
    }

    fn transform(&self, mut params: SystemMessageTransformParams) -> Rewrite {
        let mut count = self.0.lock().unwrap();
        *count += 1;
        for section in params.sections.values_mut() {
            section.content = format!("render {count}");
        }
        let sections = params.sections;
        Box::pin(async { Ok(SystemMessageTransformResult { sections }) })
    }
}

#[tokio::test]
async fn a_model_gets_what_the_client_made_of_each_render() {
    let mut harness = NativeHarness::start().await;
    harness.write("AGENTS.md", "Prefer tabs.");
    harness.write("a.txt", "one\n");
    let session = wire::ChannelUri::parse(SESSION).unwrap();
    let counts = Arc::new(Counts(Mutex::new(0)));
    let target = client::HostTarget { url: harness.host().url.clone(), token: None };
    let options = client::Options {
        handler: Some(client::transform::handler(Arc::clone(&counts) as Arc<dyn TransformHandler>)),
        ..client::Options::default()
    };
    let (live, _updates) = client::Live::connect(target, "pack", options).await.unwrap();
    live.subscribe(&session).await.unwrap();
    live.dispatch(&session, client::transform::active_client("pack", "Pack", &*counts)).unwrap();
    let active = async {
        while live.session(&session).is_none_or(|state| state.active_clients.is_empty()) {
            tokio::task::yield_now().await;
        }
        // The visible state is optimistic: an answer shows that the host has it too.
        live.request("ping", json!({})).await.unwrap();
    };
    timeout(Duration::from_secs(60), active).await.expect("it is active");
    let call = Call::new("r", "read", &json!({"path": "a.txt"}));
    harness.talk("go", [Answer::calls([call]), Answer::streams(["done"])]).await;
    let prompts: Vec<String> = harness
        .model
        .requests()
        .iter()
        .map(|request| request.json()["messages"][0]["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(prompts.len(), 2);
    assert!(prompts[0].ends_with("render 1") && prompts[1].ends_with("render 2"), "{prompts:#?}");
    assert!(prompts[0].contains("# AGENTS.md\nPrefer tabs."), "{}", prompts[0]);
}

#[tokio::test]
async fn a_session_of_a_model_is_rendered_when_it_begins_and_nothing_waits_for_it() {
    let harness = NativeHarness::start().await;
    let target = client::HostTarget { url: harness.host().url.clone(), token: None };
    let (connection, _events) = client::Connection::connect(&target).await.unwrap();
    let (sender, mut asked) = tokio::sync::mpsc::unbounded_channel();
    connection.answer_with(Arc::new(move |request| {
        sender.send(request).unwrap();
        // Never answered: the session is ready all the same.
        Box::pin(std::future::pending())
    }));
    connection.initialize("pack", &[]).await.unwrap();
    let opt_in = json!({"sections": ["identity"]});
    let active = json!({"clientId": "pack", "tools": [], "systemMessageTransform": opt_in});
    let params = json!({"channel": "native:/begins", "provider": "native", "activeClient": active});
    connection.request("createSession", params).await.unwrap();
    let request = timeout(Duration::from_secs(60), asked.recv()).await.unwrap().unwrap();
    assert_eq!(request.method, "systemMessageTransform");
    assert_eq!(request.params["channel"], "native:/begins");
    let session = wire::ChannelUri::parse("native:/begins").unwrap();
    let snapshot = connection.subscribe(&session).await.unwrap().unwrap();
    assert_eq!(snapshot.state["lifecycle"], "ready");
}
