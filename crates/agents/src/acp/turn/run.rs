//! A prompt from its sending to its answer.
//!
//! Promises: events are sent in the order of what the agent said; several questions may be open at once, and each is answered once. A
//! question that the agent takes back is taken back from clients, too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use agent_api::{AgentError, AgentEvent, ToolResult, TurnOver, WaitingSteering};
use agent_client_protocol_schema::v1 as acp;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};

use super::super::connection::{InboxItem, QUESTIONS_MAX, RequestError};
use super::super::errors;
use super::super::live_session::LiveSession;
use super::super::mapper::{MappedMedia, Mapper, MapperStep, UpdatesEnd};
use super::super::rpc::{AcpError, RequestId};
use super::answers::UserAnswer;
use super::commands::TerminalRequests;
use super::edits::EditWatch;
use super::prepare::{PreparedTurn, TurnDirectories};
use super::{AcpTurn, PromptGuard, TurnStopped, prompt, read_answer};

/// How long an agent may take to say whether it takes a steering message.
const STEERING_LIMIT: std::time::Duration = std::time::Duration::from_secs(30);

/// How a prompt ended.
pub(super) enum PromptEnd {
    Done,
    /// The agent refused it.
    Refused(AcpError),
    Failed(AgentError),
}

pub(super) struct RunningTurn<'a> {
    pub(super) turn: &'a AcpTurn<'a>,
    pub(super) prepared: &'a PreparedTurn,
    pub(super) directories: &'a TurnDirectories,
    pub(super) mapper: Mapper,
    pub(super) edits: EditWatch,
    model: Option<String>,
    /// Words that the agent has not said it takes.
    injections: FuturesUnordered<BoxFuture<'a, (Injected, bool)>>,
    /// Questions that wait for people.
    pub(super) answers: FuturesUnordered<BoxFuture<'a, UserAnswer>>,
    /// What each open question of the agent became.
    pub(super) open: BTreeMap<RequestId, AskedUser>,
    /// Words of the user that could not be said while the prompt ran.
    pub(super) follow_ups: Vec<String>,
    pub(super) has_output: bool,
    last_ask: u64,
    /// Commands that the agent runs in terminals of the host.
    pub(super) commands: TerminalRequests<'a>,
}

/// What a question of the agent became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AskedUser {
    /// A call of the agent, with the answers that it takes.
    Permission {
        call: u64,
        options: Vec<acp::PermissionOption>,
    },
    /// A call of the host for the agent.
    Call(u64),
    Input(u64),
}

impl AskedUser {
    /// The call that is asked about.
    pub(super) fn call(&self) -> Option<u64> {
        match self {
            Self::Permission { call, .. } | Self::Call(call) => Some(*call),
            Self::Input(_) => None,
        }
    }
}

impl<'a> RunningTurn<'a> {
    pub(super) fn new(
        turn: &'a AcpTurn<'a>,
        prepared: &'a PreparedTurn,
        directories: &'a TurnDirectories,
        model: Option<String>,
    ) -> Self {
        let used = turn.input.response_parts.len() as u64;
        let usage = prepared.session.reported.usage().next_turn();
        Self {
            turn,
            prepared,
            directories,
            mapper: Mapper::new(used, usage)
                .with_servers(prepared.session.servers.ids.clone())
                .with_usual_directory(prepared.session.directories.first().cloned()),
            edits: EditWatch::new(Arc::clone(&directories.workspace)),
            model,
            injections: FuturesUnordered::new(),
            answers: FuturesUnordered::new(),
            open: BTreeMap::new(),
            follow_ups: Vec::new(),
            has_output: false,
            last_ask: used,
            commands: TerminalRequests::new(&turn.input.turn_id),
        }
    }

    pub(super) fn has_output(&self) -> bool {
        self.has_output
    }

    fn session(&self) -> &'a Arc<LiveSession> {
        &self.prepared.session
    }

    pub(super) fn next_ask(&mut self) -> u64 {
        self.last_ask += 1;
        self.last_ask
    }

    /// Prompts, and follows the agent to the end. Words that could not be said meanwhile are prompted after it.
    pub(super) async fn follow(&mut self, prompt: Vec<Value>) -> Result<PromptEnd, TurnStopped> {
        let mut prompt = prompt;
        loop {
            let end = self.follow_one(&prompt).await?;
            while let Some((what, is_taken)) = self.injections.next().await {
                self.finish_injection(what, is_taken).await?;
            }
            if !matches!(end, PromptEnd::Done) || self.follow_ups.is_empty() {
                return Ok(end);
            }
            let words = std::mem::take(&mut self.follow_ups).join("\n");
            prompt = vec![json!({"type": "text", "text": words})];
        }
    }

    async fn follow_one(&mut self, prompt: &[Value]) -> Result<PromptEnd, TurnStopped> {
        let connection = &self.prepared.process.connection;
        let session = self.session();
        let _guard = PromptGuard {
            core: Arc::clone(self.turn.core),
            process: Arc::clone(&self.prepared.process),
            session: Arc::clone(session),
        };
        self.mapper.activity.note_prompt(SystemTime::now());
        let sent = connection.prompt(&session.inbox, &json!(prompt)).await;
        if let Err(error) = sent {
            return Err(self.turn.failed(&self.prepared.process, &error));
        }
        let can_steer = self.prepared.process.abilities.steering;
        loop {
            // What the agent said comes first: an answer to a question that it took back means nothing.
            tokio::select! {
                biased;
                item = session.inbox.next() => {
                    if let Some(end) = self.take(item).await? {
                        return Ok(end);
                    }
                }
                Some(answer) = self.answers.next() => self.handle_answer(answer).await?,
                Some(ended) = self.commands.next_end() => self.command_ended(ended).await?,
                Some((what, is_taken)) = self.injections.next() => self.finish_injection(what, is_taken).await?,
                steering = self.turn.events.steering(), if can_steer => self.steer(steering?).await?,
            }
            let process = &self.prepared.process;
            self.turn.show_held_notices(process, session).await?;
        }
    }

    /// Takes what the agent said; the end of the prompt, if it was that.
    async fn take(&mut self, item: InboxItem) -> Result<Option<PromptEnd>, TurnStopped> {
        let came_at = self.session().inbox.last_arrival();
        self.mapper.activity.note_arrival(came_at);
        match item {
            InboxItem::Update(update) => {
                let steps = self.mapper.map(*update);
                self.carry_out(steps).await?;
            }
            InboxItem::Asked(question) => self.ask(*question).await?,
            InboxItem::QuestionsRefused => {
                let name = &self.turn.core.config.name;
                let text = format!(
                    "{name} asks more than {QUESTIONS_MAX} questions at once; the others were refused. Stop the turn if it goes on."
                );
                self.turn.notice(text).await?;
            }
            InboxItem::Withdrawn(id) => self.withdraw(&id).await?,
            InboxItem::PromptEnded(Ok(answer)) => {
                return self.end(read_answer(answer.get())).await.map(Some);
            }
            InboxItem::PromptEnded(Err(error)) => return self.end(Err(error)).await.map(Some),
            InboxItem::Ended(end) => {
                self.finish(UpdatesEnd::Otherwise).await?;
                let error = errors::ended(&self.turn.core.config, &end);
                return Ok(Some(PromptEnd::Failed(error)));
            }
        }
        Ok(None)
    }

    async fn finish(&mut self, end: UpdatesEnd) -> Result<(), TurnStopped> {
        self.end_commands().await?;
        let steps = self.mapper.finish(end);
        self.carry_out(steps).await?;
        self.prepared.session.reported.set_usage(self.mapper.usage().clone());
        Ok(())
    }

    async fn end(&mut self, answer: Result<Value, AcpError>) -> Result<PromptEnd, TurnStopped> {
        let config = &self.turn.core.config;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.finish(UpdatesEnd::Otherwise).await?;
                return Ok(PromptEnd::Refused(error));
            }
        };
        let reason = serde_json::from_value::<acp::StopReason>(answer["stopReason"].clone());
        use acp::StopReason as R;
        let turn_end = match &reason {
            Ok(R::EndTurn | R::MaxTokens | R::MaxTurnRequests) => UpdatesEnd::Completed,
            _ => UpdatesEnd::Otherwise,
        };
        self.finish(turn_end).await?;
        if let Some(usage) = self.mapper.usage().report(&answer, self.model.as_deref()) {
            self.turn.events.send(AgentEvent::Usage(usage)).await?;
        }
        let name = &config.name;
        match reason {
            Ok(R::EndTurn) => {}
            Ok(R::MaxTokens) => {
                self.turn
                    .notice(format!("{name} stopped: the model's answer got as long as it may be."))
                    .await?;
            }
            Ok(R::MaxTurnRequests) => {
                self.turn
                    .notice(format!(
                        "{name} stopped: it asked its model as often as it may in one turn."
                    ))
                    .await?;
            }
            Ok(R::Refusal) => return Ok(PromptEnd::Failed(errors::refusal(config))),
            Ok(R::Cancelled) => return Ok(PromptEnd::Failed(errors::cancelled(config))),
            Ok(_) | Err(_) => {
                let why = "it ended the turn for a reason that greenroom does not know";
                return Ok(PromptEnd::Failed(errors::protocol(config, why)));
            }
        }
        Ok(PromptEnd::Done)
    }

    pub(super) async fn carry_out(&mut self, steps: Vec<MapperStep>) -> Result<(), TurnStopped> {
        for step in steps {
            self.has_output = true;
            match step {
                MapperStep::Send(event) => self.turn.events.send(event).await?,
                MapperStep::Show(media) => self.show(media).await?,
                MapperStep::Notice { title, text } => {
                    if self.prepared.process.is_new_notice(&title) {
                        self.turn.notice(text).await?;
                    }
                }
                MapperStep::WatchFiles { call, diffs } => self.edits.watch(call, &diffs).await,
                MapperStep::Complete(done) => {
                    let blocks = self
                        .edits
                        .results(done.call, &done.diffs, done.original.as_deref(), self.turn.events)
                        .await;
                    let mut content = done.content;
                    content.extend(blocks);
                    let mut result =
                        ToolResult::new(done.success, done.past_tense).with_content(content);
                    if let Some(structured) = done.structured {
                        result = result.with_structured_content(structured);
                    }
                    if let Some(error) = done.error {
                        result = result.with_error(json!({"message": error}));
                    }
                    let completed =
                        AgentEvent::ToolCompleted { call: done.call, result, review: false };
                    self.turn.events.send(completed).await?;
                }
                MapperStep::Withdraw { call } => self.withdraw_call(call).await?,
                MapperStep::Replace { call, asked } => self.replace_question(call, *asked).await?,
            }
        }
        Ok(())
    }

    async fn show(&mut self, media: MappedMedia) -> Result<(), TurnOver> {
        match self.turn.events.store_body(media.body, &media.content_type).await {
            Ok(stored) => self.turn.events.send(AgentEvent::ContentRef(stored)).await,
            Err(why) => {
                self.turn
                    .notice(format!("Something that the agent showed could not be stored: {why}"))
                    .await
            }
        }
    }

    /// Offers a steering message to the agent. One that it does not take goes on waiting.
    async fn steer(&mut self, steering: WaitingSteering) -> Result<(), TurnStopped> {
        let stored = match steering.message_id {
            Some(id) => self.turn.events.read_message(id).await,
            None => None,
        };
        let abilities = &self.prepared.process.abilities;
        let blocks = match stored {
            Some(message) => {
                let lowering = prompt::lower(self.turn, abilities, message).await;
                self.turn.record(Some(lowering.clone())).await;
                lowering.blocks
            }
            None => Vec::new(),
        };
        let text = || json!([{"type": "text", "text": steering.message["text"]}]);
        let blocks = if blocks.is_empty() { text() } else { json!(blocks) };
        self.inject(blocks, Injected::Steering(steering.pending_id));
        Ok(())
    }

    /// Says something to the agent while it works. Its answer is waited for beside what else it says.
    pub(super) fn inject(&mut self, blocks: Value, what: Injected) {
        let prepared = self.prepared;
        self.injections.push(Box::pin(async move {
            let is_taken = inject(prepared, blocks).await;
            (what, is_taken)
        }));
    }

    async fn finish_injection(
        &mut self,
        what: Injected,
        is_taken: bool,
    ) -> Result<(), TurnStopped> {
        match (what, is_taken) {
            (Injected::Steering(pending_id), true) => {
                self.turn.events.send(AgentEvent::SteeringTaken { pending_id }).await?;
            }
            // It goes on waiting, and starts the next turn (G-08).
            (Injected::Steering(_), false) | (Injected::Words(_), true) => {}
            (Injected::Words(words), false) => self.follow_ups.push(words),
        }
        Ok(())
    }
}

/// What is said to an agent while it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Injected {
    /// A steering message, by its id among those that wait.
    Steering(String),
    /// Words that came with a denial.
    Words(String),
}

/// Says something to the agent while it works; whether it took it.
async fn inject(prepared: &PreparedTurn, blocks: Value) -> bool {
    let params = json!({
        "sessionId": prepared.session.inbox.session,
        "prompt": blocks,
        "_meta": {"steering": {"idleBehavior": "promptRequired"}},
    });
    let connection = &prepared.process.connection;
    let answer: Result<Value, RequestError> =
        connection.request("_session/steering", &params, STEERING_LIMIT).await;
    answer.is_ok_and(|answer| answer["outcome"] == "injected")
}
