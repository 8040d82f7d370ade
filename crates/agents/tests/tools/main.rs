//! The tools of the native agent on real files and real processes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod background;
mod bash;
mod changes;
mod containment;
mod host_death;
mod processes;
mod reads;
mod searches;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use agents::tool::{self, Edits, Plan, Tool, ToolError, ToolOutcome};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use wire::NamedBody;
use workspace::{Confinement, Workspace};

/// A session with one working directory.
struct Session {
    directory: TempDir,
    workspace: Workspace,
    /// Calls that were planned and did not run yet, by tool and input: each has the working directory for itself.
    calls: Mutex<HashMap<String, Workspace>>,
}

impl Session {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = open(directory.path());
        Self { directory, workspace, calls: Mutex::default() }
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let session = Self::new();
        for (name, content) in files {
            session.put(name, content);
        }
        session
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What someone else does to a file.
    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    async fn plan(&self, tool: &str, input: Value) -> Result<Plan, ToolError> {
        let call = self.workspace.for_call();
        let name = format!("{tool} {input}");
        self.calls.lock().unwrap().insert(name, call.clone());
        named(tool).plan(&input, &call).await
    }

    async fn edits(&self, tool: &str, input: &Value) -> Result<Edits, ToolError> {
        let call = self.calls.lock().unwrap().get(&format!("{tool} {input}")).cloned();
        let call = call.unwrap_or_else(|| self.workspace.for_call());
        named(tool).edits(input, &call).await
    }

    async fn run(&self, tool: &str, input: Value) -> Result<ToolOutcome, ToolError> {
        let (output, _updates) = mpsc::channel(1);
        let call = self.calls.lock().unwrap().remove(&format!("{tool} {input}"));
        let call = call.unwrap_or_else(|| self.workspace.for_call());
        named(tool).run(&input, &call, &output).await
    }

    /// What the model reads, of success or failure.
    async fn text_of(&self, tool: &str, input: Value) -> String {
        match self.run(tool, input).await {
            Ok(outcome) => outcome.text,
            Err(error) => error.0,
        }
    }

    async fn reads(&self, name: &str) {
        self.run("read", json!({"path": name})).await.unwrap();
    }

    /// Nothing of the tools' own is left lying about.
    fn is_tidy(&self) -> bool {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        !names.into_iter().any(|name| name.to_string_lossy().starts_with(".greenroom"))
    }
}

fn open(directory: &Path) -> Workspace {
    let uri = format!("file://{}", directory.display());
    Workspace::open(&[uri], &Confinement::none()).unwrap()
}

fn named(name: &str) -> Box<dyn Tool> {
    let mut tools = tool::all(&Arc::default(), &Arc::default()).into_iter();
    tools.find(|tool| tool.name() == name).unwrap()
}

fn contents(bodies: &[NamedBody]) -> Vec<&[u8]> {
    bodies.iter().map(|body| &body[..]).collect()
}

fn error<T: std::fmt::Debug>(result: Result<T, ToolError>) -> String {
    result.unwrap_err().0
}

#[test]
fn every_tool_has_an_input_schema() {
    for tool in tool::all(&Arc::default(), &Arc::default()) {
        let parameters = tool.parameters();
        assert_eq!(parameters["type"], "object", "{}", tool.name());
        assert_eq!(parameters["additionalProperties"], false);
        for required in parameters["required"].as_array().into_iter().flatten() {
            let name = required.as_str().unwrap();
            assert!(parameters["properties"].get(name).is_some(), "{name}");
        }
        assert!(!tool.facts().description.is_empty() && !tool.display_name().is_empty());
    }
}

#[tokio::test]
async fn an_invalid_input_is_answered_with_the_valid_shape() {
    let session = Session::new();
    for (tool, input, expected) in [
        ("read", json!({}), "missing field `path`"),
        ("read", json!("a"), "must be a JSON object"),
        ("write", json!({"path": "a"}), "missing field `content`"),
        (
            "edit",
            json!({"path": "a", "edits": [{"new_text": "a"}]}),
            "missing field `edits[0].old_text`, a text. For example: {\"path\"",
        ),
        (
            "read",
            json!({"path": "a", "offset": "2"}),
            "`offset` must be a whole number from 0 on, and is a text. For example: {\"path\"",
        ),
        ("glob", json!({"pattern": "{"}), "the glob"),
        ("glob", json!({"pattern": "!a"}), "such as `**/*.rs`"),
        ("bash", json!({"command": " "}), "`command` is empty"),
        ("bash", json!({"command": "a\0"}), "`command` has the control character U+0000"),
        ("bash", json!({"command": "a\u{1b}]b"}), "`command` has the control character U+001B"),
        (
            "bash",
            json!({"command": "a\u{9d}b\u{202e}"}),
            "`command` has the control character U+009D",
        ),
        ("read", json!({"path": "a\r"}), "`path` has the control character U+000D"),
        ("list", json!({"path": "\u{1b}[2J"}), "`path` has the control character"),
        ("grep", json!({"pattern": "a", "path": "\u{7f}"}), "`path` has the control character"),
        ("grep", json!({"pattern": "a", "globs": "\u{8}"}), "`globs` has the control character"),
        (
            "write",
            json!({"path": "a\u{202e}", "content": ""}),
            "`path` has the control character U+202E",
        ),
        ("edit", json!({"path": "\u{1b}", "edits": []}), "`path` has the control character"),
        ("grep", json!({"pattern": "("}), "unclosed group"),
        ("grep", json!({"pattern": "a\nb"}), "one line at a time"),
        ("grep", json!({"pattern": "a", "globs": ["{"]}), "the glob"),
    ] {
        let why = session.text_of(tool, input.clone()).await;
        assert!(why.contains(expected), "{tool} {input}: {why}");
    }
}

#[tokio::test]
async fn arguments_a_tool_does_not_know_are_ignored() {
    let session = Session::new();
    let content = "one\u{1b}[31m\n";
    for (tool, input) in [
        (
            "write",
            json!({"path": "a\tb\nc", "content": content, "description": "makes it", "x": {}}),
        ),
        ("read", json!({"path": "a\tb\nc", "lines": 3})),
        (
            "edit",
            json!({"path": "a\tb\nc", "edits": [{"old_text": "one", "new_text": "two", "why": 1}], "y": []}),
        ),
        ("grep", json!({"pattern": "\u{1b}", "description": "looks for colours"})),
        ("list", json!({"recursive": null})),
        (
            "bash",
            json!({"command": "printf 'a\\tb'\n\ttrue", "description": "prints", "timeout": "9", "background": false}),
        ),
    ] {
        session.plan(tool, input.clone()).await.unwrap();
        let outcome = session.run(tool, input).await.unwrap();
        assert!(outcome.success, "{tool}: {}", outcome.text);
    }
}

#[tokio::test]
async fn a_session_without_a_directory_refuses_every_tool() {
    let workspace = Workspace::open(&[], &Confinement::none()).unwrap();
    let (output, _updates) = mpsc::channel(1);
    for (tool, input) in [
        ("read", json!({"path": "a"})),
        ("read", json!({"path": "/etc/hostname"})),
        ("list", json!({})),
        ("bash", json!({"command": "true"})),
    ] {
        let why = error(named(tool).run(&input, &workspace, &output).await);
        assert!(why.contains("has no working directory"), "{why}");
    }
}

#[test]
fn a_directory_that_is_none_is_no_workspace() {
    for (uri, expected) in [
        ("https://example.org/", "is not a `file:` URI"),
        ("file:///nowhere/at/all", "cannot be opened"),
        ("file:///etc/hostname", "cannot be opened"),
    ] {
        let why = Workspace::open(&[uri.to_owned()], &Confinement::none()).unwrap_err();
        assert!(why.to_string().contains(expected), "{why}");
    }
}
