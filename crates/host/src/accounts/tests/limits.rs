//! The limits of a space: what is over one is refused with words, or waits.

use std::sync::Arc;

use super::*;
use crate::accounts::{SpaceBounds, SpaceLimitKey, SpaceLimits};

const NONE: SpaceLimits = SpaceLimits {
    connections: 0,
    turns: 0,
    inputs_per_s: 0,
    stored_bytes: 0,
    record_bytes_per_s: 0,
    log_days: 0,
    loaded_bytes: 0,
};

async fn bounds(settings: &PostgresSettings, space: &str) -> SpaceBounds {
    let node = PostgresNode::connect(settings).await.unwrap();
    SpaceBounds::new(node, space.to_owned(), NONE, Arc::default())
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_space_count_over_those_of_the_settings() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let admin = AccountAdmin::connect(&settings).await.unwrap();
    for name in ["red", "blue"] {
        admin.create_space(name).await.unwrap();
    }
    for (key, most) in [
        (SpaceLimitKey::Connections, 2),
        (SpaceLimitKey::Turns, 1),
        (SpaceLimitKey::InputsPerSecond, 1_000),
        (SpaceLimitKey::StoredBytes, 10),
        (SpaceLimitKey::LoadedBytes, 77),
    ] {
        admin.set_space_limit("red", key, Some(most)).await.unwrap();
    }
    let red = bounds(&settings, "red").await;
    assert_eq!(red.loaded_bytes().await, 77);
    let places = [red.connect().await.unwrap(), red.connect().await.unwrap()];
    let refused = red.connect().await.err().unwrap();
    assert!(refused.contains("2 connections"), "{refused}");
    drop(places);
    red.connect().await.unwrap();

    let turn = red.begin_turn().await.unwrap();
    let refused = red.begin_turn().await.err().unwrap();
    assert_eq!(refused.error_type, "spaceLimit");
    assert!(refused.message.contains("1 turns run"), "{refused:?}");
    drop(turn);
    drop(red.begin_turn().await.unwrap());

    // Two seconds' worth at once, then no faster than allowed: more than could be allowed while this is counted.
    let delays: Vec<Duration> = (0..100_000).map(|_| red.delay_of_input()).collect();
    assert!(delays.iter().take(1_900).all(Duration::is_zero));
    assert!(delays.last().unwrap() > &Duration::from_millis(500));

    // What another space does is nobody's business here.
    let blue = bounds(&settings, "blue").await;
    let many: Vec<_> = [(); 9].into_iter().map(|()| blue.connect()).collect();
    assert!(futures_util::future::join_all(many).await.iter().all(Result::is_ok));
    assert_eq!(blue.delay_of_input(), Duration::ZERO);
    assert_eq!(blue.loaded_bytes().await, 0);

    let database = settings.url.rsplit_once("dbname=").unwrap().1;
    let sql = "INSERT INTO greenroom.blob SELECT id, 'x'::bytea, 11, 0, 0 FROM greenroom.space";
    run_sql(server.socket(), database, sql);
    let full = bounds(&settings, "red").await;
    let refused = full.check_stored().await.unwrap_err();
    assert!(refused.contains("stored 11 bytes and may store 10"), "{refused}");
    assert!(full.begin_turn().await.is_err());
    blue.check_stored().await.unwrap();

    // Taken back, and gone with the space.
    let key = SpaceLimitKey::StoredBytes;
    admin.set_space_limit("red", key, None).await.unwrap();
    assert_eq!(admin.space_limits("red").await.unwrap().len(), 4);
    let unknown = admin.set_space_limit("green", key, Some(1)).await;
    assert!(matches!(unknown, Err(AccountError::UnknownSpace(_))));
    admin.remove_space("red").await.unwrap();
    admin.create_space("red").await.unwrap();
    assert!(admin.space_limits("red").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_a_limit_is_refused_over_the_socket() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let admin = AccountAdmin::connect(&settings).await.unwrap();
    admin.create_space("default").await.unwrap();
    for (key, most) in [(SpaceLimitKey::Connections, 1), (SpaceLimitKey::StoredBytes, 1)] {
        admin.set_space_limit("default", key, Some(most)).await.unwrap();
    }
    let database = settings.url.rsplit_once("dbname=").unwrap().1;
    let sql = "INSERT INTO greenroom.blob SELECT id, 'x'::bytea, 2, 0, 0 FROM greenroom.space";
    run_sql(server.socket(), database, sql);
    let node = start_node(&settings).await;
    let ann = issue(&admin, &new_token("default", "ann", Role::Member)).await;
    let bob = issue(&admin, &new_token("default", "bob", Role::Member)).await;
    let mut client = node.open(&ann).await.unwrap();
    assert_eq!(node.refusal(&bob).await, 429);

    let status = node.put("/api/content", &ann).await;
    assert!(status.contains(" 507 "), "{status}");
    let session = "scripted:/01900000-0000-7000-8000-000000000001";
    make_session(&mut client, session).await;
    let made = client.ask("subscribe", json!({"channel": session})).await;
    let chat = made["result"]["snapshot"]["state"]["defaultChat"].clone();
    client.ask("subscribe", json!({"channel": chat})).await;
    let action = json!({"type": "chat/turnStarted", "turnId": "t1", "startedAt": "2026-01-01T00:00:00.000Z",
        "message": {"text": "hi", "origin": {"kind": "user"}}});
    let params = json!({"channel": chat, "clientSeq": 2, "action": action});
    let message = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params});
    let message = Message::text(message.to_string());
    client.socket.send(message).await.unwrap();
    let ended = async {
        loop {
            if let Message::Text(text) = client.socket.next().await.unwrap().unwrap() {
                let told: Value = serde_json::from_str(&text).unwrap();
                if told["params"]["action"]["type"] == "chat/error" {
                    return told.to_string();
                }
            }
        }
    };
    let ended = timeout(SOON, ended).await.unwrap();
    assert!(ended.contains("spaceLimit") && ended.contains("may store 1"), "{ended}");
    drop(client);
    node.stop().await;
}
