//! Signing in to an MCP server from `greenroom chat`: a page is shown, the browser is sent back to this machine, the token goes to
//! the host and the call goes on. The server and its authorisation server are a process of their own, asked over HTTP.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use conformance::acp::until;
use conformance::native::messages;
use mcp_server::Switches;
use serde_json::json;
use tempfile::TempDir;
use testkit::{Answer, Call, ModelServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::running::{Host, data_directory};
use crate::terminal::{ENTER, ScreenSize, Terminal};

/// Set where this executable is the server: the file that its URL goes to.
const PLAYS: &str = "SIGN_IN_TEST_PLAYS_SERVER";
/// Set where its tokens are good for a short time and can be renewed.
const RENEWS: &str = "SIGN_IN_TEST_RENEWS";
/// How long they are good then.
const SHORT_SECONDS: u64 = 4;

/// No test by itself: the server of the next ones.
#[test]
fn plays_the_server() {
    if let Some(file) = std::env::var_os(PLAYS) {
        let renewals = std::env::var_os(RENEWS).is_some();
        let switches = Switches {
            http: Some(file.into()),
            oauth: true,
            renewals,
            token_seconds: if renewals { SHORT_SECONDS } else { 3_600 },
            ..Switches::default()
        };
        mcp_server::run_with(switches).unwrap();
    }
}

/// A server that is killed with its test.
struct PlayedServer(Child);

impl Drop for PlayedServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct SignInScene {
    ann: Terminal,
    model: ModelServer,
    /// That of the MCP server.
    url: String,
    host: Host,
    _server: PlayedServer,
    _directory: TempDir,
}

async fn begin(renews: bool) -> SignInScene {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("url");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "sign_in::plays_the_server", "--nocapture"])
        .env(PLAYS, &file)
        .stdout(Stdio::null());
    if renews {
        command.env(RENEWS, "1");
    }
    let server = PlayedServer(command.spawn().unwrap());
    until(|| file.exists()).await;
    let url = std::fs::read_to_string(&file).unwrap();
    let data = tempfile::tempdir().unwrap();
    declare(data.path(), &url);
    let model = ModelServer::start().await;
    let named = format!("{}#echo", model.url());
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &["--model", &named]));
    let host = started.await.unwrap();
    let mut command = host.greenroom();
    command.arg("chat");
    let ann = Terminal::start_sized("ann", command, ScreenSize::new(100, 40));
    ann.sees("\n›");
    SignInScene { ann, model, url, host, _server: server, _directory: directory }
}

fn declare(data: &Path, url: &str) {
    let directory = data_directory(data);
    std::fs::create_dir_all(&directory).unwrap();
    let file = json!({"mcpServers": {"test": {"url": url}}});
    std::fs::write(directory.join("mcp.json"), file.to_string()).unwrap();
}

/// A GET by plain HTTP: the head of the answer, and its body.
async fn get(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

impl SignInScene {
    fn page_count(&self) -> usize {
        self.ann.printed().matches("Sign in to test at 127.0.0.1:").count()
    }

    /// The page that was shown last.
    fn page(&self) -> String {
        let printed = self.ann.printed();
        let begin = self.url.replace("/mcp", "/authorize?");
        let at = printed.rfind(&begin).unwrap();
        let page = printed[at..].split(|c: char| !c.is_ascii_graphic()).next();
        page.unwrap().to_owned()
    }

    /// Where a browser is sent that visits a page.
    async fn visit(&self, page: &str) -> String {
        let (head, _) = get(page).await;
        let mut lines = head.lines();
        let location = lines.find_map(|line| line.strip_prefix("location: "));
        location.unwrap_or_else(|| panic!("{head}")).to_owned()
    }

    /// Lets the model call the server, and says yes.
    fn calls(&mut self, text: &str) {
        let call = Call::new("call_mcp", "mcp__test__echo", &json!({"text": text}));
        let end = format!("end {text}");
        self.model.answers([Answer::calls([call]), Answer::streams([end.as_str()])]);
        self.ann.type_line(&format!("call {text}"));
        self.ann.sees("3 Deny and say why");
        self.ann.decide('1');
    }

    /// What the model was told of the last call.
    fn last_result(&self) -> String {
        let requests = self.model.requests();
        let all = messages(&requests.last().unwrap().json());
        let told = all.iter().rev().find(|message| message["role"] == "tool");
        told.unwrap()["content"].as_str().unwrap().to_owned()
    }

    /// Has a first turn, after which the server's state is known, and begins to sign in.
    fn asks_for_page(&mut self) {
        self.model.answers([Answer::streams(["hello"])]);
        self.ann.type_line("one");
        self.ann.sees("/sign-in test");
        self.ann.sees("hello");
        self.ann.type_line("/sign-in test");
        self.ann.prints("Sign in to test at 127.0.0.1:");
        self.ann.sees("Waiting for the sign-in");
    }
}

/// Runs what waits for the screen where it holds up nobody else.
async fn on_screen<T: Send + 'static>(
    scene: SignInScene,
    act: impl FnOnce(&mut SignInScene) -> T + Send + 'static,
) -> (SignInScene, T) {
    let done = tokio::task::spawn_blocking(move || {
        let mut scene = scene;
        let value = act(&mut scene);
        (scene, value)
    });
    done.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn mc_14_a_page_is_shown_and_its_token_lets_the_call_go_on() {
    let scene = begin(false).await;
    let (scene, ()) = on_screen(scene, SignInScene::asks_for_page).await;
    let page = scene.page();
    let back = scene.visit(&page).await;

    // What does not come from that page is refused, and the page is waited for all the same.
    let (callback, _) = back.split_once('?').unwrap();
    let (head, _) = get(&format!("{callback}?code=stolen&state=guessed")).await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    let (head, _) = get(&callback.replace("/callback", "/other")).await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    // A browser may open a connection that it does not use.
    let address = callback.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let _silent = TcpStream::connect(address).await.unwrap();
    let (head, body) = get(&back).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(body.contains("You can close this page") && !body.contains("code"), "{body}");
    let (scene, ()) = on_screen(scene, |scene| {
        scene.ann.sees("Signed in to test");
        scene.calls("in");
        scene.ann.sees("end in");
    })
    .await;
    assert_eq!(scene.last_result(), "in");

    // In the middle of a call the prompt offers it; a browser elsewhere cannot come back, so its address is brought.
    get(&scene.url.replace("/mcp", "/revoke")).await;
    let (scene, ()) = on_screen(scene, |scene| {
        scene.calls("again");
        scene.ann.sees("1 Sign in");
        scene.ann.decide('1');
        scene.ann.wait_until(|screen| screen.contains("Waiting for the sign-in"));
    })
    .await;
    assert_eq!(scene.page_count(), 2);
    let back = scene.visit(&scene.page()).await;
    let (scene, ()) = on_screen(scene, move |scene| {
        scene.ann.press(&format!("/sign-in {back}"));
        scene.ann.sees("state=");
        scene.ann.press(ENTER);
        scene.ann.sees("end again");
    })
    .await;
    assert_eq!(scene.last_result(), "again");
    assert_no_token_is_stored(scene.host.data.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn mc_14_a_token_that_ends_is_renewed_without_another_page() {
    let scene = begin(true).await;
    let (scene, ()) = on_screen(scene, SignInScene::asks_for_page).await;
    let back = scene.visit(&scene.page()).await;
    get(&back).await;
    let (scene, ()) = on_screen(scene, |scene| {
        scene.ann.sees("Signed in to test");
    })
    .await;
    let renewals = scene.url.replace("/mcp", "/renewals");
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(100));
    while get(&renewals).await.1 == "0" {
        ticks.tick().await;
    }
    let (scene, ()) = on_screen(scene, |scene| {
        scene.calls("later");
        scene.ann.sees("end later");
    })
    .await;
    assert_eq!(scene.last_result(), "later");
    assert_eq!(scene.page_count(), 1, "nobody signed in again");
    assert_no_token_is_stored(scene.host.data.path());
}

/// No token, and nothing that renews one, is in a file of the host.
fn assert_no_token_is_stored(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_no_token_is_stored(&path);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        for secret in ["t0ken-", "renewal-"] {
            let mut windows = bytes.windows(secret.len());
            let is_there = windows.any(|window| window == secret.as_bytes());
            assert!(!is_there, "{secret} in {}", path.display());
        }
    }
}
