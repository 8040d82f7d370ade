//! A declared MCP server as clients see it: `McpServerCustomization` (MC-4, CU-1).
//!
//! Must not know: who runs the server.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use workspace::discovery::{SourcePosition, SourceSpan};

use crate::mcp::DeclaredServer;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 16;

const KIND: &str = "mcpServer";

/// The same for the same server, in every session and over restarts (CU-1).
pub(crate) fn customization_id(declared: &DeclaredServer) -> String {
    if let Some(plugin) = &declared.plugin {
        return plugin.id.clone();
    }
    let mut hasher = Sha256::new();
    for part in [KIND, &file_uri(declared), &declared.name] {
        hasher.update(part);
        hasher.update([0]);
    }
    let mut id = format!("{KIND}-");
    for byte in hasher.finalize().iter().take(ID_DIGITS / 2) {
        let _ = write!(id, "{byte:02x}"); // writing to a string does not fail
    }
    id
}

fn file_uri(declared: &DeclaredServer) -> String {
    wire::file_uri::uri_of(declared.file.as_os_str().as_bytes())
}

/// Whether a server, or the plugin that declares it, is among what is switched off.
pub(crate) fn is_switched_off(declared: &DeclaredServer, switched_off: &BTreeSet<String>) -> bool {
    let plugin = declared.plugin.as_ref();
    let is_plugin_off = plugin.is_some_and(|plugin| switched_off.contains(&plugin.container_id));
    is_plugin_off || switched_off.contains(&customization_id(declared))
}

/// The entry of a server in a state. One of a plugin names the plugin's entry, which it is a part of.
pub(crate) fn make_entry(declared: &DeclaredServer, state: Value) -> Value {
    let mut entry = json!({
        "type": KIND,
        "id": customization_id(declared),
        "uri": file_uri(declared),
        "name": declared.name,
        "state": state,
    });
    if let Some(SourceSpan { start, end }) = declared.span {
        let position = |at: SourcePosition| json!({"line": at.line, "character": at.character});
        entry["range"] = json!({"start": position(start), "end": position(end)});
    }
    if let Some(plugin) = &declared.plugin {
        entry["container"] = json!(plugin.container_id);
    }
    entry
}

/// The entry of a server that is never started, because a file before its own declares one of the same name (MC-4).
pub(crate) fn shadowed_entry(declared: &DeclaredServer, by: &Path) -> Value {
    let mut entry = make_entry(declared, json!({"kind": "stopped"}));
    let by = wire::file_uri::uri_of(by.as_os_str().as_bytes());
    entry["_meta"] = json!({"shadowedBy": by});
    entry
}

pub(crate) fn error_state(kind: &str, message: &str) -> Value {
    json!({"kind": "error", "error": {"errorType": kind, "message": message}})
}
