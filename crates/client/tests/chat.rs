//! The typed API of one open chat, against a small host of the test's own over a real socket.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod peer;

use client::chat::{
    ChatError, ChatEvent, ChatSelector, OpenChat, OpenOptions, Sent, TurnEvent, TurnFollower,
};
use client::{HostTarget, Live, Options};
use serde_json::{Value, json};
use wire::ChannelUri;

use peer::{Peer, accept, answer, listener, read, write};

const SESSION: &str = "scripted:/s";
const CHAT: &str = "ahp-chat:/c";

fn session_snapshot(more: Value) -> Value {
    let mut state = json!({
        "provider": "scripted", "title": "", "status": 1, "lifecycle": "creating",
        "activeClients": [], "chats": [],
    });
    for (field, value) in more.as_object().unwrap() {
        state[field] = value.clone();
    }
    json!({"snapshot": {"resource": SESSION, "fromSeq": 1, "state": state}})
}

fn chat_snapshot() -> Value {
    let state = json!({
        "resource": CHAT, "title": "", "status": 1, "modifiedAt": "2026-01-01T00:00:00Z", "turns": [],
    });
    json!({"snapshot": {"resource": CHAT, "fromSeq": 2, "state": state}})
}

/// Sends an envelope; a refusal if there is a reason.
async fn act(peer: &mut Peer, channel: &str, seq: u64, action: &Value, own: Option<(i64, &str)>) {
    let mut envelope = json!({"channel": channel, "serverSeq": seq, "action": action});
    if let Some((client_seq, refusal)) = own {
        envelope["origin"] = json!({"clientId": "me", "clientSeq": client_seq});
        if !refusal.is_empty() {
            envelope["rejectionReason"] = json!(refusal);
        }
    }
    let notification = json!({"jsonrpc": "2.0", "method": "action", "params": envelope});
    write(peer, notification).await;
}

async fn open(target: HostTarget) -> Result<OpenChat, ChatError> {
    let options = Options { subscriptions: Vec::new(), ..Options::default() };
    let (live, updates) = Live::connect(target, "me", options).await?;
    let session = ChannelUri::parse(SESSION).unwrap();
    let selector = ChatSelector::Channel(session);
    OpenChat::open(live, updates, &selector, &OpenOptions::default()).await
}

async fn welcome(peer: &mut Peer, session: Value) {
    let hello = json!({"protocolVersion": "1.0.0", "serverSeq": 1, "snapshots": []});
    answer(peer, hello).await;
    answer(peer, session).await;
}

/// Lets a chat of an existing session be opened.
async fn serve_chat(peer: &mut Peer) {
    welcome(peer, session_snapshot(json!({"defaultChat": CHAT}))).await;
    answer(peer, chat_snapshot()).await;
}

#[tokio::test]
async fn a_session_that_is_being_created_is_waited_for() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        welcome(&mut peer, session_snapshot(json!({}))).await;
        let added = json!({"type": "session/defaultChatChanged", "defaultChat": CHAT});
        act(&mut peer, SESSION, 2, &added, None).await;
        let subscribe = answer(&mut peer, chat_snapshot()).await;
        assert_eq!(subscribe["params"]["channel"], CHAT);
        assert_eq!(subscribe["params"]["view"], json!({"turns": 20}));
        peer
    };
    let (chat, _peer) = tokio::join!(open(target), host);
    let chat = chat.unwrap();
    assert_eq!((chat.session().as_str(), chat.chat().as_str()), (SESSION, CHAT));
}

#[tokio::test]
async fn a_session_that_cannot_be_created_fails_with_the_reason() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        welcome(&mut peer, session_snapshot(json!({}))).await;
        let failed =
            json!({"type": "session/creationFailed", "error": {"errorType": "e", "message": "no"}});
        act(&mut peer, SESSION, 2, &failed, None).await;
        peer
    };
    let (chat, _peer) = tokio::join!(open(target), host);
    assert_eq!(chat.unwrap_err(), ChatError::CreationFailed("no".to_owned()));
}

#[tokio::test]
async fn a_message_that_comes_second_waits_in_the_queue() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        serve_chat(&mut peer).await;
        let sent = read(&mut peer).await;
        let first = json!({
            "type": "chat/turnStarted", "turnId": "theirs", "startedAt": "2026-11-15T08:00:00Z",
            "message": {"text": "first"},
        });
        act(&mut peer, CHAT, 3, &first, None).await;
        let refused = &sent["params"]["action"];
        act(&mut peer, CHAT, 3, refused, Some((1, "a turn is running"))).await;
        let queued = read(&mut peer).await;
        (peer, queued)
    };
    let app = async {
        let mut chat = open(target).await.unwrap();
        let Sent::Started { turn_id } = chat.send("second").unwrap() else {
            panic!("nothing runs yet")
        };
        assert!(turn_id.starts_with("turn-") && chat.is_working());
        while chat.waiting_messages().is_empty() {
            assert_eq!(chat.next().await, Ok(ChatEvent::Changed));
        }
        chat
    };
    let (chat, (_peer, queued)) = tokio::join!(app, host);
    let action = &queued["params"]["action"];
    assert_eq!((&action["kind"], &action["message"]["text"]), (&json!("queued"), &json!("second")));
    assert_eq!(chat.ahead().unwrap().queued_messages.len(), 1);
}

#[tokio::test]
async fn a_turn_that_must_start_now_is_refused_with_its_id() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        serve_chat(&mut peer).await;
        let sent = read(&mut peer).await;
        let refused = &sent["params"]["action"];
        act(&mut peer, CHAT, 3, refused, Some((1, "not now"))).await;
        peer
    };
    let app = async {
        let mut chat = open(target).await.unwrap();
        let turn = chat.start_turn("hello", &[]).unwrap();
        let (what, reason) = loop {
            match chat.next().await.unwrap() {
                ChatEvent::Changed => {} // the chat was opened
                ChatEvent::Refused { what, reason } => break (what, reason),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((what.turn_id, reason.as_str()), (Some(turn), "not now"));
        assert_eq!(what.text.as_deref(), Some("hello"));
    };
    tokio::join!(app, host);
}

#[tokio::test]
async fn an_answer_is_followed_to_the_end_of_its_turn() {
    let (listener, target) = listener().await;
    let host = async {
        let mut peer = accept(&listener).await;
        serve_chat(&mut peer).await;
        let sent = read(&mut peer).await;
        let start = sent["params"]["action"].clone();
        let turn = start["turnId"].clone();
        let part = json!({"type": "chat/responsePart", "turnId": turn,
            "part": {"kind": "markdown", "id": "p", "content": "Hel"}});
        let delta = json!({"type": "chat/delta", "turnId": turn, "partId": "p", "content": "lo"});
        let end = json!({"type": "chat/turnComplete", "turnId": turn, "duration": 1});
        act(&mut peer, CHAT, 3, &start, Some((1, ""))).await;
        for (seq, action) in [(4, part), (5, delta), (6, end)] {
            act(&mut peer, CHAT, seq, &action, None).await;
        }
        peer
    };
    let app = async {
        let mut chat = open(target).await.unwrap();
        let Sent::Started { turn_id } = chat.send("hello").unwrap() else {
            panic!("nothing runs yet")
        };
        let mut follower = TurnFollower::default();
        let mut text = String::new();
        loop {
            assert_eq!(chat.next().await, Ok(ChatEvent::Changed));
            for event in follower.follow(&chat.confirmed().unwrap(), 0) {
                match event {
                    TurnEvent::Text { text: more, .. } => text.push_str(&more),
                    TurnEvent::Ended { turn_id: ended, .. } => {
                        assert_eq!((ended, text.as_str()), (turn_id, "Hello"));
                        return;
                    }
                    _ => {}
                }
            }
        }
    };
    tokio::join!(app, host);
}
