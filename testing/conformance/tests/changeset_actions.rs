//! The published clients, 1.0.0 and 0.9.0, follow what changed (H-289) and the annotations (H-290) of a session by their own reducers:
//! what they make of it equals a fresh snapshot.

use std::time::Duration;

use conformance::native::{NativeHarness, SESSION, bash, ends};
use serde_json::{Value, json};
use testkit::Answer;
use tokio::time::timeout;

use crate::changesets::commit_all;

fn annotation() -> Value {
    let at = |line: u32| json!({"line": line, "character": 0});
    json!({
        "id": "a", "origin": {"session": SESSION}, "resource": "file:///w/a.rs",
        "range": {"start": at(1), "end": at(2)}, "resolved": false,
        "entries": [{"id": "e", "text": "why?"}],
    })
}

/// Files have no order.
fn in_order(mut state: Value) -> Value {
    if let Some(files) = state["files"].as_array_mut() {
        files.sort_by_key(|file| file["id"].as_str().map(str::to_owned));
    }
    state
}

/// The names of the files of a changeset, in order.
fn names(state: &Value) -> Vec<String> {
    let files = state["files"].as_array().into_iter().flatten();
    let name = |file: &Value| {
        let id = file["id"].as_str().unwrap_or_default();
        id.rsplit('/').next().unwrap_or_default().to_owned()
    };
    files.map(name).collect()
}

/// A session in a repository where three files are not as they were committed, once the host has looked.
async fn with_three_changes() -> NativeHarness {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        harness.write(name, "as it was\n");
    }
    commit_all(&harness.work());
    for name in ["a.txt", "b.txt", "c.txt"] {
        harness.write(name, "changed\n");
    }
    let look = [Answer::calls([bash("true")]), ends()];
    let turn = harness.talk("look", look).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let has_looked = |state: &Value| state["_meta"]["git"]["branchName"] == "main";
    harness.ann.until_session(SESSION, has_looked).await;
    harness
}

/// An id that no part of a URI can be, and how a template spells it.
const ODD_TURN: &str = "ann & bob: 50% (ü)/1?";
const ODD_TURN_SPELT: &str = "ann%20%26%20bob%3A%2050%25%20%28%C3%BC%29%2F1%3F";

/// A session in which a turn of that id changed a file.
async fn with_an_odd_turn() -> NativeHarness {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    harness.write("a.txt", "as it was\n");
    commit_all(&harness.work());
    let answers = [Answer::calls([bash("echo changed > a.txt")]), ends()];
    harness.model.answers(answers);
    let message = json!({"text": "go", "origin": {"kind": "user"}});
    let action = json!({
        "type": "chat/turnStarted", "turnId": ODD_TURN, "startedAt": "2026-11-15T08:00:00Z", "message": message,
    });
    harness.ann.does(action).await;
    let is_over = |chat: &Value| chat["activeTurn"].is_null() && chat["turns"][0]["id"] == ODD_TURN;
    let chat = harness.ann.until("the turn ends", is_over).await;
    assert_eq!(chat["turns"][0]["state"], "complete", "{chat:#}");
    harness
}

/// One published client, by the names of its crates.
macro_rules! published_client {
    ($test:ident, $ahp:ident, $types:ident, $ws:ident, $version:literal) => {
        mod $test {
            use super::*;

            use $ahp::reducers::{apply_action_to_annotations, apply_action_to_changeset};
            use $ahp::{Client, ClientConfig, ClientError, ClientEventStream, SubscriptionEvent};
            use $types::actions::StateAction;
            use $types::state::{AnnotationsState, ChangesetState, SnapshotState};
            use $ws::WebSocketTransport;

            async fn arrives(harness: &NativeHarness, name: &str) -> Client {
                let url = &harness.host().url;
                let transport = WebSocketTransport::connect(url).await.unwrap();
                let config = ClientConfig::default();
                let client = Client::connect(transport, config).await.unwrap();
                let versions = vec![$version.to_owned()];
                let ready = client.initialize(name.to_owned(), versions, Vec::new());
                assert_eq!(ready.await.unwrap().protocol_version, $version);
                client
            }

            async fn annotations(client: &Client) -> (String, AnnotationsState) {
                let uri = format!("{SESSION}/annotations");
                let (result, _) = client.subscribe(uri.clone()).await.unwrap();
                let SnapshotState::Annotations(state) = result.snapshot.unwrap().state else {
                    panic!("annotations")
                };
                (uri, *state)
            }

            /// The next action of a channel.
            async fn next(events: &mut ClientEventStream, uri: &str) -> StateAction {
                let next = async {
                    loop {
                        let event = events.recv().await.expect("the stream goes on");
                        if let SubscriptionEvent::Action(envelope) = event.event
                            && envelope.channel == uri
                        {
                            assert_eq!(envelope.rejection_reason, None);
                            let action = envelope.action.clone();
                            assert!(!matches!(action, StateAction::Unknown(_)), "{action:?}");
                            return action;
                        }
                    }
                };
                let heard = timeout(Duration::from_secs(60), next).await;
                heard.expect("an action")
            }

            /// A changeset as a client mirrors it.
            struct OpenChangeset {
                uri: String,
                state: ChangesetState,
            }

            async fn uncommitted(client: &Client) -> OpenChangeset {
                let uri = format!("{SESSION}/changeset/uncommitted");
                let (result, _) = client.subscribe(uri.clone()).await.unwrap();
                let SnapshotState::Changeset(state) = result.snapshot.unwrap().state else {
                    panic!("a changeset")
                };
                OpenChangeset { uri, state: *state }
            }

            /// Applies what comes until the changeset is so; the kinds of what came.
            async fn follow(
                open: &mut OpenChangeset,
                events: &mut ClientEventStream,
                is_so: impl Fn(&Value) -> bool,
            ) -> Vec<String> {
                let mut seen = Vec::new();
                while !is_so(&in_order(json!(open.state))) {
                    let action = next(events, &open.uri).await;
                    let kind = json!(action)["type"].as_str().unwrap().to_owned();
                    seen.push(kind);
                    apply_action_to_changeset(&mut open.state, &action);
                }
                seen
            }

            #[tokio::test]
            async fn it_follows_what_changes_little() {
                let mut harness = with_three_changes().await;
                let client = arrives(&harness, "one").await;
                let mut events = client.events();
                let mut open = uncommitted(&client).await;
                let all = ["a.txt", "b.txt", "c.txt"];
                let is_ready = |state: &Value| state["status"] == "ready" && names(state) == all;
                follow(&mut open, &mut events, is_ready).await;

                // One file is as it was again, and one is new.
                let change = "echo 'as it was' > a.txt; echo new > d.txt";
                let answers = [Answer::calls([bash(change)]), ends()];
                let turn = harness.talk("change little", answers).await;
                assert_eq!(turn["state"], "complete", "{turn:#}");
                let left = ["b.txt", "c.txt", "d.txt"];
                let is_left = |state: &Value| state["status"] == "ready" && names(state) == left;
                let seen = follow(&mut open, &mut events, is_left).await;
                for kind in ["changeset/fileRemoved", "changeset/fileSet"] {
                    let count = seen.iter().filter(|it| *it == kind).count();
                    assert_eq!(count, 1, "{kind}: {seen:?}");
                }
                let is_whole = |kind: &String| kind == "changeset/contentChanged";
                assert!(!seen.iter().any(is_whole), "{seen:?}");

                // Who comes now sees the same.
                let fresh = uncommitted(&arrives(&harness, "other").await).await;
                let fresh = in_order(json!(fresh.state));
                assert_eq!(names(&fresh), left);
                follow(&mut open, &mut events, |state| *state == fresh).await;
                assert_eq!(in_order(json!(open.state)), fresh);
            }

            // G-53
            #[tokio::test]
            async fn it_takes_back_a_turn_whose_id_has_to_be_escaped() {
                let harness = with_an_odd_turn().await;
                let client = arrives(&harness, "one").await;
                let mut events = client.events();
                let uri = format!("{SESSION}/changeset/turn/{ODD_TURN_SPELT}");
                let (result, _) = client.subscribe(uri.clone()).await.unwrap();
                let snapshot = result.snapshot.unwrap();
                assert_eq!(snapshot.resource, uri);
                let SnapshotState::Changeset(state) = snapshot.state else {
                    panic!("a changeset")
                };
                assert_eq!(names(&json!(state)), ["a.txt"]);
                let file = json!(state)["files"][0]["id"].clone();

                // It comes under the same name, whatever another client calls it.
                let review = json!({"type": "changeset/filesReviewChanged", "files": [file], "reviewed": true});
                let review: StateAction = serde_json::from_value(review).unwrap();
                let other = arrives(&harness, "other").await;
                let lower = ODD_TURN_SPELT.to_lowercase().replace("%3a", ":");
                let also = format!("{SESSION}/changeset/turn/{lower}");
                let (result, _) = other.subscribe(also.clone()).await.unwrap();
                assert_eq!(result.snapshot.unwrap().resource, uri);
                other.dispatch(also.clone(), review).await.unwrap();
                let mut open = OpenChangeset { uri: uri.clone(), state: *state };
                let is_reviewed = |state: &Value| state["files"][0]["reviewed"] == true;
                follow(&mut open, &mut events, is_reviewed).await;

                // What somebody changed since is said in the error's data, and how it is insisted on.
                harness.write("a.txt", "mine\n");
                let params = |uri: &str| json!({"channel": uri, "operationId": "restore"});
                let method = "invokeChangesetOperation";
                let refused = client.request::<_, Value>(method, params(&uri)).await;
                let Err(ClientError::Rpc(error)) = refused else {
                    panic!("{refused:?}")
                };
                let data = json!(error.data);
                assert_eq!((error.code, &data["canForce"]), (-32011, &json!(true)), "{data}");
                assert_eq!(data["reason"], "nothing was done: a.txt changed since");
                assert_eq!(data["resources"], json!([file]));
                let mut forced = params(&also);
                forced["_meta"] = json!({"force": true});
                let done: Value = other.request(method, forced).await.unwrap();
                assert_eq!(done["message"], "1 file is what it was.");
                assert_eq!(harness.read("a.txt"), "as it was\n");
            }

            #[tokio::test]
            async fn it_reviews_with_another_client() {
                let harness = NativeHarness::start().await;
                let (one, other) = (
                    arrives(&harness, "one").await,
                    arrives(&harness, "other").await,
                );
                let mut events = other.events();
                let (uri, mut state) = annotations(&other).await;
                annotations(&one).await;
                let entry = json!({"id": "f", "text": "because"});
                for action in [
                    json!({"type": "annotations/set", "annotation": annotation()}),
                    json!({"type": "annotations/entrySet", "annotationId": "a", "entry": entry}),
                    json!({"type": "annotations/updated", "annotationId": "a", "resolved": true}),
                    json!({"type": "annotations/entryRemoved", "annotationId": "a", "entryId": "e"}),
                ] {
                    let action: StateAction = serde_json::from_value(action).unwrap();
                    assert!(!matches!(action, StateAction::Unknown(_)), "{action:?}");
                    one.dispatch(uri.clone(), action).await.unwrap();
                    let heard = next(&mut events, &uri).await;
                    apply_action_to_annotations(&mut state, &heard);
                }
                let (_, fresh) = annotations(&one).await;
                assert_eq!(json!(state), json!(fresh));
                assert_eq!(json!(fresh)["annotations"][0]["resolved"], true);
                let entries = &json!(fresh)["annotations"][0]["entries"];
                assert_eq!(entries.as_array().unwrap().len(), 1);
                let removed = json!({"type": "annotations/removed", "annotationId": "a"});
                let removed: StateAction = serde_json::from_value(removed).unwrap();
                one.dispatch(uri.clone(), removed).await.unwrap();
                apply_action_to_annotations(&mut state, &next(&mut events, &uri).await);
                assert_eq!(json!(state)["annotations"], json!([]));
            }
        }
    };
}

published_client!(client_of_1_0, ahp, ahp_types, ahp_ws, "1.0.0");
published_client!(client_of_0_9, ahp_09, ahp_types_09, ahp_ws_09, "0.9.0");
