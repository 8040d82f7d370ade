//! Every status over a real socket.

use std::time::Duration;

use host::ServerLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Host, TOKEN, UPGRADE, ask};

#[tokio::test]
async fn each_request_gets_its_status() {
    let host = Host::start(ServerLimits::default()).await;
    let addr = host.addr;
    let here = format!("Host: {addr}\r\n");
    for (request, headers, status) in [
        ("GET /healthz", here.clone(), 200),
        ("GET /readyz", here.clone(), 200),
        ("HEAD /healthz", here.clone(), 405),
        ("GET /", here.clone(), 401),
        ("GET /?tkn=wrong", format!("{here}{UPGRADE}"), 401),
        (
            "GET /?tkn=s3cret",
            format!("{here}{UPGRADE}Authorization: Bearer wrong\r\n"),
            401,
        ),
        (
            "GET /?tkn=s3cret",
            format!("{here}{UPGRADE}Origin: null\r\n"),
            403,
        ),
        (
            "GET /?tkn=s3cret",
            format!("{here}{UPGRADE}Origin: http://evil.example\r\n"),
            403,
        ),
        (
            "GET /?tkn=s3cret",
            format!("Host: evil.example\r\n{UPGRADE}"),
            403,
        ),
        ("GET /?tkn=s3cret", UPGRADE.to_owned(), 400),
        ("GET /?tkn=s3cret", here.clone(), 426),
        (
            "GET /?tkn=s3cret",
            format!("{here}{}", UPGRADE.replace(": 13", ": 12")),
            426,
        ),
        (
            "POST /?tkn=s3cret",
            format!("{here}Content-Length: 5\r\n\r\nhello"),
            405,
        ),
        ("nonsense", String::new(), 400),
        ("GET /", format!("X: {}\r\n", "y".repeat(20_000)), 431),
    ] {
        let (got, answer) = ask(addr, &format!("{request} HTTP/1.1\r\n{headers}\r\n")).await;
        assert_eq!(got, status, "{request} {headers}");
        assert!(answer.contains("\r\nConnection: close\r\n"));
        assert!(!answer.contains(TOKEN), "a token is never repeated");
        if status == 426 {
            assert!(answer.contains("\r\nSec-WebSocket-Version: 13\r\n"));
        }
    }
    assert_eq!(host.admission.connections(), 0);
}

#[tokio::test]
async fn an_origin_of_the_host_itself_is_let_in() {
    let mut host = Host::start(ServerLimits::default()).await;
    let addr = host.addr;
    let mut socket = TcpStream::connect(addr).await.unwrap();
    let head = format!(
        "GET /?tkn={TOKEN} HTTP/1.1\r\nHost: {addr}\r\nOrigin: http://{addr}\r\n{UPGRADE}\r\n"
    );
    for byte in head.as_bytes() {
        socket.write_u8(*byte).await.unwrap();
    }
    let mut status = [0; 12];
    socket.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 101");
    host.joined().await;
}

#[tokio::test]
async fn while_not_ready_or_full_upgrades_are_refused() {
    let mut host = Host::start(ServerLimits {
        connections_max: 1,
        ..ServerLimits::default()
    })
    .await;
    let addr = host.addr;
    let upgrade = format!("GET /?tkn={TOKEN} HTTP/1.1\r\nHost: {addr}\r\n{UPGRADE}\r\n");
    let readyz = format!("GET /readyz HTTP/1.1\r\nHost: {addr}\r\n\r\n");

    host.admission.set_ready(false);
    assert_eq!(ask(addr, &upgrade).await.0, 503);
    assert_eq!(ask(addr, &readyz).await.0, 503);
    assert_eq!(ask(addr, &readyz.replace("readyz", "healthz")).await.0, 200);
    host.admission.set_ready(true);

    let (client, peer, _link) = host.client().await;
    assert_eq!(ask(addr, &upgrade).await.0, 503);
    assert_eq!(ask(addr, &readyz).await.0, 200, "the probes still answer");
    drop(client);
    host.receive_gone(peer).await;
    while host.admission.connections() > 0 {
        tokio::task::yield_now().await;
    }
    host.client().await;
}

#[tokio::test]
async fn a_request_that_never_ends_is_given_up() {
    let host = Host::start(ServerLimits {
        handshake_timeout_ms: 5,
        ..ServerLimits::default()
    })
    .await;
    assert_eq!(ask(host.addr, "GET / HTTP/1.1\r\nHost: loc").await.0, 408);
}

#[tokio::test]
async fn a_stop_ends_unfinished_handshakes_at_once() {
    let host = Host::start(ServerLimits::default()).await;
    let mut socket = TcpStream::connect(host.addr).await.unwrap();
    socket.write_all(b"GET / HT").await.unwrap();
    host.stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(5), host.task).await;
    assert!(ended.is_ok());
}
