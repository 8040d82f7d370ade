//! Asks the user whether a server that a file of the directory declares may be started (TR-2).
//!
//! Promises: the question shows exactly what would run, and only names of variables and headers; the answer is bound to that,
//! and is on the disk before anything starts. No permission mode answers it (G-63).
//! Must not know: processes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_api::{AgentEvent, AgentReply, EventSink, InputRequest, TurnOver};
use serde_json::{Value, json};
use wire::published::state::ChatInputResponseKind;

use super::{McpSettings, SessionMcp, TurnPlace, shown};
use crate::mcp::{DeclaredServer, McpTransport};
use crate::trust::{TrustError, TrustedItem, shown_path};

const QUESTION: &str = "trust";
const ALWAYS: &str = "always";
const SESSION: &str = "session";
const NO: &str = "no";

/// Characters of what is shown of one argument, URL or path. What is longer is not asked about: nobody could read it.
const SHOWN_CHARS_MAX: usize = 4_000;

/// Numbers of questions that no call is asked by.
pub(super) fn next_ask() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 48);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl SessionMcp {
    /// Whether the user lets a declared server start, asked now if nobody said so before.
    pub(super) async fn is_trusted(
        &self,
        settings: &Arc<McpSettings>,
        (directory, place): (&Path, TurnPlace<'_>),
        declared: &DeclaredServer,
        events: &dyn EventSink,
    ) -> Result<bool, TurnOver> {
        let key = (declared.name.clone(), declared.digest.clone());
        if self.lock().refused.contains(&key) {
            return Ok(false);
        }
        let item = DeclaredItem::new(directory, declared);
        match item.is_known(settings, place.session).await {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => {
                let text = format!("No MCP server of this directory was started: {error}");
                self.tell(text, events).await?;
                return Ok(false);
            }
        }
        let Ok(_asking) = self.asking.try_lock() else {
            return Ok(false); // another chat asks: this turn goes on without
        };
        if !place.may_ask {
            return Ok(false);
        }
        let Some(request) = make_request(declared, directory) else {
            let text = describe_refusal(declared, "its declaration is too long to be read");
            self.tell(text, events).await?;
            return Ok(false);
        };
        let ask = next_ask();
        let reply = events.ask(AgentEvent::InputRequested { ask, request });
        let Some((session, by)) = read_choice(&reply.await?, place.session) else {
            self.lock().refused.insert(key);
            self.tell(describe_refusal(declared, "you did not allow it"), events)
                .await?;
            return Ok(false);
        };
        match item.remember(settings, session, by).await {
            Ok(()) => Ok(true),
            Err(error) => {
                let why = format!("your answer could not be stored: {error}");
                self.tell(describe_refusal(declared, &why), events).await?;
                Ok(false)
            }
        }
    }
}

/// What an answer is bound to.
#[derive(Clone)]
pub(super) struct DeclaredItem {
    directory: PathBuf,
    name: String,
    digest: String,
}

impl DeclaredItem {
    pub(super) fn new(directory: &Path, declared: &DeclaredServer) -> Self {
        Self {
            directory: directory.to_owned(),
            name: format!("mcp:{}", declared.name),
            digest: declared.digest.clone(),
        }
    }

    fn borrowed(&self) -> TrustedItem<'_> {
        TrustedItem {
            directory: &self.directory,
            name: &self.name,
            digest: &self.digest,
        }
    }

    pub(super) async fn is_known(
        &self,
        settings: &Arc<McpSettings>,
        session: &str,
    ) -> Result<bool, TrustError> {
        let (item, store) = (self.clone(), Arc::clone(&settings.trust));
        let session = session.to_owned();
        run_blocking(move || store.is_item_trusted(item.borrowed(), &session)).await
    }

    async fn remember(
        &self,
        settings: &Arc<McpSettings>,
        session: Option<String>,
        by: String,
    ) -> Result<(), TrustError> {
        let (item, store) = (self.clone(), Arc::clone(&settings.trust));
        run_blocking(move || store.add_item(item.borrowed(), session.as_deref(), &by)).await
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TrustError> + Send + 'static,
) -> Result<T, TrustError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(TrustError("it could not be looked at".to_owned())))
}

/// For which session the answer holds, and who gave it; none is a no.
fn read_choice(reply: &AgentReply, session: &str) -> Option<(Option<String>, String)> {
    let AgentReply::Answered {
        response: ChatInputResponseKind::Accept,
        answers,
        answered_by,
        ..
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

fn describe_refusal(declared: &DeclaredServer, why: &str) -> String {
    format!(
        "The MCP server `{}` of {} was not started: {why}. To use it, answer the question in `greenroom chat`, or declare it in \
         greenroom.toml.",
        shown(&declared.name),
        shown_path(&declared.file),
    )
}

fn make_request(declared: &DeclaredServer, directory: &Path) -> Option<InputRequest> {
    let (name, file) = (shown(&declared.name), shown_path(&declared.file));
    let message = format!(
        "`{file}` declares the MCP server `{name}`. It would run with your rights:\n\n{}",
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
                "description": "In this directory, until its declaration changes.",
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
        McpTransport::Process {
            command,
            args,
            env,
            cwd,
        } => {
            let words = std::iter::once(command).chain(args);
            let words: Vec<String> = words.map(|word| quote(&shown(word))).collect();
            line("Command", &words.join(" "));
            if let Some(program) = &declaration.program {
                line("Program", &shown_path(&program.path));
            }
            let cwd = cwd.as_ref().map(|cwd| directory.join(cwd));
            line(
                "Directory",
                &shown_path(cwd.as_deref().unwrap_or(directory)),
            );
            if !env.is_empty() {
                line("Variables it sets", &names(env.keys()));
            }
        }
        McpTransport::Http { url, headers } => {
            line("Address", &shown(url));
            if !headers.is_empty() {
                line("Headers it sends", &names(headers.keys()));
            }
        }
    }
    if !declared.variables.is_empty() {
        line(
            "Variables of yours that it reads",
            &names(declared.variables.iter()),
        );
    }
    (text.chars().count() <= SHOWN_CHARS_MAX).then_some(text)
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| shown(name)).collect();
    names.join(", ")
}

/// A word of a command as a shell would take it.
fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@:,=".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
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
            is_users: false,
            digest: "d".to_owned(),
            variables: vec!["PATH".to_owned()],
            declaration: Ok(McpDeclaration {
                name: "files".to_owned(),
                transport,
                program: None,
                tools: None,
                timeout: None,
                trust_hints: false,
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
             - Variables of yours that it reads: `PATH`\n"
        );
        let http = declared(McpTransport::Http {
            url: "https://h/mcp".to_owned(),
            headers: secret(),
        });
        let text = describe(&http, Path::new("/w")).unwrap();
        assert!(text.contains("`https://h/mcp`") && text.contains("API_KEY"));
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
