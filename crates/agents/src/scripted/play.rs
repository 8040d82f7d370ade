//! Plays a scene: steps in, events out.
//!
//! Promises: every await may be the last; deltas are never merged; a checkpoint goes out before each step, so that a
//! resumed turn goes on with the step after the one that failed or during which it died (G-04).
//! Must not know: channels, peers, sequence numbers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::number::Number;
use super::script::Script;
use super::step::{Fail, Step, Stream, UsageField};
use super::substitute::Scope;
use crate::agent::{AgentError, AgentSession, TurnInput};
use crate::event::{AgentEvent, TextKind};
use crate::sink::{EventSink, TurnOver};
use wire::Object;

/// Between the chunks of `say` and `think` where the session's pace is "typing".
const TYPING: Duration = Duration::from_millis(20);
/// Largest streamed chunk: the number may come from a user's message.
const CHUNK_BYTES_MAX: u64 = 16 * 1_024 * 1_024;

pub(super) struct ScriptedSession {
    script: Arc<Script>,
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
    pub(super) fn new(script: Arc<Script>) -> Self {
        Self { script }
    }
}

#[async_trait]
impl AgentSession for ScriptedSession {
    async fn turn(&mut self, input: TurnInput, events: &EventSink) -> Result<(), AgentError> {
        match play(&self.script, &input, events).await {
            Ok(()) | Err(Stop::Over) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

async fn play(script: &Script, input: &TurnInput, events: &EventSink) -> Result<(), Stop> {
    let first = match &input.resume {
        None | Some(None) => 0,
        Some(Some(checkpoint)) => resume_point(checkpoint).map_err(Stop::Failed)?,
    };
    let Some((number, scene, scope)) = script.scene_for(&input.text) else {
        let scope = Scope::new("", Vec::new());
        let stage = Stage {
            events,
            scope,
            pace: None,
            scene: 0,
            step: 0,
        };
        let text = "No scene of the script matches this message.".to_owned();
        return stage.speak(TextKind::Markdown, &[text]).await;
    };
    let mut stage = Stage {
        events,
        scope,
        pace: pace(&input.config),
        scene: number,
        step: first,
    };
    for (index, step) in scene.steps.iter().enumerate().skip(first) {
        stage.step = index;
        stage
            .send(AgentEvent::Checkpoint(checkpoint(index + 1)))
            .await?;
        stage.play(step).await?;
    }
    Ok(())
}

fn checkpoint(next_step: usize) -> Vec<u8> {
    json!({"step": next_step}).to_string().into_bytes()
}

fn resume_point(checkpoint: &[u8]) -> Result<usize, AgentError> {
    let value: Option<Value> = serde_json::from_slice(checkpoint).ok();
    let step = value.as_ref().and_then(|value| value["step"].as_u64());
    step.and_then(|step| usize::try_from(step).ok())
        .ok_or_else(|| AgentError {
            error_type: "checkpoint".to_owned(),
            message: "the checkpoint of this turn cannot be read; send the message again"
                .to_owned(),
            resumable: false,
        })
}

fn pace(config: &Object) -> Option<Duration> {
    (config.get("pace").and_then(Value::as_str) == Some("typing")).then_some(TYPING)
}

/// Where a scene is played.
struct Stage<'a> {
    events: &'a EventSink,
    scope: Scope,
    pace: Option<Duration>,
    scene: usize,
    step: usize,
}

impl Stage<'_> {
    /// The number of the step's `n`th part. It never meets one of another step, before or after a resume.
    fn part(&self, n: u64) -> u64 {
        (u64::try_from(self.step).unwrap_or(u64::MAX) << 32).saturating_add(n)
    }

    /// The step cannot be played with what the placeholders stand for.
    fn unplayable(&self, field: &str, what: &str) -> Stop {
        let message = format!(
            "scenes[{}].steps[{}].{field}: {what}",
            self.scene, self.step
        );
        Stop::Failed(AgentError {
            error_type: "scripted".to_owned(),
            message,
            resumable: false,
        })
    }

    async fn send(&self, event: AgentEvent) -> Result<(), Stop> {
        Ok(self.events.send(event).await?)
    }

    async fn play(&self, step: &Step) -> Result<(), Stop> {
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
            Step::Fail(fail) => Err(Stop::Failed(self.failure(fail))),
            Step::Hang => std::future::pending().await,
            Step::Crash => panic!("the script says: crash"),
        }
    }

    async fn speak(&self, kind: TextKind, chunks: &[String]) -> Result<(), Stop> {
        let part = self.part(0);
        self.send(AgentEvent::PartOpened { part, kind }).await?;
        for (n, chunk) in chunks.iter().enumerate() {
            match self.pace {
                Some(pause) if n > 0 => sleep(pause).await,
                _ => tokio::task::consume_budget().await,
            }
            self.send(AgentEvent::Text {
                part,
                text: self.scope.substitute(chunk),
            })
            .await?;
        }
        Ok(())
    }

    async fn stream(&self, stream: &Stream) -> Result<(), Stop> {
        let part = self.part(0);
        let chunks = self.number(&stream.chunks, "stream.chunks")?;
        let size = self.number(&stream.size, "stream.size")?;
        let every_ms = self.number(&stream.every_ms, "stream.every_ms")?;
        let size = match usize::try_from(size) {
            Ok(bytes) if size <= CHUNK_BYTES_MAX => bytes,
            _ => {
                let what = format!("a chunk has at most {CHUNK_BYTES_MAX} bytes");
                return Err(self.unplayable("stream.size", &what));
            }
        };
        self.send(AgentEvent::PartOpened {
            part,
            kind: TextKind::Markdown,
        })
        .await?;
        // Ticks keep their rate however long a send takes; a pause of zero is no interval.
        let mut ticks = (every_ms > 0).then(|| interval(Duration::from_millis(every_ms)));
        if let Some(ticks) = &mut ticks {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        for n in 0..chunks {
            match &mut ticks {
                Some(ticks) => drop(ticks.tick().await),
                None => tokio::task::consume_budget().await,
            }
            self.send(AgentEvent::Text {
                part,
                text: chunk(n, size),
            })
            .await?;
        }
        Ok(())
    }

    fn number(&self, number: &Number, name: &str) -> Result<u64, Stop> {
        number
            .value(&self.scope)
            .map_err(|what| self.unplayable(name, &what))
    }

    fn usage(&self, fields: &[(String, UsageField)]) -> Result<Value, Stop> {
        let fields = fields.iter().map(|(key, field)| {
            let value = match field {
                UsageField::Count(count) => {
                    Value::from(self.number(count, &format!("usage.{key}"))?)
                }
                UsageField::Other(value) => self.substituted(value),
            };
            Ok((key.clone(), value))
        });
        fields.collect::<Result<Object, Stop>>().map(Value::Object)
    }

    /// Substitution is in values only, never in keys (G-03).
    fn substituted(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.scope.substitute(text)),
            Value::Array(items) => items.iter().map(|item| self.substituted(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.clone(), self.substituted(value)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
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

/// `size` bytes of ASCII that begin with the number of the chunk, so that a reader can see a gap.
fn chunk(n: u64, size: usize) -> String {
    let mut text = format!("{n} ");
    text.truncate(size);
    let filler = b"abcdefghijklmnopqrstuvwxyz ".iter().cycle();
    text.extend(filler.take(size - text.len()).map(|byte| char::from(*byte)));
    text
}

#[cfg(test)]
#[path = "play_tests.rs"]
mod tests;
