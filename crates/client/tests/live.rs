//! The client that stays connected, against a small host of the test's own over a real socket.

mod peer;

use std::sync::{Arc, Mutex};

use client::{Back, ClientError, Link, Live, Options, Place, Target, Update, Updates, WhyNot};
use futures_util::StreamExt;
use serde_json::{Value, json};
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
    Options {
        subscriptions: vec![chat()],
        ..Options::default()
    }
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
    write(
        peer,
        json!({"jsonrpc": "2.0", "method": "action", "params": envelope}),
    )
    .await;
}

fn draft_of(live: &Live) -> Option<String> {
    let chat = live.chat(&chat())?;
    Some(chat.draft.as_ref()?["text"].as_str()?.to_owned())
}

/// The next update that is not about the attempts to connect.
async fn next(updates: &mut Updates) -> Update {
    loop {
        match updates.next().await.expect("the client is not over") {
            Update::Connection(Link::Trying { .. }) => {}
            update => return update,
        }
    }
}

#[tokio::test]
async fn what_is_dispatched_shows_at_once_and_the_echo_wins() {
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
        assert_eq!(
            (reason.as_str(), action.name()),
            ("not now", "chat/draftChanged")
        );
        assert_eq!(draft_of(&live).as_deref(), Some("normalised"));
        assert!(matches!(
            live.dispatch(&chat(), json!({"type": "chat/draftChanged", "draft": 3})),
            Err(ClientError::BadAction(_))
        ));
        live.close().await;
        let over = updates.next().await;
        assert!(
            matches!(over, Some(Update::Connection(Link::Over { .. }))),
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
    let place = Arc::new(Mutex::new(first_target));
    let moved = Arc::clone(&place);
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
        let find =
            Place::found_by(move || Ok::<Target, ClientError>(place.lock().unwrap().clone()));
        let (live, mut updates) = Live::connect(find, "me", only_the_chat()).await.unwrap();
        live.dispatch(&chat(), draft("mine")).unwrap();
        let lost = next(&mut updates).await;
        assert!(
            matches!(lost, Update::Connection(Link::Lost { .. })),
            "{lost:?}"
        );
        let back = Update::Connection(Link::Back { how: Back::Replay });
        assert_eq!(next(&mut updates).await, back);
        assert!(matches!(next(&mut updates).await, Update::Changed { .. }));
        assert_eq!(draft_of(&live).as_deref(), Some("mine"));
        let echo = next(&mut updates).await;
        let Update::Changed { envelope, .. } = echo else {
            panic!("{echo:?}")
        };
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
        write(
            &mut peer,
            json!({"jsonrpc": "2.0", "id": request["id"], "error": error}),
        )
        .await;
        let request = answer(&mut peer, welcome(json!([snapshot("new", 9)]))).await;
        assert_eq!(request["method"], "initialize");
        while peer.next().await.is_some() {}
    };
    let app = async {
        let (live, mut updates) = Live::connect(target, "me", only_the_chat()).await.unwrap();
        live.dispatch(&chat(), draft("mine")).unwrap();
        let lost = next(&mut updates).await;
        assert!(
            matches!(lost, Update::Connection(Link::Lost { .. })),
            "{lost:?}"
        );
        let back = Update::Connection(Link::Back { how: Back::Anew });
        assert_eq!(next(&mut updates).await, back);
        let channel = CHAT.to_owned();
        assert_eq!(next(&mut updates).await, Update::Reset { channel });
        let Update::NotResent { why, action, .. } = next(&mut updates).await else {
            panic!("the draft is given up")
        };
        assert_eq!(
            (why, action.name()),
            (WhyNot::StateReplaced, "chat/draftChanged")
        );
        assert_eq!(live.chat(&chat()).unwrap().title, "new");
        assert_eq!(draft_of(&live), None);
        live.close().await;
    };
    tokio::join!(host, app);
}
