//! Servers for tests of this crate: declared in a line, and one of a few lines that speaks HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::auth::{TokenReason, TokenRequest};
use super::connection::ServerDirectories;
use super::declaration::{McpDeclaration, McpTransport};
use super::server::{McpServer, ServerState, ServerToken};

/// A server of which nothing is said but how it is reached.
pub(crate) fn declare(transport: McpTransport) -> McpDeclaration {
    McpDeclaration {
        name: "s".to_owned(),
        transport,
        program: None,
        tools: None,
        timeout: None,
        trust_hints: false,
        oauth: None,
    }
}

/// The same, not started.
pub(crate) fn make_server(declaration: McpDeclaration) -> Arc<McpServer> {
    let directories = ServerDirectories { directory: PathBuf::from("/"), roots: Vec::new() };
    Arc::new(McpServer::new(declaration, directories))
}

/// One that takes tokens.
pub(crate) fn remote_server(url: &str) -> Arc<McpServer> {
    make_server(declare(McpTransport::Http { url: url.to_owned(), headers: BTreeMap::new() }))
}

/// The state of a server that wants a token.
pub(crate) fn token_wanted() -> ServerState {
    ServerState::TokenWanted(Box::new(TokenRequest {
        reason: TokenReason::Required,
        metadata: Value::Null,
        scopes: Vec::new(),
        description: None,
        client: None,
    }))
}

pub(crate) fn token(resource: &str, token: &str) -> ServerToken {
    ServerToken { resource: resource.to_owned(), token: token.to_owned() }
}

/// A server on this machine: its tool takes the token `new` alone, `slow` is never answered, its prompt says whose token it was asked
/// with.
#[derive(Clone)]
pub(crate) struct FakeHttp {
    pub(crate) url: String,
    /// Tools that were really called, by name.
    pub(crate) called: Arc<Mutex<Vec<String>>>,
    /// The token that each prompt was asked for with.
    pub(crate) prompted: Arc<Mutex<Vec<String>>>,
}

impl FakeHttp {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fake = Self {
            url: format!("http://{}/mcp", listener.local_addr().unwrap()),
            called: Arc::default(),
            prompted: Arc::default(),
        };
        let seen = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, seen.clone()));
            }
        });
        fake
    }

    /// A server that is ready, opened with this token.
    pub(crate) async fn connect(&self, with: &str, timeout: Duration) -> Arc<McpServer> {
        let transport = McpTransport::Http { url: self.url.clone(), headers: BTreeMap::new() };
        let server = make_server(McpDeclaration { timeout: Some(timeout), ..declare(transport) });
        server.set_token(Some(token(&self.url, with)));
        server.start();
        server.wait_until_settled().await;
        assert_eq!(server.state(), ServerState::Ready);
        server
    }
}

/// One request: its head in small letters, and its body. None if the stream ended.
async fn read_request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).to_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.lines().next().unwrap().parse::<usize>().unwrap());
            let begin = head.len() + 4;
            if read.len() >= begin + length {
                let body: Value = serde_json::from_slice(&read[begin..]).unwrap_or_default();
                return Some((head.to_owned(), body));
            }
        }
        let mut piece = [0; 4_096];
        let count = stream.read(&mut piece).await.unwrap();
        if count == 0 {
            return None;
        }
        read.extend_from_slice(&piece[..count]);
    }
}

async fn answer(mut stream: TcpStream, fake: FakeHttp) {
    let Some((head, body)) = read_request(&mut stream).await else { return };
    let bearer = head
        .split("authorization: bearer ")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .unwrap_or_default()
        .to_owned();
    let tool = body["params"]["name"].as_str().unwrap_or_default();
    let result = match body["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": body["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "prompts": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        "tools/list" => Ok(json!({"tools": []})),
        "prompts/list" => Ok(json!({"prompts": [{"name": "whose"}]})),
        "prompts/get" => {
            fake.prompted.lock().push(bearer.clone());
            let content = json!({"type": "text", "text": bearer});
            Ok(json!({"messages": [{"role": "user", "content": content}]}))
        }
        "tools/call" if tool == "slow" => {
            fake.called.lock().push(tool.to_owned());
            return std::future::pending().await;
        }
        "tools/call" if bearer == "new" => {
            fake.called.lock().push(tool.to_owned());
            Ok(json!({"content": [{"type": "text", "text": "done"}]}))
        }
        "tools/call" => Err("401 Unauthorized\r\nWWW-Authenticate: Bearer"),
        "" => Err("404 Not Found"),
        _ => Err("202 Accepted"),
    };
    let answer = match result {
        Ok(result) => {
            let body = json!({"jsonrpc": "2.0", "id": body["id"], "result": result}).to_string();
            let length = body.len();
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
        }
        Err(status) => {
            format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
    };
    stream.write_all(answer.as_bytes()).await.unwrap();
}
