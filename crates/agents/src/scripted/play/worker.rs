//! The step that starts a worker, and how the worker finds its scene again: a brief goes with it.

use std::borrow::Cow;

use agent_api::{AgentError, AgentEvent, AgentReply, TurnInput, Worker};
use bytes::Bytes;
use serde_json::{Value, json};

use super::super::step::{ScriptStep, Spawn};
use super::super::substitute::{Scope, uses_groups};
use super::checkpoint::CHECKPOINT_BYTES_MAX;
use super::{PlayedScene, ScenePlayer, SceneStop, insert_some, unexpected_reply};
use wire::Object;

/// The title of a worker whose script names none.
const TITLE_DEFAULT: &str = "Worker";

impl ScenePlayer<'_> {
    pub(super) async fn spawn_worker(&mut self, spawn: &Spawn) -> Result<(), SceneStop> {
        let title = spawn.title.as_deref().unwrap_or(TITLE_DEFAULT);
        let title = self.scope.substitute(title);
        let location = format!("{}[{}].spawn.steps", self.location, self.step);
        let brief = encode_brief(&self.scope, &location, &spawn.steps);
        if brief.len() > CHECKPOINT_BYTES_MAX {
            let what = format!(
                "with all that its placeholders stand for, a worker takes at most {CHECKPOINT_BYTES_MAX} bytes"
            );
            return Err(self.play_error("spawn.steps", &what));
        }
        let agent = spawn.agent.as_ref();
        let worker = Worker {
            task: title.clone(),
            title,
            interactivity: spawn.interactivity.map(str::to_owned),
            agent_name: agent.map(|name| self.scope.substitute(name)),
            model: None,
            brief,
        };
        let call = self.part_number(0);
        match self.ask(AgentEvent::Spawned { call, worker: Box::new(worker) }).await? {
            AgentReply::ToolEnded { result, .. } => {
                let mut last = Object::new();
                insert_some(&mut last, "success", result.get("success").cloned());
                insert_some(&mut last, "content", result.get("content").cloned());
                self.set_last(last);
                Ok(())
            }
            reply => Err(unexpected_reply(&reply)),
        }
    }
}

/// The steps, and of the scope what they ask for: a long message must not keep short steps from starting.
fn encode_brief(scope: &Scope, location: &str, steps: &[Value]) -> Bytes {
    let written = Value::from(steps).to_string();
    let mut brief = Object::new();
    brief.insert("place".to_owned(), json!(location));
    let used = |name: &str, value: &str| written.contains(name).then(|| json!(value));
    insert_some(&mut brief, "text", used("{{text}}", &scope.text));
    insert_some(&mut brief, "last", used("{{last}}", &scope.last));
    insert_some(&mut brief, "steering", used("{{steering}}", &scope.steering));
    insert_some(&mut brief, "groups", uses_groups(&written).then(|| json!(scope.groups)));
    brief.insert("steps".to_owned(), Value::from(steps));
    Bytes::from(Value::Object(brief).to_string())
}

/// What a worker plays; nothing if this turn is no worker's. A user who talks to a worker talks to the script.
pub(super) fn worker_scene(input: &TurnInput) -> Result<Option<PlayedScene<'static>>, AgentError> {
    match &input.brief {
        Some(brief) if input.message["origin"]["kind"] != "user" => {
            decode_brief(brief).map(Some).ok_or_else(|| AgentError {
                error_type: "brief".to_owned(),
                message: "what this worker was to do cannot be read any more".to_owned(),
                resumable: false,
            })
        }
        _ => Ok(None),
    }
}

fn decode_brief(brief: &[u8]) -> Option<PlayedScene<'static>> {
    let brief: Value = serde_json::from_slice(brief).ok()?;
    let location = brief["place"].as_str()?.to_owned();
    let steps = ScriptStep::parse_all(brief["steps"].as_array()?, &location).ok()?;
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
    Some(PlayedScene { steps: Cow::Owned(steps), scope, location })
}
