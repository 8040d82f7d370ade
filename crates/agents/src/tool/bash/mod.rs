//! `bash`: a command in the first working directory, with a timeout and bounded output, or in the background.
//!
//! What a command does is not confined: whoever consents to it decides.

mod background;
mod call_scope;
mod capture;
mod environment;
mod in_terminal;
mod plain_lines;
mod poll;
mod process;

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
    ChatTools, Plan, PlanSubject, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome,
    ToolSettings, input,
};
pub(crate) use call_scope::{CallScope, ShowRequest, in_scope};
use capture::{Capture, SharedCapture};
pub(crate) use environment::{command_environment, is_allowed_variable};
use in_terminal::CommandWaitEnd;
pub(crate) use in_terminal::TerminalCommand;
pub use in_terminal::terminal_change;
use terminals::{CommandEnd, ShellCommand};
pub(crate) use terminals::{Mark, end_marked, end_processes, kill_all as kill_session, new_mark};

pub(super) use background::BackgroundCommands;
pub(super) use poll::{BashKillTool, BashOutputTool};
pub use terminals::ProcessRecord;

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
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "bash",
            display_name: "Run",
            description: "Runs a command with `bash -c` in the first working directory and returns what it prints, standard output and \
         standard error together, and its exit code. The user may see it in a terminal and may answer what it asks, but need not: \
         prefer options that ask nothing. What a command leaves running ends with it: for a server or a watcher set `background`, which returns an id for `bash_output` and \
         `bash_kill`. Of long output the beginning and the end are shown.",
            effect: ToolEffect::Runs,
            kind: Some("terminal"),
        }
    }

    fn parameters(&self) -> Value {
        BashInput::schema()
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let input = BashInput::parse(input)?;
        workspace.command_directory()?;
        let command = shorten(&input.command, SUMMARY_CHARS_MAX);
        let summary = if input.background {
            format!("Run in the background: {command}")
        } else {
            format!("Run {command}")
        };
        Ok(Plan { summary, subject: PlanSubject::Command(input.command), ..Plan::default() })
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
        let shower = call_scope::current_terminal_viewer();
        if input.background {
            return self.start(command, shower.as_ref()).await;
        }
        match shower {
            Some(shower) => {
                let background = Some(&self.chat.background);
                Self::run_in_terminal(background, command, &shower, output).await
            }
            None => {
                let (end, capture) = process::run(command, output.clone()).await?;
                Ok(outcome(&input.command, end, capture))
            }
        }
    }
}

impl BashTool {
    fn timeout(&self, input: &BashInput) -> Option<Duration> {
        let (default, most) = self.settings.command_timeouts();
        let asked = input.timeout_seconds.map(Duration::from_secs);
        let asked = asked.map(|asked| asked.max(Duration::from_secs(1)));
        if input.background { asked } else { Some(asked.unwrap_or(default).min(most)) }
    }

    /// Runs it where people can see it, to its end or until somebody lets it go on alone.
    async fn run_in_terminal(
        background: Option<&BackgroundCommands>,
        command: ShellCommand,
        shower: &mpsc::Sender<ShowRequest>,
        output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        let text = command.text.clone();
        let title = shorten(&text, SUMMARY_CHARS_MAX);
        let capture = SharedCapture::new(output.clone());
        let sink = Box::new(capture.clone());
        let running = TerminalCommand::start(command, title.clone(), shower, sink).await?;
        let waited = match background {
            Some(_) => running.wait().await,
            None => CommandWaitEnd::Ended(running.ended().await),
        };
        match (waited, background) {
            (CommandWaitEnd::Ended(end), _) => {
                let resource = running.resource.clone();
                let was_taken = running.was_taken();
                drop(running);
                let capture = capture.take();
                let preview = capture.live();
                let mut outcome = outcome(&text, end, capture);
                if was_taken {
                    outcome.text.push_str(&format!("\n[{TAKEN_OVER}]"));
                }
                let ended = resource.map(|resource| ended_block(&resource, &title, end, preview));
                outcome.content.extend(ended);
                Ok(outcome)
            }
            (CommandWaitEnd::Released, None) => Err(ToolError("nobody waits for it".to_owned())),
            (CommandWaitEnd::Released, Some(background)) => {
                let block =
                    running.resource.as_ref().map(|resource| terminal_block(resource, &title));
                let was_taken = running.was_taken();
                let mut so_far = capture.take().for_model();
                if was_taken {
                    so_far.push_str(&format!("\n[{TAKEN_OVER}]"));
                }
                let (id, process) = background.adopt(running, text)?;
                let mut outcome = started_outcome(&id, process, &title, block);
                outcome.text = format!("{so_far}\n[{RELEASED}]\n{}", outcome.text);
                Ok(outcome)
            }
        }
    }

    async fn start(
        &self,
        command: ShellCommand,
        shower: Option<&mpsc::Sender<ShowRequest>>,
    ) -> Result<ToolOutcome, ToolError> {
        let title = shorten(&command.text, SUMMARY_CHARS_MAX);
        let Some(shower) = shower else {
            let (id, process) = self.chat.background.start(command).await?;
            return Ok(started_outcome(&id, process, &title, None));
        };
        let background = &self.chat.background;
        let (id, process, resource) =
            background.start_in_terminal(command, title.clone(), shower).await?;
        let block = resource.map(|resource| terminal_block(&resource, &title));
        Ok(started_outcome(&id, process, &title, block))
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

/// Runs a command that the user gave: as long as it takes, with the user's own environment but for these secrets.
pub(crate) async fn run_for_user(
    command: &str,
    workspace: &Workspace,
    secrets: &[String],
    output: &mpsc::Sender<String>,
) -> Result<ToolOutcome, ToolError> {
    let input = BashInput::parse(&json!({"command": command}))?;
    let shower = call_scope::current_terminal_viewer()
        .ok_or_else(|| ToolError("there is nowhere to show it".to_owned()))?;
    let command = ShellCommand {
        text: input.command,
        directory: workspace.command_directory()?,
        variables: environment::user_environment(secrets),
        timeout: None,
    };
    BashTool::run_in_terminal(None, command, &shower, output).await
}

/// For the model, of a command in whose terminal a person typed.
const TAKEN_OVER: &str =
    "the user took the terminal over while this ran: what they typed may be part of the output";

/// For the model, of a command that goes on without it.
const RELEASED: &str =
    "the user chose to let this go on in the background; the output so far is above";

/// A command that goes on.
fn started_outcome(
    id: &str,
    process: ProcessRecord,
    title: &str,
    block: Option<Value>,
) -> ToolOutcome {
    ToolOutcome {
        text: format!(
            "[it runs in the background as `{id}` (process {}); `bash_output` returns what it prints, `bash_kill` ends \
             it; it ends with this chat]",
            process.pid
        ),
        summary: format!("Started in the background: {title}"),
        structured: json!({"id": id, "process": process}).as_object().cloned(),
        content: block.into_iter().collect(),
        success: true,
        ..ToolOutcome::default()
    }
}

/// The terminal that a command runs in, for people.
pub(crate) fn terminal_block(resource: &str, title: &str) -> Value {
    json!({"type": "terminal", "resource": resource, "title": title, "isPty": true})
}

/// The same when the command is over.
pub(crate) fn ended_block(resource: &str, title: &str, end: CommandEnd, preview: String) -> Value {
    let mut block = terminal_block(resource, title);
    block["result"] = json!({"preview": preview});
    if let CommandEnd::Exited(code) = end {
        block["result"]["exitCode"] = json!(code);
    }
    block
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
