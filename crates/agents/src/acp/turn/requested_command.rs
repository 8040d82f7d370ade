//! A command that an agent asks for, as it would run, and whether it is the one that somebody consented to (AG-52).
//!
//! Promises: the line, the directory and the variables are all that decides what runs, and people see all of them. What a call showed is
//! consent to a command only if all three are the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};
use workspace::{CommandDirectory, FileError, Workspace};

use super::super::label::label;
use super::super::mapper::{DisplayedCommand, line_of};
use crate::task;

const LINE_BYTES_MAX: usize = 64 * 1_024;
const VARIABLES_MAX: usize = 64;

/// What is kept of the output at most, however much the agent wants.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct RequestedCommand {
    /// What a shell runs, and what is shown.
    pub(super) line: String,
    /// The same without the shell that the agent would have run it in.
    bare_line: Option<String>,
    /// As the agent named it.
    cwd: Option<PathBuf>,
    /// Opened before anybody is asked, so that it stays what is shown.
    pub(super) directory: CommandDirectory,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) output_bytes: usize,
}

impl RequestedCommand {
    /// What would run, or why it cannot.
    pub(super) async fn read(
        request: acp::CreateTerminalRequest,
        workspace: Arc<Workspace>,
    ) -> Result<Self, String> {
        let line = line_of(&request.command, &request.args);
        if line.trim().is_empty() || line.len() > LINE_BYTES_MAX || line.contains('\0') {
            return Err("the command is empty, too long, or has a NUL character".to_owned());
        }
        let variables = request.env.into_iter().map(|it| (it.name, it.value));
        let variables = read_variables(variables.collect())?;
        let cwd = request.cwd.clone();
        let open = task::try_blocking(move || match &cwd {
            None => workspace.command_directory(),
            Some(path) => {
                let text = path.to_str().filter(|_| path.is_absolute());
                let path = workspace.resolve(text.ok_or(FileError::InvalidPath)?)?;
                workspace.command_directory_at(&path)
            }
        });
        let directory = match open.await {
            Ok(directory) => directory.map_err(|error| error.to_string())?,
            Err(_) => return Err("internal error while running it".to_owned()),
        };
        let wanted = request.output_byte_limit.unwrap_or(u64::MAX);
        Ok(Self {
            line,
            bare_line: bare_line(&request.command, &request.args),
            cwd: request.cwd,
            directory,
            variables,
            output_bytes: usize::try_from(wanted).unwrap_or(usize::MAX).min(OUTPUT_BYTES_MAX),
        })
    }

    /// Whether this is the command that a call showed; `usual` is the directory of commands that name none.
    pub(super) fn is_shown_by(&self, shown: &DisplayedCommand, usual: &Path) -> bool {
        let is_line = shown.line == self.line || Some(&shown.line) == self.bare_line.as_ref();
        let own = self.directory.name.as_path();
        let is_directory = match &shown.directory {
            None => own == usual,
            Some(directory) => directory == own || Some(directory) == self.cwd.as_ref(),
        };
        is_line && is_directory && shown.variables == self.variables
    }

    /// What people see before they decide: all that decides what runs.
    pub(super) fn to_input(&self) -> Value {
        let mut input = json!({"command": self.line, "cwd": self.directory.name});
        if !self.variables.is_empty() {
            input["env"] = json!(self.variables);
        }
        input
    }
}

/// The line that the agent's own shell would have run.
fn bare_line(command: &str, args: &[String]) -> Option<String> {
    // By these names alone: a program of the agent's own may be called like a shell.
    let is_shell = matches!(
        command,
        "sh" | "bash" | "/bin/sh" | "/bin/bash" | "/usr/bin/sh" | "/usr/bin/bash"
    );
    match args {
        [flag, line] if is_shell && flag == "-c" => Some(line.clone()),
        _ => None,
    }
}

fn read_variables(listed: Vec<(String, String)>) -> Result<BTreeMap<String, String>, String> {
    if listed.len() > VARIABLES_MAX {
        return Err(format!("more than {VARIABLES_MAX} environment variables"));
    }
    let bytes: usize = listed.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > LINE_BYTES_MAX {
        return Err("the environment variables are too long".to_owned());
    }
    let mut variables = BTreeMap::new();
    for (name, value) in listed {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
        let shown = label(&name, 100);
        if !is_name || name.starts_with("GREENROOM_") {
            return Err(format!("`{shown}` is no variable that a command can have"));
        }
        if variables.insert(name, value).is_some() {
            return Err(format!("the variable `{shown}` is named twice"));
        }
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    #[test]
    fn ag_52_the_line_is_what_runs() {
        assert_eq!(line_of("npm test && ls", &[]), "npm test && ls");
        let args = words(&["-rf", "a b", "$(x)", ""]);
        assert_eq!(line_of("rm", &args), "rm -rf 'a b' '$(x)' ''");
        assert_eq!(bare_line("rm", &args), None);
        let args = words(&["-c", "a && b"]);
        assert_eq!(line_of("/bin/bash", &args), "/bin/bash -c 'a && b'");
        assert_eq!(bare_line("/bin/bash", &args).as_deref(), Some("a && b"));
    }

    #[test]
    fn ag_52_variables_are_named_once_and_have_names() {
        let read = |listed: &[(&str, &str)]| {
            let listed = listed.iter();
            read_variables(
                listed.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            )
        };
        assert!(read(&[("GREENROOM_CALL", "x")]).is_err());
        assert!(read(&[("A=B", "")]).is_err());
        assert!(read(&[("CI", "1"), ("CI", "2")]).is_err());
        assert_eq!(read(&[("CI", "1")]).unwrap()["CI"], "1");
    }

    #[tokio::test]
    async fn ag_52_a_call_consents_to_the_command_that_it_showed_and_to_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("sub")).unwrap();
        let uri = wire::file_uri::uri_of(top.as_os_str().as_encoded_bytes());
        let workspace = Workspace::open(&[uri], &workspace::Confinement::none()).unwrap();
        let workspace = Arc::new(workspace);
        let usual = workspace.command_directory().unwrap().name;
        let sub = top.join("sub").display().to_string();
        let plain = json!({"command": "ls"});
        let there = json!({"command": "ls", "cwd": sub});
        let with = json!({"command": "ls", "env": {"CI": "1"}});
        let variable = json!([{"name": "CI", "value": "1"}]);
        let other = json!([{"name": "CI", "value": "2"}]);
        for (shown, requested, expected) in [
            (&plain, json!({"command": "ls"}), true),
            (&plain, json!({"command": "bash", "args": ["-c", "ls"]}), true),
            (&plain, json!({"command": "ls", "cwd": top}), true),
            (&plain, json!({"command": "ls -a"}), false),
            (&plain, json!({"command": "ls", "cwd": sub}), false),
            (&plain, json!({"command": "ls", "env": variable}), false),
            (&there, json!({"command": "ls", "cwd": sub}), true),
            (&there, json!({"command": "ls"}), false),
            (&there, json!({"command": "ls", "cwd": top}), false),
            (&with, json!({"command": "ls", "env": variable}), true),
            (&with, json!({"command": "ls"}), false),
            (&with, json!({"command": "ls", "env": other}), false),
        ] {
            let what = format!("{shown} for {requested}");
            let mut request = requested;
            request["sessionId"] = json!("s");
            let request = serde_json::from_value(request).unwrap();
            let command = RequestedCommand::read(request, Arc::clone(&workspace)).await.unwrap();
            let shown = DisplayedCommand::of_input(shown).unwrap();
            assert_eq!(command.is_shown_by(&shown, &usual), expected, "{what}");
        }
    }
}
