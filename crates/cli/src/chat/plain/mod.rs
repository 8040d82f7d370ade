//! The chat line by line: for pipes, scripts, and terminals that can do no more.
//!
//! Promises: answers and nothing else go to standard output, the rest to standard error. A line is a message; while the agent
//! asks, only a line that is exactly a digit or a word of the prompt decides, and any other is refused. A line decides nothing but
//! the question that stood there when it was typed. At the end of the input the turn that runs is waited for; the exit code says
//! how the last one ended.

mod input;
mod show;

use std::io::{Stderr, Stdout};
use std::path::PathBuf;

use anyhow::Context;
use client::SessionSummary;
use client::chat::{AskedInput, ChatEvent, OpenChat, TurnFollower};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::annotations::ListedThreads;
use super::dialog::{PromptNumber, field_prompt};
use super::part::PROMPT;
use super::prompt::{PromptField, PromptState};
use super::sign_in::{SignInEvent, SignIns};
use super::tool::References;
use crate::exit::Exit;
use crate::input_lines::{InputLine, InputLines, LineSource};
use crate::output::TurnOutput;

/// A chat by lines.
pub(crate) struct PlainChat {
    chat: OpenChat,
    /// Where agents of new sessions work, if that is on this machine.
    directory: Option<PathBuf>,
    input: InputLines,
    output: TurnOutput<Stdout, Stderr>,
    follower: TurnFollower,
    /// What the agent waits for, with what was answered so far.
    asked: Option<AskedInput>,
    asked_number: PromptNumber,
    /// What it refers to.
    references: References,
    /// What is marked at the prompt about it.
    prompt: PromptState,
    /// What the next line is, if a choice asked for a text.
    field: Option<PromptField>,
    /// What is asked was answered here, and is on its way to the host.
    has_answered: bool,
    /// What was typed here last, so that it is not shown to whoever typed it.
    typed: Vec<String>,
    /// The sessions that were listed last, for `/open NUMBER`.
    sessions: Vec<SessionSummary>,
    /// Tokens of MCP servers that were got here.
    sign_ins: SignIns,
    /// The comments that were listed last.
    annotations: ListedThreads,
    exit: Exit,
    prompts: Prompts,
}

/// Whether there is a user to prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prompts {
    Never,
    /// Not since something else was printed.
    Due,
    Given,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Idle,
    Working,
    /// The agent wants an answer.
    Asking,
}

enum PlainEvent {
    Line(Option<InputLine>),
    Chat(ChatEvent),
    SignIn(SignInEvent),
    Interrupt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlainFlow {
    Continue,
    Leave,
}

impl PlainChat {
    pub(crate) fn new(chat: OpenChat, input: InputLines, directory: Option<PathBuf>) -> Self {
        let prompts = match input.source() {
            LineSource::Terminal => Prompts::Due,
            LineSource::Pipe => Prompts::Never,
        };
        Self {
            chat,
            directory,
            input,
            output: TurnOutput::standard(),
            follower: TurnFollower::default(),
            asked: None,
            asked_number: PromptNumber::default(),
            references: References::default(),
            prompt: PromptState::default(),
            field: None,
            has_answered: false,
            typed: Vec::new(),
            sessions: Vec::new(),
            sign_ins: SignIns::new(),
            annotations: ListedThreads::default(),
            exit: Exit::Complete,
            prompts,
        }
    }

    /// Runs until the input ends or someone quits.
    pub(crate) async fn run(mut self) -> anyhow::Result<Exit> {
        let mut interrupts = signal(SignalKind::interrupt()).context("Ctrl-C cannot be watched")?;
        self.skip_history();
        self.output.note(&format!("session {}", self.chat.session()))?;
        if let Some(notice) = self.chat.notice() {
            self.output.note(notice)?;
        }
        let mut next: Option<InputLine> = None;
        loop {
            // What is shown is read after it: the end of a turn that comes in between is shown before anybody is prompted.
            let was_busy = self.is_busy();
            self.show_news().await?;
            let activity = self.activity(was_busy);
            if activity != Activity::Working
                && let Some(line) = next.take()
            {
                if self.take_line(&line).await? == PlainFlow::Leave {
                    break;
                }
                continue;
            }
            match self.next_event(activity, &mut interrupts).await? {
                PlainEvent::Line(Some(line)) => {
                    next = Some(line);
                    if self.prompts == Prompts::Given {
                        self.prompts = Prompts::Due;
                    }
                }
                PlainEvent::Line(None) if activity == Activity::Asking => {
                    self.output.note(&format!(
                        "The input ended, but the agent is waiting. Answer with `greenroom chat --session {}`",
                        self.chat.session()
                    ))?;
                    self.exit = Exit::Failed;
                    break;
                }
                PlainEvent::Line(None) => break,
                PlainEvent::Chat(event) => self.take_events(event)?,
                PlainEvent::SignIn(event) => self.show_sign_in(&event)?,
                PlainEvent::Interrupt => {
                    if !self.chat.cancel()? {
                        self.exit = Exit::Cancelled;
                        break;
                    }
                    // A second one does not wait for the end of the turn.
                    interrupts = signal(SignalKind::interrupt())?;
                    if self.wait_for_cancelled_turn(&mut interrupts).await? == PlainFlow::Leave {
                        break;
                    }
                }
            }
        }
        self.output.end_line()?;
        self.chat.close().await;
        Ok(self.exit)
    }

    async fn next_event(
        &mut self,
        activity: Activity,
        interrupts: &mut Signal,
    ) -> anyhow::Result<PlainEvent> {
        if activity != Activity::Working && self.prompts == Prompts::Due {
            self.prompts = Prompts::Given;
            let prompt = match activity {
                Activity::Idle | Activity::Working => PROMPT,
                Activity::Asking => self.field.map_or("? ", field_prompt),
            };
            eprint!("{prompt}");
        }
        Ok(tokio::select! {
            biased;
            event = self.chat.next() => PlainEvent::Chat(event?),
            event = self.sign_ins.next() => PlainEvent::SignIn(event),
            line = self.input.next(), if activity != Activity::Working => PlainEvent::Line(line?),
            _ = interrupts.recv() => PlainEvent::Interrupt,
        })
    }

    async fn wait_for_cancelled_turn(
        &mut self,
        interrupts: &mut Signal,
    ) -> anyhow::Result<PlainFlow> {
        let is_running = |chat: &OpenChat| {
            let state = chat.confirmed();
            state.is_some_and(|state| state.active_turn.is_some())
        };
        while is_running(&self.chat) {
            match self.next_event(Activity::Working, interrupts).await? {
                PlainEvent::Chat(event) => self.take_events(event)?,
                PlainEvent::SignIn(event) => self.show_sign_in(&event)?,
                PlainEvent::Interrupt | PlainEvent::Line(_) => {
                    self.exit = Exit::Cancelled;
                    return Ok(PlainFlow::Leave);
                }
            }
            self.show_news().await?;
        }
        Ok(PlainFlow::Continue)
    }

    fn activity(&self, was_busy: bool) -> Activity {
        if self.asked.is_some() {
            return Activity::Asking;
        }
        if was_busy || self.is_busy() { Activity::Working } else { Activity::Idle }
    }

    /// Whether a turn runs, or one will without anything that is typed.
    fn is_busy(&self) -> bool {
        let chat = self.chat.ahead();
        let is_queued = chat.is_some_and(|chat| !chat.queued_messages.is_empty());
        // A queue that is paused starts nothing by itself: what is typed next goes behind it.
        let will_start = is_queued && !self.chat.is_queue_paused();
        self.chat.is_working() || self.chat.has_pending_actions() || will_start
    }

    /// Takes an event and all that are there: they are shown together.
    fn take_events(&mut self, first: ChatEvent) -> anyhow::Result<()> {
        self.take_event(first)?;
        while let Some(event) = self.chat.try_next()? {
            self.take_event(event)?;
        }
        Ok(())
    }

    fn take_event(&mut self, event: ChatEvent) -> std::io::Result<()> {
        match event {
            ChatEvent::Refused { reason, .. } => {
                self.output.note(&format!("the host refused it: {reason}"))?;
                self.exit = Exit::NoHost;
                self.typed.clear();
            }
            ChatEvent::NotResent { .. } => {
                self.output.note(
                    "the connection was lost before the host answered the last message; check whether it arrived before you send it again",
                )?;
                self.exit = Exit::NoHost;
            }
            ChatEvent::ConnectionLost { why } => {
                self.output.note(&format!("{why}; trying again"))?;
            }
            ChatEvent::Reconnected => self.output.note("connected again")?,
            // What else is shown is read from the state; of attempts to connect only the outcome is shown.
            ChatEvent::Changed => self.sign_ins.renew_wanted(&self.chat),
            ChatEvent::ReconnectFailed { .. } => {}
        }
        Ok(())
    }
}
