//! What the agent does in these tests, and chats that were held before.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use browser::Host;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A script in a directory of its own.
pub(crate) struct Script {
    directory: TempDir,
}

impl Script {
    pub(crate) fn write(scenes: &Value) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let script = json!({"model": "scripted-1", "scenes": scenes});
        std::fs::write(directory.path().join("script.json"), script.to_string())?;
        Ok(Self { directory })
    }

    pub(crate) fn path(&self) -> String {
        self.file("script.json").display().to_string()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Gives the host a session `imported` with so many turns.
    pub(crate) fn import_turns(&self, host: &Host, turns: usize) -> Result<()> {
        let chat = "ahp-chat:/imported";
        let at = "2026-01-01T00:00:00Z";
        let summary = json!({"resource": chat, "title": "Imported", "status": 33, "modifiedAt": at, "origin": {"kind": "user"}});
        let session = json!({"resource": "ahp-session:/imported", "provider": "scripted", "title": "Imported", "status": 33,
            "lifecycle": "ready", "activeClients": [], "chats": [summary], "defaultChat": chat, "createdAt": at, "modifiedAt": at});
        let mut lines = format!("{}\n", json!({"type": "session", "data": session}));
        for number in 0..turns {
            let turn = format!("t{number}");
            let (asked, answered) = (format!("{turn}/user"), format!("{turn}/assistant"));
            let text = format!("Answer **{number}** with `code`.\n\n- one\n- two\n");
            for line in [
                json!({"type": "message", "data": {"id": asked, "chat": chat, "turnId": turn, "role": "user", "createdAt": at, "origin": {"kind": "user"}}}),
                json!({"type": "part", "data": {"message": asked, "index": 0, "type": "text", "data": {"type": "text", "text": format!("message {number}")}}}),
                json!({"type": "message", "data": {"id": answered, "chat": chat, "turnId": turn, "role": "assistant", "createdAt": at, "duration": 5, "state": "complete"}}),
                json!({"type": "part", "data": {"message": answered, "index": 0, "type": "markdown", "data": {"kind": "markdown", "id": "p", "content": text}}}),
            ] {
                writeln!(lines, "{line}")?;
            }
        }
        let file = self.file("imported.jsonl");
        std::fs::write(&file, lines)?;
        let file = file.display().to_string();
        host.run(&["sessions", "import", &file]).map(drop)
    }
}

/// Where an imported session is.
pub(crate) const IMPORTED: &str = "#/s/imported";

/// What scrolls.
pub(crate) const VIEW: &str = "document.querySelector('.transcript')";
