//! Which rule may be offered to somebody who approves a call: one that is safe to agree to at a glance.
//!
//! Promises: a rule that is offered covers the call it is offered with. A prefix is offered only where every command that
//! begins with it does the same kind of thing; for all other commands only the very same command is.
//! Must not know: who is asked, where rules are stored.

use std::path::Path;

use super::pattern::{BASH, EDIT, Pattern};
use super::protected::is_protected;
use super::shell::{self, Word};
use super::subject::{CallSubject, SubjectDetail};

/// Longer commands are not offered: nobody reads them in a list of choices.
const RULE_CHARS_MAX: usize = 120;

/// Programs that show what there is, not what is in files, whatever stands behind them.
const SHOWING: &[&str] = &["df", "echo", "ls", "pwd", "stat", "which"];

/// Programs that build and check a project, whatever stands behind them: they run its code, as the approved call does.
const CHECKING: &[&str] = &["eslint", "jest", "mypy", "pytest", "ruff", "tsc", "vitest"];

/// Programs with commands of their own, and those of them that may have any arguments.
const WITH_COMMANDS: &[(&str, &[&str])] = &[
    ("bun", &["test"]),
    ("cargo", &["bench", "build", "check", "clippy", "doc", "fmt", "nextest", "test", "tree"]),
    ("deno", &["check", "fmt", "lint", "test"]),
    ("docker", &["images", "logs", "ps"]),
    ("dotnet", &["build", "test"]),
    ("git", &["add", "commit", "ls-files", "rev-parse", "status"]),
    ("go", &["build", "fmt", "test", "vet"]),
    ("npm", &["ci", "ls", "test"]),
    ("pnpm", &["ls", "test"]),
    ("yarn", &["test"]),
];

/// Programs whose `run` names a script of the project.
const RUNNING_SCRIPTS: &[&str] = &["bun", "npm", "pnpm", "yarn"];

/// The rule to offer with a call.
pub fn propose(call: &CallSubject) -> Option<Pattern> {
    let text = match &call.detail {
        SubjectDetail::Command(command) if call.tool == BASH => propose_command(command)?,
        SubjectDetail::Path(path) if call.is_edit && !is_protected(&path.relative) => {
            propose_path(&path.relative)?
        }
        SubjectDetail::Host(host) => format!("{}(domain:{host})", call.tool),
        SubjectDetail::Input(input) => format!("{}({input})", call.tool),
        SubjectDetail::Command(_) | SubjectDetail::Path(_) | SubjectDetail::Unknown => return None,
    };
    if text.chars().count() > RULE_CHARS_MAX {
        return None;
    }
    let pattern = Pattern::parse(&text).ok()?;
    // What is read before it is agreed to must be what is stored.
    (pattern.as_str() == text && allows(&pattern, call)).then_some(pattern)
}

/// Whether a pattern by itself allows a call.
pub(crate) fn allows(pattern: &Pattern, call: &CallSubject) -> bool {
    if pattern.covers(call, None) {
        return true;
    }
    let SubjectDetail::Command(command) = &call.detail else { return false };
    let commands = shell::split(command);
    commands.is_some_and(|commands| commands.iter().all(|command| pattern.covers_command(command)))
}

fn propose_command(command: &str) -> Option<String> {
    if let Some([only]) = shell::split(command).as_deref()
        && let Some(prefix) = prefix_of(only)
    {
        return Some(format!("{BASH}({prefix}:*)"));
    }
    let command = command.trim();
    let is_readable = !command.contains('*') && !command.contains(char::is_control);
    is_readable.then(|| format!("{BASH}({command})"))
}

/// The words that a rule may begin with, if commands that begin with them are alike.
fn prefix_of(command: &[Word]) -> Option<String> {
    let word = |index: usize| {
        let word = command.get(index).filter(|word| !word.expands)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        let text = word.text.as_str();
        (text.chars().all(is_plain) && !text.starts_with('-') && !text.is_empty()).then_some(text)
    };
    let program = word(0)?;
    if SHOWING.contains(&program) || CHECKING.contains(&program) {
        return Some(program.to_owned());
    }
    let second = word(1)?;
    if second == "run" && RUNNING_SCRIPTS.contains(&program) {
        return Some(format!("{program} run {}", word(2)?));
    }
    let known = WITH_COMMANDS.iter().find(|(known, _)| *known == program);
    let is_known = known.is_some_and(|(_, commands)| commands.contains(&second));
    is_known.then(|| format!("{program} {second}"))
}

/// The directory that a file lies in, with all below; a file that lies in the project directory itself is offered alone.
fn propose_path(relative: &Path) -> Option<String> {
    let (file, directory) = (relative.to_str()?, relative.parent()?.to_str()?);
    let named = if directory.is_empty() { file } else { directory };
    if named.contains(['*', '?', '[', ']', '{', '}', '\\', ',', '!']) {
        return None;
    }
    Some(match directory {
        "" => format!("{EDIT}({file})"),
        directory => format!("{EDIT}({directory}/**)"),
    })
}
