//! The page's own files over a real socket: without a token, packed, kept, asked about again.

use std::net::SocketAddr;

use host::ServerLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Host, TOKEN, UPGRADE, ask};

/// Status, head and body of the answer to a request on a connection that closes after it.
async fn get(addr: SocketAddr, target: &str, lines: &str) -> (u16, String, Vec<u8>) {
    request(addr, "GET", target, lines).await
}

async fn request(
    addr: SocketAddr,
    method: &str,
    target: &str,
    lines: &str,
) -> (u16, String, Vec<u8>) {
    let mut socket = TcpStream::connect(addr).await.unwrap();
    let head =
        format!("{method} {target} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n{lines}\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let body = answer.split_off(end + 4);
    let head = String::from_utf8(answer).unwrap();
    (head[9..12].parse().unwrap(), head, body)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

#[tokio::test]
async fn the_page_and_all_its_files_come_without_a_token() {
    let host = Host::start(ServerLimits::default()).await;
    let (status, head, body) = get(host.addr, "/", "").await;
    assert_eq!(status, 200, "{head}");
    assert_eq!(
        header(&head, "Content-Type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(header(&head, "Cache-Control"), Some("no-cache"));
    let page = String::from_utf8(body).unwrap();
    assert!(page.contains(&format!("/app/{}/js/main.js", web::DIGEST)));
    for file in web::files() {
        let (status, head, body) = get(host.addr, file.path, "Accept-Encoding: gzip, br\r\n").await;
        assert_eq!(status, 200, "{}", file.path);
        assert_eq!(header(&head, "Content-Type"), Some(file.content_type));
        let caching = header(&head, "Cache-Control").unwrap();
        assert_eq!(
            caching.contains("immutable"),
            file.path.starts_with("/app/")
        );
        let chosen = file.choose("gzip, br");
        assert_eq!(header(&head, "Content-Encoding"), chosen.encoding.name());
        assert_eq!(header(&head, "Vary"), Some("Accept-Encoding"));
        assert_eq!(body, chosen.bytes);
    }
    let (status, head, body) = request(host.addr, "HEAD", "/", "").await;
    assert_eq!((status, body.len()), (200, 0));
    assert_eq!(
        header(&head, "Content-Length").unwrap(),
        page.len().to_string()
    );
}

#[tokio::test]
async fn what_is_known_is_not_sent_again() {
    let host = Host::start(ServerLimits::default()).await;
    for accept in ["Accept-Encoding: br\r\n", "Accept-Encoding: gzip\r\n", ""] {
        let (_, head, _) = get(host.addr, "/", accept).await;
        let etag = header(&head, "ETag").unwrap();
        let lines = format!("{accept}If-None-Match: {etag}\r\n");
        let (status, head, body) = get(host.addr, "/", &lines).await;
        assert_eq!((status, body.len()), (304, 0), "{head}");
        assert_eq!(header(&head, "ETag"), Some(etag));
        assert_eq!(header(&head, "Cache-Control"), Some("no-cache"));
        assert!(header(&head, "Content-Type").is_none());
    }
    let (status, ..) = get(host.addr, "/", "If-None-Match: \"of another version\"\r\n").await;
    assert_eq!(status, 200);
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
        let (status, head, body) = request(host.addr, method, target, lines).await;
        assert_eq!(status, expected, "{method} {target} {lines}");
        assert!(header(&head, "Content-Security-Policy").is_some());
        assert_eq!(header(&head, "Cache-Control"), Some("no-store"));
        assert!(!body.is_empty(), "a refusal says why");
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
    bytes.extend(crate::support::masked(
        0x81,
        crate::support::notification("early").as_bytes(),
    ));
    socket.write_all(&bytes).await.unwrap();
    let (_, _link) = host.joined().await;
    assert_eq!(host.receive().await, "early");
    assert_eq!(host.admission.connections(), 1);
}
