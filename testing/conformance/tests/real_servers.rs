//! MCP servers that others make, used by the native agent: a tool is offered, asked about, and run. `cargo run -p xtask -- interop`
//! installs them and runs this; what worked goes into its table.

use std::path::Path;

use crate::interop::{installed, note};
use agents::mcp::McpEntry;
use conformance::native::{NativeHarness, SESSION, calls_of, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A server that npm installed as `@modelcontextprotocol/server-NAME`.
fn of_npm(place: &Path, name: &str, args: &[&Path]) -> McpEntry {
    let script = format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js");
    let args =
        std::iter::once(place.join(script)).chain(args.iter().map(|path| path.to_path_buf()));
    McpEntry {
        name: name.to_owned(),
        command: Some("node".to_owned()),
        args: args.map(|path| path.display().to_string()).collect(),
        ..McpEntry::default()
    }
}

/// A server that pip installed as `mcp-server-NAME`.
fn of_pip(place: &Path, name: &str, args: &[&str]) -> McpEntry {
    let program = place.join(format!("bin/mcp-server-{name}"));
    McpEntry {
        name: name.to_owned(),
        command: Some(program.display().to_string()),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        ..McpEntry::default()
    }
}

/// A session with one server, and nothing of the server before its first turn.
async fn start(entry: McpEntry) -> NativeHarness {
    let settings = move |host: &mut host::Config| host.mcp = vec![entry.clone()];
    NativeHarness::start_with_settings(json!({}), |_| {}, settings).await
}

/// Whether the session's server runs.
fn is_ready(session: &Value) -> bool {
    let customizations = session["customizations"].as_array().into_iter().flatten();
    let mut servers = customizations.filter(|entry| entry["type"] == "mcpServer");
    servers.any(|server| server["state"]["kind"] == "ready")
}

/// A call of a tool that is asked about, allowed and run; the model gets what is expected.
async fn calls(
    harness: &mut NativeHarness,
    server: &str,
    tool: &str,
    input: Value,
    expected: &str,
) {
    // It may take longer to start than a turn waits for it: a turn before starts it.
    harness.talk("start", [ends()]).await;
    harness.ann.until_session(SESSION, is_ready).await;
    let name = format!("mcp__{server}__{tool}");
    let call = Call::new("call_real", &name, &input);
    harness.model.answers([Answer::calls([call]), ends()]);
    harness.ann.sends_message("go").await;
    let asked = harness.ann.asked().await;
    assert_eq!(asked["toolName"], name, "{asked:#}");
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = harness.ann.turn_over().await;
    let call = calls_of(&turn).remove(0);
    assert_eq!(call["success"], true, "{call:#}");
    let model = harness.model.requests();
    let offered = model.last().unwrap().json()["tools"].as_array().cloned();
    let prefix = format!("mcp__{server}__");
    let is_of_server = |tool: &&Value| {
        tool["function"]["name"].as_str().is_some_and(|name| name.starts_with(&prefix))
    };
    let offered = offered.unwrap_or_default();
    let count = offered.iter().filter(is_of_server).count();
    let worked = [("tools", count.to_string()), ("called with consent", format!("`{tool}`"))];
    let result = harness.last_results().pop().unwrap();
    assert!(result.contains(expected), "{result}");
    note(server, &Value::Null, &worked);
}

#[tokio::test]
async fn real_everything() {
    let Some(place) = installed("everything") else { return };
    let mut harness = start(of_npm(&place, "everything", &[])).await;
    calls(&mut harness, "everything", "echo", json!({"message": "hello"}), "hello").await;
}

#[tokio::test]
async fn real_filesystem() {
    let Some(place) = installed("filesystem") else { return };
    let shared = tempfile::tempdir().unwrap();
    let shared = shared.path().canonicalize().unwrap();
    // It serves the session's own directories where the host names them, and those of its arguments before.
    let mut harness = start(of_npm(&place, "filesystem", &[&shared])).await;
    let path = harness.work().canonicalize().unwrap().join("made.txt");
    let input = json!({"path": path, "content": "made by a server"});
    calls(&mut harness, "filesystem", "write_file", input, "").await;
    assert_eq!(harness.read("made.txt"), "made by a server");
}

#[tokio::test]
async fn real_memory() {
    let Some(place) = installed("memory") else { return };
    let kept = tempfile::tempdir().unwrap();
    let file = kept.path().join("memory.jsonl");
    let mut entry = of_npm(&place, "memory", &[]);
    let path = file.display().to_string();
    entry.env.insert("MEMORY_FILE_PATH".to_owned(), path);
    let mut harness = start(entry).await;
    let entity = json!({"name": "Ann", "entityType": "person", "observations": ["likes tests"]});
    let input = json!({"entities": [entity]});
    calls(&mut harness, "memory", "create_entities", input, "").await;
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(kept.contains("likes tests"), "{kept}");
}

#[tokio::test]
async fn real_git() {
    let Some(place) = installed("git") else { return };
    let mut harness = start(of_pip(&place, "git", &[])).await;
    let made = std::process::Command::new("git")
        .args(["init", "--quiet", "-b", "trunk"])
        .current_dir(harness.work())
        .status();
    assert!(made.unwrap().success());
    harness.write("new.txt", "new");
    let input = json!({"repo_path": harness.work()});
    calls(&mut harness, "git", "git_status", input, "new.txt").await;
}

#[tokio::test]
async fn real_time() {
    let Some(place) = installed("time") else { return };
    let mut harness = start(of_pip(&place, "time", &["--local-timezone", "UTC"])).await;
    let input = json!({"timezone": "UTC"});
    calls(&mut harness, "time", "get_current_time", input, "datetime").await;
}

#[tokio::test]
async fn real_fetch() {
    let Some(place) = installed("fetch") else { return };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/page", listener.local_addr().unwrap());
    let page = tokio::spawn(serve_page(listener));
    // The page of the test is on this machine, which the server refuses otherwise.
    let entry = of_pip(&place, "fetch", &["--ignore-robots-txt", "--allow-private-ips"]);
    let mut harness = start(entry).await;
    calls(&mut harness, "fetch", "fetch", json!({"url": url}), "worth reading").await;
    page.abort();
}

/// Answers everything with a page.
async fn serve_page(listener: tokio::net::TcpListener) {
    const PAGE: &str = "<html><body><h1>A page of the test</h1><p>Some words that are worth reading.</p></body></html>";
    while let Ok((mut stream, _)) = listener.accept().await {
        // All of a request for a page is in its first packet.
        let mut request = [0; 4_096];
        let _ = stream.read(&mut request).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
        let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{PAGE}", PAGE.len());
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}
