//! The step that starts a worker, and how the worker finds its scene again: a brief goes with it.

use std::borrow::Cow;

use agent_api::{AgentError, AgentEvent, AgentReply, TurnInput, Worker};
use bytes::Bytes;
use serde_json::{Value, json};

use super::super::step::{Spawn, Step};
use super::super::substitute::{Scope, uses_groups};
use super::checkpoint::CHECKPOINT_BYTES_MAX;
use super::{Scene, Stage, Stop, out_of_place, put};
use wire::Object;

/// The title of a worker whose script names none.
const TITLE_DEFAULT: &str = "Worker";

impl Stage<'_> {
    pub(super) async fn spawn(&mut self, spawn: &Spawn) -> Result<(), Stop> {
        let title = spawn.title.as_deref().unwrap_or(TITLE_DEFAULT);
        let title = self.scope.substitute(title);
        let place = format!("{}[{}].spawn.steps", self.place, self.step);
        let brief = brief(&self.scope, &place, &spawn.steps);
        if brief.len() > CHECKPOINT_BYTES_MAX {
            let what = format!(
                "with all that its placeholders stand for, a worker takes at most {CHECKPOINT_BYTES_MAX} bytes"
            );
            return Err(self.unplayable("spawn.steps", &what));
        }
        let agent = spawn.agent.as_ref();
        let worker = Worker {
            task: title.clone(),
            title,
            interactivity: spawn.interactivity.map(str::to_owned),
            agent_name: agent.map(|name| self.scope.substitute(name)),
            brief,
        };
        let call = self.part(0);
        match self
            .ask(AgentEvent::Spawned {
                call,
                worker: Box::new(worker),
            })
            .await?
        {
            AgentReply::ToolEnded { result, .. } => {
                let mut last = Object::new();
                put(&mut last, "success", result.get("success").cloned());
                put(&mut last, "content", result.get("content").cloned());
                self.answered(last);
                Ok(())
            }
            reply => Err(out_of_place(&reply)),
        }
    }
}

/// The steps, and of the scope what they ask for: a long message must not keep short steps from starting.
fn brief(scope: &Scope, place: &str, steps: &[Value]) -> Bytes {
    let written = Value::from(steps).to_string();
    let mut brief = Object::new();
    brief.insert("place".to_owned(), json!(place));
    let told = |name: &str, value: &str| written.contains(name).then(|| json!(value));
    put(&mut brief, "text", told("{{text}}", &scope.text));
    put(&mut brief, "last", told("{{last}}", &scope.last));
    put(
        &mut brief,
        "steering",
        told("{{steering}}", &scope.steering),
    );
    put(
        &mut brief,
        "groups",
        uses_groups(&written).then(|| json!(scope.groups)),
    );
    brief.insert("steps".to_owned(), Value::from(steps));
    Bytes::from(Value::Object(brief).to_string())
}

/// What a worker plays; nothing if this turn is no worker's. A user who talks to a worker talks to the script.
pub(super) fn scene_of(input: &TurnInput) -> Result<Option<Scene<'static>>, AgentError> {
    match &input.brief {
        Some(brief) if input.message["origin"]["kind"] != "user" => {
            read(brief).map(Some).ok_or_else(|| AgentError {
                error_type: "brief".to_owned(),
                message: "what this worker was to do cannot be read any more".to_owned(),
                resumable: false,
            })
        }
        _ => Ok(None),
    }
}

fn read(brief: &[u8]) -> Option<Scene<'static>> {
    let brief: Value = serde_json::from_slice(brief).ok()?;
    let place = brief["place"].as_str()?.to_owned();
    let steps = Step::parse_all(brief["steps"].as_array()?, &place).ok()?;
    let groups = brief["groups"].as_array().map(|groups| {
        let groups = groups.iter().map(|group| group.as_str().unwrap_or(""));
        groups.map(str::to_owned).collect()
    });
    let text = brief["text"].as_str().unwrap_or("");
    let mut scope = Scope::new(text, groups.unwrap_or_default());
    if let Some(last) = brief["last"].as_str() {
        scope.last = last.to_owned();
    }
    if let Some(steering) = brief["steering"].as_str() {
        scope.steering = steering.to_owned();
    }
    Some(Scene {
        steps: Cow::Owned(steps),
        scope,
        place,
    })
}
