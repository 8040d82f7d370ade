//! Active clients: set by themselves, active through short absences, gone after long ones.

use serde_json::json;
use testkit::{ROOT, Scenario, ScenarioClient};

fn active(s: &mut Scenario, ann: &ScenarioClient) -> usize {
    s.state(&ann.session())["activeClients"].as_array().map_or(0, Vec::len)
}

// G-07, H-126
#[test]
fn one_that_comes_back_in_time_stays_active() {
    let (mut s, ann) = Scenario::with_chat();
    ann.becomes_active().unwrap();
    ann.loses_connection();
    s.settles();
    s.advances_ms(9_000);
    ann.reconnects();
    s.advances_ms(60_000);
    assert_eq!(active(&mut s, &ann), 1);
}

// G-07, H-126
#[test]
fn one_that_stays_away_is_removed_after_the_grace_period() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.becomes_active().unwrap();
    ann.loses_connection();
    s.settles();
    s.advances_ms(9_999);
    assert_eq!(bob.sees(&ann.session())["activeClients"].as_array().unwrap().len(), 1);
    s.advances_ms(1);
    assert_eq!(bob.sees(&ann.session())["activeClients"], json!([]));
}

// G-07: grace starts anew with each absence
#[test]
fn a_second_absence_has_its_own_grace() {
    let (mut s, ann) = Scenario::with_chat();
    ann.becomes_active().unwrap();
    ann.loses_connection();
    s.settles();
    s.advances_ms(8_000);
    ann.reconnects();
    s.advances_ms(1_000);
    ann.loses_connection();
    s.settles();
    s.advances_ms(5_000);
    assert_eq!(active(&mut s, &ann), 1);
    s.advances_ms(6_000);
    assert_eq!(active(&mut s, &ann), 0);
}

// H-126
#[test]
fn one_that_reconnects_without_the_session_is_removed() {
    let (mut s, ann) = Scenario::with_chat();
    ann.becomes_active().unwrap();
    ann.loses_connection();
    ann.with(|client| client.mirrors.retain(|channel, _| channel == ROOT));
    ann.reconnects();
    assert_eq!(active(&mut s, &ann), 0);
}

// G-07
#[test]
fn unsubscribing_removes_at_once() {
    let (mut s, ann) = Scenario::with_chat();
    ann.becomes_active().unwrap();
    ann.unwatches(&ann.session());
    s.settles();
    assert_eq!(active(&mut s, &ann), 0);
}

// G-07: only an unsubscribe after a subscribe
#[test]
fn one_that_never_watched_the_session_stays_active() {
    let mut s = Scenario::new();
    let ann = s.client("ann").arrives().creates("ahp-session:/one");
    ann.becomes_active().unwrap();
    ann.unwatches(&ann.session());
    s.settles();
    assert_eq!(active(&mut s, &ann), 1);
}

// G-07: grace timers start afresh at boot
#[test]
fn a_restart_starts_the_grace_afresh() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.becomes_active().unwrap();
    bob.becomes_active().unwrap();
    s.host_restarts();
    s.advances_ms(5_000);
    bob.reconnects();
    s.advances_ms(5_000);
    let left = s.state(&ann.session())["activeClients"].clone();
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["clientId"], "bob");
}

// H-125
#[test]
fn an_entry_is_replaced_at_its_position_and_removed_by_its_owner() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.becomes_active().unwrap();
    bob.becomes_active().unwrap();
    let entry = json!({"clientId": "ann", "tools": [], "displayName": "Ann"});
    ann.tries(&ann.session(), json!({"type": "session/activeClientSet", "activeClient": entry}))
        .unwrap();
    assert_eq!(bob.sees(&ann.session())["activeClients"][0]["displayName"], "Ann");
    ann.tries(&ann.session(), json!({"type": "session/activeClientRemoved", "clientId": "ann"}))
        .unwrap();
    assert_eq!(bob.sees(&ann.session())["activeClients"].as_array().unwrap().len(), 1);
    ann.loses_connection();
    s.settles();
    s.advances_ms(60_000);
}

// G-07, loading: the session may have left memory meanwhile
#[test]
fn the_grace_ends_for_a_session_at_rest_too() {
    let (mut s, ann) = Scenario::with(|limits| {
        limits.channel_idle_ms = 1_000;
        limits.active_client_grace_ms = 20_000;
    })
    .and_chat();
    ann.becomes_active().unwrap();
    ann.loses_connection();
    s.settles();
    s.advances_in_steps(25_000, 500);
    assert_eq!(active(&mut s, &ann), 0);
}

// H-126, G-20: what was read from a connection is processed after it is gone; its grace begins all the same
#[test]
fn one_that_became_active_after_it_left_does_not_haunt_the_session() {
    for comes_back in [false, true] {
        let (mut s, ann) = Scenario::with(|limits| limits.channel_idle_ms = 1_000).and_chat();
        let (session, chat) = (ann.session(), ann.chat());
        ann.sends_message("so that it stays");
        ann.unwatches(&chat);
        ann.unwatches(&session);
        s.advances_in_steps(10_000, 500);
        let bob = s.client("bob").arrives();
        s.reads_take_ms(500);
        let entry = json!({"clientId": "bob", "tools": []});
        let set = json!({"type": "session/activeClientSet", "activeClient": entry});
        bob.dispatches(&session, set);
        let peer = bob.with(|client| client.link).unwrap();
        s.world().carry_to_host(peer);
        s.world().batch(64);
        if comes_back {
            // The next connection supersedes the first and is lost before it is answered.
            let next = s.world().connect(bob.index());
            let params = bob.with(|client| client.reconnect_params());
            bob.requests("reconnect", params);
            s.world().carry_to_host(next);
            s.world().batch(64);
            s.world().cut(next, 0);
        } else {
            s.world().cut(peer, 0);
        }
        s.settles();
        s.advances_in_steps(30_000, 1_000);
        assert_eq!(s.state(&session)["activeClients"], json!([]), "{comes_back}");
        s.all_agree();
    }
}
