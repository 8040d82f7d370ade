//! Plays a scene: steps in, events out.
//!
//! Promises: every await may be the last; deltas are never merged; a checkpoint goes out before each step, so that a
//! resumed turn goes on with the step after the one that failed or during which it died (G-04).
//! Must not know: channels, peers, sequence numbers.

mod ask;
mod checkpoint;
mod prompt;
mod text;
mod tool;
mod worker;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use agent_api::{
    AgentError, AgentEvent, AgentReply, AgentSession, EventSink, Lowering, TextKind, TurnInput,
    TurnOver,
};
use async_trait::async_trait;
use compositor::lower::{Capabilities, Target};
use serde_json::Value;
use tokio::time::sleep;

use super::number::Number;
use super::script::Script;
use super::step::{Fail, Step, UsageField, unknown_target};
use super::substitute::Scope;
use crate::locale::{Locale, Words};
use crate::lower::lower_message;
use crate::prompt::Gatherer;
use checkpoint::Checkpoint;
use wire::Object;
use wire::published::state::UsageInfo;

/// Between the chunks of `say` and `think` where the session's pace is "typing".
const TYPING: Duration = Duration::from_millis(20);

/// Turns that are kept in mind when the chat is compacted.
const KEEP_TURNS: usize = 2;

pub(super) struct ScriptedSession {
    script: Arc<Script>,
    locale: Locale,
    place: Place,
}

/// Where the session works, and how to look around there.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    pub(super) gatherer: Gatherer,
    pub(super) directories: Vec<String>,
}

/// Why a scene stopped before its end.
enum Stop {
    Over,
    Failed(AgentError),
}

impl From<TurnOver> for Stop {
    fn from(_: TurnOver) -> Self {
        Self::Over
    }
}

impl ScriptedSession {
    pub(super) fn new(script: Arc<Script>, locale: Locale, place: Place) -> Self {
        Self {
            script,
            locale,
            place,
        }
    }

    /// What the turn plays: a worker what it was spawned with, others the scene that matches.
    fn scene_for(&self, input: &TurnInput) -> Result<Scene<'_>, AgentError> {
        if let Some(scene) = worker::scene_of(input)? {
            return Ok(scene);
        }
        Ok(match self.script.scene_for(&input.text) {
            Some((number, scene, scope)) => Scene {
                steps: Cow::Borrowed(&scene.steps),
                scope,
                place: format!("scenes[{number}].steps"),
            },
            None => Scene {
                steps: Cow::Owned(vec![Step::Say(vec![NO_SCENE.to_owned()])]),
                scope: Scope::new("", Vec::new()),
                place: "scenes".to_owned(),
            },
        })
    }

    async fn play(&self, input: &TurnInput, events: &dyn EventSink) -> Result<(), Stop> {
        if input.compact.is_some() && input.resume.is_none() {
            compact(events).await?;
        }
        if !input.reaches_model {
            return Ok(());
        }
        let scene = self.scene_for(input).map_err(Stop::Failed)?;
        let mut stage = Stage {
            events,
            scope: scene.scope,
            words: self.locale.words(),
            around: &self.place,
            pace: pace(&input.config),
            place: scene.place,
            step: 0,
            input,
        };
        let first = match &input.resume {
            None | Some(None) => 0,
            Some(Some(data)) => {
                let checkpoint = Checkpoint::read(data).map_err(Stop::Failed)?;
                checkpoint.restore(&mut stage.scope)
            }
        };
        for (index, step) in scene.steps.iter().enumerate().skip(first) {
            stage.step = index;
            let checkpoint = checkpoint::taken(index + 1, &stage.scope);
            stage.send(AgentEvent::Checkpoint(checkpoint)).await?;
            stage.play(step).await?;
        }
        Ok(())
    }
}

/// This agent remembers nothing anyway: others would be shown the last turns only.
async fn compact(events: &dyn EventSink) -> Result<(), Stop> {
    let keep_turns = KEEP_TURNS;
    let summary = None;
    let compacted = AgentEvent::Compacted {
        keep_turns,
        summary,
    };
    events.send(compacted).await?;
    let text = format!("The last {keep_turns} turns are kept in mind, those before are not.");
    Ok(events.send(AgentEvent::Notice { text }).await?)
}

#[async_trait]
impl AgentSession for ScriptedSession {
    async fn turn(&mut self, input: TurnInput, events: &dyn EventSink) -> Result<(), AgentError> {
        match self.play(&input, events).await {
            Ok(()) | Err(Stop::Over) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

const NO_SCENE: &str = "No scene of the script matches this message.";

/// Steps, and what they are played with.
struct Scene<'a> {
    steps: Cow<'a, [Step]>,
    scope: Scope,
    /// Where the steps stand in the script.
    place: String,
}

fn pace(config: &Object) -> Option<Duration> {
    (config.get("pace").and_then(Value::as_str) == Some("typing")).then_some(TYPING)
}

/// Where a scene is played.
struct Stage<'a> {
    events: &'a dyn EventSink,
    scope: Scope,
    words: &'static Words,
    around: &'a Place,
    pace: Option<Duration>,
    place: String,
    step: usize,
    input: &'a TurnInput,
}

impl Stage<'_> {
    /// The number of the step's `n`th part. It never meets one of another step, before or after a resume.
    fn part(&self, n: u64) -> u64 {
        (u64::try_from(self.step).unwrap_or(u64::MAX) << 32).saturating_add(n)
    }

    /// The step cannot be played with what the placeholders stand for.
    fn unplayable(&self, field: &str, what: &str) -> Stop {
        let message = format!("{}[{}].{field}: {what}", self.place, self.step);
        Stop::Failed(AgentError {
            error_type: "scripted".to_owned(),
            message,
            resumable: false,
        })
    }

    async fn send(&self, event: AgentEvent) -> Result<(), Stop> {
        Ok(self.events.send(event).await?)
    }

    /// Says something that is answered, and waits for the answer.
    async fn ask(&self, event: AgentEvent) -> Result<AgentReply, Stop> {
        Ok(self.events.ask(event).await?)
    }

    /// `{{last}}` from here on.
    fn answered(&mut self, last: Object) {
        self.scope.last = Value::Object(last).to_string();
    }

    async fn play(&mut self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Say(chunks) => self.speak(TextKind::Markdown, chunks).await,
            Step::Think(chunks) => self.speak(TextKind::Reasoning, chunks).await,
            Step::Stream(stream) => self.stream(stream).await,
            Step::Parts(count) => {
                for n in 0..self.number(count, "parts")? {
                    let part = self.part(n);
                    self.send(AgentEvent::PartOpened {
                        part,
                        kind: TextKind::Markdown,
                    })
                    .await?;
                    tokio::task::consume_budget().await;
                }
                Ok(())
            }
            Step::WaitMs(ms) => {
                sleep(Duration::from_millis(self.number(ms, "wait_ms")?)).await;
                Ok(())
            }
            Step::Usage(fields) => self.send(AgentEvent::Usage(self.usage(fields)?)).await,
            Step::Title(title) => {
                self.send(AgentEvent::Title(self.scope.substitute(title)))
                    .await
            }
            Step::Activity(activity) => {
                let activity = activity.as_ref().map(|text| self.scope.substitute(text));
                self.send(AgentEvent::Activity(
                    activity.filter(|text| !text.is_empty()),
                ))
                .await
            }
            Step::Notify(text) => {
                self.send(AgentEvent::Notice {
                    text: self.scope.substitute(text),
                })
                .await
            }
            Step::ContentRef(content) => {
                let body = self.scope.substitute(&content.text).into_bytes();
                let content_type = self.scope.substitute(&content.content_type);
                let bytes = body.len();
                let stored = self.events.store_body(body, &content_type).await;
                self.send(match stored {
                    Ok(content) => AgentEvent::ContentRef(content),
                    Err(error) => AgentEvent::Notice {
                        text: format!("{bytes} bytes of {content_type} are lost: {error}"),
                    },
                })
                .await
            }
            Step::Tool(tool) => self.tool(tool).await,
            Step::ClientTool(tool) => self.client_tool(tool).await,
            Step::Ask(ask) => self.question(ask).await,
            Step::Spawn(spawn) => self.spawn(spawn).await,
            Step::Steer => self.steer().await,
            Step::ShowPrompt => self.show_prompt().await,
            Step::ShowLowered(target) => self.show_lowered(target).await,
            Step::Fail(fail) => Err(Stop::Failed(self.failure(fail))),
            Step::Hang => std::future::pending().await,
            Step::Crash => panic!("the script says: crash"),
        }
    }

    /// Says the blocks that a target is shown, as JSON.
    async fn show_lowered(&mut self, target: &str) -> Result<(), Stop> {
        let name = self.scope.substitute(target);
        let Some(target) = Target::from_name(&name) else {
            return Err(self.unplayable("show_lowered", &unknown_target(&name)));
        };
        let capabilities = Capabilities::built_in(target);
        let user = Arc::clone(&self.input.user);
        let sources = &self.input.sources;
        let lowered = lower_message(sources, user, target, capabilities).await;
        let model = self.input.message["model"]["id"].as_str();
        let lowering = Lowering {
            target: target.name(),
            model: model.unwrap_or("").to_owned(),
            blocks: lowered.blocks.clone(),
            diagnostics: lowered.diagnostics,
        };
        self.events.record_lowering(lowering).await;
        let (part, kind) = (self.part(0), TextKind::Markdown);
        self.send(AgentEvent::PartOpened { part, kind }).await?;
        let text = Value::Array(lowered.blocks).to_string();
        self.send(AgentEvent::Text { part, text }).await
    }

    fn number(&self, number: &Number, name: &str) -> Result<u64, Stop> {
        number
            .value(&self.scope)
            .map_err(|what| self.unplayable(name, &what))
    }

    fn usage(&self, fields: &[(String, UsageField)]) -> Result<UsageInfo, Stop> {
        let fields = fields.iter().map(|(key, field)| {
            let value = match field {
                UsageField::Count(count) => {
                    Value::from(self.number(count, &format!("usage.{key}"))?)
                }
                UsageField::Other(value) => self.scope.substitute_in(value),
            };
            Ok((key.clone(), value))
        });
        let fields = fields.collect::<Result<Object, Stop>>()?;
        let usage = serde_json::from_value(Value::Object(fields));
        usage.map_err(|error| self.unplayable("usage", &error.to_string()))
    }

    fn failure(&self, fail: &Fail) -> AgentError {
        let said = |text: &Option<String>, otherwise: &str| {
            text.as_ref()
                .map_or_else(|| otherwise.to_owned(), |text| self.scope.substitute(text))
        };
        AgentError {
            error_type: said(&fail.error_type, "scripted"),
            message: said(&fail.message, "the script says: fail"),
            resumable: fail.resumable,
        }
    }
}

/// The host answered one thing with another: nothing this scene can go on from.
fn out_of_place(reply: &AgentReply) -> Stop {
    let kind = format!("{reply:?}");
    let kind = kind.split([' ', '{']).next().unwrap_or_default();
    Stop::Failed(AgentError {
        error_type: "scripted".to_owned(),
        message: format!("the host answered with {kind} what it was not asked"),
        resumable: true,
    })
}

/// Puts a field in where there is one.
fn put(object: &mut Object, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
