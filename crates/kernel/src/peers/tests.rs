//! What stands of connections and subscriptions when a batch could not be written.

use wire::{ChannelUri, Generation, Version};

use super::{NegotiatedPeer, Peers, Subscription};
use crate::io::PeerId;
use crate::record::{ClientRecord, Record, Seq};
use crate::role::Role;

const ANN: PeerId = PeerId(1);

fn ready(client_id: &str) -> NegotiatedPeer {
    NegotiatedPeer {
        client_id: client_id.to_owned(),
        version: Version::new(1, 0, 0),
        generation: Generation::V1_0,
        capabilities: None,
        locale: None,
        transform: None,
        volatile: false,
    }
}

fn subscription(max_latency_ms: Option<u32>) -> Subscription {
    Subscription {
        floor: Seq(1),
        replaced: false,
        oldest_turn: None,
        view_turns: None,
        max_latency_ms,
        oldest_n: None,
    }
}

fn chat() -> ChannelUri {
    ChannelUri::parse("ahp-chat:/c").unwrap()
}

/// A client that is connected, and that is in the journal.
fn with_ann() -> Peers {
    let mut peers = Peers::default();
    peers.connect(ANN, Role::Member);
    peers.admit(ANN, ready("ann"));
    peers.end_step(true);
    peers.commit();
    peers
}

#[test]
fn a_subscription_that_was_not_written_is_what_it_was() {
    let mut peers = with_ann();
    peers.subscribe(ANN, &chat(), subscription(Some(20)));
    peers.end_step(true);
    peers.roll_back();
    assert!(peers.subscription(ANN, &chat()).is_none());
    assert!(peers.watchers(&chat()).is_empty());
    assert!(!peers.was_served(ANN, &chat()), "it never heard of it");

    peers.subscribe(ANN, &chat(), subscription(Some(20)));
    peers.end_step(true);
    peers.commit();
    peers.subscribe(ANN, &chat(), subscription(None));
    peers.end_subscriptions(&chat());
    peers.end_step(true);
    peers.roll_back();
    let restored = peers.subscription(ANN, &chat());
    assert_eq!(restored.and_then(|it| it.max_latency_ms), Some(20));
    assert_eq!(peers.watchers(&chat())[0].window_ms, 20);
    assert!(peers.was_served(ANN, &chat()));
}

#[test]
fn who_left_a_channel_has_left_it_whatever_was_not_written() {
    let mut peers = with_ann();
    peers.subscribe(ANN, &chat(), subscription(None));
    peers.end_step(true);
    peers.commit();
    peers.subscribe(ANN, &chat(), subscription(Some(20)));
    peers.unsubscribe(ANN, &chat());
    peers.end_step(true);
    peers.roll_back();
    assert!(peers.subscription(ANN, &chat()).is_none());
    assert!(peers.watchers(&chat()).is_empty());
    assert!(peers.ready(ANN).is_some_and(|ready| ready.volatile));
}

#[test]
fn rows_that_were_not_made_true_are_not_trusted() {
    let mut peers = Peers::default();
    peers.set_forgotten("ann", true);
    assert_eq!(peers.take_forgotten(), ["ann"]);
    // It comes back in the same batch, and that is not written either.
    peers.connect(ANN, Role::Member);
    peers.admit(ANN, ready("ann"));
    peers.end_step(true);
    peers.roll_back();
    assert!(peers.ready(ANN).is_none() && !peers.is_connected("ann"));
    assert!(peers.is_forgotten("ann"));
}

#[test]
fn what_was_answered_before_the_first_record_stands() {
    let mut peers = Peers::default();
    peers.connect(ANN, Role::Member);
    peers.admit(ANN, ready("ann"));
    peers.subscribe(ANN, &chat(), subscription(None));
    peers.end_step(false);
    peers.end_subscriptions(&chat());
    peers.end_step(true);
    peers.roll_back();
    assert!(peers.is_connected("ann"));
    assert!(peers.subscription(ANN, &chat()).is_some());
}

#[test]
fn records_that_wait_are_bounded_and_go_with_the_next_batch() {
    let mut peers = with_ann();
    let mut number = 0;
    while !peers.has_many_deferred() {
        number += 1;
        let client_id = match number {
            1 => "ann".to_owned(),
            other => format!("client-{other}"),
        };
        peers.defer_record(&client_id.clone(), Record::ClientGone { client_id });
    }
    assert_eq!(peers.take_deferred().len(), 64);
    assert!(!peers.has_many_deferred() && peers.take_deferred().is_empty());
    // The batch that took them along is not written: what is stored of the client is not true.
    peers.roll_back();
    assert!(peers.all_ready()[0].volatile);
}

#[test]
fn the_newest_of_equal_records_of_a_client_waits() {
    let mut peers = Peers::default();
    let client = |last_seen_ms| {
        Record::Client(ClientRecord {
            client_id: "ann".to_owned(),
            version: "1.0.0".to_owned(),
            capabilities: None,
            locale: None,
            transform: None,
            last_seen_ms,
        })
    };
    let gone = Record::ClientGone { client_id: "ann".to_owned() };
    for record in [client(1), client(2), gone, client(3)] {
        peers.defer_record("ann", record);
    }
    peers.defer_record("bob", client(9));
    peers.defer_record("ann", client(4));
    let waiting: Vec<Option<i64>> = peers
        .take_deferred()
        .into_iter()
        .map(|record| match record {
            Record::Client(client) => Some(client.last_seen_ms),
            _ => None,
        })
        .collect();
    // What came between two of them stays between them.
    assert_eq!(waiting, [Some(2), None, Some(4), Some(9)]);
}
