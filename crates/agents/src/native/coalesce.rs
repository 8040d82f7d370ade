//! Sends a model's answer on as it comes, with pieces of text that follow each other fast in one event.
//!
//! Promises: text is never lost or reordered; whatever else happens comes after the text before it.
//! Must not know: what becomes of the answer.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_api::{AgentEvent, EventSink, TextKind, ToolStart, TurnOver};
use serde_json::json;
use tokio::time::Instant;

use super::answer::{ModelAnswer, Numbers, ROUND, RequestedCall};
use crate::provider::{AnswerUnwanted, ModelEvent, ModelEventSink, ToolUse};
use crate::tool::Tool;

/// Text that follows other text faster than this, one frame of a screen, waits for what follows it: each event is a
/// commit, and nobody sees it sooner. The first text after a pause is sent at once.
const COALESCE_WINDOW: Duration = Duration::from_millis(16);

/// Pending text is sent by then when nothing follows.
const PENDING_TIME_MAX: Duration = Duration::from_millis(25);

/// More than this does not wait.
const PENDING_BYTES_MAX: usize = 4 * 1_024;

/// Takes the events of one answer.
pub(super) struct EventCoalescer<'a> {
    tools: &'a [Box<dyn Tool>],
    round: usize,
    events: &'a dyn EventSink,
    numbers: &'a mut Numbers,
    /// The part that text goes on in.
    part: Option<(u64, TextKind)>,
    pending: Option<(Destination, String)>,
    /// When text was sent last.
    sent_at: Option<Instant>,
    answer: ModelAnswer,
    calls: BTreeMap<usize, RequestedCall>,
}

/// What text is more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    Part(TextKind),
    CallInput(u64),
}

impl ModelEventSink for &mut EventCoalescer<'_> {
    async fn accept(&mut self, event: ModelEvent) -> Result<(), AnswerUnwanted> {
        self.take(event).await.map_err(|TurnOver| AnswerUnwanted)
    }

    fn flush_at(&self) -> Option<Instant> {
        let pending = self.pending.as_ref();
        pending.and(self.sent_at.map(|sent_at| sent_at + PENDING_TIME_MAX))
    }

    async fn flush_pending(&mut self) -> Result<(), AnswerUnwanted> {
        self.flush().await.map_err(|TurnOver| AnswerUnwanted)
    }
}

impl<'a> EventCoalescer<'a> {
    pub(super) fn new(
        tools: &'a [Box<dyn Tool>],
        round: usize,
        events: &'a dyn EventSink,
        numbers: &'a mut Numbers,
    ) -> Self {
        Self {
            tools,
            round,
            events,
            numbers,
            part: None,
            pending: None,
            sent_at: None,
            answer: ModelAnswer::default(),
            calls: BTreeMap::new(),
        }
    }

    /// The answer as a whole.
    pub(super) fn into_answer(self) -> ModelAnswer {
        ModelAnswer {
            calls: self.calls.into_values().collect(),
            ..self.answer
        }
    }

    async fn take(&mut self, event: ModelEvent) -> Result<(), TurnOver> {
        match event {
            ModelEvent::Text(text) | ModelEvent::Refusal(text) => {
                self.answer.text.push_str(&text);
                let markdown = Destination::Part(TextKind::Markdown);
                self.write(markdown, text).await
            }
            ModelEvent::Reasoning(text) => {
                let reasoning = Destination::Part(TextKind::Reasoning);
                self.write(reasoning, text).await
            }
            ModelEvent::CallStarted { index, id, name } => self.start_call(index, id, name).await,
            ModelEvent::CallInput { index, text } => {
                // The decoder announces each call before its input.
                let Some(call) = self.calls.get_mut(&index) else {
                    debug_assert!(false, "input of a call that was never started");
                    return Ok(());
                };
                call.tool_use.input.push_str(&text);
                let input = Destination::CallInput(call.number);
                self.write(input, text).await
            }
            ModelEvent::Usage(usage) => {
                self.answer.usage = usage;
                Ok(())
            }
            ModelEvent::Waiting(text) => {
                self.flush().await?;
                self.part = None;
                self.events.send(AgentEvent::Notice { text }).await
            }
            ModelEvent::Stopped(reason) => {
                self.answer.stop = Some(reason);
                Ok(())
            }
        }
    }

    async fn start_call(&mut self, index: usize, id: String, name: String) -> Result<(), TurnOver> {
        self.flush().await?;
        self.part = None;
        let number = self.numbers.next();
        let known = self.tools.iter().find(|tool| tool.name() == name);
        let display_name = known.map_or(name.as_str(), |tool| tool.display_name());
        let start = ToolStart {
            name: name.clone(),
            display_name: display_name.to_owned(),
            meta: json!({ROUND: self.round}).as_object().cloned(),
            ..ToolStart::default()
        };
        let input = String::new();
        let tool_use = ToolUse { id, name, input };
        self.calls.insert(index, RequestedCall { number, tool_use });
        let call = number;
        self.events
            .send(AgentEvent::ToolStarted {
                call,
                start: Box::new(start),
            })
            .await
    }

    /// Sends text, or lets it wait for a moment if some was sent just now.
    async fn write(&mut self, destination: Destination, text: String) -> Result<(), TurnOver> {
        if text.is_empty() {
            return Ok(());
        }
        match &mut self.pending {
            Some((to, pending)) if *to == destination => pending.push_str(&text),
            _ => {
                self.flush().await?;
                self.pending = Some((destination, text));
            }
        }
        let bytes = self.pending.as_ref().map_or(0, |(_, text)| text.len());
        let is_soon = self
            .sent_at
            .is_some_and(|sent_at| sent_at.elapsed() < COALESCE_WINDOW);
        match is_soon && bytes < PENDING_BYTES_MAX {
            true => Ok(()),
            false => self.flush().await,
        }
    }

    /// Sends the pending text.
    pub(super) async fn flush(&mut self) -> Result<(), TurnOver> {
        let Some((destination, text)) = self.pending.take() else {
            return Ok(()); // nothing is pending
        };
        self.sent_at = Some(Instant::now());
        let event = match destination {
            Destination::CallInput(call) => AgentEvent::ToolInput { call, text },
            Destination::Part(kind) => {
                let part = self.part_of(kind).await?;
                AgentEvent::Text { part, text }
            }
        };
        self.events.send(event).await
    }

    /// The part that text of this kind goes on in, opened if there is none.
    async fn part_of(&mut self, kind: TextKind) -> Result<u64, TurnOver> {
        match self.part {
            Some((part, open)) if open == kind => Ok(part),
            _ => {
                let part = self.numbers.next();
                let opened = AgentEvent::PartOpened { part, kind };
                self.events.send(opened).await?;
                self.part = Some((part, kind));
                Ok(part)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio::time::advance;

    use super::*;
    use crate::sink::PendingReplies;
    use crate::sink::testing::channel_sink;
    use crate::tool;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn text(text: &str) -> ModelEvent {
        ModelEvent::Text(text.to_owned())
    }

    /// What was sent, in a word each.
    fn sent(received: &mut mpsc::Receiver<AgentEvent>) -> Vec<String> {
        let mut sent = Vec::new();
        while let Ok(event) = received.try_recv() {
            sent.push(match event {
                AgentEvent::PartOpened { kind, .. } => format!("{kind:?}"),
                AgentEvent::Text { text, .. } => text,
                AgentEvent::ToolStarted { start, .. } => format!("<{}", start.name),
                AgentEvent::ToolInput { text, .. } => format!("+{text}"),
                AgentEvent::Notice { text } => format!("!{text}"),
                other => format!("{other:?}"),
            });
        }
        sent
    }

    #[tokio::test(start_paused = true)]
    async fn text_that_follows_fast_is_sent_together_and_in_its_place() {
        let (sender, mut received) = mpsc::channel(64);
        let events = channel_sink(sender, PendingReplies::default());
        let tools = tool::all();
        let mut numbers = Numbers::default();
        let mut coalescer = EventCoalescer::new(&tools, 0, &events, &mut numbers);
        let mut sink = &mut coalescer;
        sink.accept(text("a")).await.unwrap();
        assert_eq!(sent(&mut received), ["Markdown", "a"], "the first at once");
        assert_eq!(sink.flush_at(), None);
        advance(ms(5)).await;
        sink.accept(text("b")).await.unwrap();
        assert_eq!(sink.flush_at(), Some(Instant::now() + ms(20)));
        advance(ms(5)).await;
        sink.accept(text("c")).await.unwrap();
        assert!(sent(&mut received).is_empty(), "two are pending");
        advance(ms(6)).await;
        sink.accept(text("d")).await.unwrap();
        assert_eq!(sent(&mut received), ["bcd"]);
        sink.accept(text("e")).await.unwrap();
        sink.flush_pending().await.unwrap();
        assert_eq!(sent(&mut received), ["e"], "nothing more came");
        // Whatever else happens comes after what is pending.
        sink.accept(text("f")).await.unwrap();
        let thought = ModelEvent::Reasoning("g".to_owned());
        sink.accept(thought).await.unwrap();
        let (index, id, name) = (0, "x".to_owned(), "read".to_owned());
        let call = ModelEvent::CallStarted { index, id, name };
        sink.accept(call).await.unwrap();
        for piece in ["{", "}"] {
            let text = piece.to_owned();
            let input = ModelEvent::CallInput { index, text };
            sink.accept(input).await.unwrap();
        }
        let waiting = ModelEvent::Waiting("busy".to_owned());
        sink.accept(waiting).await.unwrap();
        let order = ["f", "Reasoning", "g", "<read", "+{}", "!busy"];
        assert_eq!(sent(&mut received), order);
        // Large text does not wait.
        let large = "x".repeat(PENDING_BYTES_MAX);
        sink.accept(text(&large)).await.unwrap();
        assert_eq!(sent(&mut received), ["Markdown", large.as_str()]);
        let answer = coalescer.into_answer();
        assert_eq!(answer.text, format!("abcdef{large}"));
        assert_eq!(answer.calls[0].tool_use.input, "{}");
    }
}
