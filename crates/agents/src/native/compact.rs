//! Compaction of the history: the model summarises the turns, and from then on gets the summary instead.

use agent_api::{AgentEvent, EventSink, Section, TurnInput, TurnOver};
use serde_json::json;
use tokio::sync::mpsc;

use super::answer_sender::describe_silence;
use super::ask_model::AskError;
use super::fallback::{Fallback, SentEntries};
use super::history::Recalled;
use super::model_view::{HistoryEntry, ModelView};
use super::outputs::OutputSource;
use super::refusals::Learned;
use super::stop::TurnStop;
use super::usage::TurnUsage;
use super::{Model, history};
use crate::provider::{self, ModelEndpoint, ModelEvent, ModelMessage, ModelRequest, Usage};

const SYSTEM: &str = "You shorten conversations between a user and a coding agent.";

const REQUEST: &str = "Summarise the conversation so far for yourself, so that you can go on without it: what the user \
     wants, what was decided and why, which files and commands matter and how they stand, what is left to do. Say \
     nothing else.";

/// How a summary is introduced to the model.
pub(super) const BEFORE: &str = "What was said before, in short:";

/// Events of the model that may wait.
const EVENTS_MAX: usize = 64;

/// Has the model summarise the turns before this one; the summary, or none if there is nothing to shorten.
pub(super) async fn summarise(
    model: &Model,
    endpoint: &ModelEndpoint,
    input: &TurnInput,
    view: &mut ModelView<'_>,
    usage: &mut TurnUsage,
) -> Result<Option<String>, TurnStop> {
    if input.history.is_empty() {
        let text = "There is nothing to shorten yet.".to_owned();
        view.events.send(AgentEvent::Notice { text }).await?;
        return Ok(input.summary.clone());
    }
    let mut entries = recall(model, input, &view.source()).entries;
    let hint = input.compact.as_deref().unwrap_or("").trim();
    entries.push(HistoryEntry::user(&match hint {
        "" => REQUEST.to_owned(),
        hint => format!("{REQUEST}\n\nThe user says: {hint}"),
    }));
    let system = vec![Section::new("identity", SYSTEM)];
    let mut request = ModelRequest {
        model: model.server_name().to_owned(),
        system: view.events.render(system).await?,
        messages: view.lower_conversation(&entries, usize::MAX).await?,
        max_output_tokens: model.output_tokens,
        ..ModelRequest::default()
    };
    let events = view.events;
    events.send(summarising()).await?;
    let asked = ask_with_less(endpoint, view, &entries, &mut request).await;
    events.send(AgentEvent::Activity(None)).await?;
    let (summary, used) = asked?;
    usage.add(used, model, view.events).await?;
    let compacted = AgentEvent::Compacted {
        keep_turns: 0,
        summary: Some(summary.clone()),
    };
    view.events.send(compacted).await?;
    let turns = input.history.len();
    let text = match turns {
        1 => "The turn before is summarised for the model.".to_owned(),
        turns => format!("The {turns} turns before are summarised for the model."),
    };
    view.events.send(AgentEvent::Notice { text }).await?;
    Ok(Some(summary))
}

/// Asks; again with less if the server refuses something.
async fn ask_with_less(
    endpoint: &ModelEndpoint,
    view: &mut ModelView<'_>,
    entries: &[HistoryEntry],
    request: &mut ModelRequest,
) -> Result<(String, Usage), TurnStop> {
    let events = view.events;
    let mut fallback = Fallback::begin(view, entries, request);
    let mut learned: Option<Learned> = None;
    loop {
        let error = match ask_for_text(endpoint, request, events).await {
            Ok(answered) => {
                for event in learned.into_iter().flat_map(Learned::into_events) {
                    events.send(event).await?;
                }
                return Ok(answered);
            }
            Err(AskError::TurnOver) => return Err(TurnStop::Over),
            Err(AskError::Provider(error)) => error,
        };
        let sent = SentEntries {
            entries,
            newest: usize::MAX,
            answered: usize::MAX,
        };
        learned = Some(fallback.reduce(view, &sent, request, error).await?);
    }
}

fn summarising() -> AgentEvent {
    AgentEvent::Activity(Some("summarising".to_owned()))
}

/// The text of an answer, and what it used.
async fn ask_for_text(
    endpoint: &ModelEndpoint,
    request: &ModelRequest,
    events: &dyn EventSink,
) -> Result<(String, Usage), AskError> {
    let (sender, mut received) = mpsc::channel(EVENTS_MAX);
    let asking = async move { provider::ask(endpoint, request, &sender).await };
    let collecting = async {
        let mut text = String::new();
        let mut used = Usage::default();
        let mut shows_silence = false;
        while let Some(event) = received.recv().await {
            if let ModelEvent::Silent(lasted) = event {
                shows_silence = true;
                events.send(describe_silence(lasted)).await?;
                continue;
            }
            if std::mem::take(&mut shows_silence) {
                events.send(summarising()).await?;
            }
            match event {
                ModelEvent::Text(piece) => text.push_str(&piece),
                ModelEvent::Usage(usage) => used = usage,
                ModelEvent::Waiting(text) => {
                    events.send(AgentEvent::Notice { text }).await?;
                }
                _ => {}
            }
        }
        Ok::<(String, Usage), TurnOver>((text, used))
    };
    let (asked, collected) = tokio::join!(asking, collecting);
    asked.map_err(AskError::Provider)?;
    Ok(collected?)
}

/// Earlier turns, and the summary of those before them. Half of what fits is left for this turn.
pub(super) fn recall(model: &Model, input: &TurnInput, source: &OutputSource) -> Recalled {
    let summary = input.summary.as_deref().map(summary_entries);
    let turns = history::recall_turns(&input.history, model.context() / 2, source);
    let entries = summary.into_iter().flatten().chain(turns.entries);
    Recalled {
        entries: entries.collect(),
        notices: turns.notices,
    }
}

/// A summary as entries of the conversation.
pub(super) fn summary_entries(text: &str) -> [HistoryEntry; 2] {
    let answer = ModelMessage::Assistant {
        text: "I keep it in mind.".to_owned(),
        calls: Vec::new(),
        items: None,
    };
    let summary = json!(format!("{BEFORE}\n{text}"));
    [
        HistoryEntry::Model(ModelMessage::User(summary)),
        HistoryEntry::Model(answer),
    ]
}
