//! A declared MCP server as clients see it: `McpServerCustomization` (MC-4, CU-1).
//!
//! Must not know: who runs the server.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::mcp::DeclaredServer;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 16;

const KIND: &str = "mcpServer";

/// The same for the same server, in every session and over restarts (CU-1).
pub(crate) fn customization_id(declared: &DeclaredServer) -> String {
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

/// The entry of a server in a state.
pub(crate) fn make_entry(declared: &DeclaredServer, state: Value) -> Value {
    json!({
        "type": KIND,
        "id": customization_id(declared),
        "uri": file_uri(declared),
        "name": declared.name,
        "state": state,
    })
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
