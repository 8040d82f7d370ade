//! A script: what a model does in one turn, beat by beat; it can wait for replies and go on as they have it.

use std::collections::VecDeque;

use agent_api::{
    AgentError, AgentEvent, AgentReply, InputRequest, MalformedField, Section, TextKind,
    ToolExecutor, ToolReady, ToolResult, ToolStart, Worker,
};
use bytes::Bytes;
use serde_json::{Value, json};
use wire::published::state::ChatInputResponseKind;

use crate::tool::Tool;

/// The reply a run waits for, named by the agent's own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// May this call run?
    Decision(u64),
    /// May this result be used?
    Review(u64),
    /// What did the client or the worker make of it?
    End(u64),
    Answer(u64),
    Steering(u64),
    /// Does a steering message wait?
    SteeringMessage(u64),
    /// Is it noted?
    ChatNotes,
    Settings(u64),
    /// Which tools do clients offer?
    ClientTools(u64),
    /// What became of the sections?
    Render(u64),
}

impl Question {
    pub fn answered_by(reply: &AgentReply) -> Self {
        match reply {
            AgentReply::ToolDecided { call, .. } => Self::Decision(*call),
            AgentReply::ResultDecided { call, .. } => Self::Review(*call),
            AgentReply::ToolEnded { call, .. } => Self::End(*call),
            AgentReply::Answered { ask, .. } => Self::Answer(*ask),
            AgentReply::Steered { steer, .. } => Self::Steering(*steer),
            AgentReply::SteeringWaits { steer, .. } => Self::SteeringMessage(*steer),
            AgentReply::ChatNoted => Self::ChatNotes,
            AgentReply::Settings { ask, .. } => Self::Settings(*ask),
            AgentReply::ClientTools { ask, .. } => Self::ClientTools(*ask),
            AgentReply::Rendered { render, .. } => Self::Render(*render),
        }
    }

    /// The question an event asks, if it asks one.
    pub fn asked_by(event: &AgentEvent) -> Option<Self> {
        match event {
            AgentEvent::ToolReady { call, ready } => {
                ready.confirmed.is_none().then_some(Self::Decision(*call))
            }
            AgentEvent::ToolCompleted { call, review, .. } => review.then_some(Self::Review(*call)),
            AgentEvent::ClientTool { call, .. }
            | AgentEvent::ClientToolAwaited { call, .. }
            | AgentEvent::Spawned { call, .. } => Some(Self::End(*call)),
            AgentEvent::InputRequested { ask, .. } => Some(Self::Answer(*ask)),
            AgentEvent::SteerPoint { steer } => Some(Self::Steering(*steer)),
            AgentEvent::SteeringAwaited { steer } => Some(Self::SteeringMessage(*steer)),
            AgentEvent::ChatNotes(_) => Some(Self::ChatNotes),
            AgentEvent::SettingsRequested { ask } => Some(Self::Settings(*ask)),
            AgentEvent::ClientToolsRequested { ask } => Some(Self::ClientTools(*ask)),
            AgentEvent::Render { render, .. } => Some(Self::Render(*render)),
            _ => None,
        }
    }
}

/// Whether a reply is what one hopes for.
pub fn is_yes(reply: &AgentReply) -> bool {
    match reply {
        AgentReply::ToolDecided { approved, .. } | AgentReply::ResultDecided { approved, .. } => {
            *approved
        }
        AgentReply::ToolEnded { result, .. } => result.success(),
        AgentReply::Answered { response, .. } => *response == ChatInputResponseKind::Accept,
        AgentReply::Steered { message, .. } => message.is_some(),
        AgentReply::SteeringWaits { .. }
        | AgentReply::ChatNoted
        | AgentReply::Settings { .. }
        | AgentReply::ClientTools { .. }
        | AgentReply::Rendered { .. } => true,
    }
}

/// One thing a model does.
#[derive(Debug, Clone)]
pub enum ScriptStep {
    Emits(AgentEvent),
    Waits(u64),
    /// Waits for the reply, plays one branch or the other, then what follows.
    Awaits {
        to: Question,
        yes: VecDeque<ScriptStep>,
        no: VecDeque<ScriptStep>,
    },
    /// The tool does its work, now: with the input it was allowed to have.
    Runs {
        call: u64,
        input: String,
    },
    /// Completes the call; without a result, that it ran with its input.
    Reports {
        call: u64,
        result: Option<Value>,
        review: bool,
    },
    /// Starts a worker that plays a script of its own.
    Spawns {
        call: u64,
        worker: Worker,
        script: Box<Script>,
    },
    /// Says that it has the steering message that it was last told of.
    TakesSteering,
    /// Sends the last reply it got as text.
    Repeats {
        part: u64,
    },
    /// Goes silent for good.
    Hangs,
}

/// What a turn's model does, beat by beat.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub steps: VecDeque<ScriptStep>,
    /// Emits events after it was stopped: they must be ignored.
    pub ignores_stop: bool,
    /// Parts, calls and questions are numbered together.
    numbers: u64,
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub fn step(mut self, step: ScriptStep) -> Self {
        self.steps.push_back(step);
        self
    }

    pub fn emits(self, event: AgentEvent) -> Self {
        self.step(ScriptStep::Emits(event))
    }

    fn writes<'a>(mut self, kind: TextKind, chunks: impl IntoIterator<Item = &'a str>) -> Self {
        let part = self.number();
        self = self.emits(AgentEvent::PartOpened { part, kind });
        for text in chunks {
            let text = text.to_owned();
            self = self.emits(AgentEvent::Text { part, text });
        }
        self
    }

    pub fn streams<'a>(self, chunks: impl IntoIterator<Item = &'a str>) -> Self {
        self.writes(TextKind::Markdown, chunks)
    }

    pub fn thinks<'a>(self, chunks: impl IntoIterator<Item = &'a str>) -> Self {
        self.writes(TextKind::Reasoning, chunks)
    }

    pub fn stores_checkpoint(self, checkpoint: &'static str) -> Self {
        let bytes = Bytes::from_static(checkpoint.as_bytes());
        self.emits(AgentEvent::Checkpoint(bytes))
    }

    pub fn waits_ms(self, ms: u64) -> Self {
        self.step(ScriptStep::Waits(ms))
    }

    pub fn hangs(self) -> Self {
        self.step(ScriptStep::Hangs)
    }

    pub fn completes(self) -> Self {
        self.emits(AgentEvent::Completed)
    }

    pub fn fails(self, resumable: bool) -> Self {
        let failure = AgentError {
            error_type: "modelFailed".to_owned(),
            message: "the model gave up".to_owned(),
            resumable,
        };
        self.emits(AgentEvent::Failed(failure))
    }

    pub fn ignores_stop(mut self) -> Self {
        self.ignores_stop = true;
        self
    }

    // Questions.

    /// Waits for a reply and goes on the same way whatever it is.
    pub fn awaits(self, to: Question) -> Self {
        self.branches(to, |yes| yes, |no| no)
    }

    /// Waits for a reply; plays one of two continuations, then what follows.
    pub fn branches(
        mut self,
        to: Question,
        yes: impl FnOnce(Self) -> Self,
        no: impl FnOnce(Self) -> Self,
    ) -> Self {
        let from = |numbers| Self { numbers, ..Self::default() };
        let yes = yes(from(self.numbers));
        let no = no(from(yes.numbers));
        self.numbers = no.numbers;
        self.step(ScriptStep::Awaits { to, yes: yes.steps, no: no.steps })
    }

    /// Sends the last reply it got as text, so that a test can read it.
    pub fn repeats(mut self) -> Self {
        let part = self.number();
        let kind = TextKind::Markdown;
        self.emits(AgentEvent::PartOpened { part, kind }).step(ScriptStep::Repeats { part })
    }

    /// Calls a tool of its own, from the announcement to the result.
    pub fn calls(self, tool: Tool) -> Self {
        tool.played_by(self)
    }

    /// Calls a tool that needs no consent.
    pub fn runs_tool(self, name: &str, input: &str) -> Self {
        self.calls(Tool::running(name, input))
    }

    /// Calls a tool that runs only if someone allows it.
    pub fn asks_tool(self, name: &str, input: &str) -> Self {
        self.calls(Tool::asking(name, input))
    }

    // Single events of a call, for agents that send them out of order.

    pub fn announces(self, call: u64, name: &str) -> Self {
        let start = Box::new(ToolStart {
            name: name.to_owned(),
            display_name: name.to_uppercase(),
            ..ToolStart::default()
        });
        self.emits(AgentEvent::ToolStarted { call, start })
    }

    pub fn readies(self, call: u64, fields: Value) -> Self {
        self.emits(ready_event(call, object(fields)))
    }

    pub fn reports(self, call: u64, result: Value) -> Self {
        self.emits(completed_event(call, result, false))
    }

    /// Calls a tool that an active client offers, and waits for what becomes of it.
    pub fn calls_client(mut self, name: &str, input: Value, timeout_ms: u64) -> Self {
        let call = self.number();
        self.emits(AgentEvent::ClientTool { call, name: name.to_owned(), input, timeout_ms })
            .awaits(Question::End(call))
    }

    /// Asks the user something, and waits.
    /// Starts a call that a client is to carry out once somebody approves it.
    pub fn asks_client_tool(self, call: u64, name: &str) -> Self {
        let start = Box::new(ToolStart {
            name: name.to_owned(),
            display_name: name.to_owned(),
            executor: ToolExecutor::Client,
            ..ToolStart::default()
        });
        let ready = Box::new(ToolReady::unconfirmed(name, "{}".to_owned()));
        self.emits(AgentEvent::ToolStarted { call, start })
            .emits(AgentEvent::ToolReady { call, ready })
            .awaits(Question::Decision(call))
    }

    /// Waits for the end of a call that a client carries out.
    pub fn awaits_client_tool(self, call: u64, timeout_ms: u64) -> Self {
        self.emits(AgentEvent::ClientToolAwaited { call, timeout_ms }).awaits(Question::End(call))
    }

    pub fn asks(mut self, request: Value) -> Self {
        let ask = self.number();
        let event = match InputRequest::from_object(object(request)) {
            Ok(request) => AgentEvent::InputRequested { ask, request },
            Err(error) => unreadable(error),
        };
        self.emits(event).awaits(Question::Answer(ask))
    }

    /// One question that takes any text, and must have one.
    pub fn asks_for_text(self, question: &str) -> Self {
        let question = json!({"kind": "text", "id": "q", "message": question, "required": true});
        self.asks(json!({"message": "a question", "questions": [question]}))
    }

    /// One question that takes a whole number, and must have one.
    pub fn asks_for_number(self, question: &str) -> Self {
        let question = json!({"kind": "integer", "id": "q", "message": question, "required": true});
        self.asks(json!({"message": "a question", "questions": [question]}))
    }

    /// Can take a steering message now; says what it was.
    pub fn steers(mut self) -> Self {
        let steer = self.number();
        self.emits(AgentEvent::SteerPoint { steer }).awaits(Question::Steering(steer))
    }

    /// Waits until a steering message waits, and says what it was.
    pub fn awaits_steering(mut self) -> Self {
        let steer = self.number();
        self.emits(AgentEvent::SteeringAwaited { steer }).awaits(Question::SteeringMessage(steer))
    }

    /// Has the steering message that it was told of.
    pub fn takes_steering(self) -> Self {
        self.step(ScriptStep::TakesSteering)
    }

    /// Notes something about its chat, and waits until that is stored.
    pub fn notes_chat(self, notes: &str) -> Self {
        let notes = Bytes::from(notes.to_owned());
        self.emits(AgentEvent::ChatNotes(notes)).awaits(Question::ChatNotes)
    }

    /// Asks whether a tool may run, and takes that back after a while.
    pub fn withdraws_tool(mut self, name: &str, after_ms: u64) -> Self {
        let call = self.number();
        self.announces(call, name)
            .readies(call, json!({"invocationMessage": name, "toolInput": "{}"}))
            .waits_ms(after_ms)
            .emits(AgentEvent::ConfirmationWithdrawn { call })
    }

    /// Asks the user something, and takes that back after a while.
    pub fn withdraws_question(mut self, question: &str, after_ms: u64) -> Self {
        self = self.asks_for_text(question).unattended();
        let ask = self.numbers;
        self.waits_ms(after_ms).emits(AgentEvent::QuestionWithdrawn { ask })
    }

    /// Renders its prompt of these sections, and sends the result as text.
    pub fn renders<'a>(mut self, sections: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let render = self.number();
        let section = |(id, content): (&str, &str)| Section::new(id.to_owned(), content.to_owned());
        let sections = sections.into_iter().map(section).collect();
        self.emits(AgentEvent::Render { render, sections })
            .awaits(Question::Render(render))
            .repeats()
    }

    /// Starts a read-only worker and waits for its end.
    pub fn spawns(self, title: &str, script: Self) -> Self {
        self.spawns_worker(
            Worker { title: title.to_owned(), task: format!("do: {title}"), ..Worker::default() },
            script,
        )
    }

    pub fn spawns_worker(mut self, worker: Worker, script: Self) -> Self {
        let call = self.number();
        let script = Box::new(script);
        self.step(ScriptStep::Spawns { call, worker, script }).awaits(Question::End(call))
    }

    /// Does not wait for what it asked last.
    pub fn unattended(mut self) -> Self {
        if matches!(self.steps.back(), Some(ScriptStep::Awaits { .. })) {
            self.steps.pop_back();
        }
        self
    }

    pub(crate) fn ends(&self) -> bool {
        let ends = |beat: &ScriptStep| {
            matches!(
                beat,
                ScriptStep::Hangs
                    | ScriptStep::Emits(AgentEvent::Completed | AgentEvent::Failed(_))
            )
        };
        self.steps.iter().any(ends)
    }
}

fn object(value: Value) -> wire::Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is an object"),
    }
}

/// A call that is ready as these fields of `chat/toolCallReady` have it.
pub(crate) fn ready_event(call: u64, fields: wire::Object) -> AgentEvent {
    match ToolReady::from_object(fields) {
        Ok(ready) => AgentEvent::ToolReady { call, ready: Box::new(ready) },
        Err(error) => unreadable(error),
    }
}

/// A call with this `ToolCallResult`.
pub(crate) fn completed_event(call: u64, result: Value, review: bool) -> AgentEvent {
    let Value::Object(fields) = result else { return unreadable(MalformedField("result")) };
    match ToolResult::from_object(fields) {
        Ok(result) => AgentEvent::ToolCompleted { call, result, review },
        Err(error) => unreadable(error),
    }
}

/// An agent that gets something unreadable fails: no event can hold it.
fn unreadable(error: MalformedField) -> AgentEvent {
    AgentEvent::Failed(AgentError {
        error_type: "agentUnreadable".to_owned(),
        message: error.to_string(),
        resumable: false,
    })
}
