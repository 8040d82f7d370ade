//! Tables of who is let in.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::limits::ServerLimits;
use crate::net::handshakes::Handshake;
use crate::net::{Admission, SpaceHandle, SpaceHandles};

const UPGRADE: &str = "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";

fn admission(token: Option<&str>) -> Arc<Admission> {
    let admission = Admission::new(
        ServerLimits::default(),
        token.map(str::to_owned),
        vec!["agents.example".to_owned(), "proxy.example:8443".to_owned()],
        vec!["https://app.example/".to_owned(), "vscode-file://vscode-app".to_owned()],
    );
    admission.set_ready(true);
    Arc::new(admission)
}

/// All that is answered to these bytes, in virtual time: what is never complete is given up, too.
fn talk(bytes: &[u8], admission: &Arc<Admission>) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (near, mut far) = tokio::io::duplex(256 * 1_024);
        let address = ([127, 0, 0, 1], 9).into();
        let (queue, _inbox) = tokio::sync::mpsc::channel(1);
        let handle = SpaceHandle::new("", Arc::clone(admission), queue);
        let handles = Arc::new(SpaceHandles::new(handle, Vec::new()));
        let http_socket = HttpSocket::new(handles, address, Handshake::alone());
        let stop = CancellationToken::new();
        let served = serve(near, http_socket, &stop);
        let asked = async {
            far.write_all(bytes).await.unwrap();
            let mut answer = Vec::new();
            far.read_to_end(&mut answer).await.unwrap();
            String::from_utf8_lossy(&answer).into_owned()
        };
        // The socket is closed with what it became.
        tokio::join!(async { drop(served.await) }, asked).1
    })
}

fn status_of(head: &str, admission: &Arc<Admission>) -> u16 {
    talk(head.as_bytes(), admission)[9..12].parse().unwrap()
}

/// Status of an upgrade with these header lines at this target, with the token `s3cret`.
fn upgrade(target: &str, lines: &str) -> u16 {
    status_of(&format!("GET {target} HTTP/1.1\r\n{lines}{UPGRADE}\r\n"), &admission(Some("s3cret")))
}

#[test]
fn the_accept_key_is_that_of_the_standard() {
    assert_eq!(upgrade::accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn tokens_come_by_query_or_header_and_must_not_contradict() {
    let host = "Host: 127.0.0.1:4790\r\n";
    for (target, bearer, status) in [
        ("/?tkn=s3cret", "", 101),
        ("/any/path?a=b&tkn=s3cret", "", 101),
        ("/?tkn=s3%63re%74", "", 101),
        ("/", "Authorization: Bearer s3cret\r\n", 101),
        ("/", "authorization: bearer  s3cret \r\n", 101),
        ("/?tkn=s3cret", "Authorization: Bearer s3cret\r\n", 101),
        ("/?tkn=s3cret", "Authorization: Basic eHg6eXk=\r\n", 101),
        ("/", "", 401),
        ("/?tkn=", "", 401),
        ("/?tkn", "", 401),
        ("/?tkn=wrong", "", 401),
        ("/?tkn=s3cret1", "", 401),
        ("/?tkn=s3cre%7", "", 401),
        ("/?xtkn=s3cret", "", 401),
        ("/?tkn=s3cret", "Authorization: Bearer wrong\r\n", 401),
        ("/?tkn=wrong", "Authorization: Bearer s3cret\r\n", 401),
        ("/?tkn=s3cret&tkn=wrong", "", 401),
        ("/", "Authorization: Bearer s3cret\r\nAuthorization: Bearer wrong\r\n", 401),
        ("/", "Authorization: s3cret\r\n", 401),
        ("/", "Authorization: Bearer\r\n", 401),
        ("/", "Sec-WebSocket-Protocol: ahp, tkn.s3cret\r\n", 101),
        ("/", "Sec-WebSocket-Protocol: ahp,tkn.s3cret,other\r\n", 101),
        ("/", "Sec-WebSocket-Protocol: tkn.s3cret\r\nSec-WebSocket-Protocol: ahp\r\n", 101),
        ("/?tkn=s3cret", "Sec-WebSocket-Protocol: ahp, tkn.s3cret\r\n", 101),
        ("/?tkn=s3cret", "Sec-WebSocket-Protocol: other\r\n", 101),
        ("/", "Sec-WebSocket-Protocol: ahp\r\n", 401),
        ("/", "Sec-WebSocket-Protocol: ahp, tkn.\r\n", 401),
        ("/", "Sec-WebSocket-Protocol: ahp, tkn.wrong\r\n", 401),
        ("/", "Sec-WebSocket-Protocol: ahp, TKN.s3cret\r\n", 401),
        ("/", "Sec-WebSocket-Protocol: s3cret\r\n", 401),
        ("/", "Sec-WebSocket-Protocol: tkn.s3cret, tkn.wrong\r\n", 401),
        ("/?tkn=s3cret", "Sec-WebSocket-Protocol: ahp, tkn.wrong\r\n", 401),
        ("/?tkn=wrong", "Sec-WebSocket-Protocol: ahp, tkn.s3cret\r\n", 401),
    ] {
        assert_eq!(upgrade(target, &format!("{host}{bearer}")), status, "{target} {bearer}");
    }
    let head = format!("GET / HTTP/1.1\r\n{host}{UPGRADE}\r\n");
    assert_eq!(status_of(&head, &admission(None)), 101);
}

#[test]
fn hosts_are_ip_literals_localhost_or_listed() {
    for (host, status) in [
        ("127.0.0.1", 101),
        ("127.0.0.1:4790", 101),
        ("[::1]", 101),
        ("[::1]:4790", 101),
        ("192.168.7.7:80", 101),
        ("localhost", 101),
        ("LOCALHOST:1", 101),
        ("agents.example", 101),
        ("agents.example:4790", 101),
        ("proxy.example:8443", 101),
        ("proxy.example", 403),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("127.0.0.1:", 403),
        ("127.0.0.1:99999", 403),
        ("::1", 403),
        ("[::1", 403),
        ("[::1]x", 403),
        ("[localhost]", 403),
        ("", 403),
        (":80", 403),
    ] {
        assert_eq!(upgrade("/?tkn=s3cret", &format!("Host: {host}\r\n")), status, "{host}");
    }
    assert_eq!(upgrade("/?tkn=s3cret", ""), 400);
    assert_eq!(upgrade("/?tkn=s3cret", "Host: localhost\r\nHost: localhost\r\n"), 400);
    assert_eq!(upgrade("/", "Host: evil.example\r\n"), 403, "the host is checked before the token");
}

#[test]
fn origins_are_absent_ours_or_listed() {
    for (host, origin, status) in [
        ("localhost:4790", "http://localhost:4790", 101),
        ("localhost:4790", "http://LOCALHOST:4790", 101),
        ("[::1]:4790", "http://[::1]:4790", 101),
        ("localhost", "http://localhost", 101),
        ("localhost:80", "http://localhost", 101),
        ("localhost", "https://localhost:443", 101),
        ("localhost:443", "https://localhost", 101),
        ("localhost:80", "http://localhost:80", 101),
        ("localhost:443", "http://localhost", 403),
        ("localhost:80", "https://localhost", 403),
        ("localhost", "http://localhost:443", 403),
        ("localhost:4790", "https://app.example", 101),
        ("localhost:4790", "https://app.example:443", 101),
        ("localhost:4790", "http://app.example:443", 403),
        ("localhost:4790", "http://app.example", 403),
        ("localhost:4790", "vscode-file://vscode-app", 101),
        ("localhost:4790", "http://localhost:4791", 403),
        ("localhost:4790", "http://127.0.0.1:4790", 403),
        ("localhost:4790", "http://localhost", 403),
        ("localhost:4790", "null", 403),
        ("localhost:4790", "", 403),
        ("localhost:4790", "https://evil.example", 403),
        ("localhost:4790", "https://app.example.evil.example", 403),
        ("localhost:4790", "file://localhost:4790", 403),
        ("localhost:4790", "http://localhost:4790/path", 403),
    ] {
        let lines = format!("Host: {host}\r\nOrigin: {origin}\r\n");
        assert_eq!(upgrade("/?tkn=s3cret", &lines), status, "{host} {origin}");
        assert_eq!(upgrade("/", &lines) == 403, status == 403, "checked before the token");
    }
    let twice = "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://localhost\r\n";
    assert_eq!(upgrade("/?tkn=s3cret", twice), 403);
}

#[test]
fn a_request_that_is_no_upgrade_is_refused() {
    let admission = admission(Some("s3cret"));
    let ask = |method: &str, target: &str, rest: &str| {
        status_of(
            &format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{rest}\r\n"),
            &admission,
        )
    };
    assert_eq!(ask("GET", "/ahp?tkn=s3cret", ""), 426);
    assert_eq!(ask("GET", "/ahp?tkn=s3cret", "Upgrade: websocket\r\n"), 426);
    assert_eq!(ask("GET", "/ahp?tkn=s3cret", "Upgrade: h2c\r\nConnection: upgrade\r\n"), 426);
    assert_eq!(ask("GET", "/ahp?tkn=s3cret", &UPGRADE.replace("13", "8")), 426);
    assert_eq!(ask("GET", "/ahp?tkn=s3cret", &UPGRADE.replace("dGhl", "")), 400);
    assert_eq!(ask("GET", "/ahp?tkn=s3cret", &format!("Sec-WebSocket-Key: x\r\n{UPGRADE}")), 400);
    assert_eq!(ask("POST", "/ahp?tkn=s3cret", UPGRADE), 405);
    assert_eq!(ask("POST", "/", ""), 401);
    assert_eq!(ask("POST", "/healthz", ""), 405);
    assert_eq!(ask("GET", "/elsewhere?tkn=s3cret", ""), 404);
    assert_eq!(ask("GET", "/elsewhere?tkn=s3cret", UPGRADE), 101);
    assert_eq!(ask("GET", "/elsewhere", ""), 401);
    assert_eq!(ask("GET", "http://localhost/?tkn=s3cret", UPGRADE), 400);
    let with_body = format!("Content-Length: 2\r\n{UPGRADE}");
    assert_eq!(ask("GET", "/ahp?tkn=s3cret", &with_body), 400);
    let old = format!("GET /ahp?tkn=s3cret HTTP/1.0\r\nHost: localhost\r\n{UPGRADE}\r\n");
    assert_eq!(status_of(&old, &admission), 426);
}

#[test]
fn the_agreed_subprotocol_is_ours_and_never_the_token() {
    let agreed = |line: &str| {
        let head =
            format!("GET /ahp?tkn=s3cret HTTP/1.1\r\nHost: localhost\r\n{line}{UPGRADE}\r\n");
        talk(head.as_bytes(), &admission(Some("s3cret"))).to_lowercase()
    };
    let answer = agreed("Sec-WebSocket-Protocol: tkn.s3cret, ahp\r\n");
    assert!(answer.contains("\r\nsec-websocket-protocol: ahp\r\n"));
    assert!(!answer.contains("s3cret") && answer.ends_with("\r\n\r\n"));
    assert!(!answer.contains("extensions"));
    for line in ["", "Sec-WebSocket-Protocol: AHP, tkn.s3cret\r\n"] {
        let answer = agreed(line);
        assert!(answer.starts_with("http/1.1 101 "), "{answer}");
        assert!(!answer.contains("sec-websocket-protocol"));
    }
}

#[test]
fn a_proof_needs_no_token_but_the_right_host_and_origin() {
    let admission = admission(Some("s3cret"));
    let nonce = "0123456789abcdef0123456789ABCDEF";
    let ask = |method: &str, version: &str, lines: &str| {
        let head = format!("{method} /proof?nonce={nonce} HTTP/{version}\r\n{lines}\r\n");
        talk(head.as_bytes(), &admission)
    };
    let status = |answer: String| answer[9..12].to_owned();
    let host = "Host: localhost\r\n";
    let answer = ask("GET", "1.1", host);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(answer.split("\r\n\r\n").nth(1).unwrap().len(), 64);
    assert!(answer.contains("Connection: keep-alive\r\n") && !answer.contains("s3cret"));
    for closing in
        [ask("GET", "1.0", host), ask("GET", "1.1", &format!("{host}Connection: close\r\n"))]
    {
        assert!(closing.contains(" 200 ") && closing.contains("Connection: close\r\n"));
    }
    assert_eq!(status(ask("POST", "1.1", host)), "405");
    assert_eq!(status(ask("GET", "1.1", "Host: evil.example\r\n")), "403");
    let from_page = format!("{host}Origin: https://evil.example\r\n");
    assert_eq!(status(ask("GET", "1.1", &from_page)), "403");
    admission.set_ready(false);
    assert_eq!(status(ask("GET", "1.1", host)), "200", "before it is ready");
}

#[test]
fn health_needs_no_token_and_readiness_is_reported() {
    let admission = admission(Some("s3cret"));
    let head = |target| format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(status_of(&head("/healthz"), &admission), 200);
    assert_eq!(status_of(&head("/readyz"), &admission), 200);
    assert_eq!(status_of(&head("/healthz/"), &admission), 401);
    admission.set_ready(false);
    assert_eq!(status_of(&head("/healthz"), &admission), 200);
    assert_eq!(status_of(&head("/readyz?x"), &admission), 503);
    let upgrade = format!("GET /?tkn=s3cret HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}\r\n");
    assert_eq!(status_of(&upgrade, &admission), 503);
    assert_eq!(status_of(&upgrade.replace("s3cret", "wrong"), &admission), 401);
}

#[test]
fn a_head_is_bounded_and_may_be_absurd() {
    let admission = admission(None);
    assert_eq!(status_of("GET / HTTP/1.1\r\nHost: loc", &admission), 408);
    assert_eq!(status_of("", &admission), 408);
    assert_eq!(status_of("\u{16}\u{3}\u{1}\u{2}", &admission), 400);
    assert_eq!(status_of("GET / HTTP/9.9\r\n\r\n", &admission), 400);
    let many = "X: y\r\n".repeat(65);
    assert_eq!(status_of(&format!("GET / HTTP/1.1\r\n{many}\r\n"), &admission), 431);
    let long = "y".repeat(16 * 1_024);
    assert_eq!(status_of(&format!("GET / HTTP/1.1\r\nX: {long}"), &admission), 431);
    assert_eq!(status_of(&format!("GET / HTTP/1.1\r\nX: {long}\r\n\r\n"), &admission), 431);
    let absurd = b"GET / HTTP/1.1\r\nHost: \xFF\xFE\r\nOrigin: \xFF\r\n\r\n";
    assert!(talk(absurd, &admission).starts_with("HTTP/1.1 400 "));
}

#[test]
fn every_answer_says_what_a_page_may_do_with_it() {
    let admission = admission(Some("s3cret"));
    let heads = [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "GET / HT",
    ];
    for head in heads {
        let answer = talk(head.as_bytes(), &admission).to_lowercase();
        for line in [
            "\r\ncontent-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
             media-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action \
             'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types greenroom-sw\r\n",
            "\r\nx-content-type-options: nosniff\r\n",
            "\r\nreferrer-policy: no-referrer\r\n",
            "\r\ncross-origin-opener-policy: same-origin\r\n",
            "\r\ncross-origin-resource-policy: same-origin\r\n",
        ] {
            assert!(answer.contains(line), "{head}: {answer} lacks {line}");
        }
        assert!(!answer.contains("set-cookie"));
    }
}

proptest! {
    #[test]
    fn no_head_panics(head in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = talk(&head, &admission(Some("s3cret")));
    }

    #[test]
    fn no_header_value_panics(host in "\\PC{0,40}", origin in "\\PC{0,40}", query in "[%a-f0-9=&tkn]{0,40}") {
        let lines = format!("Host: {host}\r\nOrigin: {origin}\r\n");
        upgrade(&format!("/?{query}"), &lines);
        upgrade("/", &format!("Host: localhost\r\nAuthorization: {origin}\r\nOrigin: http://{host}\r\n"));
    }
}

#[test]
fn the_status_is_for_who_has_the_token() {
    let admission = admission(Some("s3cret"));
    let ask = |line: &str| {
        let head = format!("GET /status HTTP/1.1\r\nHost: localhost\r\n{line}\r\n");
        talk(head.as_bytes(), &admission)
    };
    assert!(ask("").starts_with("HTTP/1.1 401 "));
    assert!(ask("Authorization: Bearer other\r\n").starts_with("HTTP/1.1 401 "));
    let answer = ask("Authorization: Bearer s3cret\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "));
    assert!(answer.contains("Content-Type: application/json\r\n"));
    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    let status: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!((&status["clients"], &status["pid"]), (&json!(0), &json!(std::process::id())));
    assert!(!answer.contains("s3cret"));
}
