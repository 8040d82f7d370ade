//! A server from before streamable HTTP: events on one request, messages by others.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![allow(dead_code, reason = "helpers that several tests share")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use agents::mcp::{McpDeclaration, McpError, McpServer, McpTransport, ServerState};
use common::{call, piped, place, ready, text};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

/// Who hears the events.
type Listener = Arc<Mutex<Option<mpsc::UnboundedSender<String>>>>;

/// Serves until the test ends; `answer_at` is what the stream names as the address for messages.
async fn serve(answer_at: &'static str) -> McpDeclaration {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    let hearing = Listener::default();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(stream, Arc::clone(&hearing), answer_at));
        }
    });
    McpDeclaration { transport: McpTransport::Http { url, headers: BTreeMap::new() }, ..piped(&[]) }
}

async fn answer(stream: TcpStream, hearing: Listener, answer_at: &str) {
    let mut stream = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    stream.read_line(&mut first).await.unwrap();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    match first.split_whitespace().take(2).collect::<Vec<_>>()[..] {
        ["GET", "/sse"] => {
            let (sender, mut events) = mpsc::unbounded_channel();
            *hearing.lock().await = Some(sender);
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            let named = format!("event: endpoint\ndata: {answer_at}\n\n");
            stream.write_all(named.as_bytes()).await.unwrap();
            while let Some(event) = events.recv().await {
                let event = format!("event: message\ndata: {event}\n\n");
                if stream.write_all(event.as_bytes()).await.is_err() {
                    return; // nobody listens any more
                }
            }
        }
        ["POST", "/messages"] => {
            let done = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(done).await.unwrap();
            let message: Value = serde_json::from_slice(&body).unwrap();
            if let (Some(result), Some(listener)) = (result_of(&message), &*hearing.lock().await) {
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                let _ = listener.send(answer.to_string());
            }
        }
        _ => {
            let no = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(no).await.unwrap();
        }
    }
}

fn result_of(message: &Value) -> Option<Value> {
    match message["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"},
        })),
        "tools/list" => {
            let tool = json!({"name": "echo", "inputSchema": {"type": "object"}});
            Some(json!({"tools": [tool]}))
        }
        "tools/call" => {
            let said = &message["params"]["arguments"]["text"];
            Some(json!({"content": [{"type": "text", "text": said}]}))
        }
        _ => None,
    }
}

// MC-1
#[tokio::test]
async fn a_server_that_refuses_streamable_http_is_spoken_to_in_the_old_way() {
    let directory = tempfile::tempdir().unwrap();
    let server = ready(serve("/messages").await, directory.path()).await;
    let echoed = call(&server, "echo", json!({"text": "hello"})).await.unwrap();
    assert_eq!(text(&echoed), "hello");
}

#[tokio::test]
async fn no_message_goes_to_another_origin() {
    let directory = tempfile::tempdir().unwrap();
    let declaration = serve("https://elsewhere.example/messages").await;
    let server = McpServer::new(declaration, place(directory.path()));
    server.start();
    server.wait_until_settled().await;
    let state = server.state();
    assert!(matches!(state, ServerState::Failed(McpError::Unreachable(_))), "{state:?}");
}
