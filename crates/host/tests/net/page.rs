//! The page's own files over a real socket: without a token, packed, kept, asked about again.

use std::net::SocketAddr;

use host::ServerLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Answered, Host, TOKEN, UPGRADE, ask, request};

async fn get(addr: SocketAddr, target: &str, lines: &str) -> Answered {
    request(addr, "GET", target, lines, b"").await
}

#[tokio::test]
async fn the_page_and_all_its_files_come_without_a_token() {
    let host = Host::start(ServerLimits::default()).await;
    let page = get(host.addr, "/", "").await;
    assert_eq!(page.status, 200, "{}", page.head);
    assert_eq!(page.header("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("Cache-Control"), Some("no-cache"));
    let main = format!("/app/{}/js/main.js", web::DIGEST);
    assert!(page.text().contains(&main));
    for file in web::files() {
        let answer = get(host.addr, file.path, "Accept-Encoding: gzip, br\r\n").await;
        assert_eq!(answer.status, 200, "{}", file.path);
        assert_eq!(answer.header("Content-Type"), Some(file.content_type));
        let caching = answer.header("Cache-Control").unwrap();
        assert_eq!(caching.contains("immutable"), file.path.starts_with("/app/"));
        let chosen = file.choose("gzip, br");
        assert_eq!(answer.header("Content-Encoding"), chosen.encoding.name());
        assert_eq!(answer.header("Vary"), Some("Accept-Encoding"));
        assert_eq!(answer.body, chosen.bytes);
    }
    let head = request(host.addr, "HEAD", "/", "", b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    let length = page.body.len().to_string();
    assert_eq!(head.header("Content-Length"), Some(length.as_str()));
}

#[tokio::test]
async fn what_is_known_is_not_sent_again() {
    let host = Host::start(ServerLimits::default()).await;
    for accept in ["Accept-Encoding: br\r\n", "Accept-Encoding: gzip\r\n", ""] {
        let first = get(host.addr, "/", accept).await;
        let etag = first.header("ETag").unwrap();
        let lines = format!("{accept}If-None-Match: {etag}\r\n");
        let again = get(host.addr, "/", &lines).await;
        assert_eq!((again.status, again.body.len()), (304, 0));
        assert_eq!(again.header("ETag"), Some(etag));
        assert_eq!(again.header("Cache-Control"), Some("no-cache"));
        assert!(again.header("Content-Type").is_none());
    }
    let other = get(host.addr, "/", "If-None-Match: \"of another version\"\r\n").await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn wrong_requests_for_files_are_refused() {
    let host = Host::start(ServerLimits::default()).await;
    let main = format!("/app/{}/js/main.js", web::DIGEST);
    for (method, target, lines, expected) in [
        ("POST", main.as_str(), "", 405),
        ("DELETE", "/manifest.webmanifest", "", 405),
        ("POST", "/", "", 401),
        ("GET", "/app/0000000000000000/js/main.js", "", 404),
        ("GET", "/app/../index.html", "", 404),
        ("GET", "/index.html", "", 401),
        ("GET", main.as_str(), "Origin: http://evil.example\r\n", 403),
        ("GET", "/", "Origin: null\r\n", 403),
    ] {
        let answer = request(host.addr, method, target, lines, b"").await;
        assert_eq!(answer.status, expected, "{method} {target} {lines}");
        assert!(answer.header("Content-Security-Policy").is_some());
        assert_eq!(answer.header("Cache-Control"), Some("no-store"));
        assert!(!answer.body.is_empty(), "a refusal says why");
    }
    let rebound = format!("GET {main} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(ask(host.addr, &rebound).await.0, 403);
}

#[tokio::test]
async fn files_and_then_a_websocket_come_over_one_connection() {
    let mut host = Host::start(ServerLimits::default()).await;
    let addr = host.addr;
    let mut socket = TcpStream::connect(addr).await.unwrap();
    let file = web::find("/").unwrap();
    for _ in 0..3 {
        let head = format!("GET / HTTP/1.1\r\nHost: {addr}\r\nAccept-Encoding: br\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        let body = file.choose("br").bytes;
        let mut answer = Vec::new();
        while !answer.ends_with(body) {
            assert!(socket.read_buf(&mut answer).await.unwrap() > 0);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
    // The first frame comes with the head.
    let head = format!(
        "GET /ahp HTTP/1.1\r\nHost: {addr}\r\nOrigin: http://{addr}\r\nSec-WebSocket-Protocol: ahp, tkn.{TOKEN}\r\n{UPGRADE}\r\n"
    );
    let mut bytes = head.into_bytes();
    bytes.extend(crate::support::masked(0x81, crate::support::notification("early").as_bytes()));
    socket.write_all(&bytes).await.unwrap();
    let (_, _link) = host.joined().await;
    assert_eq!(host.receive().await, "early");
    assert_eq!(host.admission.connections(), 1);
}
