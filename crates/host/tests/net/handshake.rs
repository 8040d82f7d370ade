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
        ("GET /ahp", here.clone(), 401),
        ("GET /?tkn=wrong", format!("{here}{UPGRADE}"), 401),
        ("GET /?tkn=s3cret", format!("{here}{UPGRADE}Authorization: Bearer wrong\r\n"), 401),
        ("GET /?tkn=s3cret", format!("{here}{UPGRADE}Origin: null\r\n"), 403),
        ("GET /?tkn=s3cret", format!("{here}{UPGRADE}Origin: http://evil.example\r\n"), 403),
        ("GET /?tkn=s3cret", format!("Host: evil.example\r\n{UPGRADE}"), 403),
        ("GET /?tkn=s3cret", UPGRADE.to_owned(), 400),
        ("GET /ahp?tkn=s3cret", here.clone(), 426),
        ("GET /?tkn=s3cret", format!("{here}{}", UPGRADE.replace(": 13", ": 12")), 426),
        ("POST /?tkn=s3cret", format!("{here}Content-Length: 5\r\n\r\nhello"), 405),
        ("nonsense", String::new(), 400),
        ("GET /ahp", format!("X: {}\r\n", "y".repeat(20_000)), 431),
    ] {
        let (got, answer) = ask(addr, &format!("{request} HTTP/1.1\r\n{headers}\r\n")).await;
        assert_eq!(got, status, "{request} {headers}");
        assert!(answer.contains("\r\nConnection: close\r\n"));
        assert!(!answer.contains(TOKEN), "a token is never repeated");
        if status == 426 {
            assert!(answer.contains("\r\nSec-Websocket-Version: 13\r\n"));
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
    let mut host =
        Host::start(ServerLimits { connections_max: 1, ..ServerLimits::default() }).await;
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
    let host =
        Host::start(ServerLimits { handshake_timeout_ms: 5, ..ServerLimits::default() }).await;
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

const PROOF: &str = "/proof?nonce=0123456789abcdef0123456789abcdef";

/// Asks on a connection that stays open; the body of the answer.
async fn prove(socket: &mut TcpStream, host: &str) -> String {
    let head = format!("GET {PROOF} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    while !answer.contains("\r\n\r\n") || answer.split("\r\n\r\n").nth(1).unwrap().len() < 64 {
        let mut chunk = [0; 256];
        let count = socket.read(&mut chunk).await.unwrap();
        assert!(count > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
    }
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\r\nConnection: keep-alive\r\n"));
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[tokio::test]
async fn a_proof_is_given_and_the_token_follows_on_the_same_connection() {
    let mut host = Host::start(ServerLimits::default()).await;
    let addr = host.addr;
    let mut socket = TcpStream::connect(addr).await.unwrap();
    // HMAC-SHA256 under `s3cret`, by another implementation.
    let expected = "ac02fa7014f8161980d54650dc3313c6bd70fe641205991e2519e1dc6609190a";
    for _ in 0..2 {
        assert_eq!(prove(&mut socket, &addr.to_string()).await, expected);
    }
    let head = format!(
        "GET / HTTP/1.1\r\nHost: {addr}\r\nSec-WebSocket-Protocol: ahp, tkn.{TOKEN}\r\n{UPGRADE}\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
    let (_, _first) = host.joined().await;

    // Both requests in one piece.
    let mut second = TcpStream::connect(addr).await.unwrap();
    let proof = format!("GET {PROOF} HTTP/1.1\r\nHost: {addr}\r\n\r\n");
    second.write_all(format!("{proof}{head}").as_bytes()).await.unwrap();
    let (_, _second) = host.joined().await;

    for (target, status) in
        [("/proof", 400), ("/proof?nonce=0123", 400), (PROOF, 200), ("/proof/", 401)]
    {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
        let (got, answer) = ask(addr, &head).await;
        assert_eq!(got, status, "{target}");
        assert!(answer.contains("\r\nConnection: close\r\n"));
        assert!(status != 400 || answer.ends_with("/proof?nonce=...\n"));
    }
}

#[tokio::test]
async fn asking_for_proofs_does_not_extend_the_time_of_a_handshake() {
    let limits = ServerLimits { handshake_timeout_ms: 50, ..ServerLimits::default() };
    let host = Host::start(limits).await;
    let mut socket = TcpStream::connect(host.addr).await.unwrap();
    let head = format!("GET {PROOF} HTTP/1.1\r\nHost: {}\r\n\r\n", host.addr);
    let mut answers = String::new();
    let asking = async {
        loop {
            // Fails once the host has closed the connection.
            if socket.write_all(head.as_bytes()).await.is_err() {
                return;
            }
            let mut chunk = [0; 4_096];
            match socket.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(count) => answers.push_str(std::str::from_utf8(&chunk[..count]).unwrap()),
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(30), asking).await;
    assert!(ended.is_ok(), "it is closed however often it asks");
    assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
}

#[tokio::test]
async fn a_new_socket_takes_the_place_of_the_oldest_silent_one() {
    let limits = ServerLimits {
        handshakes_max: 2,
        handshake_timeout_ms: 600_000,
        ..ServerLimits::default()
    };
    let mut host = Host::start(limits).await;
    let mut silent = Vec::new();
    for _ in 0..5 {
        silent.push(TcpStream::connect(host.addr).await.unwrap());
    }
    let (_client, _, _link) = host.client().await;
    let mut answer = String::new();
    silent[0].read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    // Connections that were admitted are not among them.
    for _ in 0..5 {
        silent.push(TcpStream::connect(host.addr).await.unwrap());
    }
    let (_second, _, _link) = host.client().await;
    assert_eq!(host.admission.connections(), 2);
}
