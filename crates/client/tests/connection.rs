//! The connection against a small host of its own over a real socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod peer;

use std::sync::Arc;

use client::{ClientError, Connection, HostTarget, Reconnected};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;
use wire::{ChannelUri, RpcError};

use peer::{accept, answer, listener, read, write};

#[tokio::test]
async fn a_handshake_is_read_and_events_follow_in_order() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        let snapshot = json!({"resource": "ahp-root://", "state": {"agents": []}, "fromSeq": 4});
        let result = json!({
            "protocolVersion": "1.0.0", "serverSeq": 4, "snapshots": [snapshot],
            "serverInfo": {"name": "greenroom", "version": "9"},
        });
        let request = answer(&mut peer, result).await;
        assert_eq!(request["params"]["initialSubscriptions"], json!(["ahp-root://"]));
        for n in 0..3 {
            write(&mut peer, json!({"jsonrpc": "2.0", "method": "x", "params": {"n": n}})).await;
        }
        let dispatched = read(&mut peer).await;
        assert_eq!(dispatched["method"], "dispatchAction");
        assert_eq!(dispatched["params"]["clientSeq"], 1);
        peer.close(None).await.unwrap();
        while peer.next().await.is_some() {}
    };
    let app = async {
        let (connection, mut events) = Connection::connect(&target).await.unwrap();
        let greeted = connection.initialize("me", &[ChannelUri::root()]).await.unwrap();
        assert_eq!(greeted.server_info.as_deref(), Some("greenroom 9"));
        assert_eq!((greeted.server_seq, greeted.snapshots.len()), (4, 1));
        for n in 0..3 {
            assert_eq!(events.next().await.unwrap().params["n"], n);
        }
        let seq = connection.dispatch(&ChannelUri::root(), json!({"type": "x"})).await.unwrap();
        assert_eq!(seq, 1);
        assert!(matches!(events.next().await, Err(ClientError::Closed(_))));
        assert!(matches!(connection.ping().await, Err(ClientError::Closed(_))));
    };
    tokio::join!(host, app);
}

#[tokio::test]
async fn the_host_is_answered_with_or_without_a_handler() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        let ask = json!({"jsonrpc": "2.0", "id": "a", "method": "readThing", "params": {"x": 1}});
        // Both questions are asked while a ping of the client waits, so that nothing else is on the wire.
        for expected in [json!(-32601), json!({"x": 1})] {
            let ping = read(&mut peer).await;
            write(&mut peer, ask.clone()).await;
            let response = read(&mut peer).await;
            assert_eq!(response["id"], "a");
            assert!(
                response["error"]["code"] == expected || response["result"] == expected,
                "{response}"
            );
            write(&mut peer, json!({"jsonrpc": "2.0", "id": ping["id"], "result": null})).await;
        }
    };
    let app = async {
        let (connection, _events) = Connection::connect(&target).await.unwrap();
        connection.ping().await.unwrap();
        connection.answer_with(Arc::new(|request| {
            Box::pin(async move { Ok::<_, RpcError>(request.params) })
        }));
        connection.ping().await.unwrap();
        connection.close().await;
    };
    tokio::join!(host, app);
}

#[tokio::test]
async fn a_reconnect_is_a_replay_or_a_snapshot() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        let envelope = json!({
            "channel": "x:/s", "serverSeq": 8,
            "action": {"type": "session/titleChanged", "title": "t"},
        });
        let replay = json!({"type": "replay", "actions": [envelope], "missing": ["x:/gone"]});
        let request = answer(&mut peer, replay).await;
        assert_eq!(request["params"]["lastSeenServerSeq"], 7);
        answer(&mut peer, json!({"type": "snapshot", "snapshots": []})).await;
    };
    let app = async {
        let (connection, _events) = Connection::connect(&target).await.unwrap();
        match connection.reconnect("me", 7, &[]).await.unwrap() {
            Reconnected::Replay { actions, missing } => {
                assert_eq!((actions.len(), missing.as_slice()), (1, &["x:/gone".to_owned()][..]));
            }
            Reconnected::Snapshot(_) => panic!("a replay was sent"),
        }
        let again = connection.reconnect("me", 7, &[]).await.unwrap();
        assert_eq!(again, Reconnected::Snapshot(Vec::new()));
    };
    tokio::join!(host, app);
}

#[tokio::test]
async fn an_application_that_does_not_read_loses_the_connection_not_a_message() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        let event = json!({"jsonrpc": "2.0", "method": "x"}).to_string();
        loop {
            if peer.feed(Message::text(event.clone())).await.is_err() {
                break;
            }
        }
    };
    let app = async {
        let (connection, mut events) = Connection::connect(&target).await.unwrap();
        let error = connection.ping().await.unwrap_err();
        let ClientError::Overflow { events: waiting } = error else {
            panic!("{error}");
        };
        for _ in 0..waiting {
            events.next().await.unwrap();
        }
        assert_eq!(events.next().await, Err(ClientError::Overflow { events: waiting }));
    };
    tokio::join!(host, app);
}

#[tokio::test]
async fn an_unreachable_host_is_reported_with_a_hint() {
    let (listener, target) = listener().await;
    let refusal = async {
        use tokio::io::AsyncWriteExt;
        for status in ["401 Unauthorized", "403 Forbidden"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    };
    let app = async {
        let unauthorized = Connection::connect(&target).await.unwrap_err();
        assert!(matches!(unauthorized, ClientError::Unauthorized { .. }), "{unauthorized}");
        let refused = Connection::connect(&target).await.unwrap_err();
        assert!(matches!(refused, ClientError::Refused { status: 403, .. }), "{refused}");
    };
    tokio::join!(refusal, app);
    drop(listener);
    let refused = Connection::connect(&target).await.unwrap_err();
    assert!(refused.to_string().contains("`greenroom serve`"), "{refused}");
    for url in ["http://127.0.0.1/", "wss://127.0.0.1/", "nonsense"] {
        let target = HostTarget { url: url.to_owned(), token: None };
        let bad = Connection::connect(&target).await.unwrap_err();
        assert!(matches!(bad, ClientError::BadUrl { .. }), "{bad}");
    }
}
