//! Watches a turn from its message to its end.
//!
//! Promises: Ctrl-C cancels the turn and waits for its end; only a second one, later, gives up waiting.

use std::io::{Stderr, Stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use client::{Envelope, Notification};
use serde_json::json;
use tokio::signal::unix::Signal;

use super::view::{Ending, Seen, Text, see};
use super::{Report, Turn};
use crate::screen::Screen;

/// Some programs send an interrupt twice at once; that is still one wish.
const SAME_INTERRUPT: Duration = Duration::from_millis(500);

/// How watching ended.
pub(super) enum End {
    Turn(Ending),
    /// The host did not take the message.
    Refused(String),
    /// The user did not want to wait for the end of a cancelled turn.
    GivenUp,
}

pub(super) struct Watch<'a> {
    turn: &'a mut Turn,
    turn_id: &'a str,
    /// The number the message was dispatched under.
    dispatched: i64,
    report: Report,
    began: Instant,
    cancelled: Option<Instant>,
    screen: Screen<Stdout, Stderr>,
    answer: String,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        turn: &'a mut Turn,
        turn_id: &'a str,
        dispatched: i64,
        report: Report,
    ) -> Self {
        Self {
            turn,
            turn_id,
            dispatched,
            report,
            began: Instant::now(),
            cancelled: None,
            screen: Screen::standard(),
            answer: String::new(),
        }
    }

    pub(super) async fn until_end(&mut self, mut interrupts: Signal) -> anyhow::Result<End> {
        loop {
            tokio::select! {
                notification = self.turn.events.next() => {
                    let notification = notification.with_context(|| format!(
                        "the turn may go on without us; `greenroom sessions` shows it as {}",
                        self.turn.session
                    ))?;
                    if let Some(end) = self.take(notification)? {
                        return Ok(end);
                    }
                }
                _ = interrupts.recv() => match self.cancelled {
                    Some(at) if at.elapsed() > SAME_INTERRUPT => return Ok(End::GivenUp),
                    Some(_) => {}
                    None => self.cancel().await?,
                },
            }
        }
    }

    /// Ends the line that is open; the text of the answer.
    pub(super) fn finish(mut self) -> std::io::Result<String> {
        self.screen.end_line()?;
        Ok(self.answer)
    }

    /// The end of the turn comes as an action of its own; until then we go on listening.
    async fn cancel(&mut self) -> anyhow::Result<()> {
        self.cancelled = Some(Instant::now());
        let duration = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let action =
            json!({"type": "chat/turnCancelled", "turnId": self.turn_id, "duration": duration});
        self.turn
            .connection
            .dispatch(&self.turn.chat, action)
            .await?;
        Ok(())
    }

    fn take(&mut self, notification: Notification) -> anyhow::Result<Option<End>> {
        let Notification { method, params } = notification;
        if method == "root/sessionRemoved" && params["session"] == self.turn.session.as_str() {
            bail!("the session was disposed of while the turn ran");
        }
        if method != "action" {
            return Ok(None);
        }
        let envelope = Envelope::from_value(params)?;
        if let Some(reason) = &envelope.rejection {
            let ours = envelope.is_from(&self.turn.client_id, self.dispatched);
            return Ok(ours.then(|| End::Refused(reason.clone())));
        }
        self.turn.mirror.apply(&envelope);
        if envelope.action.name() == "session/inputNeededSet" {
            self.screen.note(
                "the agent waits for an answer: give it in another client, or press Ctrl-C",
            )?;
        }
        if envelope.channel != self.turn.chat.as_str() {
            return Ok(None);
        }
        let seen = see(self.turn_id, &envelope.action);
        if let Seen::PartBegan(Text::Markdown(text)) | Seen::Text(Text::Markdown(text)) = &seen {
            self.answer.push_str(text);
        }
        match (seen, self.report) {
            (Seen::Ended(ending), _) => return Ok(Some(End::Turn(ending))),
            (seen, Report::Text) => self.screen.show(&seen)?,
            (_, Report::Json) => {}
        }
        Ok(None)
    }
}
