//! One round: the model is asked, and what it says is told as it comes.

use std::collections::BTreeMap;

use serde_json::json;
use tokio::sync::mpsc;

use super::Shared;
use crate::event::{AgentEvent, TextKind, ToolStart};
use crate::provider::{
    self, Endpoint, ModelEvent, ModelRequest, ProviderError, StopReason, ToolUse, Usage,
};
use crate::sink::{EventSink, TurnOver};

/// Events of a model that may wait to be told.
const MODEL_EVENTS_MAX: usize = 64;

/// What a model said in one round.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub text: String,
    pub calls: Vec<Called>,
    pub usage: Usage,
    pub stop: Option<StopReason>,
}

/// A call, and the number it was announced under.
#[derive(Debug, Clone)]
pub(super) struct Called {
    pub number: u64,
    pub told: ToolUse,
}

pub(super) enum RoundError {
    Over,
    Provider(ProviderError),
}

impl From<TurnOver> for RoundError {
    fn from(_: TurnOver) -> Self {
        Self::Over
    }
}

/// Numbers of parts and calls: each occurs once in a run.
#[derive(Debug, Default)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// Under this name a call says in which round of its turn it was made: calls of one round saw nothing of each other.
pub(super) const ROUND: &str = "greenroom.round";

pub(super) async fn play(
    shared: &Shared,
    endpoint: &Endpoint,
    (round, request): (usize, &ModelRequest),
    numbers: &mut Numbers,
    events: &EventSink,
) -> Result<Said, RoundError> {
    let (sender, mut heard) = mpsc::channel(MODEL_EVENTS_MAX);
    let mut teller = Teller {
        shared,
        round,
        events,
        numbers,
        part: None,
        said: Said::default(),
        calls: BTreeMap::new(),
    };
    let asking = async move { provider::ask(endpoint, request, &sender).await };
    let telling = async {
        while let Some(event) = heard.recv().await {
            teller.tell(event).await?;
        }
        Ok::<(), TurnOver>(())
    };
    let (asked, told) = tokio::join!(asking, telling);
    told?;
    asked.map_err(RoundError::Provider)?;
    let Teller {
        mut said, calls, ..
    } = teller;
    said.calls = calls.into_values().collect();
    Ok(said)
}

struct Teller<'a> {
    shared: &'a Shared,
    round: usize,
    events: &'a EventSink,
    numbers: &'a mut Numbers,
    /// The part that text goes on in.
    part: Option<(u64, TextKind)>,
    said: Said,
    calls: BTreeMap<usize, Called>,
}

impl Teller<'_> {
    async fn tell(&mut self, event: ModelEvent) -> Result<(), TurnOver> {
        match event {
            ModelEvent::Text(text) | ModelEvent::Refusal(text) => {
                self.said.text.push_str(&text);
                self.write(TextKind::Markdown, text).await
            }
            ModelEvent::Reasoning(text) => self.write(TextKind::Reasoning, text).await,
            ModelEvent::CallStarted { index, id, name } => {
                self.part = None;
                let number = self.numbers.next();
                let known = self.shared.tools.iter().find(|tool| tool.name() == name);
                let display_name = known.map_or(name.as_str(), |tool| tool.display_name());
                let start = ToolStart {
                    name: name.clone(),
                    display_name: display_name.to_owned(),
                    meta: json!({ROUND: self.round}).as_object().cloned(),
                    ..ToolStart::default()
                };
                let input = String::new();
                let told = ToolUse { id, name, input };
                self.calls.insert(index, Called { number, told });
                let started = AgentEvent::ToolStarted {
                    call: number,
                    start,
                };
                self.events.send(started).await
            }
            ModelEvent::CallInput { index, text } => {
                let Some(called) = self.calls.get_mut(&index) else {
                    return Ok(());
                };
                called.told.input.push_str(&text);
                let call = called.number;
                self.events.send(AgentEvent::ToolInput { call, text }).await
            }
            ModelEvent::Usage(usage) => {
                self.said.usage = usage;
                Ok(())
            }
            ModelEvent::Waiting(text) => {
                self.part = None;
                self.events.send(AgentEvent::Notice { text }).await
            }
            ModelEvent::Stopped(reason) => {
                self.said.stop = Some(reason);
                Ok(())
            }
        }
    }

    async fn write(&mut self, kind: TextKind, text: String) -> Result<(), TurnOver> {
        if text.is_empty() {
            return Ok(());
        }
        let part = match self.part {
            Some((part, open)) if open == kind => part,
            _ => {
                let part = self.numbers.next();
                self.events
                    .send(AgentEvent::PartOpened { part, kind })
                    .await?;
                self.part = Some((part, kind));
                part
            }
        };
        self.events.send(AgentEvent::Text { part, text }).await
    }
}
