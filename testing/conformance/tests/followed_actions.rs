//! Every action of changesets, terminals and watches, followed by the published clients of 1.0.0 and of 0.9.0: none is unknown to them, none
//! is left out here, and what their reducers make of all that came is what a fresh snapshot says. Annotations: `changeset_actions`.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use conformance::TestHost;
use conformance::native::{NativeHarness, SESSION, bash, ends};
use serde_json::{Value, json};
use testkit::Answer;
use tokio::time::timeout;
use wire::ActionKind;

use crate::changesets::{commit_all, git};

const DEADLINE: Duration = Duration::from_secs(60);

/// The names of all actions of a kind of channel.
pub(crate) fn actions_of(prefix: &str) -> BTreeSet<String> {
    let names = ActionKind::all().map(ActionKind::name);
    let of_channel = names.filter(|name| name.starts_with(prefix));
    of_channel.map(str::to_owned).collect()
}

/// Files have no order.
fn in_order(mut state: Value) -> Value {
    if let Some(files) = state["files"].as_array_mut() {
        files.sort_by_key(|file| file["id"].as_str().map(str::to_owned));
    }
    state
}

fn names(state: &Value) -> Vec<String> {
    let files = state["files"].as_array().into_iter().flatten();
    let ids = files.filter_map(|file| file["id"].as_str()?.rsplit('/').next());
    let mut names: Vec<String> = ids.map(str::to_owned).collect();
    names.sort();
    names
}

fn is_ready_with(state: &Value, expected: &[&str]) -> bool {
    state["status"] == "ready" && names(state) == expected
}

/// What the only operation of a branch's changeset says that it does.
fn description(state: &Value) -> String {
    let said = state["operations"][0]["description"].as_str();
    said.unwrap_or_default().to_owned()
}

/// A session on a branch of its own with three files that are not committed, once the host has looked.
async fn on_a_branch() -> NativeHarness {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        harness.write(name, "as it was\n");
    }
    commit_all(&harness.work());
    git(&harness.work(), &["checkout", "--quiet", "-b", "side"]);
    for name in ["a.txt", "b.txt", "c.txt"] {
        harness.write(name, "changed\n");
    }
    runs(&mut harness, "true").await;
    let is_known = |state: &Value| state["_meta"]["git"]["baseBranchName"] == "main";
    harness.ann.until_session(SESSION, is_known).await;
    harness
}

async fn runs(harness: &mut NativeHarness, command: &str) {
    let answers = [Answer::calls([bash(command)]), ends()];
    let turn = harness.talk("run it", answers).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
}

async fn serves(data: &std::path::Path) -> TestHost {
    let script = json!({"scenes": [{"steps": [{"say": ["hello"]}]}]});
    TestHost::start(data, &script).await
}

/// One published client, by the names of its crates.
macro_rules! published_client {
    ($test:ident, $ahp:ident, $types:ident, $ws:ident, $version:literal) => {
        mod $test {
            use $ahp::reducers::{
                apply_action_to_changeset, apply_action_to_resource_watch,
                apply_action_to_terminal,
            };
            use $ahp::{Client, ClientConfig, ClientEventStream, SubscriptionEvent};
            use $types::actions::StateAction;
            use $types::state::SnapshotState;
            use $ws::WebSocketTransport;

            use super::*;

            /// A client that follows one channel by its own reducers.
            struct Follower {
                client: Client,
                events: ClientEventStream,
                uri: String,
                state: SnapshotState,
                seen: BTreeSet<String>,
            }

            async fn arrives(url: &str, name: &str) -> Client {
                let transport = WebSocketTransport::connect(url).await.unwrap();
                let config = ClientConfig {
                    subscription_buffer: 65_536,
                    ..ClientConfig::default()
                };
                let client = Client::connect(transport, config).await.unwrap();
                let versions = vec![$version.to_owned()];
                let ready = client.initialize(name.to_owned(), versions, Vec::new());
                assert_eq!(ready.await.unwrap().protocol_version, $version);
                client
            }

            async fn snapshot(client: &Client, uri: &str) -> SnapshotState {
                let (result, _) = client.subscribe(uri.to_owned()).await.unwrap();
                result.snapshot.unwrap().state
            }

            impl Follower {
                async fn follows(client: Client, uri: &str) -> Self {
                    let events = client.events();
                    let state = snapshot(&client, uri).await;
                    let (uri, seen) = (uri.to_owned(), BTreeSet::new());
                    Self { client, events, uri, state, seen }
                }

                fn state(&self) -> Value {
                    in_order(json!(self.state))
                }

                async fn sends(&self, action: Value) {
                    let action: StateAction = serde_json::from_value(action).unwrap();
                    assert!(!matches!(action, StateAction::Unknown(_)), "{action:?}");
                    let sent = self.client.dispatch(self.uri.clone(), action).await;
                    sent.unwrap();
                }

                async fn takes_one(&mut self) {
                    let event = self.events.recv().await.expect("the stream goes on");
                    let SubscriptionEvent::Action(envelope) = event.event else {
                        return;
                    };
                    if envelope.channel != self.uri {
                        return;
                    }
                    assert_eq!(envelope.rejection_reason, None);
                    let action = &envelope.action;
                    assert!(!matches!(action, StateAction::Unknown(_)), "{action:?}");
                    let kind = json!(action)["type"].as_str().unwrap().to_owned();
                    self.seen.insert(kind);
                    match &mut self.state {
                        SnapshotState::Changeset(state) => {
                            apply_action_to_changeset(state, action);
                        }
                        SnapshotState::Terminal(state) => {
                            apply_action_to_terminal(state, action);
                        }
                        SnapshotState::ResourceWatch(state) => {
                            apply_action_to_resource_watch(state, action);
                        }
                        other => panic!("another channel: {other:?}"),
                    }
                }

                async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
                    let follow = async {
                        while !is_so(self) {
                            self.takes_one().await;
                        }
                    };
                    if timeout(DEADLINE, follow).await.is_err() {
                        panic!("{what}: {:?} {:#}", self.seen, self.state());
                    }
                }

                async fn invokes(&self, operation: &str) {
                    let params = json!({"channel": self.uri, "operationId": operation});
                    let method = "invokeChangesetOperation";
                    let _: Value = self.client.request(method, params).await.unwrap();
                }

                /// Who comes now sees the same.
                async fn equals_a_fresh_snapshot(&mut self, url: &str, name: &str) {
                    let fresh = arrives(url, name).await;
                    let fresh = in_order(json!(snapshot(&fresh, &self.uri).await));
                    let what = format!("a fresh snapshot {fresh:#}");
                    self.until(&what, |own| own.state() == fresh).await;
                }
            }

            #[tokio::test]
            async fn every_action_of_a_changeset() {
                let mut harness = on_a_branch().await;
                let url = harness.host().url.clone();
                let uri = format!("{SESSION}/changeset/branch");
                let mut own = Follower::follows(arrives(&url, "own").await, &uri).await;
                let all = ["a.txt", "b.txt", "c.txt"];
                own.until("all of it", |own| is_ready_with(&own.state(), &all)).await;
                let id = own.state()["files"][1]["id"].clone();
                let review = json!({"type": "changeset/filesReviewChanged", "files": [id], "reviewed": true});
                own.sends(review).await;
                own.until("a review", |own| own.state()["files"][1]["reviewed"] == true).await;
                own.equals_a_fresh_snapshot(&url, "first").await;

                // One file is as it was again, one is new.
                runs(&mut harness, "echo 'as it was' > a.txt; echo new > d.txt").await;
                let left = ["b.txt", "c.txt", "d.txt"];
                own.until("little", |own| is_ready_with(&own.state(), &left)).await;
                assert_eq!(own.state()["files"][0]["reviewed"], true, "it stays");
                own.equals_a_fresh_snapshot(&url, "second").await;

                // The same files, compared with another branch that they can be merged into.
                runs(&mut harness, "git branch other; git config branch.side.greenroomBase other").await;
                own.until("other operations", |own| description(&own.state()).ends_with("into other")).await;
                own.invokes("merge").await;
                let kind = "changeset/operationStatusChanged";
                own.until("an operation", |own| own.seen.contains(kind)).await;
                own.until("its end", |own| own.state()["operations"][0]["status"] == "idle").await;
                own.equals_a_fresh_snapshot(&url, "third").await;

                // The end of the session.
                let dispose = json!({"channel": SESSION});
                let _: Value = own.client.request("disposeSession", dispose).await.unwrap();
                own.until("the end", |own| own.seen.contains("changeset/cleared")).await;
                assert_eq!(own.state()["files"], json!([]));
                assert_eq!(own.seen, actions_of("changeset/"));
            }

            #[tokio::test]
            async fn every_action_of_a_terminal() {
                let data = tempfile::tempdir().unwrap();
                let host = serves(data.path()).await;
                let below = data.path().canonicalize().unwrap().join("below");
                fs::create_dir(&below).unwrap();
                let maker = arrives(&host.url, "maker").await;
                let cwd = format!("file://{}", data.path().display());
                let claim = |name: &str| json!({"kind": "client", "clientId": name});
                let client = arrives(&host.url, "own").await;
                let mut found = None;
                // A shell may say that it tells of commands before anybody listens: then another is started.
                for number in 0..20 {
                    let uri = format!("ahp-terminal:/{number}");
                    let create = json!({"channel": uri, "claim": claim("maker"), "cwd": cwd, "cols": 60, "rows": 12});
                    let _: Value = maker.request("createTerminal", create).await.unwrap();
                    let mut own = Follower::follows(client.clone(), &uri).await;
                    let detects = |own: &Follower| own.state()["supportsCommandDetection"] == true;
                    own.until("detection", detects).await;
                    if own.seen.contains("terminal/commandDetectionAvailable") {
                        found = Some(own);
                        break;
                    }
                    let _: Value = maker.request("disposeTerminal", json!({"channel": uri})).await.unwrap();
                }
                let mut own = found.expect("one was heard");
                // Its maker leaves; it is taken over.
                maker.shutdown().await;
                own.sends(json!({"type": "terminal/claimed", "claim": claim("own")})).await;
                own.until("the claim", |own| own.state()["claim"]["clientId"] == "own").await;
                own.sends(json!({"type": "terminal/titleChanged", "title": "mine"})).await;
                own.sends(json!({"type": "terminal/resized", "cols": 50, "rows": 10})).await;
                own.until("title and size", |own| {
                    own.state()["title"] == "mine" && own.state()["rows"] == 10
                })
                .await;
                own.sends(json!({"type": "terminal/input", "data": "echo $((6*7)) is it; (exit 4)\r"})).await;
                own.until("a command", |own| own.seen.contains("terminal/commandFinished")).await;
                let shown = own.state()["content"].to_string();
                assert!(shown.contains("42 is it") && shown.contains("\"exitCode\":4"), "{shown}");
                own.sends(json!({"type": "terminal/cleared"})).await;
                own.sends(json!({"type": "terminal/input", "data": "cd below\r"})).await;
                let below = format!("file://{}", below.display());
                own.until("the directory", |own| own.state()["cwd"] == below.as_str()).await;
                own.sends(json!({"type": "terminal/input", "data": "exit 3\r"})).await;
                own.until("the end", |own| own.state()["lifecycle"]["exitCode"] == 3).await;
                own.equals_a_fresh_snapshot(&host.url, "fresh").await;
                assert_eq!(own.seen, actions_of("terminal/"));
                host.stop().await;
            }

            #[tokio::test]
            async fn every_action_of_a_watch() {
                let data = tempfile::tempdir().unwrap();
                let host = serves(data.path()).await;
                let watched = data.path().join("watched");
                fs::create_dir(&watched).unwrap();
                let client = arrives(&host.url, "own").await;
                let uri = format!("file://{}", watched.display());
                let params = json!({"channel": "ahp-root://", "uri": uri, "recursive": true, "excludes": {"items": ["*.tmp"]}});
                let made: Value = client.request("createResourceWatch", params).await.unwrap();
                let watch = made["channel"].as_str().unwrap().to_owned();
                let mut own = Follower::follows(client, &watch).await;
                let before = own.state();
                fs::write(watched.join("new"), "new").unwrap();
                own.until("a change", |own| own.seen.contains("resourceWatch/changed")).await;
                assert_eq!(own.seen, actions_of("resourceWatch/"));
                assert_eq!(own.state(), before, "what it tells is in no state");
                own.equals_a_fresh_snapshot(&host.url, "fresh").await;
                host.stop().await;
            }
        }
    };
}

published_client!(client_of_1_0, ahp, ahp_types, ahp_ws, "1.0.0");
published_client!(client_of_0_9, ahp_09, ahp_types_09, ahp_ws_09, "0.9.0");
