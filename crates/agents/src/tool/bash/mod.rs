//! `bash`: a command in the first working directory, with a timeout and bounded output, or in the background.
//!
//! What a command does is not confined: whoever consents to it decides.

mod background;
mod capture;
mod environment;
mod poll;
mod process;
mod process_record;
mod session;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::Workspace;

use super::format::shorten;
use super::input::ToolInput;
use super::{
    ChatTools, Nature, Plan, PlanSubject, Tool, ToolError, ToolOutcome, ToolSettings, input,
};
use capture::Capture;
pub(crate) use environment::{command_environment, is_allowed_variable};
use process::{CommandEnd, ShellCommand};
pub(crate) use session::{
    Mark, end_marked, end_processes, kill_all as kill_session, new_mark, with_mark,
};

pub(super) use background::BackgroundCommands;
pub(super) use poll::{BashKillTool, BashOutputTool};
pub use process_record::ProcessRecord;

/// Longer ones do not fit into an argument of a process.
const COMMAND_BYTES_MAX: usize = 100_000;

/// Characters of a command in a summary.
const SUMMARY_CHARS_MAX: usize = 80;

pub(super) struct BashTool {
    pub(super) settings: Arc<ToolSettings>,
    pub(super) chat: Arc<ChatTools>,
}

#[derive(Debug, Deserialize)]
struct BashInput {
    command: String,
    timeout_seconds: Option<u64>,
    #[serde(default, alias = "run_in_background")]
    background: bool,
}

impl ToolInput for BashInput {
    const EXAMPLE: &'static str = r#"{"command": "cargo test", "timeout_seconds": 300}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "timeout_seconds": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "After this the command is killed. Without it a default applies, except in the \
                                    background.",
                },
                "background": {
                    "type": "boolean",
                    "description": "Return at once with an id; the command goes on.",
                },
            },
            "required": ["command"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        vec![("command", &self.command)]
    }
}

#[async_trait]
impl Tool for BashTool {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn display_name(&self) -> &'static str {
        "Run"
    }

    fn description(&self) -> &'static str {
        "Runs a command with `bash -c` in the first working directory and returns what it prints, standard output and \
         standard error together, and its exit code. There is no input and no terminal. What a command leaves running \
         ends with it: for a server or a watcher set `background`, which returns an id for `bash_output` and \
         `bash_kill`. Of long output the beginning and the end are shown."
    }

    fn parameters(&self) -> Value {
        BashInput::schema()
    }

    fn nature(&self) -> Nature {
        Nature::Runs
    }

    fn kind(&self) -> Option<&'static str> {
        Some("terminal")
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let input = BashInput::parse(input)?;
        workspace.command_directory()?;
        let command = shorten(&input.command, SUMMARY_CHARS_MAX);
        let summary = match input.background {
            true => format!("Run in the background: {command}"),
            false => format!("Run {command}"),
        };
        Ok(Plan {
            summary,
            subject: PlanSubject::Command(input.command),
            ..Plan::default()
        })
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        let input = BashInput::parse(input)?;
        let command = ShellCommand {
            text: input.command.clone(),
            directory: workspace.command_directory()?,
            variables: environment::command_environment(&self.settings.command_variables),
            timeout: self.timeout(&input),
        };
        if input.background {
            return self.start(command).await;
        }
        let (end, capture) = process::run(command, output.clone()).await?;
        Ok(outcome(&input.command, end, capture))
    }
}

impl BashTool {
    fn timeout(&self, input: &BashInput) -> Option<Duration> {
        let (default, most) = self.settings.command_timeouts();
        let asked = input.timeout_seconds.map(Duration::from_secs);
        let asked = asked.map(|asked| asked.max(Duration::from_secs(1)));
        match input.background {
            true => asked,
            false => Some(asked.unwrap_or(default).min(most)),
        }
    }

    async fn start(&self, command: ShellCommand) -> Result<ToolOutcome, ToolError> {
        let summary = shorten(&command.text, SUMMARY_CHARS_MAX);
        let (id, process) = self.chat.background.start(command).await?;
        Ok(ToolOutcome {
            text: format!(
                "[it runs in the background as `{id}` (process {}); `bash_output` returns what it prints, `bash_kill` ends \
                 it; it ends with this chat]",
                process.pid
            ),
            summary: format!("Started in the background: {summary}"),
            structured: json!({"id": id, "process": process}).as_object().cloned(),
            success: true,
            ..ToolOutcome::default()
        })
    }
}

impl BashInput {
    fn parse(input: &Value) -> Result<Self, ToolError> {
        let input: Self = input::parse(input)?;
        let wrong = if input.command.trim().is_empty() {
            "`command` is empty"
        } else if input.command.len() > COMMAND_BYTES_MAX {
            "`command` is too long; `write` it to a file and run that"
        } else {
            return Ok(input);
        };
        Err(ToolError(wrong.to_owned()))
    }
}

fn outcome(command: &str, end: CommandEnd, capture: Capture) -> ToolOutcome {
    let command = shorten(command, SUMMARY_CHARS_MAX);
    let note = describe_end(end);
    let summary = match end {
        CommandEnd::Exited(0) => format!("Ran {command}"),
        CommandEnd::Exited(_) | CommandEnd::Signalled(_) => format!("Ran {command} ({note})"),
        CommandEnd::TimedOut(timeout) => {
            format!("Stopped {command} after {} seconds", timeout.as_secs())
        }
    };
    let mut text = capture.for_model();
    if text.is_empty() {
        text.push_str("[no output]\n");
    } else if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[{note}]"));
    ToolOutcome {
        text,
        summary,
        whole: capture.into_whole(),
        success: end == CommandEnd::Exited(0),
        ..ToolOutcome::default()
    }
}

/// How a command ended, for the model.
fn describe_end(end: CommandEnd) -> String {
    match end {
        CommandEnd::Exited(code) => format!("exit code {code}"),
        CommandEnd::Signalled(signal) => format!("killed by signal {signal}"),
        CommandEnd::TimedOut(timeout) => format!(
            "killed after {} seconds, with all it had started; it can be given more by `timeout_seconds`, or run in the \
             `background`",
            timeout.as_secs()
        ),
    }
}
