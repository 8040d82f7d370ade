//! Annotations with published clients: every action of the channel, by one client and by another, reduced alike by both and
//! equal to a fresh snapshot; also after the host started again.

use std::time::Duration;

use ahp::reducers::apply_action_to_annotations;
use ahp::{Client, ClientEventStream, SubscriptionEvent};
use ahp_types::actions::StateAction;
use ahp_types::state::{AnnotationsState, SnapshotState};
use conformance::TestHost;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::published_client::{create_session, ready};

const SESSION: &str = "ahp-session:/annotated";
const CHANNEL: &str = "ahp-session:/annotated/annotations";

/// A client, and what it makes of the channel.
struct Reviewer {
    client: Client,
    events: ClientEventStream,
    state: AnnotationsState,
}

impl Reviewer {
    async fn joins(host: &TestHost, name: &str) -> Self {
        let client = ready(host, name).await;
        let events = client.events();
        let (result, _) = client.subscribe(CHANNEL.to_owned()).await.expect("subscribe");
        let SnapshotState::Annotations(state) = result.snapshot.expect("a snapshot").state else {
            panic!("annotations")
        };
        Self { client, events, state: *state }
    }

    async fn sends(&self, action: Value) {
        let action: StateAction = serde_json::from_value(action).expect("an action");
        let sent = self.client.dispatch(CHANNEL.to_owned(), action).await;
        sent.expect("dispatch");
    }

    /// Takes the next envelope of the channel; the reason if it was refused.
    async fn hears(&mut self) -> Option<String> {
        let next = async {
            loop {
                let event = self.events.recv().await.expect("the stream goes on");
                if let SubscriptionEvent::Action(envelope) = event.event
                    && envelope.channel == CHANNEL
                {
                    return envelope;
                }
            }
        };
        let envelope = timeout(Duration::from_secs(20), next).await.expect("one");
        if envelope.rejection_reason.is_none() {
            apply_action_to_annotations(&mut self.state, &envelope.action);
        }
        envelope.rejection_reason.clone()
    }
}

fn annotation(id: &str, entries: Value) -> Value {
    let at = |line: u32| json!({"line": line, "character": 0});
    json!({
        "id": id, "origin": {"session": SESSION}, "resource": "file:///w/a.rs",
        "range": {"start": at(1), "end": at(2)}, "resolved": false, "entries": entries,
    })
}

#[tokio::test]
async fn every_action_is_seen_alike_and_survives_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": []});
    let host = TestHost::start(data.path(), &script).await;
    let maker = ready(&host, "maker").await;
    create_session(&maker, SESSION).await;
    let mut ann = Reviewer::joins(&host, "ann").await;
    let mut bob = Reviewer::joins(&host, "bob").await;
    let entry = |id: &str| json!({"id": id, "text": {"markdown": format!("*{id}*")}});
    for action in [
        json!({"type": "annotations/set", "annotation": annotation("a1", json!([entry("e1")]))}),
        json!({"type": "annotations/set", "annotation": annotation("a2", json!([entry("e1")]))}),
        json!({"type": "annotations/entrySet", "annotationId": "a1", "entry": entry("e2")}),
        json!({"type": "annotations/updated", "annotationId": "a1", "resolved": true, "resource": "file:///w/b.rs"}),
        json!({"type": "annotations/entryRemoved", "annotationId": "a1", "entryId": "e1"}),
        json!({"type": "annotations/removed", "annotationId": "a2"}),
    ] {
        ann.sends(action.clone()).await;
        assert_eq!(ann.hears().await, None, "{action}");
        assert_eq!(bob.hears().await, None, "{action}");
        assert_eq!(ann.state, bob.state, "{action}");
    }
    // Refused to its sender alone (H-290, H-067).
    for refused in [
        json!({"type": "annotations/set", "annotation": annotation("a3", json!([]))}),
        json!({"type": "annotations/entryRemoved", "annotationId": "a1", "entryId": "e2"}),
    ] {
        bob.sends(refused.clone()).await;
        assert!(bob.hears().await.is_some(), "{refused}");
    }
    assert_eq!(ann.state.annotations.len(), 1);
    let fresh = Reviewer::joins(&host, "fresh").await;
    assert_eq!(fresh.state, ann.state);
    host.stop().await;
    let host = TestHost::start(data.path(), &script).await;
    let after = Reviewer::joins(&host, "after").await;
    assert_eq!(after.state, ann.state);
    host.stop().await;
}
