//! The client that stays connected, against a small host of the test's own over a real socket.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod peer;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{
    ClientError, ConnectionEvent, DropReason, HostLocator, HostTarget, Live, Options, Resync,
    Update, Updates,
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use wire::ChannelUri;

use peer::{Peer, accept, answer, listener, read, write};

const CHAT: &str = "ahp-chat:/c";

fn chat() -> ChannelUri {
    ChannelUri::parse(CHAT).unwrap()
}

fn snapshot(title: &str, from_seq: u64) -> Value {
    json!({
        "resource": CHAT, "fromSeq": from_seq,
        "state": {"resource": CHAT, "title": title, "status": 1, "modifiedAt": "2026-01-01T00:00:00Z", "turns": []},
    })
}

fn welcome(snapshots: Value) -> Value {
    json!({"protocolVersion": "1.0.0", "serverSeq": 5, "snapshots": snapshots})
}

fn only_the_chat() -> Options {
    Options { subscriptions: vec![chat()], ..Options::default() }
}

fn draft(text: &str) -> Value {
    json!({"type": "chat/draftChanged", "draft": {"text": text, "origin": {"kind": "user"}}})
}

fn envelope(seq: u64, action: &Value, client_seq: Option<i64>) -> Value {
    let mut envelope = json!({"channel": CHAT, "serverSeq": seq, "action": action});
    if let Some(client_seq) = client_seq {
        envelope["origin"] = json!({"clientId": "me", "clientSeq": client_seq});
    }
    envelope
}

async fn act(peer: &mut Peer, envelope: Value) {
    write(peer, json!({"jsonrpc": "2.0", "method": "action", "params": envelope})).await;
}

fn draft_of(live: &Live) -> Option<String> {
    let chat = live.chat(&chat())?;
    Some(chat.draft.as_ref()?["text"].as_str()?.to_owned())
}

/// The next update that is not about the attempts to connect.
async fn next(updates: &mut Updates) -> Update {
    loop {
        match updates.next().await.expect("the client is not over") {
            Update::Connection(ConnectionEvent::Retrying { .. }) => {}
            update => return update,
        }
    }
}

#[tokio::test]
async fn dispatched_actions_are_visible_at_once_and_the_echo_wins() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        answer(&mut peer, welcome(json!([snapshot("t", 5)]))).await;
        let dispatched = read(&mut peer).await;
        assert_eq!(dispatched["params"]["clientSeq"], 1);
        act(&mut peer, envelope(6, &draft("normalised"), Some(1))).await;
        let second = read(&mut peer).await;
        let mut refusal = envelope(6, &second["params"]["action"], Some(2));
        refusal["rejectionReason"] = json!("not now");
        act(&mut peer, refusal).await;
        while peer.next().await.is_some() {}
    };
    let app = async {
        let (live, mut updates) = Live::connect(target, "me", only_the_chat()).await.unwrap();
        assert_eq!(live.dispatch(&chat(), draft("mine")), Ok(1));
        assert_eq!(draft_of(&live).as_deref(), Some("mine"));
        assert!(matches!(next(&mut updates).await, Update::Changed { .. }));
        assert_eq!(draft_of(&live).as_deref(), Some("normalised"));
        assert_eq!(live.dispatch(&chat(), draft("no")), Ok(2));
        let Update::Refused { reason, action, .. } = next(&mut updates).await else {
            panic!("a refusal")
        };
        assert_eq!((reason.as_str(), action.name()), ("not now", "chat/draftChanged"));
        assert_eq!(draft_of(&live).as_deref(), Some("normalised"));
        assert!(matches!(
            live.dispatch(&chat(), json!({"type": "chat/draftChanged", "draft": 3})),
            Err(ClientError::BadAction(_))
        ));
        live.close().await;
        let over = updates.next().await;
        assert!(
            matches!(over, Some(Update::Connection(ConnectionEvent::Closed { .. }))),
            "{over:?}"
        );
        assert_eq!(updates.next().await, None);
    };
    tokio::join!(host, app);
}

#[tokio::test]
async fn a_lost_connection_is_taken_up_where_it_was_lost_even_elsewhere() {
    let (first, first_target) = listener().await;
    let (second, second_target) = listener().await;
    let locator = Arc::new(Mutex::new(first_target));
    let moved = Arc::clone(&locator);
    let host = async {
        let mut peer = accept(&first).await;
        answer(&mut peer, welcome(json!([snapshot("t", 5)]))).await;
        let lost = read(&mut peer).await;
        assert_eq!(lost["params"]["action"], draft("mine"));
        *moved.lock().unwrap() = second_target;
        drop(peer);

        let mut peer = accept(&second).await;
        let missed = json!({"type": "chat/activityChanged", "activity": "thinking"});
        let replay =
            json!({"type": "replay", "actions": [envelope(6, &missed, None)], "missing": []});
        let request = answer(&mut peer, replay).await;
        assert_eq!(request["method"], "reconnect");
        assert_eq!(request["params"]["lastSeenServerSeq"], 5);
        assert_eq!(request["params"]["subscriptions"], json!([CHAT]));
        let again = read(&mut peer).await;
        assert_eq!(again["params"], lost["params"]);
        act(&mut peer, envelope(7, &draft("mine"), Some(1))).await;
        while peer.next().await.is_some() {}
    };
    let app = async {
        let find = HostLocator::from_fn(move || {
            Ok::<HostTarget, ClientError>(locator.lock().unwrap().clone())
        });
        let (live, mut updates) = Live::connect(find, "me", only_the_chat()).await.unwrap();
        live.dispatch(&chat(), draft("mine")).unwrap();
        let lost = next(&mut updates).await;
        assert!(matches!(lost, Update::Connection(ConnectionEvent::Lost { .. })), "{lost:?}");
        let back = Update::Connection(ConnectionEvent::Restored { how: Resync::Replay });
        assert_eq!(next(&mut updates).await, back);
        assert!(matches!(next(&mut updates).await, Update::Changed { .. }));
        assert_eq!(draft_of(&live).as_deref(), Some("mine"));
        let echo = next(&mut updates).await;
        let Update::Changed { envelope, .. } = echo else { panic!("{echo:?}") };
        assert!(envelope.is_from("me", 1));
        assert_eq!(live.read(|replica| replica.pending().count()), 0);
        let state = live.chat(&chat()).unwrap();
        assert_eq!(state.activity.as_deref(), Some("thinking"));
        live.close().await;
    };
    tokio::join!(host, app);
}

#[tokio::test]
async fn a_client_that_was_forgotten_introduces_itself_on_the_same_socket() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        answer(&mut peer, welcome(json!([snapshot("old", 5)]))).await;
        read(&mut peer).await;
        drop(peer);
        let mut peer = accept(&listener).await;
        let request = read(&mut peer).await;
        assert_eq!(request["method"], "reconnect");
        let error = json!({"code": -32008, "message": "who?"});
        write(&mut peer, json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
        let request = answer(&mut peer, welcome(json!([snapshot("new", 9)]))).await;
        assert_eq!(request["method"], "initialize");
        while peer.next().await.is_some() {}
    };
    let app = async {
        let (live, mut updates) = Live::connect(target, "me", only_the_chat()).await.unwrap();
        live.dispatch(&chat(), draft("mine")).unwrap();
        let lost = next(&mut updates).await;
        assert!(matches!(lost, Update::Connection(ConnectionEvent::Lost { .. })), "{lost:?}");
        let back = Update::Connection(ConnectionEvent::Restored { how: Resync::Reinitialized });
        assert_eq!(next(&mut updates).await, back);
        let channel = CHAT.to_owned();
        assert_eq!(next(&mut updates).await, Update::Reset { channel });
        let Update::NotResent { why, action, .. } = next(&mut updates).await else {
            panic!("the draft is given up")
        };
        assert_eq!((why, action.name()), (DropReason::StateReplaced, "chat/draftChanged"));
        assert_eq!(live.chat(&chat()).unwrap().title, "new");
        assert_eq!(draft_of(&live), None);
        live.close().await;
    };
    tokio::join!(host, app);
}

#[tokio::test]
async fn the_answer_to_a_subscription_is_processed_in_order_with_the_actions() {
    const ACTIONS: u64 = 300;
    let (listener, target) = listener().await;
    let activity = |seq: u64| json!({"type": "chat/activityChanged", "activity": seq.to_string()});
    let host = async {
        let mut peer = accept(&listener).await;
        answer(&mut peer, welcome(json!([]))).await;
        // The channel that was asked for at the start is not there yet: it is asked for once more, and left out.
        refuse(&mut peer).await;
        let mut seq = 5;
        for _ in 0..2 {
            let request = answer(&mut peer, json!({"snapshot": snapshot("t", seq)})).await;
            assert_eq!(request["params"]["view"], json!({"turns": 3}));
            for _ in 0..ACTIONS {
                seq += 1;
                act(&mut peer, envelope(seq, &activity(seq), None)).await;
            }
        }
        while peer.next().await.is_some() {}
    };
    let app = async {
        let (live, mut updates) = Live::connect(target, "me", only_the_chat()).await.unwrap();
        assert!(live.chat(&chat()).is_none());
        for round in 1..=2 {
            let Value::Object(view) = json!({"view": {"turns": 3}}) else { unreachable!() };
            live.subscribe_with(&chat(), view).await.unwrap();
            let newest = (5 + round * ACTIONS).to_string();
            while live.chat(&chat()).unwrap().activity.as_ref() != Some(&newest) {
                let update = next(&mut updates).await;
                assert!(
                    matches!(update, Update::Changed { .. } | Update::Reset { .. }),
                    "{update:?}"
                );
            }
        }
        live.close().await;
    };
    tokio::join!(host, app);
}

/// Answers a request with an error.
async fn refuse(peer: &mut Peer) -> Value {
    let request = read(peer).await;
    let error = json!({"code": -32008, "message": "no"});
    write(peer, json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    request
}

#[tokio::test]
async fn without_a_connection_dispatching_goes_on_and_asking_fails_at_once() {
    let (listener, target) = listener().await;
    let (asked, is_asked) = oneshot::channel();
    let (left, is_left) = oneshot::channel();
    let host = async {
        let mut peer = accept(&listener).await;
        answer(&mut peer, welcome(json!([snapshot("t", 5)]))).await;
        drop(peer);
        let mut peer = accept(&listener).await;
        let request = read(&mut peer).await;
        assert_eq!(request["params"]["subscriptions"], json!([CHAT]));
        asked.send(()).unwrap();
        is_left.await.unwrap();
        let result = json!({"type": "replay", "actions": [], "missing": []});
        let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        write(&mut peer, response).await;
        let mut requests = Vec::new();
        for _ in 0..3 {
            requests.push(read(&mut peer).await);
        }
        // Which of the two goes first is open; the order of dispatched actions is not.
        let left = requests.iter().position(|request| request["method"] == "unsubscribe");
        let left = requests.remove(left.expect("it was left while the reconnect was under way"));
        assert_eq!(left["params"]["channel"], CHAT);
        for (request, expected) in requests.iter().zip([1, 2]) {
            assert_eq!(request["params"]["clientSeq"], expected);
        }
        while peer.next().await.is_some() {}
    };
    let app = async {
        let (live, mut updates) = Live::connect(target, "me", only_the_chat()).await.unwrap();
        let lost = next(&mut updates).await;
        assert!(matches!(lost, Update::Connection(ConnectionEvent::Lost { .. })), "{lost:?}");
        assert!(!live.is_connected());
        for text in ["one", "two"] {
            live.dispatch(&chat(), draft(text)).unwrap();
        }
        assert_eq!(draft_of(&live).as_deref(), Some("two"));
        assert!(live.subscribe(&chat()).await.is_err());
        assert!(live.request("ping", json!({})).await.is_err());
        is_asked.await.unwrap();
        live.unsubscribe(&chat()).await;
        left.send(()).unwrap();
        let back = Update::Connection(ConnectionEvent::Restored { how: Resync::Replay });
        assert_eq!(next(&mut updates).await, back);
        assert!(live.chat(&chat()).is_none());
        live.close().await;
    };
    tokio::join!(host, app);
}

#[tokio::test]
async fn a_client_whose_id_was_taken_does_not_take_it_back() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        answer(&mut peer, welcome(json!([snapshot("t", 5)]))).await;
        let frame = CloseFrame {
            code: CloseCode::Policy,
            reason: "another connection took this client id".into(),
        };
        peer.close(Some(frame)).await.unwrap();
        while peer.next().await.is_some() {}
    };
    let app = async {
        let (live, mut updates) = Live::connect(target, "me", only_the_chat()).await.unwrap();
        let why = ClientError::Superseded;
        let over = Update::Connection(ConnectionEvent::Closed { why: why.clone() });
        assert_eq!(updates.next().await, Some(over));
        assert_eq!(updates.next().await, None);
        assert_eq!(live.close_reason(), Some(why.clone()));
        assert_eq!(live.dispatch(&chat(), draft("late")), Err(why));
        assert!(live.chat(&chat()).is_some());
    };
    tokio::join!(host, app);
}

#[tokio::test]
async fn a_host_that_falls_silent_is_left_and_its_questions_are_answered_on_the_next_connection() {
    let (listener, target) = listener().await;
    let host = async {
        let mut silent = accept(&listener).await;
        answer(&mut silent, welcome(json!([snapshot("t", 5)]))).await;
        let replay = json!({"type": "replay", "actions": [], "missing": []});
        let ask = json!({"jsonrpc": "2.0", "id": 7, "method": "ask", "params": {}});
        // On a machine that stalls this host may seem silent too: then the client comes once more.
        loop {
            let mut peer = accept(&listener).await;
            answer(&mut peer, replay.clone()).await;
            write(&mut peer, ask.clone()).await;
            while let Some(Ok(Message::Text(text))) = peer.next().await {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["method"] != "ping" {
                    assert_eq!((&message["id"], &message["result"]), (&json!(7), &json!("done")));
                    return;
                }
                let pong = json!({"jsonrpc": "2.0", "id": message["id"], "result": null});
                write(&mut peer, pong).await;
            }
        }
    };
    let app = async {
        let options = Options {
            ping_after: Duration::from_millis(200),
            handler: Some(Arc::new(|_| Box::pin(async { Ok(json!("done")) }))),
            ..only_the_chat()
        };
        let (_live, mut updates) = Live::connect(target, "me", options).await.unwrap();
        let lost = next(&mut updates).await;
        let Update::Connection(ConnectionEvent::Lost { why }) = lost else { panic!("{lost:?}") };
        assert!(why.to_string().contains("silent"), "{why}");
        let back = Update::Connection(ConnectionEvent::Restored { how: Resync::Replay });
        assert_eq!(next(&mut updates).await, back);
        // Open until the host has the answer.
        while updates.next().await.is_some() {}
    };
    tokio::select! {
        () = host => {}
        () = app => panic!("the client ended"),
    }
}

#[tokio::test]
async fn a_disposed_channel_is_gone() {
    const SESSION: &str = "x:/s";
    let (listener, target) = listener().await;
    let session = ChannelUri::parse(SESSION).unwrap();
    let host = async {
        let mut peer = accept(&listener).await;
        let chats = json!([{"resource": CHAT, "title": "", "status": 1, "modifiedAt": "2026-01-01T00:00:00Z"}]);
        let state = json!({
            "provider": "p", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [], "chats": chats,
        });
        let session = json!({"resource": SESSION, "fromSeq": 5, "state": state});
        answer(&mut peer, welcome(json!([session, snapshot("t", 5)]))).await;
        read(&mut peer).await;
        let params = json!({"channel": "ahp-root://", "session": SESSION});
        write(
            &mut peer,
            json!({"jsonrpc": "2.0", "method": "root/sessionRemoved", "params": params}),
        )
        .await;
        while peer.next().await.is_some() {}
    };
    let app = async {
        let options =
            Options { subscriptions: vec![session.clone(), chat()], ..Options::default() };
        let (live, mut updates) = Live::connect(target, "me", options).await.unwrap();
        live.dispatch(&chat(), draft("too late")).unwrap();
        assert!(matches!(next(&mut updates).await, Update::Notification(_)));
        let channel = CHAT.to_owned();
        assert_eq!(next(&mut updates).await, Update::Gone { channel });
        let given_up = next(&mut updates).await;
        assert!(
            matches!(given_up, Update::NotResent { why: DropReason::ChannelGone, .. }),
            "{given_up:?}"
        );
        let channel = SESSION.to_owned();
        assert_eq!(next(&mut updates).await, Update::Gone { channel });
        assert!(live.session(&session).is_none() && live.chat(&chat()).is_none());
        live.close().await;
    };
    tokio::join!(host, app);
}
