//! Asks the user whether a server that a file of the directory declares may be started (TR-2).
//!
//! Promises: the question shows exactly what would run, and only names of variables, headers and inputs; the answer is bound to that,
//! and is on the disk before anything starts. No permission mode answers it (G-63).
//! Must not know: processes, which agent would use the server.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_api::{AgentEvent, AgentReply, EventSink, InputRequest, TurnOver};
use serde_json::{Value, json};
use wire::published::state::ChatInputResponseKind;

use super::command_files::printable_path;
use super::run_blocking;
use super::store::{TrustError, TrustStore, TrustedItem};
use crate::mcp::{DeclaredServer, McpTransport};

const QUESTION: &str = "trust";
const ALWAYS: &str = "always";
const SESSION: &str = "session";
const NO: &str = "no";

/// Characters of what is shown of one argument, URL or path. What is longer is not asked about: nobody could read it.
const SHOWN_CHARS_MAX: usize = 4_000;

/// Numbers of questions that no call is asked by.
pub(crate) fn next_ask() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 48);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The answer to the question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ServerAnswer {
    /// It may be started; the answer is stored.
    Yes,
    /// The user does not want it.
    No,
    /// It may not be started, and why not, in words that follow "was not started:".
    Unasked(String),
}

/// Asks about a server, and stores a yes.
pub(crate) async fn ask_about_server(
    store: &Arc<TrustStore>,
    session: &str,
    directory: &Path,
    declared: &DeclaredServer,
    events: &dyn EventSink,
) -> Result<ServerAnswer, TurnOver> {
    let Some(request) = make_request(declared, directory) else {
        let why = "its declaration is too long to be read";
        return Ok(ServerAnswer::Unasked(why.to_owned()));
    };
    let ask = next_ask();
    let reply = events.ask(AgentEvent::InputRequested { ask, request });
    let Some((session, by)) = read_choice(&reply.await?, session) else {
        return Ok(ServerAnswer::No);
    };
    let item = DeclaredItem::new(directory, declared);
    Ok(match item.remember(store, session, by).await {
        Ok(()) => ServerAnswer::Yes,
        Err(error) => ServerAnswer::Unasked(format!("your answer could not be stored: {error}")),
    })
}

/// What an answer is bound to.
#[derive(Clone)]
pub(crate) struct DeclaredItem {
    directory: PathBuf,
    name: String,
    digest: String,
}

impl DeclaredItem {
    pub(crate) fn new(directory: &Path, declared: &DeclaredServer) -> Self {
        Self {
            directory: directory.to_owned(),
            name: format!("mcp:{}", declared.name),
            digest: declared.digest.clone(),
        }
    }

    fn borrowed(&self) -> TrustedItem<'_> {
        TrustedItem { directory: &self.directory, name: &self.name, digest: &self.digest }
    }

    pub(crate) async fn is_known(
        &self,
        store: &Arc<TrustStore>,
        session: &str,
    ) -> Result<bool, TrustError> {
        let (item, store) = (self.clone(), Arc::clone(store));
        let session = session.to_owned();
        run_blocking(move || store.is_item_trusted(item.borrowed(), &session)).await
    }

    pub(crate) async fn remember(
        &self,
        store: &Arc<TrustStore>,
        session: Option<String>,
        by: String,
    ) -> Result<(), TrustError> {
        let (item, store) = (self.clone(), Arc::clone(store));
        run_blocking(move || store.add_item(item.borrowed(), session.as_deref(), &by)).await
    }
}

/// For which session the answer holds, and who gave it; none is a no.
fn read_choice(reply: &AgentReply, session: &str) -> Option<(Option<String>, String)> {
    let AgentReply::Answered {
        response: ChatInputResponseKind::Accept, answers, answered_by, ..
    } = reply
    else {
        return None; // declined, cancelled, or nobody was there to ask
    };
    let answer = answers.get(QUESTION)?;
    let is_given = answer.get("state").and_then(Value::as_str) == Some("submitted");
    let value = answer.get("value")?.get("value")?.as_str()?;
    let by = answered_by.clone().unwrap_or_else(|| "unknown".to_owned());
    match value {
        ALWAYS if is_given => Some((None, by)),
        SESSION if is_given => Some((Some(session.to_owned()), by)),
        _ => None, // `no`, and whatever is no option
    }
}

pub(crate) fn describe_refusal(declared: &DeclaredServer, why: &str) -> String {
    let of = match &declared.plugin {
        Some(plugin) => format!("the plugin `{}`", printable_text(&plugin.name)),
        None => printable_path(&declared.file),
    };
    format!(
        "The MCP server `{}` of {of} was not started: {why}. To use it, answer the question in `greenroom chat`, or declare it in \
         greenroom.toml.",
        printable_text(&declared.name),
    )
}

/// Who declares a server, as a sentence begins.
fn describe_source(declared: &DeclaredServer) -> String {
    let Some(plugin) = &declared.plugin else {
        return format!("`{}`", printable_path(&declared.file));
    };
    let name = printable_text(&plugin.name);
    match &plugin.client_id {
        Some(client) => {
            format!("The plugin `{name}`, which the client `{}` brought,", printable_text(client))
        }
        None => format!("The plugin `{name}` (`{}`)", printable_path(&declared.file)),
    }
}

fn make_request(declared: &DeclaredServer, directory: &Path) -> Option<InputRequest> {
    let (name, source) = (printable_text(&declared.name), describe_source(declared));
    let message = format!(
        "{source} declares the MCP server `{name}`. It would run with your rights:\n\n{}",
        describe(declared, directory)?
    );
    let question = json!({
        "kind": "single-select",
        "id": QUESTION,
        "title": "MCP server",
        "message": format!("Start the MCP server `{name}`?"),
        "required": true,
        "allowFreeformInput": false,
        "options": [
            {
                "id": ALWAYS,
                "label": "Yes, always here",
                "description": match &declared.plugin {
                    Some(_) => "In this directory, until the plugin changes.",
                    None => "In this directory, until its declaration changes.",
                },
            },
            {"id": SESSION, "label": "Yes, in this session"},
            {"id": NO, "label": "No, do not start it"},
        ],
    });
    Some(InputRequest {
        message: Some(message),
        questions: vec![question],
        ..InputRequest::default()
    })
}

/// What would run, line by line; none if it is too long to be read.
fn describe(declared: &DeclaredServer, directory: &Path) -> Option<String> {
    let mut text = String::new();
    let mut line = |what: &str, value: &str| {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "- {what}: `{value}`");
    };
    let declaration = declared.declaration.as_ref().ok()?;
    match &declaration.transport {
        McpTransport::Process { command, args, env, cwd } => {
            let words: Vec<String> = std::iter::once(command)
                .chain(args)
                .map(|word| quote(&printable_text(word)))
                .collect();
            line("Command", &words.join(" "));
            if let Some(program) = &declaration.program {
                line("Program", &printable_path(&program.path));
            }
            let cwd = cwd.as_ref().map(|cwd| directory.join(cwd));
            line("Directory", &printable_path(cwd.as_deref().unwrap_or(directory)));
            if !env.is_empty() {
                line("Variables it sets", &names(env.keys()));
            }
        }
        McpTransport::Http { url, headers } => {
            line("Address", &printable_text(url));
            if !headers.is_empty() {
                line("Headers it sends", &names(headers.keys()));
            }
        }
    }
    if !declared.variables.is_empty() {
        line("Variables of yours that it reads", &names(declared.variables.iter()));
    }
    if !declared.wanted.is_empty() {
        line("Inputs of yours that it gets", &names(declared.wanted.iter()));
    }
    (text.chars().count() <= SHOWN_CHARS_MAX).then_some(text)
}

/// A name as people read it, wherever it comes from.
pub(crate) fn printable_text(text: &str) -> String {
    printable_path(Path::new(text))
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| printable_text(name)).collect();
    names.join(", ")
}

/// A word of a command as a shell would take it.
fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@:,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::mcp::McpDeclaration;

    fn declared(transport: McpTransport) -> DeclaredServer {
        DeclaredServer {
            name: "files".to_owned(),
            file: PathBuf::from("/w/.mcp.json"),
            span: None,
            plugin: None,
            is_users: false,
            digest: "d".to_owned(),
            is_sse: false,
            variables: vec!["PATH".to_owned()],
            wanted: vec!["api_key".to_owned()],
            inputs: Vec::new(),
            declaration: Ok(McpDeclaration {
                name: "files".to_owned(),
                transport,
                program: None,
                tools: None,
                timeout: None,
                trust_hints: false,
                oauth: None,
            }),
        }
    }

    #[test]
    fn a_question_shows_what_would_run_and_no_values() {
        let secret = || BTreeMap::from([("API_KEY".to_owned(), "s3cret".to_owned())]);
        let process = declared(McpTransport::Process {
            command: "npx".to_owned(),
            args: vec!["-y".to_owned(), "a b`\u{202e}\n".to_owned()],
            env: secret(),
            cwd: Some(PathBuf::from("sub")),
        });
        let text = describe(&process, Path::new("/w")).unwrap();
        assert_eq!(
            text,
            "- Command: `npx -y 'a b\\u{60}\\u{202e}\\n'`\n- Directory: `/w/sub`\n- Variables it sets: `API_KEY`\n\
             - Variables of yours that it reads: `PATH`\n- Inputs of yours that it gets: `api_key`\n"
        );
        let http =
            declared(McpTransport::Http { url: "https://h/mcp".to_owned(), headers: secret() });
        let text = describe(&http, Path::new("/w")).unwrap();
        assert!(text.contains("`https://h/mcp`") && text.contains("API_KEY"));
        assert!(text.contains("- Inputs of yours that it gets: `api_key`\n"));
        assert!(!text.contains("s3cret"));
        let long = declared(McpTransport::Process {
            command: "x".repeat(5_000),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
        });
        assert_eq!(describe(&long, Path::new("/w")), None);
    }
}
