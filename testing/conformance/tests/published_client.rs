//! The published 1.0.0 client drives a real host: what its own reducers make of the stream equals a fresh snapshot.

use std::time::Duration;

use ahp::reducers::{apply_action_to_chat, apply_action_to_session};
use ahp::{Client, ClientConfig, SubscriptionEvent};
use ahp_types::actions::{ActionEnvelope, StateAction};
use ahp_types::commands::{
    CreateSessionParams, FetchTurnsParams, ListSessionsParams, ListSessionsResult, ReconnectParams,
    ReconnectResult,
};
use ahp_types::state::{ChatState, SessionState, SnapshotState};
use ahp_ws::WebSocketTransport;
use conformance::TestHost;
use serde_json::{Value, json};
use tokio::time::timeout;

const SESSION: &str = "ahp-session:/interop";
const ROOT: &str = "ahp-root://";

fn script() -> Value {
    json!({"scenes": [
        {"when": "^hello", "steps": [{"say": ["Hel", "lo"]}, {"usage": {"inputTokens": 3, "outputTokens": 2}}]},
        {"when": "^think", "steps": [{"think": ["hm", "m"]}, {"say": ["ok"]}, {"notify": "done thinking"}]},
        {"when": "^stream (\\d+)", "steps": [{"stream": {"chunks": "$1", "size": 40}}]},
        {"when": "^title", "steps": [{"title": "Named"}, {"activity": "naming"}, {"say": ["x"]}]},
        {"when": "^fail", "steps": [{"say": ["a"]}, {"fail": {"type": "t", "message": "m", "resumable": true}}, {"say": ["b"]}]},
        {"when": "^hang", "steps": [{"say": ["start"]}, {"hang": true}]},
        {"when": "^crash", "steps": [{"crash": true}, {"say": ["after"]}]},
    ]})
}

async fn connect(host: &TestHost) -> Client {
    let transport = WebSocketTransport::connect(&host.url).await.expect("the socket opens");
    let config = ClientConfig { subscription_buffer: 65_536, ..ClientConfig::default() };
    Client::connect(transport, config).await.expect("the client starts")
}

pub async fn ready(host: &TestHost, name: &str) -> Client {
    let client = connect(host).await;
    let versions = vec!["1.0.0".to_owned(), "0.9.0".to_owned()];
    let init = client
        .initialize(name.to_owned(), versions, vec![ROOT.to_owned()])
        .await
        .expect("initialize");
    assert_eq!(init.protocol_version, "1.0.0");
    assert_eq!(init.snapshots.len(), 1);
    client
}

/// A client of 1.0.0 that has subscribed to nothing yet.
pub async fn arrives(url: &str, name: &str) -> Client {
    let transport = WebSocketTransport::connect(url).await.unwrap();
    let client = Client::connect(transport, ClientConfig::default()).await.unwrap();
    let versions = vec!["1.0.0".to_owned()];
    let initialized = client.initialize(name.to_owned(), versions, Vec::new());
    initialized.await.unwrap();
    client
}

pub async fn create_session(client: &Client, uri: &str) {
    let params = CreateSessionParams {
        channel: uri.to_owned(),
        meta: None,
        provider: Some("scripted".to_owned()),
        working_directories: None,
        config: None,
        active_client: None,
        progress_token: None,
    };
    let _: Value = client.request("createSession", params).await.expect("createSession");
}

async fn create(client: &Client) -> (SessionState, ChatState) {
    create_session(client, SESSION).await;
    open(client).await
}

async fn open(client: &Client) -> (SessionState, ChatState) {
    let (result, _) = client.subscribe(SESSION.to_owned()).await.expect("subscribe session");
    let SnapshotState::Session(session) = result.snapshot.expect("a snapshot").state else {
        panic!("a session")
    };
    let chat = session.default_chat.clone().expect("a default chat");
    let (result, _) = client.subscribe(chat).await.expect("subscribe chat");
    let SnapshotState::Chat(chat) = result.snapshot.expect("a snapshot").state else {
        panic!("a chat")
    };
    (*session, *chat)
}

fn start(turn: &str, text: &str) -> StateAction {
    serde_json::from_value(json!({
        "type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": text, "origin": {"kind": "user"}},
    }))
    .expect("a turn start")
}

/// Follows a client until its chat is idle again after turn `turn`.
async fn follow(
    events: &mut ahp::ClientEventStream,
    session: &mut SessionState,
    chat: &mut ChatState,
    turn: &str,
) {
    let until_done = async {
        loop {
            let event = events.recv().await.expect("the stream goes on");
            let SubscriptionEvent::Action(envelope) = event.event else { continue };
            apply(session, chat, &envelope);
            if chat.active_turn.is_none() && chat.turns.last().is_some_and(|done| done.id == turn) {
                return;
            }
        }
    };
    timeout(Duration::from_secs(20), until_done).await.expect("the turn ends");
}

fn apply(session: &mut SessionState, chat: &mut ChatState, envelope: &ActionEnvelope) {
    assert!(envelope.rejection_reason.is_none(), "{:?}", envelope.rejection_reason);
    if envelope.channel == SESSION {
        apply_action_to_session(session, &envelope.action);
    } else if envelope.channel == chat.resource {
        apply_action_to_chat(chat, &envelope.action);
    }
}

/// What no chat action carries is left out of the comparison (H-150).
fn comparable(mut chat: ChatState) -> ChatState {
    chat.title.clear();
    chat
}

#[tokio::test]
async fn reduced_state_equals_a_fresh_snapshot_after_every_scene() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let ann = ready(&host, "ann").await;
    let bob = ready(&host, "bob").await;
    // Before the subscriptions: what follows a snapshot at once is not missed.
    let (mut events, mut bobs_events) = (ann.events(), bob.events());
    let (mut session, mut chat) = create(&ann).await;
    let (mut bobs_session, mut bobs_chat) = open(&bob).await;
    for (turn, text) in [
        ("t1", "hello"),
        ("t2", "think"),
        ("t3", "stream 500"),
        ("t4", "title"),
        ("t5", "fail"),
        ("t6", "crash"),
    ] {
        ann.dispatch(chat.resource.clone(), start(turn, text)).await.expect("dispatch");
        follow(&mut events, &mut session, &mut chat, turn).await;
        follow(&mut bobs_events, &mut bobs_session, &mut bobs_chat, turn).await;
        assert_eq!(comparable(bobs_chat.clone()), comparable(chat.clone()), "after {text}");
    }
    let fresh = ready(&host, "fresh").await;
    let (fresh_session, fresh_chat) = open(&fresh).await;
    assert_eq!(comparable(fresh_chat), comparable(chat.clone()));
    // Actions on the session that follow the end of the turn may still be on their way.
    let caught_up = async {
        while session != fresh_session {
            let SubscriptionEvent::Action(envelope) = events.recv().await.expect("goes on").event
            else {
                continue;
            };
            apply(&mut session, &mut chat, &envelope);
        }
    };
    if timeout(Duration::from_secs(60), caught_up).await.is_err() {
        assert_eq!(session, fresh_session, "nothing more comes");
    }
    assert_eq!(fresh_session.title, "Named");
    let list: ListSessionsResult = ann
        .request(
            "listSessions",
            ListSessionsParams { channel: ROOT.to_owned(), meta: None, limit: None, cursor: None },
        )
        .await
        .expect("listSessions");
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.items[0].title, "Named");
    ann.ping().await.expect("ping");
    host.stop().await;
}

#[tokio::test]
async fn a_client_that_lost_its_connection_is_replayed_what_it_missed_also_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let ann = ready(&host, "ann").await;
    let (mut session, mut chat) = create(&ann).await;
    let mut events = ann.events();
    ann.dispatch(chat.resource.clone(), start("t1", "hello")).await.expect("dispatch");
    follow(&mut events, &mut session, &mut chat, "t1").await;
    let last_seen = {
        let (result, _) = ann.subscribe(chat.resource.clone()).await.expect("subscribe");
        result.snapshot.expect("a snapshot").from_seq
    };
    ann.shutdown().await;
    let bob = ready(&host, "bob").await;
    let (mut bobs_session, mut bobs_chat) = open(&bob).await;
    let mut bobs_events = bob.events();
    bob.dispatch(chat.resource.clone(), start("t2", "stream 50")).await.expect("dispatch");
    follow(&mut bobs_events, &mut bobs_session, &mut bobs_chat, "t2").await;
    bob.shutdown().await;
    host.stop().await;

    let host = TestHost::start(data.path(), &script()).await;
    let ann = connect(&host).await;
    let params = ReconnectParams {
        channel: ROOT.to_owned(),
        meta: None,
        client_id: "ann".to_owned(),
        last_seen_server_seq: last_seen,
        subscriptions: vec![
            ROOT.to_owned(),
            SESSION.to_owned(),
            chat.resource.clone(),
            "ahp-session:/gone".to_owned(),
        ],
    };
    let result: ReconnectResult = ann.request("reconnect", params).await.expect("reconnect");
    let ReconnectResult::Replay(replay) = result else { panic!("a replay, not snapshots") };
    assert_eq!(replay.missing, ["ahp-session:/gone"]);
    let seqs: Vec<u64> = replay.actions.iter().map(|envelope| envelope.server_seq).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    for envelope in &replay.actions {
        apply(&mut session, &mut chat, envelope);
    }
    assert_eq!(comparable(chat.clone()), comparable(bobs_chat));
    // And live traffic goes on from there.
    let mut events = ann.events();
    ann.dispatch(chat.resource.clone(), start("t3", "hello")).await.expect("dispatch");
    follow(&mut events, &mut session, &mut chat, "t3").await;
    assert_eq!(chat.turns.len(), 3);
    host.stop().await;
}

#[tokio::test]
async fn older_turns_are_paged_to_the_one_who_asks() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let ann = ready(&host, "ann").await;
    let (mut session, mut chat) = create(&ann).await;
    let mut events = ann.events();
    for n in 0..60 {
        let turn = format!("t{n}");
        ann.dispatch(chat.resource.clone(), start(&turn, "hello")).await.expect("dispatch");
        follow(&mut events, &mut session, &mut chat, &turn).await;
    }
    let bob = ready(&host, "bob").await;
    let mut bobs_events = bob.events();
    let view = Some(ahp_types::commands::SubscribeView { turns: Some(4) });
    let (result, _) = bob
        .subscribe_with_options(chat.resource.clone(), None, view)
        .await
        .expect("subscribe with a view");
    let SnapshotState::Chat(mut window) = result.snapshot.expect("a snapshot").state else {
        panic!("a chat")
    };
    assert_eq!(window.turns.len(), 4);
    while let Some(cursor) = window.turns_next_cursor.clone() {
        let params =
            FetchTurnsParams { channel: chat.resource.clone(), meta: None, cursor: Some(cursor) };
        let _: Value = bob.request("fetchTurns", params).await.expect("fetchTurns");
        loop {
            let SubscriptionEvent::Action(envelope) =
                bobs_events.recv().await.expect("goes on").event
            else {
                continue;
            };
            apply_action_to_chat(&mut window, &envelope.action);
            if matches!(envelope.action, StateAction::ChatTurnsLoaded(_)) {
                break;
            }
        }
    }
    assert_eq!(comparable(*window), comparable(chat));
    host.stop().await;
}

#[tokio::test]
async fn a_cancelled_turn_stays_cancelled_and_an_interrupted_one_can_be_resumed() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let ann = ready(&host, "ann").await;
    let (mut session, mut chat) = create(&ann).await;
    let mut events = ann.events();
    ann.dispatch(chat.resource.clone(), start("t1", "hang")).await.expect("dispatch");
    let cancel = json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 5});
    ann.dispatch(chat.resource.clone(), serde_json::from_value(cancel).unwrap())
        .await
        .expect("dispatch");
    follow(&mut events, &mut session, &mut chat, "t1").await;
    ann.dispatch(chat.resource.clone(), start("t2", "fail")).await.expect("dispatch");
    follow(&mut events, &mut session, &mut chat, "t2").await;
    assert_eq!(chat.status & 2, 2);
    let resume = json!({"type": "chat/turnResume", "turnId": "t2"});
    ann.dispatch(chat.resource.clone(), serde_json::from_value(resume).unwrap())
        .await
        .expect("dispatch");
    // Resuming takes the turn out of the list; it comes back completed.
    let resumed = async {
        while chat.active_turn.is_none() {
            let SubscriptionEvent::Action(envelope) = events.recv().await.expect("goes on").event
            else {
                continue;
            };
            apply(&mut session, &mut chat, &envelope);
        }
    };
    timeout(Duration::from_secs(5), resumed).await.expect("the turn resumes");
    follow(&mut events, &mut session, &mut chat, "t2").await;
    assert_eq!(chat.status & 1, 1);
    assert_eq!(chat.turns.len(), 2);
    let fresh = ready(&host, "fresh").await;
    assert_eq!(comparable(open(&fresh).await.1), comparable(chat));
    host.stop().await;
}

/// What a client is told of the end of a turn that became too large.
async fn wait_for_error(events: &mut ahp::ClientEventStream) -> Value {
    let until_error = async {
        loop {
            let event = events.recv().await.expect("the stream goes on");
            if let SubscriptionEvent::Action(envelope) = event.event
                && let StateAction::ChatError(error) = envelope.action
            {
                return serde_json::to_value(error).expect("JSON");
            }
        }
    };
    timeout(Duration::from_secs(120), until_error).await.expect("the turn ends")
}

// A turn at its largest size is opened and fetched by a client that was not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_turns_can_be_opened_and_fetched() {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": [{"steps": [{"stream": {"chunks": 400, "size": 65_536}}]}]});
    let host = TestHost::start_with(data.path(), &script, |config| {
        config.limits.kernel.message_out_bytes = 24 << 20;
    })
    .await;
    let ann = ready(&host, "ann").await;
    let (_, chat) = create(&ann).await;
    let mut events = ann.events();
    for turn in ["t1", "t2"] {
        ann.dispatch(chat.resource.clone(), start(turn, "go")).await.expect("dispatch");
        let error = wait_for_error(&mut events).await;
        assert_eq!(error["part"]["error"]["errorType"], "turnTooLarge");
        let words = error["part"]["error"]["message"].to_string();
        assert!(words.contains("16777216 bytes"), "{words}");
    }
    // One of them fits into a message, the other has to be fetched.
    let bob = ready(&host, "bob").await;
    let (_, opened) = open(&bob).await;
    let bytes = |turns: &Value| -> Vec<usize> {
        let turns = turns.as_array().expect("turns").iter();
        turns.map(|turn| turn.to_string().len()).collect()
    };
    let shown = bytes(&serde_json::to_value(&opened.turns).expect("JSON"));
    assert_eq!(shown.len(), 1);
    let mut events = bob.events();
    let params = FetchTurnsParams {
        channel: chat.resource.clone(),
        meta: None,
        cursor: opened.turns_next_cursor,
    };
    let _: Value = bob.request("fetchTurns", params).await.expect("fetchTurns");
    let fetched = loop {
        let event = events.recv().await.expect("the stream goes on");
        if let SubscriptionEvent::Action(envelope) = event.event
            && let StateAction::ChatTurnsLoaded(loaded) = envelope.action
        {
            break bytes(&serde_json::to_value(&loaded.turns).expect("JSON"));
        }
    };
    assert_eq!(fetched.len(), 1);
    for bytes in shown.into_iter().chain(fetched) {
        assert!((16_000_000..17_000_000).contains(&bytes), "{bytes}");
    }
}
