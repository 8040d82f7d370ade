//! Servers over real sockets: streams of events and single answers, and a token.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command};

use agents::mcp::{
    ElicitationAnswer, McpDeclaration, McpError, McpServer, McpTransport, ServerState, ServerToken,
    TokenReason,
};
use common::{Caller, call, eventually, piped, place, ready, text};
use serde_json::json;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the test server; the process, and its declaration.
async fn serve(directory: &Path, switches: &[&str]) -> (Running, McpDeclaration) {
    let url_file = directory.join("url");
    let _ = std::fs::remove_file(&url_file);
    let server = Command::new(env!("CARGO_BIN_EXE_mcp-server"))
        .arg("--http")
        .arg(&url_file)
        .args(switches)
        .spawn()
        .unwrap();
    let running = Running(server);
    eventually("the server", || url_file.exists()).await;
    let url = std::fs::read_to_string(&url_file).unwrap();
    let headers = BTreeMap::from([("X-Declared".to_owned(), "yes".to_owned())]);
    let transport = McpTransport::Http { url, headers };
    (running, McpDeclaration { transport, ..piped(&[]) })
}

#[tokio::test]
async fn tools_are_called_over_http() {
    let directory = tempfile::tempdir().unwrap();
    for switches in [&[][..], &["--json"]] {
        let (_running, declaration) = serve(directory.path(), switches).await;
        let server = ready(declaration, directory.path()).await;
        let echoed = call(&server, "echo", json!({"text": "hello"})).await.unwrap();
        assert_eq!(text(&echoed), "hello");
        let large = call(&server, "big", json!({"bytes": 4 << 20})).await.unwrap();
        assert_eq!(text(&large).len(), 4 << 20);
        let too_large = call(&server, "big", json!({"bytes": 20 << 20})).await;
        let expected = Err(McpError::TooLarge(16 << 20));
        assert_eq!(too_large, expected, "{switches:?}");
    }
}

#[tokio::test]
async fn progress_and_questions_come_over_http() {
    let directory = tempfile::tempdir().unwrap();
    let (_running, declaration) = serve(directory.path(), &[]).await;
    let server = ready(declaration, directory.path()).await;
    let caller = Caller {
        answer: Some(ElicitationAnswer::Accept(Some(json!({"name": "Ada"})))),
        ..Caller::default()
    };
    let arguments = json!({"steps": 3, "ms": 150}).as_object().cloned().unwrap();
    server.call("slow", arguments, &caller).await.unwrap();
    assert!(!caller.progress.lock().unwrap().is_empty());
    let result = server.call("ask", serde_json::Map::new(), &caller).await.unwrap();
    assert_eq!(text(&result), r#"accepted {"name":"Ada"}"#);
}

#[tokio::test]
async fn a_token_is_asked_for_and_used() {
    let directory = tempfile::tempdir().unwrap();
    let (_running, declaration) = serve(directory.path(), &["--token", "secret"]).await;
    let server = McpServer::new(declaration, place(directory.path()));
    server.start();
    server.wait_until_settled().await;
    let ServerState::TokenWanted(request) = server.state() else {
        panic!("{:?}", server.state());
    };
    assert_eq!(request.reason, TokenReason::Required);
    assert_eq!(request.scopes, ["read"]);
    let resource = request.resource().to_owned();
    assert!(server.takes_token_for(&resource), "{resource}");
    assert!(!server.takes_token_for("https://elsewhere.example/mcp"));
    let token =
        |token: &str| Some(ServerToken { resource: resource.clone(), token: token.to_owned() });
    server.set_token(token("wrong"));
    server.start();
    server.wait_until_settled().await;
    let ServerState::TokenWanted(request) = server.state() else {
        panic!("{:?}", server.state());
    };
    assert_eq!(request.reason, TokenReason::Expired);
    server.set_token(token("secret"));
    server.start();
    server.wait_until_settled().await;
    assert_eq!(server.state(), ServerState::Ready);
    assert_eq!(text(&call(&server, "echo", json!({"text": "in"})).await.unwrap()), "in");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_to_be() {
    let directory = tempfile::tempdir().unwrap();
    let (running, declaration) = serve(directory.path(), &[]).await;
    drop(running);
    let server = McpServer::new(declaration, place(directory.path()));
    server.start();
    server.wait_until_settled().await;
    let ServerState::Failed(McpError::Unreachable(why)) = server.state() else {
        panic!("{:?}", server.state());
    };
    assert!(!why.contains("127.0.0.1") && !why.is_empty(), "{why}");
}
