//! TLS over real sockets: the page and the WebSocket, a certificate that changes, and who may do without.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use host::ServerLimits;
use host::net::TlsIdentity;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::{Host, TOKEN, UPGRADE, ask, masked, notification, text};

/// Writes a certificate for `localhost` and its key.
fn write_identity(dir: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap()
}

fn load(dir: &Path) -> TlsIdentity {
    TlsIdentity::load(&dir.join("cert.pem"), &dir.join("key.pem")).unwrap()
}

/// Connects and trusts this certificate alone.
async fn connect(
    addr: SocketAddr,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let socket = TcpStream::connect(addr).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

#[tokio::test]
async fn the_page_and_a_websocket_come_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let trusted = write_identity(dir.path());
    let mut host = Host::start_tls(ServerLimits::default(), load(dir.path())).await;
    let port = host.addr.port();
    let mut socket = connect(host.addr, &trusted).await.unwrap();
    let get = format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    socket.write_all(get.as_bytes()).await.unwrap();
    let mut page = String::new();
    socket.read_to_string(&mut page).await.unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("</html>"), "{page}");

    let mut socket = connect(host.addr, &trusted).await.unwrap();
    let head = format!(
        "GET /ahp HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: https://localhost:{port}\r\n\
         Sec-WebSocket-Protocol: ahp, tkn.{TOKEN}\r\n{UPGRADE}\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(socket.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "));
    let (peer, link) = host.joined().await;
    let frame = masked(0x81, notification("over_tls").as_bytes());
    socket.write_all(&frame).await.unwrap();
    assert_eq!(host.receive().await, "over_tls");
    let large = "z".repeat(900_000);
    link.push(text(&large), 0);
    let mut got = vec![0; 10 + large.len()];
    socket.read_exact(&mut got).await.unwrap();
    assert!(got.ends_with(b"zzz") && got[0] == 0x81);
    drop(socket);
    host.receive_gone(peer).await;
}

#[tokio::test]
async fn a_new_certificate_is_used_and_a_broken_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let first = write_identity(dir.path());
    let host = Host::start_tls(ServerLimits::default(), load(dir.path())).await;
    connect(host.addr, &first).await.unwrap();
    let second = write_identity(dir.path());
    assert!(connect(host.addr, &first).await.is_err(), "it is not the one in use any more");
    connect(host.addr, &second).await.unwrap();
    std::fs::write(dir.path().join("cert.pem"), "nonsense").unwrap();
    connect(host.addr, &second).await.unwrap();
    std::fs::remove_file(dir.path().join("key.pem")).unwrap();
    connect(host.addr, &second).await.unwrap();
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let trusted = write_identity(dir.path());
    let limits = ServerLimits { handshake_timeout_ms: 100, ..ServerLimits::default() };
    let host = Host::start_tls(limits, load(dir.path())).await;
    let mut socket = connect(host.addr, &trusted).await.unwrap();
    let mut answer = Vec::new();
    // The end, or a reset: in either case nothing of the connection is left at the host.
    let _ = socket.read_to_end(&mut answer).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
}

#[tokio::test]
async fn programs_on_this_machine_may_do_without_and_nonsense_ends() {
    let dir = tempfile::tempdir().unwrap();
    write_identity(dir.path());
    let limits = ServerLimits { handshake_timeout_ms: 100, ..ServerLimits::default() };
    let mut host = Host::start_tls(limits, load(dir.path())).await;
    let healthz = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", host.addr);
    assert_eq!(ask(host.addr, &healthz).await.0, 200);
    let (_client, _, _link) = host.client().await;
    // A handshake that begins and never goes on, and one that is none: both end.
    for bytes in [&b"\x16\x03\x01\x02\x00"[..], &[22; 600], b""] {
        let mut socket = TcpStream::connect(host.addr).await.unwrap();
        socket.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest).await;
        assert!(rest.len() < 1_024, "an alert at most");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    write_identity(dir.path());
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let fails = |cert: &Path, key: &Path| match TlsIdentity::load(cert, key) {
        Ok(_) => panic!("it can be used"),
        Err(error) => error.to_string(),
    };
    let missing = dir.path().join("none.pem");
    assert!(fails(&missing, &key).starts_with("tls_cert: "));
    assert!(fails(&cert, &missing).starts_with("tls_key: "));
    assert!(fails(&key, &key).contains("there is no certificate in this file"));
    assert!(fails(&cert, &cert).contains("there is no private key in this file"));
    let other = tempfile::tempdir().unwrap();
    write_identity(other.path());
    let other_key = other.path().join("key.pem");
    let told = fails(&cert, &other_key);
    assert!(told.contains("does not belong to the certificate"), "{told}");
    for file in [&cert, &other_key] {
        assert!(told.contains(&file.display().to_string()), "{told}");
    }
    assert!(!told.contains("KeyMismatch"), "{told}");
}
