//! `POST /api/markup` over a real socket.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;

use host::ServerLimits;
use host::blobs::{Blobs, MemoryBlobs};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::Timestamp;

use crate::support::{Answered, Host, TOKEN, request};

const JSON: &str = "Content-Type: application/json\r\n";

async fn post(addr: SocketAddr, lines: &str, body: &Value) -> Answered {
    let lines = format!("Authorization: Bearer {TOKEN}\r\n{lines}");
    request(addr, "POST", "/api/markup", &lines, body.to_string().as_bytes()).await
}

#[tokio::test]
async fn texts_and_contents_come_back_as_trees_runs_and_rows() {
    let blobs = Arc::new(MemoryBlobs::new());
    let after = blobs.put(b"one\ntwo\n", Timestamp(1)).unwrap().uri();
    let host = Host::start_page(ServerLimits::default(), blobs).await;
    let items = json!({"items": [
        {"markdown": "**a** <b>b</b>"},
        {"code": "fn a() {}", "lang": "rust"},
        {"diff": {"before": "one\n", "after": after, "path": "a.txt"}},
        {"diff": {"before": null, "after": "x", "path": "a.txt"}},
    ]});
    let answer = post(host.addr, JSON, &items).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    assert_eq!(answer.header("Cache-Control"), Some("no-store"));
    let answer = answer.json();
    assert_eq!(answer["items"][0]["tree"], json!([["p", ["strong", "a"], " <b>b</b>"]]));
    assert_eq!(answer["items"][1]["runs"][0], json!(["keyword", 0, 2]));
    assert_eq!(answer["items"][2]["rows"][1], json!(["+", null, 2, "two"]));
    assert_eq!(answer["items"][3]["added"], 1);
}

#[tokio::test]
async fn a_long_answer_is_packed() {
    let host = Host::start_page(ServerLimits::default(), Arc::new(MemoryBlobs::new())).await;
    let items = json!({"items": [{"markdown": "word ".repeat(2_000)}]});
    let lines = format!("{JSON}Accept-Encoding: deflate, gzip\r\n");
    let packed = post(host.addr, &lines, &items).await;
    assert_eq!(packed.header("Content-Encoding"), Some("gzip"));
    assert!(packed.body.len() < 1_000);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    let plain = post(host.addr, JSON, &items).await;
    assert_eq!(plain.header("Content-Encoding"), None);
    assert_eq!(plain.text(), text);
}

#[tokio::test]
async fn wrong_requests_are_refused_with_words() {
    let host = Host::start_page(ServerLimits::default(), Arc::new(MemoryBlobs::new())).await;
    let addr = host.addr;
    let one = json!({"items": [{"markdown": "a"}]});
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let with_token = format!("/api/markup?tkn={TOKEN}");
    let markup = "/api/markup";
    for (method, target, lines, expected) in [
        ("POST", markup, JSON.to_owned(), 401),
        ("POST", markup, format!("{JSON}Authorization: Bearer wrong\r\n"), 401),
        ("POST", with_token.as_str(), JSON.to_owned(), 401),
        ("POST", markup, format!("{JSON}{bearer}Origin: http://evil.example\r\n"), 403),
        ("POST", markup, format!("{bearer}Content-Type: text/plain\r\n"), 415),
        ("PUT", markup, format!("{JSON}{bearer}"), 405),
        ("POST", "/api/nothing", format!("{JSON}{bearer}"), 404),
    ] {
        let answer = request(addr, method, target, &lines, one.to_string().as_bytes()).await;
        assert_eq!(answer.status, expected, "{method} {target} {lines}");
        assert!(!answer.text().contains(TOKEN) && answer.text().ends_with('\n'));
    }
    let many = json!({"items": vec![json!({"markdown": ""}); 65]});
    assert_eq!(post(addr, JSON, &many).await.status, 413);
    let large = json!({"items": [{"markdown": "x".repeat(256 * 1_024)}]});
    assert_eq!(post(addr, JSON, &large).await.status, 413);
    for wrong in [
        json!([]),
        json!({"items": [{"html": "x"}]}),
        json!({"items": [{"markdown": "x", "other": 1}]}),
    ] {
        let answer = post(addr, JSON, &wrong).await;
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.text().starts_with("the body cannot be read: "));
    }
    let deep = format!("{{\"items\": {}1{}}}", "[".repeat(500), "]".repeat(500));
    let answer = request(addr, "POST", markup, &format!("{JSON}{bearer}"), deep.as_bytes()).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn a_body_that_never_comes_is_given_up_and_one_without_length_is_not_awaited() {
    let limits = ServerLimits { message_in_timeout_ms: 100, ..ServerLimits::default() };
    let host = Host::start_page(limits, Arc::new(MemoryBlobs::new())).await;
    let addr = host.addr;
    let head = format!(
        "POST /api/markup HTTP/1.1\r\nHost: {addr}\r\n{JSON}Authorization: Bearer {TOKEN}\r\n"
    );
    for (rest, status) in [
        ("Content-Length: 100\r\n\r\n{\"items", "HTTP/1.1 408 "),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\n{\"i\r\n", "HTTP/1.1 411 "),
        ("Content-Length: 9999999999\r\n\r\n{\"items", "HTTP/1.1 413 "),
    ] {
        let mut socket = TcpStream::connect(addr).await.unwrap();
        socket.write_all(format!("{head}{rest}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(status), "{rest}: {answer}");
    }
}

#[tokio::test]
async fn a_connection_that_showed_its_token_is_kept_for_the_next_request() {
    let limits = ServerLimits { handshakes_max: 1, connections_max: 1, ..ServerLimits::default() };
    let host = Host::start_page(limits, Arc::new(MemoryBlobs::new())).await;
    let addr = host.addr;
    let mut socket = TcpStream::connect(addr).await.unwrap();
    let body = json!({"items": [{"markdown": "a"}]}).to_string();
    let message = format!(
        "POST /api/markup HTTP/1.1\r\nHost: {addr}\r\n{JSON}Authorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for _ in 0..3 {
        socket.write_all(message.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"{\"items\":[{\"tree\":[[\"p\",\"a\"]]}]}") {
            assert!(socket.read_buf(&mut answer).await.unwrap() > 0);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        // Silent ones push each other out, and not the one that is known.
        for _ in 0..3 {
            drop(TcpStream::connect(addr).await.unwrap());
        }
    }
    // It is the one connection that there may be.
    let other = post(addr, JSON, &json!({"items": []})).await;
    assert_eq!(other.status, 503);
    assert_eq!(host.admission.connections(), 0, "it is no client of the protocol");
}
