//! Files of a page and content by signed addresses, over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use host::ServerLimits;
use host::blobs::{Blobs, MemoryBlobs};
use serde_json::{Value, json};
use wire::Timestamp;

use crate::support::{Answered, Host, TOKEN, request};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and the rest of it";

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

async fn put(addr: SocketAddr, content_type: &str, body: &[u8]) -> Answered {
    let lines = format!("{}Content-Type: {content_type}\r\n", bearer());
    request(addr, "PUT", "/api/content", &lines, body).await
}

/// Addresses of contents, as the page asks for them.
async fn addresses(addr: SocketAddr, items: &Value) -> Answered {
    let lines = format!("{}Content-Type: application/json\r\n", bearer());
    let body = json!({"items": items}).to_string();
    request(addr, "POST", "/api/content/addresses", &lines, body.as_bytes()).await
}

async fn address_of(addr: SocketAddr, uri: &str, content_type: &str) -> String {
    let answer = addresses(addr, &json!([{"uri": uri, "contentType": content_type}])).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["items"][0].as_str().unwrap().to_owned()
}

async fn get(addr: SocketAddr, target: &str, lines: &str) -> Answered {
    request(addr, "GET", target, lines, b"").await
}

#[tokio::test]
async fn a_file_is_stored_and_shown_by_its_address() {
    let blobs = Arc::new(MemoryBlobs::new());
    let host = Host::start_page(ServerLimits::default(), blobs.clone()).await;
    let stored = put(host.addr, "image/png", PNG).await;
    assert_eq!(stored.status, 201, "{}", stored.text());
    let stored = stored.json();
    let uri = stored["uri"].as_str().unwrap();
    assert_eq!((&stored["size"], &stored["contentType"]), (&json!(PNG.len()), &json!("image/png")));
    assert_eq!(wire::Digest::from_uri(uri), Some(blobs.digests()[0]));

    let address = address_of(host.addr, uri, "image/png").await;
    let shown = get(host.addr, &address, "").await;
    assert_eq!((shown.status, shown.body.as_slice()), (200, PNG));
    assert_eq!(shown.header("Content-Type"), Some("image/png"));
    assert_eq!(shown.header("Content-Security-Policy"), Some("sandbox; default-src 'none'"));
    assert_eq!(shown.header("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(shown.header("Cross-Origin-Resource-Policy"), Some("same-origin"));
    let caching = shown.header("Cache-Control").unwrap();
    assert!(caching.starts_with("private, ") && caching.ends_with("immutable"));
    assert_eq!(shown.header("Content-Disposition"), None);
    let etag = shown.header("ETag").unwrap();
    let again = get(host.addr, &address, &format!("If-None-Match: {etag}\r\n")).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let head = request(host.addr, "HEAD", &address, "", b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(address_of(host.addr, uri, "image/png").await, address, "the same all day");
}

#[tokio::test]
async fn ranges_are_parts_of_the_content_or_refused() {
    let blobs = Arc::new(MemoryBlobs::new());
    let uri = blobs.put(b"ID3\x040123456789", Timestamp(1)).unwrap().uri();
    let host = Host::start_page(ServerLimits::default(), blobs).await;
    let address = address_of(host.addr, &uri, "audio/mp3").await;
    let part = get(host.addr, &address, "Range: bytes=4-6\r\n").await;
    assert_eq!((part.status, part.text()), (206, "012"));
    assert_eq!(part.header("Content-Range"), Some("bytes 4-6/14"));
    assert_eq!(part.header("Content-Type"), Some("audio/mpeg"));
    assert_eq!(part.header("Accept-Ranges"), Some("bytes"));
    let end = get(host.addr, &address, "Range: bytes=-2\r\n").await;
    assert_eq!((end.status, end.text()), (206, "89"));
    let outside = get(host.addr, &address, "Range: bytes=14-\r\n").await;
    assert_eq!(outside.status, 416);
    assert_eq!(outside.header("Content-Range"), Some("bytes */14"));
    let several = get(host.addr, &address, "Range: bytes=0-1,4-5\r\n").await;
    assert_eq!((several.status, several.body.len()), (200, 14));
    let changed = get(host.addr, &address, "Range: bytes=4-6\r\nIf-Range: \"other\"\r\n").await;
    assert_eq!(changed.status, 200);
}

#[tokio::test]
async fn nothing_that_could_run_is_shown_as_a_page() {
    let blobs = Arc::new(MemoryBlobs::new());
    let put = |body: &[u8]| blobs.put(body, Timestamp(1)).unwrap().uri();
    let (html, svg, binary) = (put(b"<script>1</script>"), put(b"<svg/>"), put(b"MZ\0\x01"));
    let host = Host::start_page(ServerLimits::default(), blobs).await;
    for (uri, claimed, served, is_download) in [
        (&html, "text/html", "text/plain; charset=utf-8", false),
        (&html, "image/png", "text/plain; charset=utf-8", false),
        (&svg, "image/svg+xml", "image/svg+xml", true),
        (&svg, "text/html", "text/plain; charset=utf-8", false),
        (&binary, "text/html", "application/octet-stream", true),
    ] {
        let address = address_of(host.addr, uri, claimed).await;
        let answer = get(host.addr, &address, "").await;
        assert_eq!(answer.header("Content-Type"), Some(served), "{claimed}");
        assert_eq!(answer.header("Content-Disposition").is_some(), is_download);
        assert_eq!(answer.header("Content-Security-Policy"), Some("sandbox; default-src 'none'"));
    }
}

#[tokio::test]
async fn wrong_signatures_and_wrong_requests_are_refused() {
    let blobs = Arc::new(MemoryBlobs::new());
    let uri = blobs.put(PNG, Timestamp(1)).unwrap().uri();
    let other = wire::Digest::new([7; 32]);
    let limits = ServerLimits { content_in_bytes: 1_024, ..ServerLimits::default() };
    let host = Host::start_page(limits, blobs).await;
    let addr = host.addr;
    let address = address_of(addr, &uri, "image/png").await;
    let (path, query) = address.split_once('?').unwrap();
    for wrong in [
        path.to_owned(),
        format!("{path}?type=image/png"),
        format!("/content/{other}?{query}"),
        format!("/content/{}?{query}", &other.to_hex()[1..]),
        address.replace("image%2Fpng", "text%2Fhtml"),
        address.replace("exp=", "exp=1"),
        address.replace("owner.", "0011223344556677."),
        format!("{address}x"),
        format!("{address}&type=text/html"),
        format!("/content/?{query}"),
    ] {
        let answer = get(addr, &wrong, "").await;
        assert_eq!(answer.status, 403, "{wrong}");
        assert!(answer.text().starts_with("this address was not made by this host"));
    }
    let missing = address_of(addr, &other.uri(), "image/png").await;
    assert_eq!(get(addr, &missing, "").await.status, 404);
    assert_eq!(request(addr, "POST", &address, "", b"").await.status, 405);
    let elsewhere = "Origin: http://localhost:3000\r\n";
    assert_eq!(get(addr, &address, elsewhere).await.status, 403);

    assert_eq!(put(addr, "image/png", &[0; 1_025]).await.status, 413);
    assert_eq!(request(addr, "PUT", "/api/content", "", PNG).await.status, 401);
    assert_eq!(request(addr, "GET", "/api/content", &bearer(), b"").await.status, 405);
    let odd = addresses(addr, &json!([{"uri": "file:///etc/passwd"}, {"uri": uri}])).await.json();
    assert!(odd["items"][0].is_null() && odd["items"][1].is_string());
    assert!(odd["expiresAt"].is_string());
    let prompt = request(addr, "GET", "/api/prompt?chat=x", &bearer(), b"").await;
    assert_eq!(prompt.status, 404, "this host stores nothing of what was sent");
}

#[tokio::test]
async fn a_slow_reader_of_a_large_file_is_cut() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let blobs = Arc::new(MemoryBlobs::new());
    let uri = blobs.put(&vec![b'x'; 32 << 20], Timestamp(1)).unwrap().uri();
    let limits = ServerLimits { http_stall_ms: 100, ..ServerLimits::default() };
    let host = Host::start_page(limits, blobs).await;
    let address = address_of(host.addr, &uri, "text/plain").await;
    let mut socket = tokio::net::TcpStream::connect(host.addr).await.unwrap();
    let head = format!("GET {address} HTTP/1.1\r\nHost: {}\r\n\r\n", host.addr);
    socket.write_all(head.as_bytes()).await.unwrap();
    // Nothing is read until the host has given up, which shows in its count of sockets.
    let mut pauses = tokio::time::interval(std::time::Duration::from_millis(20));
    while host.admission.http_connections() == 0 {
        pauses.tick().await;
    }
    while host.admission.http_connections() > 0 {
        pauses.tick().await;
    }
    let mut got = Vec::new();
    // What was in the buffers of the system still comes, or a reset.
    let _ = socket.read_to_end(&mut got).await;
    assert!(got.len() < 32 << 20);
}
