//! The turn that was sent: followed to its end, consented to or not on the way.
//!
//! Promises: without a person to ask, whatever waits for one is denied or dismissed at once, in this chat and in those of its
//! workers; what other chats of the session wait for is left alone.

use std::io::{Stderr, Stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use client::chat::{
    AnswerTextKind, AskedInput, ChatError, ChatEvent, MessageAttachment, OpenChat, PendingInput,
    TurnEvent, TurnFollower,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use wire::Object;
use wire::state::Outcome;

use super::prompt::TerminalPrompt;
use super::report::SendFormat;
use crate::output::TurnOutput;

/// Some programs send an interrupt twice at once; that is still one wish.
const SAME_INTERRUPT: Duration = Duration::from_millis(500);
/// How long the end of a turn is waited for that took too long and was cancelled.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// What becomes of what needs consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    /// The person at the terminal decides.
    Ask,
    /// Nobody can be asked (G-66).
    Deny,
}

/// How following the turn ended.
pub(super) enum TurnEnd {
    Turn(Outcome),
    /// The host did not take the message.
    Refused(String),
    /// The user did not want to wait for the end of a cancelled turn.
    NotAwaited,
}

/// The turn that was sent.
pub(super) struct SentTurn {
    pub(super) chat: OpenChat,
    pub(super) turn_id: String,
    pub(super) format: SendFormat,
    pub(super) output: TurnOutput<Stdout, Stderr>,
    pub(super) answer: String,
    /// The part that says why the turn failed.
    pub(super) error: Option<Object>,
    /// How much was denied or dismissed because nobody could be asked.
    pub(super) denied: usize,
    /// Whether the turn was cancelled because it took too long.
    pub(super) is_timed_out: bool,
    /// What the chat said last of what the agent is at.
    pub(super) activity: Option<String>,
    follower: TurnFollower,
    /// Whether an event of the follower is about this turn.
    is_followed: bool,
    cancelled: Option<Instant>,
    /// What was asked before, and what was denied here: nothing is denied twice.
    decided: Vec<AskedInput>,
    prompt: Option<TerminalPrompt>,
}

impl SentTurn {
    pub(super) fn start(
        mut chat: OpenChat,
        text: &str,
        attachments: &[MessageAttachment],
        format: SendFormat,
        consent: Consent,
    ) -> anyhow::Result<Self> {
        // For programs a call is reported once, with its result; people see the text go on.
        let mut follower = match format {
            SendFormat::Json => TurnFollower::default(),
            SendFormat::Text => TurnFollower::without_waiting_for_calls(),
        };
        if let Some(state) = chat.confirmed() {
            follower.skip(&state);
        }
        let sent = Self {
            decided: chat.asked_inputs(),
            turn_id: chat.start_turn(text, attachments)?,
            chat,
            follower,
            format,
            output: TurnOutput::standard(),
            is_followed: false,
            activity: None,
            answer: String::new(),
            error: None,
            cancelled: None,
            denied: 0,
            is_timed_out: false,
            prompt: (consent == Consent::Ask).then(TerminalPrompt::new),
        };
        sent.print_start()?;
        Ok(sent)
    }

    pub(super) fn end_line(&mut self) -> std::io::Result<()> {
        self.output.end_line()
    }

    pub(super) async fn close(self) {
        self.chat.close().await;
    }

    pub(super) async fn run_to_end(
        &mut self,
        timeout: Option<Duration>,
    ) -> anyhow::Result<TurnEnd> {
        let mut interrupts: Signal =
            signal(SignalKind::interrupt()).context("Ctrl-C cannot be watched")?;
        let mut deadline = timeout.map(|timeout| tokio::time::Instant::now() + timeout);
        loop {
            let is_asking = self.prompt.as_ref().is_some_and(TerminalPrompt::is_asking);
            let due = async {
                match deadline {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                event = self.chat.next() => {
                    let event = event.map_err(|error| self.explain(error))?;
                    if let Some(end) = self.take_event(event).await? {
                        return Ok(end);
                    }
                }
                line = read_line(&mut self.prompt), if is_asking => self.take_line(line?).await?,
                () = due => {
                    if self.is_timed_out {
                        return Ok(TurnEnd::NotAwaited);
                    }
                    self.is_timed_out = true;
                    deadline = Some(tokio::time::Instant::now() + CANCEL_GRACE);
                    self.cancel()?;
                }
                _ = interrupts.recv() => match self.cancelled {
                    Some(at) if at.elapsed() > SAME_INTERRUPT => return Ok(TurnEnd::NotAwaited),
                    Some(_) => {}
                    None => self.cancel()?,
                },
            }
        }
    }

    /// The end of the turn comes as an event of its own; until then we go on listening.
    fn cancel(&mut self) -> anyhow::Result<()> {
        self.cancelled = Some(Instant::now());
        self.chat.cancel()?;
        Ok(())
    }

    async fn take_event(&mut self, event: ChatEvent) -> anyhow::Result<Option<TurnEnd>> {
        match event {
            ChatEvent::Refused { what, reason } => {
                let is_ours = what.turn_id.as_ref() == Some(&self.turn_id) && !self.is_followed;
                return Ok(is_ours.then_some(TurnEnd::Refused(reason)));
            }
            ChatEvent::ConnectionLost { why } => return Err(self.explain(why.into())),
            ChatEvent::Changed
            | ChatEvent::NotResent { .. }
            | ChatEvent::ReconnectFailed { .. }
            | ChatEvent::Reconnected => {}
        }
        let Some(state) = self.chat.confirmed() else {
            return Ok(None); // it is held as long as there is a connection
        };
        let activity = state.activity.clone();
        let events = self.follower.follow(&state, 0);
        for event in events {
            if let Some(outcome) = self.show(event)? {
                return Ok(Some(TurnEnd::Turn(outcome)));
            }
        }
        if self.is_followed {
            self.print_activity(activity)?;
        }
        self.decide().await?;
        Ok(None)
    }

    /// Decides what the turn waits for, or has it decided.
    async fn decide(&mut self) -> anyhow::Result<()> {
        if !self.is_followed {
            return Ok(()); // the turn did not begin: what waits is not about it
        }
        let mut asked = self.chat.asked_inputs();
        asked.retain(|asked| !self.decided.iter().any(|decided| decided.is_same(asked)));
        if let Some(prompt) = &mut self.prompt {
            return prompt.refresh(&asked, &self.chat, &mut self.output).await;
        }
        for asked in asked {
            self.deny(&asked)?;
            self.decided.push(asked);
        }
        Ok(())
    }

    fn deny(&mut self, asked: &AskedInput) -> anyhow::Result<()> {
        match &asked.input {
            PendingInput::Confirmation(confirmation) => {
                self.chat.confirm(asked, &confirmation.deny(""))?;
            }
            PendingInput::Questions(form) => self.chat.answer(asked, &form.cancel())?,
        }
        self.denied += 1;
        self.report_denied(asked)
    }

    async fn take_line(&mut self, line: Option<String>) -> anyhow::Result<()> {
        let Some(prompt) = &mut self.prompt else {
            return Ok(()); // lines are read for prompts alone
        };
        match line {
            Some(line) => prompt.take_line(&line, &self.chat, &mut self.output)?,
            // The person is gone: from now on nobody can be asked.
            None => {
                self.prompt = None;
                self.decide().await?;
            }
        }
        Ok(())
    }

    /// Shows what is new of the turn; how it ended, if it did.
    fn show(&mut self, event: TurnEvent) -> std::io::Result<Option<Outcome>> {
        if let TurnEvent::Started { turn_id, .. } = &event {
            self.is_followed = *turn_id == self.turn_id;
        }
        if !self.is_followed {
            return Ok(None);
        }
        self.print_event(&event)?;
        match event {
            TurnEvent::Ended { outcome, .. } => return Ok(Some(outcome)),
            TurnEvent::Text { kind: AnswerTextKind::Markdown, text, .. } => {
                self.answer.push_str(&text)
            }
            TurnEvent::Part(part) if part.get("kind").is_some_and(|kind| kind == "error") => {
                self.error = Some(part)
            }
            _ => {}
        }
        Ok(None)
    }

    fn explain(&self, error: ChatError) -> anyhow::Error {
        match error {
            ChatError::Gone => anyhow!("the session was disposed of while the turn ran"),
            ChatError::Client(error) => anyhow::Error::new(error).context(format!(
                "the turn may still be running; `greenroom sessions` shows it as {}",
                self.chat.session()
            )),
            error => error.into(),
        }
    }
}

/// The next line of the person who is asked.
async fn read_line(prompt: &mut Option<TerminalPrompt>) -> anyhow::Result<Option<String>> {
    match prompt {
        Some(prompt) => prompt.read_line().await,
        None => std::future::pending().await,
    }
}
