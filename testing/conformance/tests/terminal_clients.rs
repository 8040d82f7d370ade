//! Terminals with real shells, seen by published clients of 1.0.0 and 0.9.0 side by side: what the reducers of each make of the stream
//! shows the same screen, also to one that lost its connection meanwhile.

use std::time::Duration;

use conformance::TestHost;
use serde_json::{Value, json};

const ROOT: &str = "ahp-root://";
const TERMINAL: &str = "ahp-terminal:/one";
const DEADLINE: Duration = Duration::from_secs(60);

macro_rules! terminal_client {
    ($module:ident, $ahp:ident, $types:ident, $ws:ident, $version:literal) => {
        mod $module {
            use $ahp::reducers::apply_action_to_terminal;
            use $ahp::{Client, ClientConfig, ClientEventStream, SubscriptionEvent};
            use $types::state::{SnapshotState, TerminalState};
            use $ws::WebSocketTransport;

            use super::*;

            /// A client that follows one terminal.
            pub struct Follower {
                client: Client,
                name: &'static str,
                events: ClientEventStream,
                state: Option<TerminalState>,
                seen_seq: i64,
                refused: Vec<String>,
            }

            impl Follower {
                async fn open(url: &str) -> (Client, ClientEventStream) {
                    let transport = WebSocketTransport::connect(url).await.unwrap();
                    let config = ClientConfig {
                        subscription_buffer: 65_536,
                        ..ClientConfig::default()
                    };
                    let client = Client::connect(transport, config).await.unwrap();
                    let events = client.events();
                    (client, events)
                }

                pub async fn connect(url: &str, name: &'static str) -> Self {
                    let (client, events) = Self::open(url).await;
                    let versions = vec![$version.to_owned()];
                    let channels = vec![ROOT.to_owned()];
                    let init = client.initialize(name.to_owned(), versions, channels);
                    let init = init.await.unwrap();
                    assert_eq!(init.protocol_version, $version);
                    Self {
                        client,
                        name,
                        events,
                        state: None,
                        seen_seq: init.server_seq,
                        refused: Vec::new(),
                    }
                }

                pub async fn creates(&self, cwd: &str) {
                    let params = json!({
                        "channel": TERMINAL, "claim": {"kind": "client", "clientId": self.name}, "cwd": cwd, "cols": 60, "rows": 12,
                    });
                    let made: Value = self.client.request("createTerminal", params).await.unwrap();
                    assert_eq!(made, Value::Null);
                }

                pub async fn opens(&mut self) {
                    let (result, _) = self.client.subscribe(TERMINAL.to_owned()).await.unwrap();
                    let snapshot = result.snapshot.unwrap();
                    self.seen_seq = self.seen_seq.max(snapshot.from_seq);
                    let SnapshotState::Terminal(state) = snapshot.state else {
                        panic!("a terminal");
                    };
                    self.state = Some(*state);
                }

                pub async fn sends(&self, action: Value) {
                    let action = serde_json::from_value(action).unwrap();
                    let sent = self.client.dispatch(TERMINAL.to_owned(), action);
                    sent.await.unwrap();
                }

                pub async fn types(&self, data: &str) {
                    self.sends(json!({"type": "terminal/input", "data": data})).await;
                }

                pub async fn claims(&self) {
                    let claim = json!({"kind": "client", "clientId": self.name});
                    self.sends(json!({"type": "terminal/claimed", "claim": claim})).await;
                }

                pub fn state(&self) -> Value {
                    serde_json::to_value(&self.state).unwrap()
                }

                pub fn refused(&self) -> &[String] {
                    &self.refused
                }

                pub async fn loses_connection(&self) {
                    self.client.shutdown().await;
                }

                /// Comes back, and is told what it missed.
                pub async fn reconnects(&mut self, url: &str) {
                    let (client, events) = Self::open(url).await;
                    (self.client, self.events) = (client, events);
                    let channels = vec![ROOT.to_owned(), TERMINAL.to_owned()];
                    let missed = self.client.reconnect(self.name.to_owned(), self.seen_seq, channels);
                    let missed = serde_json::to_value(missed.await.unwrap()).unwrap();
                    for snapshot in missed["snapshots"].as_array().into_iter().flatten() {
                        if snapshot["resource"] == TERMINAL || snapshot["channel"] == TERMINAL {
                            self.state = serde_json::from_value(snapshot["state"].clone()).unwrap();
                        }
                    }
                    let state = self.state.as_mut().unwrap();
                    for envelope in missed["actions"].as_array().into_iter().flatten() {
                        if envelope["channel"] == TERMINAL {
                            let action = serde_json::from_value(envelope["action"].clone());
                            apply_action_to_terminal(state, &action.unwrap());
                        }
                    }
                }

                pub async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
                    let follow = async {
                        while !is_so(self) {
                            let event = self.events.recv().await.expect("the stream goes on");
                            let SubscriptionEvent::Action(envelope) = event.event else {
                                continue;
                            };
                            if let Some(why) = &envelope.rejection_reason {
                                self.refused.push(why.clone());
                                continue;
                            }
                            let seq = i64::try_from(envelope.server_seq).unwrap();
                            self.seen_seq = self.seen_seq.max(seq);
                            if let Some(state) = self.state.as_mut().filter(|_| envelope.channel == TERMINAL) {
                                apply_action_to_terminal(state, &envelope.action);
                            }
                        }
                    };
                    if tokio::time::timeout(DEADLINE, follow).await.is_err() {
                        panic!("{} never saw {what}: {}", self.name, screen_of(&self.state()));
                    }
                }

                pub async fn sees(&mut self, text: &str) {
                    self.until(text, |own| screen_of(&own.state()).contains(text)).await;
                }
            }
        }
    };
}

terminal_client!(of_1_0, ahp, ahp_types, ahp_ws, "1.0.0");
terminal_client!(of_0_9, ahp_09, ahp_types_09, ahp_ws_09, "0.9.0");

/// What a terminal shows that gets all of the content.
fn screen_of(state: &Value) -> String {
    let size = |name: &str| u16::try_from(state[name].as_i64().unwrap()).unwrap();
    let (rows, columns) = (size("rows"), size("cols"));
    let mut parser = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0);
    for part in state["content"].as_array().unwrap() {
        let text = part["value"].as_str().or_else(|| part["output"].as_str());
        parser.process(text.unwrap_or_default().as_bytes());
    }
    parser.screen().contents()
}

macro_rules! life_of_a_terminal {
    ($test:ident, $holder:ident, $other:ident) => {
        /// One makes it and holds it, the other takes it over, a third loses its connection and comes back.
        #[tokio::test]
        async fn $test() {
            let data = tempfile::tempdir().unwrap();
            let scenes = json!({"scenes": [{"steps": [{"say": ["hello"]}]}]});
            let host = TestHost::start(data.path(), &scenes).await;
            let lines: String = (1..=200).map(|line| format!("row {line}\n")).collect();
            std::fs::write(data.path().join("text"), lines).unwrap();
            let mut ann = $holder::Follower::connect(&host.url, "ann").await;
            let mut bob = $other::Follower::connect(&host.url, "bob").await;
            let mut third = $other::Follower::connect(&host.url, "third").await;
            ann.creates(&format!("file://{}", data.path().display())).await;
            ann.opens().await;
            bob.opens().await;
            third.opens().await;
            ann.types("echo $((6*7)) is it\r").await;
            ann.sees("42 is it").await;
            bob.sees("42 is it").await;
            // Only who holds it types.
            bob.types("echo stolen\r").await;
            bob.until("a refusal", |own| !own.refused().is_empty()).await;

            // The other screen, drawn by a program of our own and by `less` where that is.
            third.sees("42 is it").await;
            third.loses_connection().await;
            let program = "printf '\\033[?1049h\\033[2J\\033[Hfull screen\\033[3;5Hin the %s' middle; head -1 >/dev/null; \
                           printf '\\033[?1049l'; echo back ag''ain\r";
            ann.types(program).await;
            ann.sees("in the middle").await;
            bob.sees("in the middle").await;
            third.reconnects(&host.url).await;
            third.sees("in the middle").await;
            let shown = screen_of(&ann.state());
            assert_eq!(shown.trim_end(), "full screen\n\n    in the middle");
            assert_eq!(screen_of(&bob.state()), shown);
            assert_eq!(screen_of(&third.state()), shown);
            ann.types("\r").await;
            third.sees("back again").await;

            // A new size is everybody's.
            ann.sends(json!({"type": "terminal/resized", "cols": 50, "rows": 8})).await;
            for_all_sizes(&mut ann, &mut bob, &mut third).await;
            ann.types("stty size\r").await;
            bob.sees("8 50").await;

            // It is given up with the connection of its holder, and taken over.
            ann.loses_connection().await;
            bob.claims().await;
            bob.until("the claim", |own| own.state()["claim"]["clientId"] == "bob").await;
            bob.types("exit 3\r").await;
            bob.until("the end", |own| own.state()["lifecycle"]["exitCode"] == 3).await;
            third.until("the end", |own| own.state()["lifecycle"]["exitCode"] == 3).await;
            assert_eq!(screen_of(&bob.state()), screen_of(&third.state()));
            host.stop().await;

            async fn for_all_sizes(ann: &mut $holder::Follower, bob: &mut $other::Follower, third: &mut $other::Follower) {
                ann.until("the size", |own| own.state()["rows"] == 8).await;
                bob.until("the size", |own| own.state()["rows"] == 8).await;
                third.until("the size", |own| own.state()["cols"] == 50).await;
            }
        }
    };
}

life_of_a_terminal!(one_of_1_0_with_others_of_0_9, of_1_0, of_0_9);
life_of_a_terminal!(one_of_0_9_with_others_of_1_0, of_0_9, of_1_0);
