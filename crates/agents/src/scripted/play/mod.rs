//! Plays a scene: steps in, events out.
//!
//! Promises: every await may be the last; deltas are never merged; a checkpoint goes out before each step, so that a
//! resumed turn goes on with the step after the one that failed or during which it died (G-04).
//! Must not know: channels, peers, sequence numbers.

mod ask;
mod checkpoint;
mod show;
mod text;
mod tool;
mod worker;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use agent_api::{
    AgentError, AgentEvent, AgentReply, AgentSession, EventSink, TextKind, TurnInput, TurnOver,
};
use async_trait::async_trait;
use serde_json::Value;
use tokio::time::sleep;

use super::number::Number;
use super::script::Script;
use super::step::{Fail, ScriptStep, UsageField};
use super::substitute::Scope;
use crate::locale::{Locale, LocaleTexts};
use crate::prompt::ProjectFactsReader;
use checkpoint::Checkpoint;
use wire::Object;
use wire::published::state::UsageInfo;

/// Between the chunks of `say` and `think` where the session's pace is "typing".
const TYPING: Duration = Duration::from_millis(20);

/// Turns that stay in the history when the chat is compacted.
const KEEP_TURNS: usize = 2;

pub(super) struct ScriptedSession {
    script: Arc<Script>,
    locale: Locale,
    context: SessionContext,
}

/// The working directories of a session, and who gathers facts about them.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionContext {
    pub(super) gatherer: ProjectFactsReader,
    pub(super) directories: Vec<String>,
}

/// Why a scene stopped before its end.
enum SceneStop {
    Over,
    Failed(AgentError),
}

impl From<TurnOver> for SceneStop {
    fn from(_: TurnOver) -> Self {
        Self::Over
    }
}

impl ScriptedSession {
    pub(super) fn new(script: Arc<Script>, locale: Locale, context: SessionContext) -> Self {
        Self { script, locale, context }
    }

    /// What the turn plays: a worker what it was spawned with, others the scene that matches.
    fn scene_for(&self, input: &TurnInput) -> Result<PlayedScene<'_>, AgentError> {
        if let Some(scene) = worker::worker_scene(input)? {
            return Ok(scene);
        }
        Ok(match self.script.scene_for(&input.text) {
            Some((number, scene, scope)) => PlayedScene {
                steps: Cow::Borrowed(&scene.steps),
                scope,
                location: format!("scenes[{number}].steps"),
            },
            None => PlayedScene {
                steps: Cow::Owned(vec![ScriptStep::Say(vec![NO_SCENE.to_owned()])]),
                scope: Scope::new("", Vec::new()),
                location: "scenes".to_owned(),
            },
        })
    }

    async fn play(&self, input: &TurnInput, events: &dyn EventSink) -> Result<(), SceneStop> {
        if input.compact.is_some() && input.resume.is_none() {
            compact(events).await?;
        }
        if !input.reaches_model {
            return Ok(());
        }
        let scene = self.scene_for(input).map_err(SceneStop::Failed)?;
        let mut player = ScenePlayer {
            events,
            scope: scene.scope,
            words: self.locale.words(),
            session: &self.context,
            pace: pace(&input.config),
            location: scene.location,
            step: 0,
            input,
        };
        let first = match &input.resume {
            None | Some(None) => 0,
            Some(Some(data)) => {
                Checkpoint::read(data).map_err(SceneStop::Failed)?.restore(&mut player.scope)
            }
        };
        for (index, step) in scene.steps.iter().enumerate().skip(first) {
            player.step = index;
            let checkpoint = checkpoint::encode(index + 1, &player.scope);
            player.send(AgentEvent::Checkpoint(checkpoint)).await?;
            player.play(step).await?;
        }
        Ok(())
    }
}

/// This agent remembers nothing anyway: for other agents only the last turns would count.
async fn compact(events: &dyn EventSink) -> Result<(), SceneStop> {
    let keep_turns = KEEP_TURNS;
    let summary = None;
    let compacted = AgentEvent::Compacted { keep_turns, rounds: 0, summary };
    events.send(compacted).await?;
    let text = format!("The last {keep_turns} turns are kept in mind, those before are not.");
    Ok(events.send(AgentEvent::Notice { text }).await?)
}

#[async_trait]
impl AgentSession for ScriptedSession {
    async fn turn(&mut self, input: TurnInput, events: &dyn EventSink) -> Result<(), AgentError> {
        match self.play(&input, events).await {
            Ok(()) | Err(SceneStop::Over) => Ok(()),
            Err(SceneStop::Failed(error)) => Err(error),
        }
    }
}

const NO_SCENE: &str = "No scene of the script matches this message.";

/// Steps, and what they are played with.
struct PlayedScene<'a> {
    steps: Cow<'a, [ScriptStep]>,
    scope: Scope,
    /// Where the steps stand in the script.
    location: String,
}

fn pace(config: &Object) -> Option<Duration> {
    (config.get("pace").and_then(Value::as_str) == Some("typing")).then_some(TYPING)
}

/// Plays one scene.
struct ScenePlayer<'a> {
    events: &'a dyn EventSink,
    scope: Scope,
    words: &'static LocaleTexts,
    session: &'a SessionContext,
    pace: Option<Duration>,
    location: String,
    step: usize,
    input: &'a TurnInput,
}

impl ScenePlayer<'_> {
    /// The number of the step's `n`th part. It never meets one of another step, before or after a resume.
    fn part_number(&self, n: u64) -> u64 {
        (u64::try_from(self.step).unwrap_or(u64::MAX) << 32).saturating_add(n)
    }

    /// The step cannot be played with what the placeholders stand for.
    fn play_error(&self, field: &str, what: &str) -> SceneStop {
        let message = format!("{}[{}].{field}: {what}", self.location, self.step);
        SceneStop::Failed(AgentError {
            error_type: "scripted".to_owned(),
            message,
            resumable: false,
        })
    }

    async fn send(&self, event: AgentEvent) -> Result<(), SceneStop> {
        Ok(self.events.send(event).await?)
    }

    /// Sends an event that is answered, and waits for the answer.
    async fn ask(&self, event: AgentEvent) -> Result<AgentReply, SceneStop> {
        Ok(self.events.ask(event).await?)
    }

    /// `{{last}}` from here on.
    fn set_last(&mut self, last: Object) {
        self.scope.last = Value::Object(last).to_string();
    }

    async fn play(&mut self, step: &ScriptStep) -> Result<(), SceneStop> {
        match step {
            ScriptStep::Say(chunks) => self.send_text(TextKind::Markdown, chunks).await,
            ScriptStep::Think(chunks) => self.send_text(TextKind::Reasoning, chunks).await,
            ScriptStep::Stream(stream) => self.send_stream(stream).await,
            ScriptStep::Parts(count) => {
                for n in 0..self.number(count, "parts")? {
                    let part = self.part_number(n);
                    self.send(AgentEvent::PartOpened { part, kind: TextKind::Markdown }).await?;
                    tokio::task::consume_budget().await;
                }
                Ok(())
            }
            ScriptStep::WaitMs(ms) => {
                sleep(Duration::from_millis(self.number(ms, "wait_ms")?)).await;
                Ok(())
            }
            ScriptStep::Usage(fields) => {
                self.send(AgentEvent::Usage(self.usage_info(fields)?)).await
            }
            ScriptStep::Title(title) => {
                self.send(AgentEvent::Title(self.scope.substitute(title))).await
            }
            ScriptStep::Activity(activity) => {
                let activity = activity.as_ref().map(|text| self.scope.substitute(text));
                self.send(AgentEvent::Activity(activity.filter(|text| !text.is_empty()))).await
            }
            ScriptStep::Notify(text) => {
                self.send(AgentEvent::Notice { text: self.scope.substitute(text) }).await
            }
            ScriptStep::ContentRef(content) => self.show_content(content).await,
            ScriptStep::Tool(tool) => self.call_tool(tool).await,
            ScriptStep::ClientTool(tool) => self.call_client_tool(tool).await,
            ScriptStep::Ask(ask) => self.ask_user(ask).await,
            ScriptStep::Spawn(spawn) => self.spawn_worker(spawn).await,
            ScriptStep::Steer => self.take_steering().await,
            ScriptStep::ShowPrompt => self.show_prompt().await,
            ScriptStep::ShowLowered(target) => self.show_lowered(target).await,
            ScriptStep::Fail(fail) => Err(SceneStop::Failed(self.scripted_error(fail))),
            ScriptStep::Hang => std::future::pending().await,
            #[expect(clippy::panic, reason = "the host must survive an agent that panics")]
            ScriptStep::Crash => panic!("the script says: crash"),
        }
    }

    fn number(&self, number: &Number, name: &str) -> Result<u64, SceneStop> {
        number.value(&self.scope).map_err(|what| self.play_error(name, &what))
    }

    fn usage_info(&self, fields: &[(String, UsageField)]) -> Result<UsageInfo, SceneStop> {
        let fields = fields
            .iter()
            .map(|(key, field)| {
                let value = match field {
                    UsageField::Count(count) => {
                        Value::from(self.number(count, &format!("usage.{key}"))?)
                    }
                    UsageField::Other(value) => self.scope.substitute_in(value),
                };
                Ok((key.clone(), value))
            })
            .collect::<Result<Object, SceneStop>>()?;
        let usage = serde_json::from_value(Value::Object(fields));
        usage.map_err(|error| self.play_error("usage", &error.to_string()))
    }

    fn scripted_error(&self, fail: &Fail) -> AgentError {
        let substituted = |text: &Option<String>, otherwise: &str| {
            text.as_ref().map_or_else(|| otherwise.to_owned(), |text| self.scope.substitute(text))
        };
        AgentError {
            error_type: substituted(&fail.error_type, "scripted"),
            message: substituted(&fail.message, "the script says: fail"),
            resumable: fail.resumable,
        }
    }
}

/// The host answered one thing with another: nothing this scene can go on from.
fn unexpected_reply(reply: &AgentReply) -> SceneStop {
    let kind = format!("{reply:?}");
    let kind = kind.split([' ', '{']).next().unwrap_or_default();
    SceneStop::Failed(AgentError {
        error_type: "scripted".to_owned(),
        message: format!("the host answered something else: {kind}"),
        resumable: true,
    })
}

/// Inserts a field where there is one.
fn insert_some(object: &mut Object, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
