//! MCP servers as real processes, for the tests of the native agent.

// Every test binary uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::time::Duration;

use agents::mcp::McpEntry;
use conformance::native::{NativeHarness, parts_of};
use serde_json::{Value, json};
use testkit::Call;

pub const SERVER: &str = env!("CARGO_BIN_EXE_mcp-test-server");

pub fn entry(args: &[&str]) -> McpEntry {
    McpEntry {
        name: "test".to_owned(),
        command: Some(SERVER.to_owned()),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        ..McpEntry::default()
    }
}

pub async fn start(config: Value, entries: Vec<McpEntry>) -> NativeHarness {
    let settings = move |host: &mut host::Config| host.mcp.clone_from(&entries);
    NativeHarness::start_with_settings(config, |_| {}, settings).await
}

pub fn call(tool: &str, input: &Value) -> Call {
    Call::new("call_mcp", &format!("mcp__test__{tool}"), input)
}

/// A server of the test's own directory.
pub fn declare(harness: &NativeHarness, args: &[&str]) {
    let server = json!({"command": SERVER, "args": args, "env": {"SECRET": "s3cret"}});
    let file = json!({"mcpServers": {"test": server}});
    harness.write(".mcp.json", &file.to_string());
}

pub fn notices(turn: &Value) -> String {
    let parts = parts_of(turn, "systemNotification");
    parts.iter().map(Value::to_string).collect()
}

/// What the model got as tools in the last request.
pub fn offered(harness: &NativeHarness) -> Vec<Value> {
    let requests = harness.model.requests();
    let body = requests.last().unwrap().json();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.into_iter().map(|tool| tool["function"].clone()).collect()
}

pub fn is_offered(harness: &NativeHarness, name: &str) -> bool {
    offered(harness).iter().any(|tool| tool["name"] == name)
}

pub fn is_alive(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

pub async fn wait_for_end(process: &str) {
    let gone = conformance::acp::until(|| !is_alive(process));
    let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
    assert!(gone.is_ok(), "it still runs");
}

/// The server as clients see it.
pub fn published(session: &Value) -> Value {
    let customizations = session["customizations"].as_array();
    let mut servers = customizations.into_iter().flatten();
    let server = servers.find(|entry| entry["type"] == "mcpServer");
    server.cloned().unwrap_or_default()
}
