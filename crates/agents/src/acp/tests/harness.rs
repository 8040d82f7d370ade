//! A directory to work in, an agent in it, and a host that answers what it is told to.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent_api::{
    Agent, AgentError, AgentEvent, AgentReply, CallEnd, CallEstimate, CallId, CallKind, CallPermit,
    ClientToolOffer, EventSink, HostServices, Lowering, ModelCall, ModelOutput, PastTurn, Section,
    SessionFacts, StoreError, TurnInput, TurnOver, UserMessage, WaitingSteering,
};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use wire::published::state::{ChatInputResponseKind, ContentRef};
use wire::{NamedBody, Object};

use crate::acp::{AcpAgent, AcpAgentConfig, TrustPolicy};
use crate::test_turn::user_turn;
use crate::trust::TrustStore;

/// What people say, in this order.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Approve,
    Choose(&'static str, bool),
    Deny(Option<&'static str>),
    Answer(Value),
    /// Nothing, ever.
    Silence,
    /// Before anything else: a steering message waits.
    Steer(&'static str),
}

pub(super) struct Place {
    pub(super) directory: tempfile::TempDir,
    script: PathBuf,
    pub(super) state: PathBuf,
}

impl Place {
    pub(super) fn new(script: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = Self {
            script: directory.path().join("script.json"),
            state: directory.path().join("state"),
            directory,
        };
        std::fs::create_dir(place.work()).unwrap();
        place.set_script(script);
        place
    }

    pub(super) fn set_script(&self, script: &Value) {
        std::fs::write(&self.script, script.to_string()).unwrap();
    }

    /// The working directory.
    pub(super) fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    pub(super) fn touch(&self, name: &str) {
        std::fs::create_dir_all(&self.state).unwrap();
        std::fs::write(self.state.join(name), "").unwrap();
    }

    pub(super) fn agent(&self) -> AcpAgent {
        self.agent_with(|_| {})
    }

    pub(super) fn agent_with(&self, change: impl FnOnce(&mut AcpAgentConfig)) -> AcpAgent {
        let binary = acp_agent::binary().unwrap();
        let mut config = AcpAgentConfig::new("fake", binary.to_str().unwrap());
        config.trust = TrustPolicy::Always;
        let path = |path: &PathBuf| path.to_str().unwrap().to_owned();
        config.args = vec![
            "--script".to_owned(),
            path(&self.script),
            "--state".to_owned(),
            path(&self.state),
        ];
        change(&mut config);
        let data = self.directory.path().join("data");
        std::fs::create_dir_all(&data).unwrap();
        let trust = Arc::new(TrustStore::new(&data, Vec::new()));
        AcpAgent::new(config, &data, trust)
    }

    pub(super) fn facts(&self, chat: &str) -> SessionFacts {
        SessionFacts {
            conversation: "conversation".to_owned(),
            chat: chat.to_owned(),
            principal: None,
            working_directories: vec![wire::file_uri::uri_of(
                self.work().as_os_str().as_encoded_bytes(),
            )],
            attachments: None,
            plugins: Vec::new(),
        }
    }

    pub(super) fn received(&self) -> Vec<acp_agent::Received> {
        acp_agent::received(&self.state)
    }

    pub(super) fn frames(&self, method: &str) -> Vec<Value> {
        let frames = self.received().into_iter().map(|line| line.frame);
        frames.filter(|frame| frame["method"] == method).collect()
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.frames(method).len()
    }

    /// The answers to the agent's own requests.
    pub(super) fn answers(&self) -> Vec<Value> {
        let frames = self.received().into_iter().map(|line| line.frame);
        let answers = frames.filter(|frame| frame["method"].is_null());
        answers.map(|frame| frame["result"].clone()).collect()
    }

    pub(super) fn starts(&self) -> usize {
        acp_agent::starts(&self.state).len()
    }

    pub(super) async fn turn(&self, agent: &AcpAgent, input: Input) -> Played {
        self.turn_with(agent, input, Vec::new()).await
    }

    pub(super) async fn turn_with(
        &self,
        agent: &AcpAgent,
        input: Input,
        replies: Vec<Reply>,
    ) -> Played {
        let events = Recorder::new(&input, replies);
        let mut session = agent.open(self.facts(input.chat)).await.unwrap();
        let result = session.turn(input.turn.clone(), &events).await;
        events.finish(result)
    }

    /// A turn that a principal began.
    pub(super) async fn turn_of(
        &self,
        agent: &AcpAgent,
        input: Input,
        principal: Option<&str>,
    ) -> Played {
        let facts =
            SessionFacts { principal: principal.map(str::to_owned), ..self.facts(input.chat) };
        self.turn_by(agent, input, facts).await
    }

    /// A turn of a session of which this is known.
    pub(super) async fn turn_by(
        &self,
        agent: &AcpAgent,
        input: Input,
        facts: SessionFacts,
    ) -> Played {
        let events = Recorder::new(&input, Vec::new());
        let mut session = agent.open(facts).await.unwrap();
        let result = session.turn(input.turn.clone(), &events).await;
        events.finish(result)
    }

    /// Waits for a file that the agent makes.
    pub(super) async fn wait_for_file(&self, file: &str) {
        let file = self.state.join(file);
        until(|| file.exists()).await;
    }

    /// Works on a turn until the agent makes a file, and drops it then.
    pub(super) async fn drop_turn_at(&self, agent: &AcpAgent, input: Input, file: &str) -> Played {
        let events = Recorder::new(&input, vec![Reply::Silence; 8]);
        let mut session = agent.open(self.facts(input.chat)).await.unwrap();
        tokio::select! {
            result = session.turn(input.turn.clone(), &events) => panic!("it ended: {result:?}"),
            () = self.wait_for_file(file) => {}
        }
        events.finish(Ok(()))
    }
}

#[derive(Clone)]
pub(super) struct Input {
    pub(super) turn: TurnInput,
    pub(super) chat: &'static str,
    history: Vec<PastTurn>,
    /// Nothing can be stored.
    disk_is_full: bool,
}

/// A user's message.
pub(super) fn user(turn: &str, text: &str) -> Input {
    Input { turn: user_turn(turn, text), chat: "chat", history: Vec::new(), disk_is_full: false }
}

impl Input {
    /// After another turn of the same chat.
    pub(super) fn after(mut self, last: &str, played: &Played) -> Self {
        self.turn.last_turn_id = Some(last.to_owned());
        self.turn.chat_notes.clone_from(&played.notes);
        self
    }

    pub(super) fn with_history(mut self, said: &str, answered: &str) -> Self {
        self.history.push(PastTurn {
            turn: json!({"message": {"text": said}, "responseParts": [{"kind": "markdown", "content": answered}]}),
            ..PastTurn::default()
        });
        self
    }

    pub(super) fn with_model(mut self, model: &str) -> Self {
        Arc::make_mut(&mut self.turn.message)["model"] = json!({"id": model});
        self
    }

    pub(super) fn with_config(mut self, name: &str, value: Value) -> Self {
        self.turn.config.insert(name.to_owned(), value);
        self
    }

    pub(super) fn on_full_disk(mut self) -> Self {
        self.disk_is_full = true;
        self
    }

    pub(super) fn in_chat(mut self, chat: &'static str) -> Self {
        self.chat = chat;
        self
    }

    /// The same turn again, after it was interrupted.
    pub(super) fn resumed(mut self, played: &Played, said: &str) -> Self {
        self.turn.resume = Some(None);
        self.turn.chat_notes.clone_from(&played.notes);
        self.turn.response_parts = vec![json!({"kind": "markdown", "content": said})];
        self
    }
}

/// What came of a turn.
pub(super) struct Played {
    pub(super) result: Result<(), AgentError>,
    pub(super) events: Vec<AgentEvent>,
    pub(super) notes: Option<Bytes>,
}

impl Played {
    pub(super) fn texts(&self) -> Vec<String> {
        let mut parts: Vec<(u64, String)> = Vec::new();
        for event in &self.events {
            if let AgentEvent::Text { part, text } = event {
                match parts.last_mut().filter(|(last, _)| last == part) {
                    Some((_, so_far)) => so_far.push_str(text),
                    None => parts.push((*part, text.clone())),
                }
            }
        }
        parts.into_iter().map(|(_, text)| text).collect()
    }

    pub(super) fn notices(&self) -> Vec<&str> {
        let notices = self.events.iter().filter_map(|event| match event {
            AgentEvent::Notice { text } => Some(text.as_str()),
            _ => None,
        });
        notices.collect()
    }

    pub(super) fn completed(&self) -> Vec<Value> {
        let completed = self.events.iter().filter_map(|event| match event {
            AgentEvent::ToolCompleted { result, .. } => Some(json!(result.clone().into_object())),
            _ => None,
        });
        completed.collect()
    }

    /// The fields of the `chat/toolCallReady` actions.
    pub(super) fn ready(&self) -> Vec<Value> {
        let ready = self.events.iter().filter_map(|event| match event {
            AgentEvent::ToolReady { ready, .. } => Some(json!(ready.clone().into_object())),
            _ => None,
        });
        ready.collect()
    }

    pub(super) fn position(&self, is_it: impl Fn(&AgentEvent) -> bool) -> Option<usize> {
        self.events.iter().position(is_it)
    }
}

/// A host that records what it hears.
struct Recorder {
    events: Mutex<Vec<AgentEvent>>,
    notes: Mutex<Option<Bytes>>,
    replies: Mutex<VecDeque<Reply>>,
    config: Object,
    history: Vec<PastTurn>,
    disk_is_full: bool,
}

impl Recorder {
    fn new(input: &Input, replies: Vec<Reply>) -> Self {
        Self {
            events: Mutex::default(),
            notes: Mutex::new(input.turn.chat_notes.clone()),
            replies: Mutex::new(replies.into()),
            config: input.turn.config.clone(),
            history: input.history.clone(),
            disk_is_full: input.disk_is_full,
        }
    }

    fn finish(self, result: Result<(), AgentError>) -> Played {
        Played { result, events: self.events.into_inner(), notes: self.notes.into_inner() }
    }

    fn record(&self, event: AgentEvent) {
        self.events.lock().push(event);
    }
}

#[async_trait]
impl HostServices for Recorder {
    async fn store_body(
        &self,
        body: Vec<u8>,
        content_type: &str,
    ) -> Result<ContentRef, StoreError> {
        if self.disk_is_full {
            return Err(StoreError("the disk is full".to_owned()));
        }
        Ok(ContentRef {
            uri: String::from_utf8_lossy(&body).into_owned(),
            size_hint: None,
            content_type: Some(content_type.to_owned()),
            nonce: None,
        })
    }

    async fn store_named_body(
        &self,
        body: NamedBody,
        content_type: &str,
    ) -> Result<ContentRef, StoreError> {
        self.store_body(body.to_vec(), content_type).await
    }

    async fn read_message(&self, _: String) -> Option<Arc<UserMessage>> {
        None
    }

    async fn read_history(&self) -> Result<Vec<PastTurn>, StoreError> {
        Ok(self.history.clone())
    }

    async fn record_lowering(&self, _: Lowering) {}

    async fn record_output(&self, _: ModelOutput) {}

    async fn record_call(&self, _: ModelCall) -> Option<CallId> {
        None
    }

    fn record_call_end(&self, _: CallId, _: CallEnd) {}

    async fn begin_call(&self, _: CallEstimate, _: CallKind) -> Result<CallPermit, StoreError> {
        Ok(CallPermit::Granted { unpriced: false })
    }

    async fn release_call(&self) {}

    async fn settle_call(&self, _: agent_api::CallUsage) {}

    async fn extend_budget(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl EventSink for Recorder {
    async fn send(&self, event: AgentEvent) -> Result<(), TurnOver> {
        self.record(event);
        Ok(())
    }

    async fn ask(&self, event: AgentEvent) -> Result<AgentReply, TurnOver> {
        let number = match &event {
            AgentEvent::ToolReady { call, .. } => *call,
            AgentEvent::InputRequested { ask, .. } => *ask,
            other => panic!("nobody answers {other:?}"),
        };
        let offered = match &event {
            AgentEvent::ToolReady { ready, .. } => ready.options.clone(),
            _ => Vec::new(),
        };
        self.record(event);
        let reply = self.replies.lock().pop_front();
        let decided = |approved: bool, selected_option: Option<Value>, words: Option<&str>| {
            AgentReply::ToolDecided {
                call: number,
                approved,
                input: None,
                selected_option,
                suggestion: words.map(|text| json!({"text": text})),
                reason: None,
            }
        };
        match reply {
            Some(Reply::Approve) => Ok(decided(true, None, None)),
            Some(Reply::Choose(id, approved)) => {
                let option = offered.into_iter().find(|option| option["id"] == id);
                Ok(decided(approved, option, None))
            }
            Some(Reply::Deny(words)) => Ok(decided(false, None, words)),
            Some(Reply::Answer(answers)) => Ok(AgentReply::Answered {
                ask: number,
                response: ChatInputResponseKind::Accept,
                answered_by: None,
                answers: answers.as_object().cloned().unwrap(),
            }),
            Some(Reply::Silence) => std::future::pending().await,
            Some(Reply::Steer(_)) | None => panic!("nobody was told what to answer"),
        }
    }

    async fn settings(&self) -> Result<Object, TurnOver> {
        Ok(self.config.clone())
    }

    async fn client_tools(&self) -> Result<Vec<ClientToolOffer>, TurnOver> {
        Ok(Vec::new())
    }

    /// As a client that says something else every time has it.
    async fn render(&self, mut sections: Vec<Section>) -> Result<Vec<Section>, TurnOver> {
        static RENDERS: AtomicU64 = AtomicU64::new(1);
        let render = RENDERS.fetch_add(1, Ordering::Relaxed);
        let last = sections.iter_mut().find(|it| it.id == "last_instructions");
        last.unwrap().content = format!("render {render}").into();
        let rendered = sections.clone();
        self.record(AgentEvent::Render { render, sections });
        Ok(rendered)
    }

    async fn note_chat(&self, notes: Bytes) -> Result<(), TurnOver> {
        self.record(AgentEvent::ChatNotes(notes.clone()));
        *self.notes.lock() = Some(notes);
        Ok(())
    }

    async fn steering(&self) -> Result<WaitingSteering, TurnOver> {
        let text = {
            let mut replies = self.replies.lock();
            match replies.front() {
                Some(Reply::Steer(text)) => {
                    let text = *text;
                    replies.pop_front();
                    Some(text)
                }
                _ => None,
            }
        };
        match text {
            Some(text) => Ok(WaitingSteering {
                message: json!({"text": text}),
                message_id: None,
                pending_id: "p".to_owned(),
            }),
            None => std::future::pending().await,
        }
    }
}

/// Looks again and again.
pub(super) async fn until(is_so: impl Fn() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    while !is_so() {
        looks.tick().await;
    }
}
