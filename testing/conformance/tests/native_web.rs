//! Pages of the web in a conversation: asked about for each host, read as Markdown, and nothing of a private network.

use std::sync::{Arc, Mutex};

use conformance::native::{NativeHarness, calls_of, ends};
use serde_json::json;
use testkit::{Answer, Call};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const PAGE: &str = "<html><head><title>A page</title></head><body><h1>Hello</h1>\
     <p>See <a href='/other'>more</a>.</p></body></html>";

/// A web server, and the paths it was asked for.
struct WebServer {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, port, Arc::clone(&seen)));
            }
        });
        Self { port, asked }
    }

    fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority())
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(stream: TcpStream, port: u16, asked: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
            return; // nobody asks any more
        }
    }
    let path = head.split(' ').nth(1).unwrap().to_owned();
    asked.lock().unwrap().push(path.clone());
    let page =
        |kind: &str, body: &str| ("200 OK", format!("content-type: {kind}"), body.to_owned());
    let redirect = |to: &str| ("302 Found", format!("location: {to}"), String::new());
    let (status, header, body) = match path.as_str() {
        "/page" => page("text/html", PAGE),
        "/picture" => page("image/png", "x"),
        "/long" => page("text/plain", &format!("{}end", "word ".repeat(20_000))),
        "/hop" => redirect("/page"),
        "/circle" => redirect("/circle"),
        "/away" => redirect("https://example.org/there"),
        "/inside" => redirect("http://169.254.169.254/latest/meta-data"),
        "/alias" => redirect(&format!("http://localhost:{port}/page")),
        "/file" => redirect("file:///etc/passwd"),
        "/far" => redirect(&format!("/{}", "a".repeat(20_000))),
        "/odd" => page(&format!("image/{}", "x".repeat(20_000)), "x"),
        _ => ("404 Not Found", "x-nothing: here".to_owned(), String::new()),
    };
    let text = format!(
        "HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // Who asked may be gone.
    let _ = stream.write_all(text.as_bytes()).await;
}

fn fetch(id: &str, url: &str) -> Call {
    Call::new(id, "web_fetch", &json!({"url": url}))
}

#[tokio::test]
async fn a_page_is_asked_about_for_its_host_and_read_as_markdown() {
    let web = WebServer::start().await;
    let allowed = vec![web.authority()];
    let mut harness = NativeHarness::start_with_web(json!({"approvals": "plan"}), allowed).await;
    harness.model.answers([Answer::calls([fetch("a", &web.url("/hop"))]), ends()]);
    harness.ann.sends_message("read it").await;
    let asked = harness.ann.asked().await;
    assert!(web.asked().is_empty(), "nothing is fetched before consent");
    let message = asked["invocationMessage"].as_str().unwrap();
    assert_eq!(message, format!("Fetch {}", web.url("/hop")));
    let session = json!({"selectedOptionId": "approve-session"});
    harness.ann.decides_about(&asked, session).await;
    harness.ann.completed_turn().await;
    let expected =
        format!("[{}: A page]\n# Hello\n\nSee [more]({}).", web.url("/page"), web.url("/other"));
    assert_eq!(harness.last_results(), [expected]);

    // The host is known from now on; others are not.
    let again = Answer::calls([fetch("b", &web.url("/page"))]);
    let turn = harness.talk("again", [again, ends()]).await;
    assert_eq!(calls_of(&turn)[0]["success"], true, "{turn:#}");
    harness.model.answers([Answer::calls([fetch("c", "http://localhost:9/")]), ends()]);
    harness.ann.sends_message("another").await;
    let denied = json!({"approved": false, "reason": "denied"});
    harness.ann.decides(denied).await;
    harness.ann.turn_over().await;
}

#[tokio::test]
async fn private_addresses_other_hosts_and_what_is_no_text_are_refused() {
    let web = WebServer::start().await;
    let config = json!({"approvals": "full-access"});
    let mut harness = NativeHarness::start_with_web(config, vec![web.authority()]).await;
    let local = format!("http://localhost:{}/page", web.port);
    let cases = [
        (local, "of a private network, which is not fetched"),
        ("http://169.254.169.254/x".to_owned(), "is not fetched"),
        ("http://[::ffff:10.0.0.1]/".to_owned(), "is not fetched"),
        ("ftp://example.org/".to_owned(), "must begin with http://"),
        (web.url("/inside"), "redirects to another host"),
        (web.url("/away"), "fetch https://example.org/there if"),
        (web.url("/alias"), "redirects to another host"),
        (web.url("/file"), "must begin with http://"),
        (web.url("/circle"), "redirects more than 5 times"),
        (web.url("/picture"), "is image/png of 1 bytes; only text"),
        (web.url("/nowhere"), "answered 404 Not Found"),
        (web.url("/far"), "redirects: `url` has more than 8192 bytes"),
        (web.url("/odd"), "only text can be fetched"),
    ];
    let calls = cases.iter().enumerate().map(|(index, (url, _))| fetch(&format!("c{index}"), url));
    let calls = Answer::calls(calls);
    let turn = harness.talk("fetch", [calls, ends()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let results = harness.last_results();
    assert_eq!(results.len(), cases.len());
    for ((url, expected), result) in cases.iter().zip(&results) {
        assert!(result.contains(expected), "{url}: {result}");
        assert!(result.len() < 1_000, "{url}: {} bytes", result.len());
    }
    assert!(!web.asked().contains(&"/page".to_owned()));
}

#[tokio::test]
async fn a_long_page_is_read_in_parts() {
    let web = WebServer::start().await;
    let config = json!({"approvals": "full-access"});
    let mut harness = NativeHarness::start_with_web(config, vec![web.authority()]).await;
    let mut offset = 0;
    let mut whole = String::new();
    loop {
        let input = json!({"url": web.url("/long"), "offset": offset});
        let call = Answer::calls([Call::new("a", "web_fetch", &input)]);
        harness.talk("more", [call, ends()]).await;
        let text = harness.last_results().pop().unwrap();
        assert!(text.len() < 48 * 1_024, "{}", text.len());
        let (_, text) = text.split_once('\n').unwrap();
        match text.rsplit_once("\n[more follows; go on with offset ") {
            Some((part, next)) => {
                whole.push_str(part);
                offset = next.trim_end_matches(']').parse().unwrap();
            }
            None => {
                whole.push_str(text);
                break;
            }
        }
    }
    assert_eq!(whole, format!("{}end", "word ".repeat(20_000)));
}
