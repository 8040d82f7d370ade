//! `client_files`: files that only the client has which sent the message, an unsaved buffer or a file on another machine, by their
//! addresses. The client carries it out (H-259).
//!
//! Promises: bounded. Only addresses below those that the client itself named are used; what changes something is asked about like a
//! command, since nothing here can take it back.
//! Must not know: which client is asked, and how.

use agent_api::{ClientFileCall, ClientFileFacts, ClientFileFailure, ClientFileReply};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::Workspace;

use super::input::{self, ToolInput};
use super::{HostTask, Plan, TEXT_BYTES_MAX, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome};

pub(crate) const NAME: &str = "client_files";

pub(super) struct ClientFilesTool;

#[derive(Debug, Deserialize)]
struct ClientFilesInput {
    operation: Operation,
    uri: String,
    content: Option<String>,
    etag: Option<String>,
    #[serde(default)]
    create: bool,
    destination: Option<String>,
    #[serde(default)]
    recursive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Read,
    List,
    Info,
    Write,
    Copy,
    Move,
    Delete,
    Mkdir,
}

impl ToolInput for ClientFilesInput {
    const EXAMPLE: &'static str = r#"{"operation": "read", "uri": "untitled:Untitled-1"}"#;

    fn schema() -> Value {
        let text = |description: &str| json!({"type": "string", "description": description});
        json!({
            "type": "object",
            "properties": {
                "operation": {"type": "string", "enum": ["read", "list", "info", "write", "copy", "move", "delete", "mkdir"]},
                "uri": text("The address, with the scheme and host of one that the user attached."),
                "content": text("For `write`: the whole content."),
                "etag": text("For `write`: the version that you read, from `info`. The write fails if it is another by then."),
                "create": {"type": "boolean", "description": "For `write`: fail if something is there."},
                "destination": text("For `copy` and `move`: the new address. Nothing may be there."),
                "recursive": {"type": "boolean", "description": "For `delete`: a directory with all that is in it."},
            },
            "required": ["operation", "uri"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        let destination = self.destination.as_deref();
        let destination = destination.map(|text| ("destination", text));
        [("uri", self.uri.as_str())].into_iter().chain(destination).collect()
    }
}

impl ClientFilesInput {
    fn call(self) -> Result<ClientFileCall, ToolError> {
        let missing = |field: &str, operation: &str| {
            ToolError(format!("`{operation}` needs `{field}`; nothing was done"))
        };
        let Self { uri, .. } = self;
        Ok(match self.operation {
            Operation::Read => ClientFileCall::Read { uri },
            Operation::List => ClientFileCall::List { uri },
            Operation::Info => ClientFileCall::Resolve { uri },
            Operation::Write => ClientFileCall::Write {
                uri,
                text: self.content.ok_or_else(|| missing("content", "write"))?,
                if_match: self.etag,
                create_only: self.create,
            },
            Operation::Copy => ClientFileCall::Copy {
                source: uri,
                destination: self.destination.ok_or_else(|| missing("destination", "copy"))?,
            },
            Operation::Move => ClientFileCall::Move {
                source: uri,
                destination: self.destination.ok_or_else(|| missing("destination", "move"))?,
            },
            Operation::Delete => ClientFileCall::Delete { uri, recursive: self.recursive },
            Operation::Mkdir => ClientFileCall::MakeDirectory { uri },
        })
    }
}

#[async_trait]
impl Tool for ClientFilesTool {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: NAME,
            display_name: "Client files",
            description: "Uses files that only the user's own program has, an unsaved text or a file on another machine, by the address of what the user \
         attached, or one beside it. Files of the working directories have other tools. Call `info` for the `etag` before you `write` over \
         something.",
            // Nobody here can take back what a client changes; what only looks is judged by its address.
            effect: ToolEffect::Runs,
            kind: None,
        }
    }

    fn parameters(&self) -> Value {
        ClientFilesInput::schema()
    }

    async fn plan(&self, input: &Value, _workspace: &Workspace) -> Result<Plan, ToolError> {
        let input: ClientFilesInput = input::parse(input)?;
        Ok(Plan { summary: summarise(&input.call()?, false), ..Plan::default() })
    }

    fn host_request(&self, input: &Value) -> Option<Result<HostTask, ToolError>> {
        let call = input::parse::<ClientFilesInput>(input).and_then(ClientFilesInput::call);
        Some(call.map(|call| HostTask::ClientFile(Box::new(call))))
    }

    async fn run(
        &self,
        _input: &Value,
        _workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        Err(ToolError("The client does this, not the host.".to_owned()))
    }
}

/// What a call does, or did.
fn summarise(call: &ClientFileCall, is_done: bool) -> String {
    let (uri, destination) = call.uris();
    let (present, past) = match call {
        ClientFileCall::Read { .. } => ("Read", "Read"),
        ClientFileCall::List { .. } => ("List", "Listed"),
        ClientFileCall::Resolve { .. } => ("Look at", "Looked at"),
        ClientFileCall::Write { .. } => ("Write", "Wrote"),
        ClientFileCall::Copy { .. } => ("Copy", "Copied"),
        ClientFileCall::Move { .. } => ("Move", "Moved"),
        ClientFileCall::Delete { .. } => ("Delete", "Deleted"),
        ClientFileCall::MakeDirectory { .. } => ("Make the directory", "Made the directory"),
    };
    let verb = if is_done { past } else { present };
    let destination = destination.map(|destination| format!(" to {destination}"));
    format!("{verb} {uri}{} in your program", destination.unwrap_or_default())
}

/// What the model reads of an answer, and what people read of the call.
pub(crate) fn describe_reply(call: &ClientFileCall, reply: ClientFileReply) -> (String, String) {
    let text = match reply {
        ClientFileReply::Done => "Done.".to_owned(),
        ClientFileReply::Facts(ClientFileFacts { kind, size, etag }) => {
            cut(json!({"type": kind, "size": size, "etag": etag}).to_string())
        }
        ClientFileReply::Entries(entries) => {
            let lines = entries.into_iter().map(|(name, is_directory)| {
                let end = if is_directory { "/" } else { "" };
                format!("{name}{end}\n")
            });
            cut(lines.collect())
        }
        ClientFileReply::Content(content) => match String::from_utf8(content) {
            Ok(text) => cut(text),
            Err(binary) => format!("[no text: {} bytes]", binary.as_bytes().len()),
        },
    };
    (text, summarise(call, true))
}

/// What the model reads of a use that failed.
pub(crate) fn describe_failure(failure: &ClientFileFailure) -> String {
    let ClientFileFailure { why, maybe_done } = failure;
    if *maybe_done {
        format!(
            "It is not known whether it was done: {why}. Look with `info` before you do it again."
        )
    } else {
        format!("It was not done: {why}.")
    }
}

/// A text that fits into a result.
fn cut(text: String) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    const NOTE_BYTES: usize = 100;
    let end = text.floor_char_boundary(TEXT_BYTES_MAX - NOTE_BYTES);
    format!("{}\n[cut: it has {} bytes]", &text[..end], text.len())
}

/// Whether an address has the scheme and host of one that the client itself named.
pub(crate) fn is_named(uri: &str, named: &[String]) -> bool {
    let place = place_of(uri);
    place.is_some() && named.iter().any(|named| place_of(named) == place)
}

/// Scheme and host.
fn place_of(uri: &str) -> Option<(String, &str)> {
    let (scheme, rest) = uri.split_once(':')?;
    let host = rest
        .strip_prefix("//")
        .map_or("", |rest| rest.split(['/', '?', '#']).next().unwrap_or(rest));
    Some((scheme.to_ascii_lowercase(), host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_beside_what_was_named_is_used() {
        let named = ["vscode-remote://box/w/a.txt".to_owned(), "untitled:Untitled-1".to_owned()];
        for (uri, expected) in [
            ("vscode-remote://box/w/b.txt", true),
            ("VSCODE-REMOTE://box/", true),
            ("vscode-remote://other/w/a.txt", false),
            ("vscode-remote://box.other/w/a.txt", false),
            ("vscode-remote:/w/a.txt", false),
            ("untitled:Untitled-2", true),
            ("file:///etc/passwd", false),
            ("no address", false),
        ] {
            assert_eq!(is_named(uri, &named), expected, "{uri}");
        }
        assert!(!is_named("untitled:Untitled-1", &[]));
    }

    #[test]
    fn an_input_is_a_call_or_says_what_is_missing() {
        let of = |input: Value| {
            ClientFilesTool.host_request(&input).unwrap().map_err(|ToolError(text)| text)
        };
        let write = of(json!({"operation": "write", "uri": "x-y:/a", "content": "t", "etag": "1"}));
        let expected = ClientFileCall::Write {
            uri: "x-y:/a".to_owned(),
            text: "t".to_owned(),
            if_match: Some("1".to_owned()),
            create_only: false,
        };
        assert_eq!(write, Ok(HostTask::ClientFile(Box::new(expected))));
        let refused = of(json!({"operation": "move", "uri": "x-y:/a"})).unwrap_err();
        assert!(refused.contains("`destination`"), "{refused}");
        let refused = of(json!({"operation": "run", "uri": "x-y:/a"})).unwrap_err();
        assert!(refused.contains("For example"), "{refused}");
    }

    #[test]
    fn what_may_have_been_done_is_not_said_to_be_undone() {
        let said = |maybe_done| {
            let why = "the client is gone".to_owned();
            describe_failure(&ClientFileFailure { why, maybe_done })
        };
        assert_eq!(said(false), "It was not done: the client is gone.");
        let unknown = said(true);
        assert!(unknown.contains("not known") && unknown.contains("`info`"));
        assert!(!unknown.contains("was not done"), "{unknown}");
    }

    #[test]
    fn long_and_binary_contents_are_said_in_short() {
        let call = ClientFileCall::Read { uri: "x-y:/a".to_owned() };
        let reply = |content: Vec<u8>| describe_reply(&call, ClientFileReply::Content(content)).0;
        assert_eq!(reply(b"text".to_vec()), "text");
        assert_eq!(reply(vec![0xff, 0]), "[no text: 2 bytes]");
        let long = reply("ü".repeat(TEXT_BYTES_MAX).into_bytes());
        assert!(long.len() <= TEXT_BYTES_MAX && long.ends_with("bytes]"));
        let facts =
            ClientFileFacts { kind: "x".repeat(2 * TEXT_BYTES_MAX), ..ClientFileFacts::default() };
        let long = describe_reply(&call, ClientFileReply::Facts(facts)).0;
        assert!(long.len() <= TEXT_BYTES_MAX && long.ends_with("bytes]"));
    }
}
