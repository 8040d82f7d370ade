//! `bash`: a command in the first working directory, with a timeout and bounded output.
//!
//! What a command does is not confined: whoever consents to it decides.

mod capture;
mod environment;
mod process;
mod session;

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::{Workspace, digest_of};

use super::format::shorten;
use super::input::ToolInput;
use super::{Nature, Plan, Tool, ToolError, ToolOutcome, input};
use capture::Capture;
use process::{CommandEnd, ShellCommand};
pub(crate) use session::{end_processes, new_mark, with_mark};

const TIMEOUT_SECONDS: u64 = 120;
const TIMEOUT_SECONDS_MAX: u64 = 600;

/// Longer ones do not fit into an argument of a process.
const COMMAND_BYTES_MAX: usize = 100_000;

/// Characters of a command in a summary.
const SUMMARY_CHARS_MAX: usize = 80;

/// Commands up to here are remembered as they are, longer ones by their digest.
const KEY_BYTES_MAX: usize = 256;

pub(super) struct BashTool {
    /// Variables of the host's environment that commands get beside the usual ones (G-51).
    pub(super) variables: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct BashInput {
    command: String,
    timeout_seconds: Option<u64>,
}

impl ToolInput for BashInput {
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
         in the background ends with it. Of long output the beginning and the end are shown."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "timeout_seconds": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": TIMEOUT_SECONDS_MAX,
                    "description": "After this the command is killed; 120 by default.",
                },
            },
            "required": ["command"],
            "additionalProperties": false,
        })
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
        let consent_key = if input.command.len() <= KEY_BYTES_MAX {
            format!("bash {}", input.command)
        } else {
            format!("bash-sha256 {}", digest_of(input.command.as_bytes()))
        };
        Ok(Plan {
            summary: format!("Run {}", shorten(&input.command, SUMMARY_CHARS_MAX)),
            consent_key,
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
        let seconds = input.timeout_seconds.unwrap_or(TIMEOUT_SECONDS);
        let seconds = seconds.clamp(1, TIMEOUT_SECONDS_MAX);
        let command = ShellCommand {
            text: input.command.clone(),
            directory: workspace.command_directory()?,
            variables: environment::command_environment(&self.variables),
            timeout: Duration::from_secs(seconds),
        };
        let (end, capture) = process::run(command, output.clone()).await?;
        Ok(outcome(&input.command, end, capture))
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
    let (summary, note) = match end {
        CommandEnd::Exited(0) => (format!("Ran {command}"), "exit code 0".to_owned()),
        CommandEnd::Exited(code) => {
            let note = format!("exit code {code}");
            (format!("Ran {command} ({note})"), note)
        }
        CommandEnd::Signalled(signal) => {
            let note = format!("killed by signal {signal}");
            (format!("Ran {command} ({note})"), note)
        }
        CommandEnd::TimedOut(timeout) => {
            let seconds = timeout.as_secs();
            let note = format!(
                "killed after {seconds} seconds, with all it had started; it can be given more by `timeout_seconds`"
            );
            (format!("Stopped {command} after {seconds} seconds"), note)
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
