//! Sends a model's answer on as it comes, piece by piece; which of them go together is the host's to decide (G-47).
//!
//! Promises: text is never lost or reordered.
//! Must not know: what becomes of the answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agent_api::{AgentEvent, EventSink, TextKind, ToolReady, ToolResult, ToolStart, TurnOver};
use serde_json::json;
use wire::Object;
use wire::published::state::ToolCallConfirmationReason;

use super::answer::{MARK, ModelAnswer, Numbers, ROUND, RequestedCall, SERVER_TOOL};
use super::offered_tools::OfferedTools;
use super::refusals::LearnedRefusal;
use crate::provider::{AnswerCancelled, ModelEvent, ModelEventSink, ToolUse};
use crate::tool;

/// The most that is shown of the input of a server's tool, and of its result. The model has all of it.
const SERVER_TEXT_BYTES_MAX: usize = 16 * 1_024;

/// Takes the events of one answer.
pub(super) struct AnswerSender<'a> {
    offered: &'a OfferedTools<'a>,
    round: usize,
    events: &'a dyn EventSink,
    numbers: &'a mut Numbers,
    /// The part that text goes on in.
    part: Option<(u64, TextKind)>,
    answer: ModelAnswer,
    calls: BTreeMap<usize, RequestedCall>,
    /// Tools of the server that are at work, by their ids.
    server_calls: BTreeMap<String, (u64, String)>,
    /// Said when the answer begins.
    learned: Option<LearnedRefusal>,
    /// Whether the chat says that the model is silent.
    shows_silence: bool,
}

impl ModelEventSink for &mut AnswerSender<'_> {
    async fn accept(&mut self, event: ModelEvent) -> Result<(), AnswerCancelled> {
        self.take(event).await.map_err(|TurnOver| AnswerCancelled)
    }
}

impl<'a> AnswerSender<'a> {
    pub(super) fn new(
        offered: &'a OfferedTools<'a>,
        round: usize,
        events: &'a dyn EventSink,
        numbers: &'a mut Numbers,
        learned: Option<LearnedRefusal>,
    ) -> Self {
        Self {
            offered,
            round,
            events,
            numbers,
            part: None,
            answer: ModelAnswer::default(),
            calls: BTreeMap::new(),
            server_calls: BTreeMap::new(),
            learned,
            shows_silence: false,
        }
    }

    /// Whether the chat still says that the model is silent.
    pub(super) fn shows_silence(&self) -> bool {
        self.shows_silence
    }

    /// The answer as a whole.
    pub(super) fn into_answer(self) -> ModelAnswer {
        ModelAnswer { calls: self.calls.into_values().collect(), ..self.answer }
    }

    async fn take(&mut self, event: ModelEvent) -> Result<(), TurnOver> {
        match &event {
            // Figures of an answer that never comes do not make it one.
            ModelEvent::Silent(_) | ModelEvent::Waiting(_) | ModelEvent::Usage(_) => {}
            _ => self.begin().await?,
        }
        match event {
            ModelEvent::Silent(lasted) => {
                self.shows_silence = true;
                self.events.send(describe_silence(lasted)).await
            }
            ModelEvent::Text(text) | ModelEvent::Refusal(text) => {
                self.answer.text.push_str(&text);
                self.send_text(TextKind::Markdown, text).await
            }
            ModelEvent::Reasoning(text) => self.send_text(TextKind::Reasoning, text).await,
            ModelEvent::CallStarted { index, id, name } => self.start_call(index, id, name).await,
            ModelEvent::CallInput { index, text } => {
                // The decoder announces each call before its input.
                let Some(call) = self.calls.get_mut(&index) else {
                    debug_assert!(false, "input of a call that was never started");
                    return Ok(());
                };
                call.tool_use.input.push_str(&text);
                let call = call.number;
                if text.is_empty() {
                    Ok(())
                } else {
                    self.events.send(AgentEvent::ToolInput { call, text }).await
                }
            }
            ModelEvent::ServerCall { id, name, input } => {
                self.start_server_call(id, name, input).await
            }
            ModelEvent::ServerResult { id, text, success } => {
                self.end_server_call(&id, text, success).await
            }
            ModelEvent::Items(items) => {
                self.answer.items = Some(Arc::new(items));
                Ok(())
            }
            ModelEvent::Usage(usage) => {
                self.answer.usage = usage;
                Ok(())
            }
            ModelEvent::Waiting(text) => {
                self.part = None;
                self.events.send(AgentEvent::Notice { text }).await
            }
            ModelEvent::Stopped(reason) => {
                self.answer.stop = Some(reason);
                // What its server says nothing more of is over.
                for id in self.server_calls.keys().cloned().collect::<Vec<_>>() {
                    self.end_server_call(&id, String::new(), true).await?;
                }
                Ok(())
            }
        }
    }

    /// Something of the answer came.
    async fn begin(&mut self) -> Result<(), TurnOver> {
        if std::mem::take(&mut self.shows_silence) {
            self.events.send(AgentEvent::Activity(None)).await?;
        }
        for event in self.learned.take().into_iter().flat_map(LearnedRefusal::into_events) {
            self.events.send(event).await?;
        }
        Ok(())
    }

    async fn start_call(&mut self, index: usize, id: String, name: String) -> Result<(), TurnOver> {
        self.part = None;
        let number = self.numbers.next();
        let mut start = self.offered.announce(&name);
        let mut meta = start.meta.take().unwrap_or_default();
        meta.insert(ROUND.to_owned(), json!(self.round));
        meta.insert(MARK.to_owned(), json!(tool::new_mark()));
        start.meta = Some(meta.clone());
        let input = String::new();
        let tool_use = ToolUse { id, name, input };
        let requested = RequestedCall { number, tool_use, meta };
        self.calls.insert(index, requested);
        let call = number;
        self.events.send(AgentEvent::ToolStarted { call, start: Box::new(start) }).await
    }

    /// A tool that the model's server carries out is shown like any other; nobody is asked.
    async fn start_server_call(
        &mut self,
        id: String,
        name: String,
        input: String,
    ) -> Result<(), TurnOver> {
        self.part = None;
        // Another one of its id says nothing more of the one before.
        self.end_server_call(&id, String::new(), true).await?;
        let call = self.numbers.next();
        let mut meta = Object::new();
        meta.insert(SERVER_TOOL.to_owned(), json!(true));
        let start = Box::new(ToolStart {
            name: name.clone(),
            display_name: name.replace('_', " "),
            meta: Some(meta.clone()),
            ..ToolStart::default()
        });
        self.events.send(AgentEvent::ToolStarted { call, start }).await?;
        let mut ready = ToolReady::unconfirmed(name.replace('_', " "), cut(input));
        ready.confirmed = Some(ToolCallConfirmationReason::NotNeeded);
        ready.extra.insert("_meta".to_owned(), serde_json::Value::Object(meta));
        let ready = Box::new(ready);
        self.server_calls.insert(id, (call, name));
        self.events.send(AgentEvent::ToolReady { call, ready }).await
    }

    async fn end_server_call(
        &mut self,
        id: &str,
        text: String,
        success: bool,
    ) -> Result<(), TurnOver> {
        let Some((call, name)) = self.server_calls.remove(id) else {
            return Ok(()); // of a call that was never said to begin
        };
        let name = name.replace('_', " ");
        let result = if success {
            ToolResult::new(true, name)
        } else {
            ToolResult::failed(name.clone(), &name)
        };
        let text = cut(text);
        let content = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
        let result = result.with_content(content.into_iter().collect());
        let review = false;
        self.events.send(AgentEvent::ToolCompleted { call, result, review }).await
    }

    async fn send_text(&mut self, kind: TextKind, text: String) -> Result<(), TurnOver> {
        if text.is_empty() {
            return Ok(());
        }
        let part = self.part_of(kind).await?;
        self.events.send(AgentEvent::Text { part, text }).await
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

/// What is shown of a text of the server's.
fn cut(mut text: String) -> String {
    let end = text.floor_char_boundary(SERVER_TEXT_BYTES_MAX);
    if end < text.len() {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// What the chat says of a model that is silent.
pub(super) fn describe_silence(lasted: Duration) -> AgentEvent {
    let seconds = lasted.as_secs();
    AgentEvent::Activity(Some(format!("waiting for the model, {seconds} s")))
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::sink::PendingReplies;
    use crate::sink::testing::channel_sink;
    use crate::tool::Tool;

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

    #[tokio::test]
    async fn figures_alone_are_no_answer_that_teaches_anything() {
        let (sender, mut received) = mpsc::channel(64);
        let events = channel_sink(sender, PendingReplies::default());
        let offered = OfferedTools::new(&[], Vec::new());
        let mut numbers = Numbers::default();
        let known = super::super::refusals::Refusals::default();
        let mut refused = known.clone();
        refused.signatures = true;
        let learned = Some(refused.learned_since(&known, &[]));
        let mut answer = AnswerSender::new(&offered, 0, &events, &mut numbers, learned);
        let mut sink = &mut answer;
        let usage = ModelEvent::Usage(crate::provider::Usage::default());
        sink.accept(usage).await.unwrap();
        assert_eq!(sent(&mut received), [""; 0]);
        sink.accept(text("a")).await.unwrap();
        assert_eq!(sent(&mut received).len(), 4, "what was learned comes first");
    }

    #[tokio::test]
    async fn every_call_of_the_server_has_an_end_and_little_is_shown_of_much() {
        let (sender, mut received) = mpsc::channel(64);
        let events = channel_sink(sender, PendingReplies::default());
        let offered = OfferedTools::new(&[], Vec::new());
        let mut numbers = Numbers::default();
        let mut answer = AnswerSender::new(&offered, 0, &events, &mut numbers, None);
        let mut sink = &mut answer;
        let call = |input: &str| ModelEvent::ServerCall {
            id: "one".to_owned(),
            name: "search".to_owned(),
            input: input.to_owned(),
        };
        let much = "ä".repeat(SERVER_TEXT_BYTES_MAX);
        for event in [
            call("{}"),
            call(&much),
            ModelEvent::ServerResult { id: "one".to_owned(), text: much, success: true },
            call("{}"),
            ModelEvent::Stopped(crate::provider::StopReason::End),
        ] {
            sink.accept(event).await.unwrap();
        }
        let sent = sent(&mut received);
        let count = |what: &str| sent.iter().filter(|sent| sent.starts_with(what)).count();
        assert_eq!((count("<search"), count("ToolCompleted")), (3, 3));
        let most = 2 * SERVER_TEXT_BYTES_MAX;
        assert!(sent.iter().all(|sent| sent.len() < most), "{sent:?}");
    }

    #[tokio::test]
    async fn everything_is_sent_as_it_comes_and_text_goes_on_in_its_part() {
        let (sender, mut received) = mpsc::channel(64);
        let events = channel_sink(sender, PendingReplies::default());
        let tools = tool::all(&std::sync::Arc::default(), &std::sync::Arc::default());
        let own: Vec<&dyn Tool> = tools.iter().map(|tool| &**tool).collect();
        let offered = OfferedTools::new(&own, Vec::new());
        let mut numbers = Numbers::default();
        let mut answer = AnswerSender::new(&offered, 0, &events, &mut numbers, None);
        let mut sink = &mut answer;
        for piece in ["a", "", "b"] {
            sink.accept(text(piece)).await.unwrap();
        }
        assert_eq!(sent(&mut received), ["Markdown", "a", "b"]);
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
        sink.accept(text("c")).await.unwrap();
        let order = ["Reasoning", "g", "<read", "+{", "+}", "!busy", "Markdown", "c"];
        assert_eq!(sent(&mut received), order);
        let answer = answer.into_answer();
        assert_eq!(answer.text, "abc");
        assert_eq!(answer.calls[0].tool_use.input, "{}");
    }
}
