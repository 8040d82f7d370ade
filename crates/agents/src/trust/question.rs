//! Asks the user whether an agent may be started in a directory (TR-1).
//!
//! Promises: without a yes the turn ends, and the user reads what would trust the directory. What is shown of files cannot
//! change what the question says. The answer is on the disk before this returns.
//! Must not know: processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_api::{AgentError, AgentEvent, AgentReply, EventSink, InputRequest};
use serde_json::{Value, json};
use wire::Object;
use wire::published::state::ChatInputResponseKind;

use super::command_files::{CommandFiles, printable_path};
use super::run_blocking;
use super::store::{DirectoryTrust, TrustError, TrustStore};
use crate::acp::config::{AcpAgentConfig, TrustPolicy};

/// The number of the first question in its turn, others have those before it: no agent counts as far.
const ASK: u64 = u64::MAX;

const QUESTION: &str = "trust";
const ALWAYS: &str = "always";
const SESSION: &str = "session";
const NO: &str = "no";

/// Files that a question names.
const SHOWN_FILES_MAX: usize = 20;

/// Characters of a path in a question.
const PATH_CHARS_MAX: usize = 300;

/// Who answered, where that is not known.
const SOMEBODY: &str = "unknown";

/// Returns once an agent may be started for these directories: all are trusted, or the user says so now. The error is
/// `notTrusted`. `session` names the session whose turn asks.
pub async fn require_trust(
    events: &dyn EventSink,
    store: &Arc<TrustStore>,
    agent: &AcpAgentConfig,
    session: &str,
    directories: &[PathBuf],
) -> Result<(), AgentError> {
    match agent.trust {
        TrustPolicy::Always => return Ok(()),
        TrustPolicy::Ask | TrustPolicy::Never => {}
    }
    let mut ask = ASK;
    for directory in directories {
        require_one(events, store, agent, session, directory, ask).await?;
        ask -= 1;
    }
    Ok(())
}

async fn require_one(
    events: &dyn EventSink,
    store: &Arc<TrustStore>,
    agent: &AcpAgentConfig,
    session: &str,
    directory: &Path,
    ask: u64,
) -> Result<(), AgentError> {
    let looked = look(Arc::clone(store), directory.to_owned(), session.to_owned()).await;
    let InspectedDirectory { directory, command_files, standing } =
        looked.map_err(|error| trust_error(agent, directory, &error.0))?;
    let fresh = match standing {
        DirectoryTrust::Trusted => return Ok(()),
        DirectoryTrust::Changed { fresh } => Some(fresh),
        DirectoryTrust::Unknown => None,
    };
    if agent.trust == TrustPolicy::Never {
        let why = "its entry in greenroom.toml says `trust = \"never\"`, so nobody is asked";
        return Err(not_trusted(agent, &directory, Some(why)));
    }
    let request = make_request(agent, &directory, &command_files, fresh.as_deref());
    let event = AgentEvent::InputRequested { ask, request };
    let reply = events.ask(event).await;
    // A turn that is over needs no error.
    let reply = reply.map_err(|_| not_trusted(agent, &directory, None))?;
    let Some((choice, by)) = read_choice(&reply) else {
        return Err(not_trusted(agent, &directory, None));
    };
    let session = match choice {
        TrustAnswer::Always => None,
        TrustAnswer::Session => Some(session.to_owned()),
    };
    let (store, trusted) = (Arc::clone(store), directory.clone());
    let record = move || store.add(&trusted, session.as_deref(), &by, &command_files);
    let recorded = run_blocking(record).await;
    recorded.map_err(|error| {
        let why = format!("your answer could not be stored: {error}");
        trust_error(agent, &directory, &why)
    })
}

struct InspectedDirectory {
    directory: PathBuf,
    command_files: CommandFiles,
    standing: DirectoryTrust,
}

async fn look(
    store: Arc<TrustStore>,
    directory: PathBuf,
    session: String,
) -> Result<InspectedDirectory, TrustError> {
    run_blocking(move || {
        let directory = std::fs::canonicalize(directory)
            .map_err(|error| TrustError(format!("the directory cannot be looked at: {error}")))?;
        let command_files = CommandFiles::of(&directory);
        let standing = store.standing(&directory, Some(&session), &command_files)?;
        Ok(InspectedDirectory { directory, command_files, standing })
    })
    .await
}

enum TrustAnswer {
    Always,
    Session,
}

/// What was chosen, and by whom; none is a no.
fn read_choice(reply: &AgentReply) -> Option<(TrustAnswer, String)> {
    let AgentReply::Answered {
        response: ChatInputResponseKind::Accept, answers, answered_by, ..
    } = reply
    else {
        return None; // declined, cancelled, or nobody was there to ask
    };
    let choice = match chosen_option(answers)? {
        ALWAYS => TrustAnswer::Always,
        SESSION => TrustAnswer::Session,
        _ => return None, // `no`, and whatever is no option
    };
    let by = answered_by.clone();
    Some((choice, by.unwrap_or_else(|| SOMEBODY.to_owned())))
}

fn chosen_option(answers: &Object) -> Option<&str> {
    let answer = answers.get(QUESTION)?;
    let is_given = answer.get("state").and_then(Value::as_str) == Some("submitted");
    let value = answer.get("value")?.get("value")?.as_str()?;
    is_given.then_some(value)
}

fn make_request(
    agent: &AcpAgentConfig,
    directory: &Path,
    command_files: &CommandFiles,
    fresh: Option<&[String]>,
) -> InputRequest {
    let (name, place) = (&agent.name, display_directory(directory));
    let files = fresh.unwrap_or(&command_files.files);
    let listed = list_files(files, directory);
    let message = match (fresh, files.is_empty()) {
        (Some(_), _) => format!(
            "New in `{place}` since it was trusted, and able to make {name} run commands without asking:\n\n{listed}"
        ),
        (None, true) => format!(
            "{name} would work in `{place}`, which is not trusted. It runs with your rights, and configuration in a directory can make it \
             run commands without asking. There is none now."
        ),
        (None, false) => format!(
            "{name} would work in `{place}`, which is not trusted. It runs with your rights, and these files can make it run commands \
             without asking:\n\n{listed}"
        ),
    };
    let question = json!({
        "kind": "single-select",
        "id": QUESTION,
        "title": "Trust",
        "message": "Trust this directory?",
        "required": true,
        "allowFreeformInput": false,
        "options": [
            {
                "id": ALWAYS,
                "label": "Yes, for good",
                "description": "This directory and what is below it. A new file of this kind asks again.",
            },
            {"id": SESSION, "label": "Yes, in this session"},
            {"id": NO, "label": format!("No, do not start {name}")},
        ],
    });
    InputRequest { message: Some(message), questions: vec![question], ..InputRequest::default() }
}

/// A line for each file, by its path in the directory.
fn list_files(files: &[String], directory: &Path) -> String {
    let inside = format!("{}/", printable_path(directory));
    let lines = files.iter().take(SHOWN_FILES_MAX).map(|file| {
        let file = file.strip_prefix(&inside).unwrap_or(file);
        format!("- `{}`\n", cut(file))
    });
    let mut listed: String = lines.collect();
    if files.len() > SHOWN_FILES_MAX {
        listed.push_str(&format!("- and {} more\n", files.len() - SHOWN_FILES_MAX));
    }
    listed
}

fn display_directory(path: &Path) -> String {
    cut(&printable_path(path))
}

fn cut(text: &str) -> String {
    if text.chars().count() > PATH_CHARS_MAX {
        text.chars().take(PATH_CHARS_MAX).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

/// What would trust a directory: a command as it is typed into a shell.
fn describe_command(directory: &Path) -> String {
    let path = printable_path(directory);
    if directory.to_str() != Some(&path) {
        // Shown as it is, it would say something else than it is.
        return "`greenroom agents trust .` trusts it when it is run there.".to_owned();
    }
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@:,".contains(c);
    let quoted = if path.chars().all(is_plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    };
    format!("`greenroom agents trust {quoted}` trusts it.")
}

fn not_trusted(agent: &AcpAgentConfig, directory: &Path, why: Option<&str>) -> AgentError {
    let why = why.map_or(String::new(), |why| format!(": {why}"));
    AgentError {
        error_type: "notTrusted".to_owned(),
        message: format!(
            "{} was not started: {} is not trusted{why}. {}",
            agent.name,
            display_directory(directory),
            describe_command(directory)
        ),
        resumable: true,
    }
}

fn trust_error(agent: &AcpAgentConfig, directory: &Path, why: &str) -> AgentError {
    AgentError {
        error_type: "notTrusted".to_owned(),
        message: format!(
            "{} was not started: whether {} is trusted cannot be said. {why}",
            agent.name,
            display_directory(directory)
        ),
        resumable: true,
    }
}
