//! What an agent gets of the host outside of the events of its turns: the turns before, on demand, and words between turns.

use std::time::Duration;

use agent_api::{
    Agent, AgentError, AgentInfo, AgentSession, EventSink, HostNews, SessionFacts, SettingValue,
    TurnInput,
};
use async_trait::async_trait;
use kernel::{ClientToken, Input, SettingQuestion, Ticket, TokenText};
use parking_lot::Mutex;
use serde_json::{Value, json};
use wire::{ChannelUri, Object};

use super::tests::TestHost;
use super::*;

const PROVIDER: &str = "recorder";

/// Writes down what it hears.
#[derive(Default)]
struct Recorder {
    heard: Mutex<Vec<String>>,
    news: Mutex<Option<Arc<dyn HostNews>>>,
}

impl Recorder {
    fn record(&self, what: String) {
        self.heard.lock().push(what);
    }

    fn take_records(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock())
    }

    fn info_with(model: &str) -> AgentInfo {
        AgentInfo {
            provider: PROVIDER.to_owned(),
            display_name: "Recorder".to_owned(),
            description: String::new(),
            models: vec![agent_api::ModelInfo {
                id: model.to_owned(),
                name: model.to_owned(),
                details: Object::new(),
            }],
            capabilities: json!({}),
            config_schema: json!({"type": "object", "properties": {}}),
            renamed_settings: Vec::new(),
            default_model: None,
            sections: Vec::new(),
            protected_resources: Vec::new(),
            customizations: Vec::new(),
        }
    }
}

/// A handle of the agent as the host has it.
struct Shared(Arc<Recorder>);

#[async_trait]
impl Agent for Shared {
    fn info(&self) -> AgentInfo {
        Recorder::info_with("m")
    }

    fn start(&self, news: Arc<dyn HostNews>) {
        *self.0.news.lock() = Some(news);
    }

    fn setting_values(&self, conversation: &str, property: &str) -> Vec<SettingValue> {
        self.0.record(format!("values {conversation} {property}"));
        let value = |value: Value, description: Option<&str>| SettingValue {
            value,
            label: "Label".to_owned(),
            description: description.map(str::to_owned),
        };
        vec![
            value(json!("code"), Some("writes")),
            value(json!(7), None),
            value(json!("plan"), None),
        ]
    }

    fn receive_settings(&self, conversation: &str, config: &Object) {
        self.0.record(format!("settings {conversation} {}", json!(config)));
    }

    fn receive_title(&self, chat: &str, title: &str) {
        self.0.record(format!("title {chat} {title}"));
    }

    fn receive_token(&self, principal: Option<&str>, resource: &str, token: &str) {
        let of = principal.map(|name| format!(" of {name}")).unwrap_or_default();
        self.0.record(format!("token{of} {resource} {token:?}"));
    }

    fn unload_chat(&self, chat: &str) {
        self.0.record(format!("unload {chat}"));
    }

    async fn open(&self, _: SessionFacts) -> Result<Box<dyn AgentSession>, AgentError> {
        Ok(Box::new(Reader))
    }
}

/// Says how many turns there were before its own, as it is told and as it reads.
struct Reader;

#[async_trait]
impl AgentSession for Reader {
    async fn turn(&mut self, input: TurnInput, events: &dyn EventSink) -> Result<(), AgentError> {
        let read = events.read_history().await.unwrap();
        let first = read.first().map(|past| past.turn["id"].clone());
        let text = format!(
            "{} {:?}: {} told, {} read, first {first:?}",
            input.turn_id,
            input.last_turn_id,
            input.history.len(),
            read.len()
        );
        let _ = events.send(agent_api::AgentEvent::Notice { text }).await;
        Ok(())
    }
}

fn host() -> (TestHost, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let agent = Shared(Arc::clone(&recorder));
    (TestHost::with_agent(Arc::new(agent)), recorder)
}

fn uri(text: &str) -> ChannelUri {
    ChannelUri::parse(text).unwrap()
}

#[tokio::test]
async fn an_agent_without_history_reads_it_when_it_wants_to() {
    let (mut host, _) = host();
    let turns = (0..3).map(|n| {
        let json = json!({"id": format!("t{n}"), "startedAt": "s", "duration": 1, "state": "complete",
            "message": {"text": "hi", "origin": {"kind": "user"}}, "responseParts": []});
        kernel::Record::Turn {
            chat: kernel::ChannelId(5),
            n,
            turn: Arc::new(wire::state::Turn {
                id: format!("t{n}"),
                outcome: wire::state::Outcome::Complete,
                json: wire::rpc::to_json(&json).into(),
            }),
        }
    });
    let batch = Batch { seq: kernel::Seq(1), records: turns.collect() };
    host.effects.journal.append(batch).await.unwrap();
    let mut turn = TestHost::turn(RunId(1), PROVIDER);
    turn.turn_id = "t3".to_owned();
    turn.last_turn_id = Some("t2".to_owned());
    turn.history = kernel::HistoryAt {
        chat: kernel::ChannelId(5),
        before_n: 3,
        ..kernel::HistoryAt::default()
    };
    host.effects.run_turn(turn);
    let text = "t3 Some(\"t2\"): 0 told, 3 read, first Some(String(\"t0\"))".to_owned();
    let (_, event) = host.next_event().await;
    assert_eq!(event, agent_api::AgentEvent::Notice { text });
}

fn token(token: &str, expires_in_s: Option<u64>) -> ClientToken {
    ClientToken {
        provider: PROVIDER.to_owned(),
        principal: None,
        resource: "https://r".to_owned(),
        token: TokenText(token.to_owned()),
        expires_in_s,
    }
}

#[tokio::test(start_paused = true)]
async fn all_tokens_that_a_principal_brought_go_with_them() {
    let (mut host, recorder) = host();
    for (principal, resource, ends) in
        [("ann", "https://r", Some(30)), ("ann", "https://other", None), ("bob", "https://r", None)]
    {
        host.effects.authenticate(ClientToken {
            principal: Some(principal.to_owned()),
            resource: resource.to_owned(),
            ..token("theirs", ends)
        });
    }
    recorder.take_records();
    host.effects.forget_tokens("ann");
    let mut heard = recorder.take_records();
    heard.sort();
    assert_eq!(heard, ["token of ann https://other \"\"", "token of ann https://r \"\""]);
    pass_s(40).await;
    assert_eq!(recorder.take_records(), [""; 0], "nothing of hers ends again");
}

#[tokio::test(start_paused = true)]
async fn tokens_settings_and_idle_chats_reach_the_agent() {
    let (mut host, recorder) = host();
    host.effects.authenticate(token("one", Some(60)));
    host.effects.authenticate(token("two", Some(90)));
    assert_eq!(recorder.take_records(), ["token https://r \"one\"", "token https://r \"two\""]);
    pass_s(70).await;
    assert_eq!(recorder.take_records(), [""; 0], "the first one does not end the second");
    pass_s(30).await;
    assert_eq!(recorder.take_records(), ["token https://r \"\""]);
    // Another one's is another token, with an end of its own (H-318).
    host.effects.authenticate(token("mine", Some(60)));
    let of_ann = ClientToken { principal: Some("ann".to_owned()), ..token("hers", Some(30)) };
    host.effects.authenticate(of_ann);
    recorder.take_records();
    pass_s(40).await;
    assert_eq!(recorder.take_records(), ["token of ann https://r \"\""]);
    pass_s(30).await;
    assert_eq!(recorder.take_records(), ["token https://r \"\""]);
    host.effects.authenticate(token("three", Some(60)));
    host.effects.authenticate(token("", None));
    recorder.take_records();
    pass_s(100).await;
    assert_eq!(recorder.take_records(), [""; 0], "what was taken back does not end again");
    let values = json!({"a": 1}).as_object().cloned().unwrap();
    host.effects.tell_settings(&uri("x:/s"), PROVIDER, &values);
    host.effects.tell_settings(&uri("x:/s"), "other", &values);
    host.effects.tell_title(&uri("ahp-chat:/c"), PROVIDER, "T");
    host.effects.unload_chat(&uri("ahp-chat:/c"));
    assert_eq!(
        recorder.take_records(),
        ["settings x:/s {\"a\":1}", "title ahp-chat:/c T", "unload ahp-chat:/c"]
    );
}

#[tokio::test]
async fn values_of_a_setting_are_texts_with_labels() {
    let (mut host, recorder) = host();
    for (provider, session) in [(PROVIDER, Some("x:/s")), (PROVIDER, None), ("other", None)] {
        let question = SettingQuestion {
            working_directory: None,
            provider: provider.to_owned(),
            session: session.map(uri),
            property: "mode".to_owned(),
        };
        host.effects.list_setting_values(Ticket(1), question);
        let told = host.arrivals.recv().await;
        let Some(Input::SettingValues { values, .. }) = told.and_then(QueuedInput::into_input)
        else {
            panic!("values were asked for");
        };
        match provider {
            PROVIDER => assert_eq!(
                values.unwrap(),
                [
                    json!({"value": "code", "label": "Label", "description": "writes"}),
                    json!({"value": "plan", "label": "Label"}),
                ]
            ),
            _ => assert!(values.unwrap_err().0.contains("no agent `other`")),
        }
    }
    assert_eq!(recorder.take_records(), ["values x:/s mode", "values  mode"]);
}

#[tokio::test]
async fn news_reach_the_kernel_in_order_and_speak_of_the_agents_that_are_there() {
    let recorder = Arc::new(Recorder::default());
    let agents = SpaceAgents::for_test(vec![Arc::new(Shared(Arc::clone(&recorder)))]);
    let (queue, mut arrivals) = tokio::sync::mpsc::channel(64);
    agents.start(queue);
    let news = recorder.news.lock().clone().unwrap();
    news.agent_changed(AgentInfo { provider: "other".to_owned(), ..Recorder::info_with("no") });
    news.agent_changed(Recorder::info_with("old"));
    news.setting_changed("x:/s", "mode", json!("code"));
    news.agent_changed(Recorder::info_with("new"));
    news.title("x:/s", "Title".to_owned());
    let mut heard = Vec::new();
    for _ in 0..3 {
        let told = arrivals.recv().await;
        heard.push(match told.and_then(QueuedInput::into_input) {
            Some(Input::AgentChanged(facts)) => {
                format!("{} {}", facts.provider, facts.info["models"][0]["id"])
            }
            Some(Input::News(news)) => {
                format!("{} {} {:?}", news.provider, news.session, news.change)
            }
            _ => panic!("only agents speak here"),
        });
    }
    assert_eq!(
        heard,
        [
            "recorder \"new\"",
            "recorder x:/s Setting { name: \"mode\", value: String(\"code\") }",
            "recorder x:/s Title(\"Title\")",
        ]
    );
}

/// Lets virtual time pass, and what is due then happen.
async fn pass_s(seconds: u64) {
    // What was begun sets its timer first.
    settle().await;
    tokio::time::advance(Duration::from_secs(seconds)).await;
    settle().await;
}

async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}
