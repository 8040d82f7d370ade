//! `bench mcp-server`: an MCP server on pipes with one tool that says its text again, written out by hand: it costs next to nothing.

use std::io::{BufRead, Write};

use anyhow::Result;
use serde_json::{Value, json};

pub(crate) fn run() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let params = &request["params"];
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"},
            }),
            Some("tools/list") => {
                json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
            }
            Some("tools/call") => {
                json!({"content": [{"type": "text", "text": params["arguments"]["text"]}]})
            }
            _ => json!({}),
        };
        if let Some(id) = request.get("id") {
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            output.write_all(format!("{answer}\n").as_bytes())?;
            output.flush()?;
        }
    }
    Ok(())
}
