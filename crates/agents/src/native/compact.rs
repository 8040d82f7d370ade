//! Shortening what the model is shown: it summarises what was said, and from then on sees the summary in its place.

use agent_api::{AgentEvent, Section, TurnInput};
use serde_json::json;
use tokio::sync::mpsc;

use super::shown::{Shown, Told};
use super::turn::Stop;
use super::{Model, history};
use crate::provider::{self, Endpoint, ModelEvent, ModelMessage, ModelRequest};

const SYSTEM: &str = "You shorten conversations between a user and a coding agent.";

const WANTED: &str = "Summarise the conversation so far for yourself, so that you can go on without it: what the user \
     wants, what was decided and why, which files and commands matter and how they stand, what is left to do. Say \
     nothing else.";

/// How a summary is introduced to the model.
pub(super) const BEFORE: &str = "What was said before, in short:";

/// Events of the model that may wait.
const EVENTS_MAX: usize = 64;

/// Has the model summarise the turns before this one; what it said, or nothing if there is nothing to shorten.
pub(super) async fn summarise(
    model: &Model,
    endpoint: &Endpoint,
    input: &TurnInput,
    shown: &mut Shown<'_>,
) -> Result<Option<String>, Stop> {
    if input.history.is_empty() {
        let text = "There is nothing to shorten yet.".to_owned();
        shown.events.send(AgentEvent::Notice { text }).await?;
        return Ok(input.summary.clone());
    }
    let mut told = remembered(model, input);
    let hint = input.compact.as_deref().unwrap_or("").trim();
    told.push(Told::user(&match hint {
        "" => WANTED.to_owned(),
        hint => format!("{WANTED}\n\nThe user says: {hint}"),
    }));
    let system = vec![Section::new("identity", SYSTEM)];
    let request = ModelRequest {
        model: model.server_name().to_owned(),
        system: shown.events.render(system).await?,
        messages: shown.all(&told, usize::MAX).await?,
        tools: Vec::new(),
        max_output_tokens: model.output_tokens,
        settings: wire::Object::new(),
    };
    let activity = AgentEvent::Activity(Some("summarising".to_owned()));
    shown.events.send(activity).await?;
    let (sender, mut heard) = mpsc::channel(EVENTS_MAX);
    let asking = async move { provider::ask(endpoint, &request, &sender).await };
    let hearing = async {
        let mut summary = String::new();
        while let Some(event) = heard.recv().await {
            match event {
                ModelEvent::Text(text) => summary.push_str(&text),
                ModelEvent::Waiting(text) => {
                    shown.events.send(AgentEvent::Notice { text }).await?;
                }
                _ => {}
            }
        }
        Ok::<String, Stop>(summary)
    };
    let (asked, summary) = tokio::join!(asking, hearing);
    asked?;
    let summary = summary?;
    shown.events.send(AgentEvent::Activity(None)).await?;
    let compacted = AgentEvent::Compacted {
        keep_turns: 0,
        summary: Some(summary.clone()),
    };
    shown.events.send(compacted).await?;
    let turns = input.history.len();
    let text = match turns {
        1 => "The turn before is summarised for the model.".to_owned(),
        turns => format!("The {turns} turns before are summarised for the model."),
    };
    shown.events.send(AgentEvent::Notice { text }).await?;
    Ok(Some(summary))
}

/// Earlier turns, and what is left of those before them. Half of what fits is left for this turn.
pub(super) fn remembered(model: &Model, input: &TurnInput) -> Vec<Told> {
    let summary = input.summary.as_deref().map(summary);
    let turns = history::of_turns(&input.history, model.context() / 2);
    summary.into_iter().flatten().chain(turns).collect()
}

/// A summary as the model is reminded of it.
pub(super) fn summary(text: &str) -> [Told; 2] {
    let answer = ModelMessage::Assistant {
        text: "I keep it in mind.".to_owned(),
        calls: Vec::new(),
    };
    let said = json!(format!("{BEFORE}\n{text}"));
    [Told::Model(ModelMessage::User(said)), Told::Model(answer)]
}
