//! What is known of a client that comes back, and what it cannot be replayed.

use serde_json::json;
use wire::ActionKind;

use super::*;
use crate::fixture_tests::{KernelFixture, uri};

fn floor(channel: &ChannelUri, floor: u64, oldest_turn: Option<&str>) -> FloorRecord {
    FloorRecord {
        channel: channel.clone(),
        floor: Seq(floor),
        replaced: false,
        oldest_turn: oldest_turn.map(str::to_owned),
        view_turns: Some(2),
        max_latency_ms: None,
    }
}

fn floors(all: &[FloorRecord]) -> Floors {
    all.iter().cloned().map(|floor| (floor.channel.clone(), floor)).collect()
}

fn params(subscriptions: &[&str]) -> ReconnectParams {
    serde_json::from_value(json!({
        "channel": ChannelUri::root().as_str(),
        "clientId": "ann",
        "lastSeenServerSeq": 0,
        "subscriptions": subscriptions,
    }))
    .unwrap()
}

#[test]
fn a_client_that_left_a_moment_ago_is_not_read() {
    let mut fixture = KernelFixture::new();
    let answers = HandlerAnswers::default();
    let unread = find_client(&fixture.kernel, "ann", &answers);
    assert!(matches!(unread, Err(NotLoaded::Read(_))), "the journal is asked");
    let record = ClientRecord {
        client_id: "ann".to_owned(),
        version: "1.0.0".to_owned(),
        capabilities: None,
        locale: None,
        transform: None,
        last_seen_ms: 0,
    };
    let own = vec![floor(&fixture.chat, 3, None)];
    fixture.step(|step| step.peers_mut().remember(record.clone(), own.clone()));
    let found = find_client(&fixture.kernel, "ann", &answers).ok().flatten();
    assert_eq!(found, Some((record, own)));
}

#[test]
fn every_uri_that_cannot_be_resumed_is_named() {
    let fixture = KernelFixture::new();
    let mut answers = HandlerAnswers::default();
    let gone = uri("ahp-chat:/gone");
    let wanted = vec![fixture.session.clone(), fixture.chat.clone(), gone.clone()];
    let all = params(&[fixture.chat.as_str(), gone.as_str(), "no uri"]);
    let unread = resolve(&fixture.kernel, wanted.clone(), &all, &answers);
    let Err(NotLoaded::Read(queries)) = unread else {
        panic!("what is not in memory is read");
    };
    for query in queries {
        answers.add_read(query, Ok(Answer::Channel(None)));
    }
    let (there, missing) = resolve(&fixture.kernel, wanted, &all, &answers).ok().unwrap();
    assert_eq!(there, [fixture.session.clone(), fixture.chat.clone()]);
    assert_eq!(missing, [gone.to_string(), "no uri".to_owned()]);
}

#[test]
fn a_cut_below_the_window_in_the_gap_is_not_replayed() {
    let mut fixture = KernelFixture::new();
    for id in ["a", "b", "c"] {
        fixture.start_turn(id);
        fixture.complete_turn(id);
    }
    let before = fixture.kernel.seq();
    let own = floors(&[floor(&fixture.chat, before.0, Some("c"))]);
    let channels = [fixture.chat.clone()];
    let answers = HandlerAnswers::default();
    let oldest = oldest_numbers(&fixture.kernel, &channels, &own, &answers).ok().unwrap();
    assert_eq!(oldest.get(&fixture.chat), Some(&2));
    let is_cut = |fixture: &KernelFixture, last_seen: Seq| {
        was_cut_below_window(&fixture.kernel, &channels, &own, &oldest, last_seen)
    };
    assert!(!is_cut(&fixture, before));
    let chat = fixture.chat.clone();
    fixture.step(|step| {
        let cut = crate::fixture_tests::action(ActionKind::ChatTruncated, json!({"turnId": "a"}));
        let kept = crate::truncate::RemainingTurn { n: 0, page: None };
        crate::truncate::cut_back(step, &chat, cut, None, Some(kept));
    });
    assert!(is_cut(&fixture, before), "its reducer would not know the turn");
    let after = fixture.kernel.seq();
    assert!(!is_cut(&fixture, after), "it was there when the cut was made");
}

#[test]
fn a_client_leaves_the_sessions_that_it_did_not_ask_for_again() {
    let mut fixture = KernelFixture::new();
    let session = fixture.session.clone();
    fixture.step(|step| step.add_active_client(&session, "ann"));
    let left = |channels: &[ChannelUri]| sessions_left_behind(&fixture.kernel, "ann", channels);
    let chat = std::slice::from_ref(&fixture.chat);
    assert_eq!(left(chat), std::slice::from_ref(&session));
    assert_eq!(left(&[session]), [] as [ChannelUri; 0]);
}
