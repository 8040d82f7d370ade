//! What the agent does in these tests.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;

const POEM: &str = "The kettle is on, the door ajar,\nthe lines are learnt, the call not far.\n";
const POEM_NAME: &str =
    "ahp-content:/sha256/7e35401bed64faf8c14d9b53db4e166c581e1e37c785da5d4a72c545fcb6056c";

/// A script in a directory of its own.
pub(crate) struct Script {
    _directory: TempDir,
    path: PathBuf,
}

impl Script {
    pub(crate) fn write() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("script.json");
        std::fs::write(&path, scenes().to_string())?;
        Ok(Self { _directory: directory, path })
    }

    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap_or_default()
    }
}

fn scenes() -> Value {
    let told = json!({"say": ["Told: {{last}}"]});
    let options = json!({"tool": {
        "name": "run_command", "display": "Run a command", "input": {"command": "make applause"},
        "confirm": "ask", "title": "Run in a terminal",
        "options": [
            {"id": "once", "label": "Allow once", "kind": "approve", "group": 1},
            {"id": "session", "label": "Allow in this session", "kind": "approve", "group": 1},
            {"id": "not-now", "label": "Not now", "kind": "deny", "group": 2},
            {"id": "never", "label": "Never", "kind": "deny", "group": 2},
        ],
    }});
    let after = json!({
        "uri": "file:///poem.txt",
        "content": {"uri": POEM_NAME, "sizeHint": POEM.len(), "contentType": "text/plain"},
    });
    let edit = json!({"tool": {
        "name": "write_file", "display": "Write a file", "input": {"path": "poem.txt"}, "confirm": "ask",
        "title": "Write a file", "editable": true,
        "edits": [{"after": after, "diff": {"added": 2, "removed": 0}}],
    }});
    let count = json!({"tool": {
        "name": "count", "display": "Count", "input": {"rows": 3}, "confirm": "ask", "title": "Count the seats",
    }});
    let result = json!({"tool": {
        "name": "fetch", "display": "Fetch a page", "input": {"url": "https://example.com/"}, "confirm_result": true,
        "result": {"message": "Fetched it", "content": [{"type": "text", "text": "a secret of the page"}]},
    }});
    let questions = json!({"ask": {"message": "Before we begin", "questions": [
        {"kind": "text", "id": "name", "message": "What shall I call you?", "required": true, "max": 20},
        {"kind": "integer", "id": "seats", "message": "How many seats?", "min": 1, "max": 12, "defaultValue": 2},
        {"kind": "number", "id": "price", "message": "What may one cost?", "max": 9.5},
        {"kind": "single-select", "id": "part", "message": "Which part?", "allowFreeformInput": true, "options": [
            {"id": "lead", "label": "The lead", "recommended": true}, {"id": "chorus", "label": "The chorus"},
        ]},
        {"kind": "multi-select", "id": "props", "message": "What is on stage?", "max": 2, "options": [
            {"id": "skull", "label": "A skull"}, {"id": "letter", "label": "A letter"}, {"id": "lamp", "label": "A lamp"},
        ]},
        {"kind": "boolean", "id": "encore", "message": "An encore?"},
    ]}});
    let page = json!({"ask": {"message": "Sign in", "url": "https://accounts.example.com/in?x=1"}});
    json!({"model": "scripted-1", "scenes": [
        {"when": "^options", "steps": [options, told]},
        {"when": "^edit", "steps": [{"content_ref": {"text": POEM, "type": "text/plain"}}, edit, told]},
        {"when": "^worker", "steps": [{"spawn": {"title": "counter", "steps": [count, told]}}, told]},
        {"when": "^result", "steps": [result, told]},
        {"when": "^questions", "steps": [questions, told]},
        {"when": "^page", "steps": [page, told]},
        {"steps": [{"say": ["Nothing of that."]}]},
    ]})
}
