//! A reader that stops reading is cut and can come back; it never delays the others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ahp::{Client, ClientConfig, SubscriptionEvent};
use ahp_types::actions::StateAction;
use ahp_ws::WebSocketTransport;
use conformance::TestHost;
use serde_json::{Value, json};
use tokio::time::timeout;

const SESSION: &str = "scripted:/slow";
const CHUNKS: usize = 4_000;

/// A WebSocket client that subscribes and then never reads again.
fn stalled_subscriber(url: &str, chat: &str) -> TcpStream {
    let address = url.trim_start_matches("ws://").trim_end_matches('/');
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let upgrade = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    socket.write_all(upgrade.as_bytes()).unwrap();
    let mut answer = [0u8; 1_024];
    let read = socket.read(&mut answer).unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 101"));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"channel": "ahp-root://",
        "protocolVersions": ["1.0.0"], "clientId": "deaf", "initialSubscriptions": [chat]}});
    send(&mut socket, &hello);
    // The answer shows that the subscription stands.
    assert!(socket.read(&mut answer).unwrap() > 0);
    socket
}

fn send(socket: &mut TcpStream, message: &Value) {
    let text = message.to_string();
    let length = u16::try_from(text.len()).unwrap();
    let mut frame = vec![0x81, 0xfe];
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&[0; 4]); // a mask of zeros leaves the text as it is
    frame.extend_from_slice(text.as_bytes());
    socket.write_all(&frame).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_reader_is_closed_while_another_gets_every_delta() {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": [{"steps": [{"stream": {"chunks": CHUNKS, "size": 4_096}}]}]});
    let host = TestHost::start_with(data.path(), &script, |config| {
        config.limits.server.outbox_bytes_max = 4 * 1_024 * 1_024;
    })
    .await;
    let transport = WebSocketTransport::connect(&host.url).await.unwrap();
    let config = ClientConfig { subscription_buffer: 65_536, ..ClientConfig::default() };
    let ann = Client::connect(transport, config).await.unwrap();
    ann.initialize("ann".to_owned(), vec!["1.0.0".to_owned()], vec![]).await.unwrap();
    let _: Value = ann.request("createSession", json!({"channel": SESSION})).await.unwrap();
    let (result, _) = ann.subscribe(SESSION.to_owned()).await.unwrap();
    let session = serde_json::to_value(result.snapshot.unwrap().state).unwrap();
    let chat = session["defaultChat"].as_str().unwrap().to_owned();
    let (_, _) = ann.subscribe(chat.clone()).await.unwrap();
    let mut events = ann.events();
    let (url, stalled_chat) = (host.url.clone(), chat.clone());
    let mut stalled =
        tokio::task::spawn_blocking(move || stalled_subscriber(&url, &stalled_chat)).await.unwrap();
    let start = json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "go", "origin": {"kind": "user"}}});
    ann.dispatch(chat, serde_json::from_value(start).unwrap()).await.unwrap();
    let all = async {
        let mut deltas = 0;
        loop {
            let SubscriptionEvent::Action(envelope) = events.recv().await.unwrap().event else {
                continue;
            };
            match envelope.action {
                StateAction::ChatDelta(_) => deltas += 1,
                StateAction::ChatTurnComplete(_) => return deltas,
                _ => {}
            }
        }
    };
    assert_eq!(
        timeout(Duration::from_secs(60), all).await.expect("the stalled reader delays no other"),
        CHUNKS
    );
    // The deaf one was cut: reading now finds what the kernel still held, and then the end.
    let end = tokio::task::spawn_blocking(move || {
        let mut sink = vec![0u8; 65_536];
        loop {
            match stalled.read(&mut sink) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    });
    assert!(end.await.unwrap(), "the connection of the deaf reader is over");
    host.stop().await;
}
