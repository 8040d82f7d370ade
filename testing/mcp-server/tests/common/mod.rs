//! What the tests share: declarations of the test server, and somebody who makes calls.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agents::mcp::{
    CallHost, Elicitation, ElicitationAnswer, McpContent, McpDeclaration, McpError, McpResult,
    McpServer, McpTransport, ServerDirectories, ServerState,
};
use async_trait::async_trait;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn place(directory: &Path) -> ServerDirectories {
    ServerDirectories {
        directory: directory.to_owned(),
        roots: vec![format!("file://{}", directory.display())],
    }
}

/// The test server over pipes.
pub(crate) fn piped(switches: &[&str]) -> McpDeclaration {
    McpDeclaration {
        name: "test".to_owned(),
        transport: McpTransport::Process {
            command: env!("CARGO_BIN_EXE_mcp-server").to_owned(),
            args: switches.iter().map(|switch| (*switch).to_owned()).collect(),
            env: BTreeMap::from([("DECLARED".to_owned(), "yes".to_owned())]),
            cwd: None,
        },
        program: None,
        tools: None,
        timeout: None,
        trust_hints: false,
        oauth: None,
    }
}

/// A server that was started and did not fail.
pub(crate) async fn ready(declaration: McpDeclaration, directory: &Path) -> McpServer {
    let server = McpServer::new(declaration, place(directory));
    server.start();
    server.wait_until_settled().await;
    assert_eq!(server.state(), ServerState::Ready);
    server
}

/// Waits for something that happens by itself.
pub(crate) async fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < PATIENCE, "{what} did not happen");
        looks.tick().await;
    }
}

/// Whether a process is there and alive.
pub(crate) fn is_alive(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Makes calls, and answers questions as it was told.
#[derive(Default)]
pub(crate) struct Caller {
    pub(crate) progress: Mutex<Vec<String>>,
    pub(crate) questions: Mutex<Vec<Elicitation>>,
    pub(crate) withdrawn: AtomicBool,
    pub(crate) answer: Option<ElicitationAnswer>,
}

#[async_trait]
impl CallHost for Caller {
    async fn show_progress(&self, line: String) {
        self.progress.lock().unwrap().push(line);
    }

    async fn elicit(&self, elicitation: Elicitation) -> ElicitationAnswer {
        self.questions.lock().unwrap().push(elicitation);
        match &self.answer {
            Some(answer) => answer.clone(),
            None => std::future::pending().await,
        }
    }

    async fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::SeqCst);
    }
}

/// Calls a tool of a server with nothing special.
pub(crate) async fn call(
    server: &McpServer,
    tool: &str,
    arguments: serde_json::Value,
) -> Result<McpResult, McpError> {
    let arguments = arguments.as_object().cloned().unwrap();
    server.call(tool, arguments, &Caller::default()).await
}

/// The text of a result.
pub(crate) fn text(result: &McpResult) -> String {
    let texts = result.content.iter().filter_map(|content| match content {
        McpContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
