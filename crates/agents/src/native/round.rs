//! One round: the model is asked, and what it says is told as it comes.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_api::{AgentEvent, EventSink, TextKind, ToolStart, TurnOver};
use serde_json::json;
use tokio::time::Instant;

use super::Shared;
use crate::provider::{
    self, Endpoint, Listener, ModelEvent, ModelRequest, NobodyListens, ProviderError, StopReason,
    ToolUse, Usage,
};
use crate::tool::Tool;

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

/// Text that follows other text faster than this, one frame of a screen, is told together with what follows it: each
/// telling is a commit, and nobody sees it sooner. The first word after a pause is told at once.
const TOGETHER: Duration = Duration::from_millis(16);

/// When nothing follows, what was kept back is told by then.
const KEPT_BACK_MAX: Duration = Duration::from_millis(25);

/// More than this is not kept back.
const KEPT_BACK_BYTES_MAX: usize = 4 * 1_024;

pub(super) async fn play(
    shared: &Shared,
    endpoint: &Endpoint,
    (round, request): (usize, &ModelRequest),
    numbers: &mut Numbers,
    events: &dyn EventSink,
) -> Result<Said, RoundError> {
    let mut teller = Teller {
        tools: &shared.tools,
        round,
        events,
        numbers,
        part: None,
        kept_back: None,
        told: None,
        said: Said::default(),
        calls: BTreeMap::new(),
    };
    let asked = provider::ask(endpoint, request, &mut teller).await;
    // Also of an answer that broke off, what came of it was said.
    teller.tell_kept().await?;
    asked.map_err(RoundError::Provider)?;
    let Teller {
        mut said, calls, ..
    } = teller;
    said.calls = calls.into_values().collect();
    Ok(said)
}

struct Teller<'a> {
    tools: &'a [Box<dyn Tool>],
    round: usize,
    events: &'a dyn EventSink,
    numbers: &'a mut Numbers,
    /// The part that text goes on in.
    part: Option<(u64, TextKind)>,
    kept_back: Option<(Belongs, String)>,
    /// When text was told last.
    told: Option<Instant>,
    said: Said,
    calls: BTreeMap<usize, Called>,
}

/// What text is more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belongs {
    ToText(TextKind),
    ToInput(u64),
}

impl Listener for &mut Teller<'_> {
    async fn hear(&mut self, event: ModelEvent) -> Result<(), NobodyListens> {
        self.tell(event).await.map_err(|TurnOver| NobodyListens)
    }

    fn due(&self) -> Option<Instant> {
        let kept_back = self.kept_back.as_ref();
        kept_back.and(self.told.map(|told| told + KEPT_BACK_MAX))
    }

    async fn pass_on(&mut self) -> Result<(), NobodyListens> {
        self.tell_kept().await.map_err(|TurnOver| NobodyListens)
    }
}

impl Teller<'_> {
    async fn tell(&mut self, event: ModelEvent) -> Result<(), TurnOver> {
        match event {
            ModelEvent::Text(text) | ModelEvent::Refusal(text) => {
                self.said.text.push_str(&text);
                let markdown = Belongs::ToText(TextKind::Markdown);
                self.write(markdown, text).await
            }
            ModelEvent::Reasoning(text) => {
                let reasoning = Belongs::ToText(TextKind::Reasoning);
                self.write(reasoning, text).await
            }
            ModelEvent::CallStarted { index, id, name } => self.start_call(index, id, name).await,
            ModelEvent::CallInput { index, text } => {
                let Some(called) = self.calls.get_mut(&index) else {
                    return Ok(());
                };
                called.told.input.push_str(&text);
                let input = Belongs::ToInput(called.number);
                self.write(input, text).await
            }
            ModelEvent::Usage(usage) => {
                self.said.usage = usage;
                Ok(())
            }
            ModelEvent::Waiting(text) => {
                self.tell_kept().await?;
                self.part = None;
                self.events.send(AgentEvent::Notice { text }).await
            }
            ModelEvent::Stopped(reason) => {
                self.said.stop = Some(reason);
                Ok(())
            }
        }
    }

    async fn start_call(&mut self, index: usize, id: String, name: String) -> Result<(), TurnOver> {
        self.tell_kept().await?;
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
        let told = ToolUse { id, name, input };
        self.calls.insert(index, Called { number, told });
        let call = number;
        self.events
            .send(AgentEvent::ToolStarted {
                call,
                start: Box::new(start),
            })
            .await
    }

    /// Tells text, or keeps it back for a moment if some was told just now.
    async fn write(&mut self, belongs: Belongs, text: String) -> Result<(), TurnOver> {
        if text.is_empty() {
            return Ok(());
        }
        match &mut self.kept_back {
            Some((to, kept)) if *to == belongs => kept.push_str(&text),
            _ => {
                self.tell_kept().await?;
                self.kept_back = Some((belongs, text));
            }
        }
        let kept = self.kept_back.as_ref().map_or(0, |(_, kept)| kept.len());
        let soon = self.told.is_some_and(|told| told.elapsed() < TOGETHER);
        match soon && kept < KEPT_BACK_BYTES_MAX {
            true => Ok(()),
            false => self.tell_kept().await,
        }
    }

    async fn tell_kept(&mut self) -> Result<(), TurnOver> {
        let Some((belongs, text)) = self.kept_back.take() else {
            return Ok(());
        };
        self.told = Some(Instant::now());
        let event = match belongs {
            Belongs::ToInput(call) => AgentEvent::ToolInput { call, text },
            Belongs::ToText(kind) => {
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

    /// What was told, in a word each.
    fn told(heard: &mut mpsc::Receiver<AgentEvent>) -> Vec<String> {
        let mut told = Vec::new();
        while let Ok(event) = heard.try_recv() {
            told.push(match event {
                AgentEvent::PartOpened { kind, .. } => format!("{kind:?}"),
                AgentEvent::Text { text, .. } => text,
                AgentEvent::ToolStarted { start, .. } => format!("<{}", start.name),
                AgentEvent::ToolInput { text, .. } => format!("+{text}"),
                AgentEvent::Notice { text } => format!("!{text}"),
                other => format!("{other:?}"),
            });
        }
        told
    }

    #[tokio::test(start_paused = true)]
    async fn what_follows_fast_is_told_together_and_in_its_place() {
        let (sender, mut heard) = mpsc::channel(64);
        let events = channel_sink(sender, PendingReplies::default());
        let tools = tool::all();
        let mut teller = Teller {
            tools: &tools,
            round: 0,
            events: &events,
            numbers: &mut Numbers::default(),
            part: None,
            kept_back: None,
            told: None,
            said: Said::default(),
            calls: BTreeMap::new(),
        };
        let mut listener = &mut teller;
        listener.hear(text("a")).await.unwrap();
        assert_eq!(told(&mut heard), ["Markdown", "a"], "the first at once");
        assert_eq!(listener.due(), None);
        advance(ms(5)).await;
        listener.hear(text("b")).await.unwrap();
        assert_eq!(listener.due(), Some(Instant::now() + ms(20)));
        advance(ms(5)).await;
        listener.hear(text("c")).await.unwrap();
        assert!(told(&mut heard).is_empty(), "two are kept back");
        advance(ms(6)).await;
        listener.hear(text("d")).await.unwrap();
        assert_eq!(told(&mut heard), ["bcd"]);
        listener.hear(text("e")).await.unwrap();
        listener.pass_on().await.unwrap();
        assert_eq!(told(&mut heard), ["e"], "nothing more came");
        // Whatever else is said comes after what was kept back.
        listener.hear(text("f")).await.unwrap();
        let thought = ModelEvent::Reasoning("g".to_owned());
        listener.hear(thought).await.unwrap();
        let (index, id, name) = (0, "x".to_owned(), "read".to_owned());
        let call = ModelEvent::CallStarted { index, id, name };
        listener.hear(call).await.unwrap();
        for piece in ["{", "}"] {
            let text = piece.to_owned();
            let input = ModelEvent::CallInput { index, text };
            listener.hear(input).await.unwrap();
        }
        let waiting = ModelEvent::Waiting("busy".to_owned());
        listener.hear(waiting).await.unwrap();
        let order = ["f", "Reasoning", "g", "<read", "+{}", "!busy"];
        assert_eq!(told(&mut heard), order);
        // Large text is not kept back.
        let large = "x".repeat(KEPT_BACK_BYTES_MAX);
        listener.hear(text(&large)).await.unwrap();
        assert_eq!(told(&mut heard), ["Markdown", large.as_str()]);
        assert_eq!(teller.said.text, format!("abcdef{large}"));
        assert_eq!(teller.calls[&0].told.input, "{}");
    }
}
