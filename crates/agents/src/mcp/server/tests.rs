//! Tokens that are refused in the middle of a session (MC-14), with a server of a few lines.

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::mcp::auth::TokenReason;
use crate::mcp::call::{Elicitation, ElicitationAnswer};

struct NobodyAsked;

#[async_trait]
impl CallHost for NobodyAsked {
    async fn show_progress(&self, _line: String) {}

    async fn elicit(&self, _elicitation: Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Cancel
    }

    async fn withdraw(&self) {}
}

/// Tools that were really called, by name.
type SeenCalls = Arc<Mutex<Vec<String>>>;

/// Takes calls with the token `new` alone; `slow` is never answered.
async fn answer(mut stream: TcpStream, seen: SeenCalls) {
    let mut read = Vec::new();
    let (head, body) = loop {
        let text = String::from_utf8_lossy(&read).to_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1);
            let length = length.map_or(0, |rest| {
                rest.lines().next().unwrap().parse::<usize>().unwrap()
            });
            let begin = head.len() + 4;
            if read.len() >= begin + length {
                let body: Value = serde_json::from_slice(&read[begin..]).unwrap_or_default();
                break (head.to_owned(), body);
            }
        }
        let mut piece = [0; 4_096];
        let count = stream.read(&mut piece).await.unwrap();
        if count == 0 {
            return;
        }
        read.extend_from_slice(&piece[..count]);
    };
    let tool = body["params"]["name"].as_str().unwrap_or_default();
    let result = match body["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": body["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        "tools/list" => Ok(json!({"tools": []})),
        "tools/call" if tool == "slow" => {
            seen.lock().unwrap().push(tool.to_owned());
            return std::future::pending().await;
        }
        "tools/call" if head.contains("authorization: bearer new") => {
            seen.lock().unwrap().push(tool.to_owned());
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

/// A server that is ready, opened with the token `old`.
async fn start(timeout: Duration) -> (McpServer, SeenCalls) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = SeenCalls::default();
    let calls = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&calls)));
        }
    });
    let declaration = McpDeclaration {
        name: "fake".to_owned(),
        transport: McpTransport::Http {
            url,
            headers: BTreeMap::new(),
        },
        program: None,
        tools: None,
        timeout: Some(timeout),
        trust_hints: false,
        oauth: None,
    };
    let place = ServerPlace {
        directory: "/".into(),
        roots: Vec::new(),
    };
    let server = McpServer::new(declaration, place);
    server.set_token(Some(token("old")));
    server.start();
    server.settled().await;
    assert_eq!(server.state(), ServerState::Ready);
    (server, seen)
}

fn token(token: &str) -> ServerToken {
    ServerToken {
        resource: "http://127.0.0.1/".to_owned(),
        token: token.to_owned(),
    }
}

fn challenge() -> TokenChallenge {
    TokenChallenge {
        reason: TokenReason::Expired,
        header: "Bearer".to_owned(),
    }
}

#[tokio::test]
async fn mc_14_a_call_that_is_silent_or_stopped_loses_no_token() {
    let (server, _) = start(Duration::from_millis(300)).await;
    let connection = server.connection().unwrap();
    // Another request was refused meanwhile.
    connection.shared.note_challenge(challenge());
    let called = server.call("slow", JsonObject::new(), &NobodyAsked).await;
    assert!(
        matches!(called, Err(McpError::CallSilent(_))),
        "{:?}",
        called.err()
    );
    assert_eq!(server.state(), ServerState::Ready);
    assert!(Arc::ptr_eq(&connection, &server.connection().unwrap()));

    let (server, seen) = start(Duration::from_secs(30)).await;
    let connection = server.connection().unwrap();
    connection.shared.note_challenge(challenge());
    let (called, ()) = tokio::join!(
        server.call("slow", JsonObject::new(), &NobodyAsked),
        async {
            let mut poll = tokio::time::interval(Duration::from_millis(10));
            while seen.lock().unwrap().is_empty() {
                poll.tick().await;
            }
            server.stop();
        }
    );
    assert_eq!(called.err(), Some(McpError::Stopped));
    server.settled().await;
    assert_eq!(server.state(), ServerState::Stopped);
}

#[tokio::test]
async fn mc_14_a_refusal_of_an_older_connection_changes_nothing() {
    let (server, seen) = start(Duration::from_secs(30)).await;
    let older = server.connection().unwrap();
    server.set_token(Some(token("new")));
    let called = server.call("work", JsonObject::new(), &NobodyAsked).await;
    assert!(called.is_ok(), "{:?}", called.err());
    assert_eq!(*seen.lock().unwrap(), ["work"], "it was made once");
    let newer = server.connection().unwrap();
    assert!(!Arc::ptr_eq(&older, &newer));

    assert!(server.lose_token(&older, challenge()), "make it again");
    assert_eq!(server.state(), ServerState::Ready);
    assert!(Arc::ptr_eq(&newer, &server.connection().unwrap()));
    server.stop();
    assert!(!server.lose_token(&newer, challenge()));
    assert_eq!(server.state(), ServerState::Stopped);
}

#[tokio::test]
async fn mc_14_a_token_that_is_refused_is_wanted_anew() {
    let (server, seen) = start(Duration::from_secs(30)).await;
    let called = server.call("work", JsonObject::new(), &NobodyAsked).await;
    assert_eq!(called.err(), Some(McpError::TokenWanted(challenge())));
    server.settled().await;
    // This one does not say where a token is got.
    let state = server.state();
    assert!(
        matches!(state, ServerState::Failed(McpError::NoSignIn(_))),
        "{state:?}"
    );
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn h_318_a_call_without_a_token_waits_for_no_sign_in() {
    let (server, seen) = start(Duration::from_secs(30)).await;
    let called = server.call_without_token("work", JsonObject::new(), &NobodyAsked);
    assert_eq!(called.await.err(), Some(McpError::OthersToken));
    server.stop();
    server.set_state(ServerState::TokenWanted(Box::new(TokenRequest {
        reason: TokenReason::Required,
        metadata: Value::Null,
        scopes: Vec::new(),
        description: None,
        client: None,
    })));
    let called = server.call_without_token("work", JsonObject::new(), &NobodyAsked);
    assert_eq!(called.await.err(), Some(McpError::OthersToken));
    assert!(seen.lock().unwrap().is_empty());
}
