//! Compaction of the history: the model summarises the turns, and from then on gets the summary instead.

use agent_api::{AgentEvent, Section, TurnInput};
use serde_json::json;
use tokio::sync::mpsc;

use super::history::Recalled;
use super::model_view::{HistoryEntry, ModelView};
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
    let mut entries = recall(model, input).entries;
    let hint = input.compact.as_deref().unwrap_or("").trim();
    entries.push(HistoryEntry::user(&match hint {
        "" => REQUEST.to_owned(),
        hint => format!("{REQUEST}\n\nThe user says: {hint}"),
    }));
    let system = vec![Section::new("identity", SYSTEM)];
    let request = ModelRequest {
        model: model.server_name().to_owned(),
        system: view.events.render(system).await?,
        messages: view.lower_conversation(&entries, usize::MAX).await?,
        tools: Vec::new(),
        max_output_tokens: model.output_tokens,
        settings: wire::Object::new(),
    };
    let activity = AgentEvent::Activity(Some("summarising".to_owned()));
    view.events.send(activity).await?;
    let (sender, mut received) = mpsc::channel(EVENTS_MAX);
    let asking = async move { provider::ask(endpoint, &request, &sender).await };
    let collecting = async {
        let mut summary = String::new();
        let mut used = Usage::default();
        while let Some(event) = received.recv().await {
            match event {
                ModelEvent::Text(text) => summary.push_str(&text),
                ModelEvent::Usage(usage) => used = usage,
                ModelEvent::Waiting(text) => {
                    view.events.send(AgentEvent::Notice { text }).await?;
                }
                _ => {}
            }
        }
        Ok::<(String, Usage), TurnStop>((summary, used))
    };
    let (asked, summary) = tokio::join!(asking, collecting);
    asked?;
    let (summary, used) = summary?;
    usage.add(used, model, view.events).await?;
    view.events.send(AgentEvent::Activity(None)).await?;
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

/// Earlier turns, and the summary of those before them. Half of what fits is left for this turn.
pub(super) fn recall(model: &Model, input: &TurnInput) -> Recalled {
    let summary = input.summary.as_deref().map(summary_entries);
    let turns = history::recall_turns(&input.history, model.context() / 2);
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
    };
    let summary = json!(format!("{BEFORE}\n{text}"));
    [
        HistoryEntry::Model(ModelMessage::User(summary)),
        HistoryEntry::Model(answer),
    ]
}
