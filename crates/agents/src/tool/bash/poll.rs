//! `bash_output` and `bash_kill`: looking at a command that runs in the background, and ending it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use terminals::CommandEnd;
use tokio::sync::mpsc;
use workspace::Workspace;

use super::super::format::shorten;
use super::super::input::{self, ToolInput};
use super::super::{ChatTools, Plan, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome};
use super::background::CommandOutput;
use super::{SUMMARY_CHARS_MAX, TAKEN_OVER, describe_end};

/// How long a look may wait for output.
const WAIT_SECONDS_MAX: u64 = 300;

pub(in super::super) struct BashOutputTool {
    pub(in super::super) chat: Arc<ChatTools>,
}

pub(in super::super) struct BashKillTool {
    pub(in super::super) chat: Arc<ChatTools>,
}

#[derive(Debug, Deserialize)]
struct LookInput {
    id: String,
    #[serde(default)]
    wait_seconds: u64,
}

#[derive(Debug, Deserialize)]
struct KillInput {
    id: String,
}

impl ToolInput for LookInput {
    const EXAMPLE: &'static str = r#"{"id": "b1234", "wait_seconds": 30}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "As `bash` returned it."},
                "wait_seconds": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": WAIT_SECONDS_MAX,
                    "description": "How long to wait for something new if there is nothing; 0 by default.",
                },
            },
            "required": ["id"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        vec![("id", &self.id)]
    }
}

impl ToolInput for KillInput {
    const EXAMPLE: &'static str = r#"{"id": "b1234"}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {"id": {"type": "string", "description": "As `bash` returned it."}},
            "required": ["id"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        vec![("id", &self.id)]
    }
}

#[async_trait]
impl Tool for BashOutputTool {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "bash_output",
            display_name: "Look at",
            description: "Returns what a background command of `bash` printed since the last call, and how it ended if it did.",
            effect: ToolEffect::Reads,
            kind: Some("terminal"),
        }
    }

    fn parameters(&self) -> Value {
        LookInput::schema()
    }

    async fn plan(&self, input: &Value, _workspace: &Workspace) -> Result<Plan, ToolError> {
        let LookInput { id, .. } = input::parse(input)?;
        Ok(plan_for(self.display_name(), &id))
    }

    async fn run(
        &self,
        input: &Value,
        _workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        let LookInput { id, wait_seconds } = input::parse(input)?;
        let wait = Duration::from_secs(wait_seconds.min(WAIT_SECONDS_MAX));
        let look = self.chat.background.look(&id, wait).await?;
        let command = shorten(&look.command, SUMMARY_CHARS_MAX);
        let summary = match &look.end {
            None => format!("Looked at {command}, which runs"),
            Some(_) => format!("Looked at {command}, which has ended"),
        };
        Ok(outcome(look, summary))
    }
}

#[async_trait]
impl Tool for BashKillTool {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "bash_kill",
            display_name: "Stop",
            description: "Ends a background command of `bash` with all that it started, and returns what it printed since the last look.",
            // It ends only what was consented to, so it needs no consent of its own.
            effect: ToolEffect::Reads,
            kind: Some("terminal"),
        }
    }

    fn parameters(&self) -> Value {
        KillInput::schema()
    }

    async fn plan(&self, input: &Value, _workspace: &Workspace) -> Result<Plan, ToolError> {
        let KillInput { id } = input::parse(input)?;
        Ok(plan_for(self.display_name(), &id))
    }

    async fn run(
        &self,
        input: &Value,
        _workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        let KillInput { id } = input::parse(input)?;
        let look = self.chat.background.kill(&id).await?;
        let summary = format!("Stopped {}", shorten(&look.command, SUMMARY_CHARS_MAX));
        Ok(outcome(look, summary))
    }
}

/// What a call would do to the background command of this id.
fn plan_for(verb: &str, id: &str) -> Plan {
    Plan {
        summary: format!("{verb} background command {}", shorten(id, SUMMARY_CHARS_MAX)),
        ..Plan::default()
    }
}

fn outcome(look: CommandOutput, summary: String) -> ToolOutcome {
    let mut text = look.text;
    if text.is_empty() {
        text.push_str("[no new output]\n");
    } else if !text.ends_with('\n') {
        text.push('\n');
    }
    let note = match &look.end {
        _ if look.has_more => "more output waits; look again".to_owned(),
        None => "it still runs".to_owned(),
        Some(Ok(end)) => describe_end(*end),
        Some(Err(error)) => format!("it could not be followed to its end: {error}"),
    };
    text.push_str(&format!("[{note}]"));
    if look.was_taken {
        text.push_str(&format!("\n[{TAKEN_OVER}]"));
    }
    let failed = matches!(look.end, Some(Err(_) | Ok(CommandEnd::TimedOut(_))));
    ToolOutcome { text, summary, success: !failed, ..ToolOutcome::default() }
}
