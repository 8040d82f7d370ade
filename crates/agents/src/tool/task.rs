//! `task`: a piece of work for a worker in a chat of its own, with a model and tools of its own.
//!
//! Promises: bounded; what a worker may do is asked about like everything else, in its own chat.
//! Must not know: chats, and which models there are.

use agent_api::Worker;
use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::Workspace;

use super::format::shorten;
use super::input::{self, Texts, ToolInput};
use super::{HostTask, Plan, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome};

pub(crate) const NAME: &str = "task";

const TITLE_CHARS_MAX: usize = 60;

/// The brief that goes with it is private state of a chat.
const PROMPT_BYTES_MAX: usize = 48 * 1_024;

/// Tools that a worker never has: it starts no workers, and who started it asks the user.
const NOT_FOR_WORKERS: [&str; 2] = [NAME, super::ask_user::NAME];

pub(super) struct TaskTool;

#[derive(Debug, Deserialize)]
struct TaskInput {
    prompt: String,
    #[serde(alias = "description")]
    title: Option<String>,
    model: Option<String>,
    #[serde(default)]
    tools: Texts,
}

/// What a worker may use and how it works, beside its task: recorded with its chat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct WorkerBrief {
    /// The tools it may use; none named: all that workers have.
    #[serde(default)]
    tools: Vec<String>,
    /// The tools of the custom agent that it works for: it has no others, whichever are named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent_tools: Option<Vec<String>>,
}

impl WorkerBrief {
    /// A brief that cannot be read may have forbidden anything.
    pub(crate) fn read(brief: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(brief)
    }

    /// The same for a worker of a custom agent that lists these tools.
    #[must_use]
    pub(crate) fn within(mut self, agent_tools: &[String]) -> Self {
        self.agent_tools = Some(agent_tools.to_vec());
        self
    }

    pub(crate) fn agent_tools(&self) -> Option<&[String]> {
        self.agent_tools.as_deref()
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        Bytes::from(wire::rpc::to_json(self))
    }

    /// The tools that it names and that no worker can be given, of those that there are.
    pub(crate) fn impossible_tools<'a>(&'a self, known: &[&str]) -> Vec<&'a str> {
        let named = self.tools.iter().map(String::as_str);
        let is_possible = |tool: &&str| known.contains(tool) && self.allows(tool);
        named.filter(|tool| !is_possible(tool)).collect()
    }

    /// Whether the worker may use a tool.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        let is_named = self.tools.is_empty() || self.tools.iter().any(|named| named == tool);
        is_named && !NOT_FOR_WORKERS.contains(&tool)
    }
}

impl ToolInput for TaskInput {
    const EXAMPLE: &'static str = r#"{"title": "Find the parser", "prompt": "Find where configuration files are parsed and say which functions do it."}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "prompt": {
                    "type": "string",
                    "description": "All that the worker needs to know: it sees nothing of this conversation.",
                },
                "title": {"type": "string", "description": "What it is about, in a few words."},
                "model": {
                    "type": "string",
                    "description": "The id of the model that does it; the one of this conversation by default.",
                },
                "tools": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The names of the tools it may use; by default all but `task` and `ask_user`, which no \
                                    worker has.",
                },
            },
            "required": ["prompt"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        Vec::new() // nothing of it is run or opened
    }
}

impl TaskInput {
    fn parse(input: &Value) -> Result<Self, ToolError> {
        let input: Self = input::parse(input)?;
        if input.prompt.trim().is_empty() {
            return Err(ToolError(format!("`prompt` is empty. For example: {}", Self::EXAMPLE)));
        }
        if input.prompt.len() > PROMPT_BYTES_MAX {
            return Err(ToolError(format!(
                "`prompt` has more than {PROMPT_BYTES_MAX} bytes; `write` the rest to a file and name it"
            )));
        }
        Ok(input)
    }

    fn title(&self) -> String {
        let title = self.title.as_deref().filter(|title| !title.trim().is_empty());
        shorten(title.unwrap_or(&self.prompt), TITLE_CHARS_MAX)
    }
}

#[async_trait]
impl Tool for TaskTool {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: NAME,
            display_name: "Delegate",
            description: "Gives a piece of work to a worker, which does it in a chat of its own with the same tools and returns its last \
         message. For searches and work that can be described fully and done apart; several calls run at the same time.",
            // The worker asks for what it does itself.
            effect: ToolEffect::Reads,
            kind: Some("subagent"),
        }
    }

    fn parameters(&self) -> Value {
        TaskInput::schema()
    }

    async fn plan(&self, input: &Value, _workspace: &Workspace) -> Result<Plan, ToolError> {
        let input = TaskInput::parse(input)?;
        Ok(Plan {
            summary: match &input.model {
                Some(model) => format!("{} (with {model})", input.title()),
                None => input.title(),
            },
            ..Plan::default()
        })
    }

    fn host_request(&self, input: &Value) -> Option<Result<HostTask, ToolError>> {
        let worker = TaskInput::parse(input).map(|input| {
            let brief = WorkerBrief { tools: input.tools.0.clone(), agent_tools: None };
            HostTask::Worker(Box::new(Worker {
                title: input.title(),
                model: input.model.map(|id| json!({"id": id})),
                brief: brief.to_bytes(),
                task: input.prompt,
                ..Worker::default()
            }))
        });
        Some(worker)
    }

    async fn run(
        &self,
        _input: &Value,
        _workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        Err(ToolError("there is nobody here to do it".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_the_tools_it_was_given_and_starts_no_worker() {
        assert!(WorkerBrief::read(b"?").is_err());
        let all = WorkerBrief::read(b"{}").unwrap();
        assert!(all.allows("bash") && !all.allows(NAME) && !all.allows("ask_user"));
        let input = json!({"prompt": "Look.\nAround.", "tools": ["read", "task"], "model": "m"});
        let request = TaskTool.host_request(&input).unwrap().unwrap();
        let HostTask::Worker(worker) = request else { unreachable!() };
        assert_eq!((worker.title.as_str(), &worker.task[..]), ("Look.…", "Look.\nAround."));
        assert_eq!(worker.model, Some(json!({"id": "m"})));
        let brief = WorkerBrief::read(&worker.brief).unwrap();
        assert!(brief.allows("read") && !brief.allows("bash") && !brief.allows(NAME));
        assert_eq!(brief.impossible_tools(&["read", NAME]), [NAME]);
        assert_eq!(brief.impossible_tools(&["bash"]), ["read", NAME]);
        assert!(TaskInput::parse(&json!({"prompt": " "})).is_err());
    }
}
