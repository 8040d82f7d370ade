//! Pages of older turns, sent to one connection as an action of its own (G-18).

use wire::{ChannelUri, Generation, rpc};

use crate::io::PeerId;
use crate::journal_query::TurnPage;
use crate::state::Step;

/// Sends a page of turns to a connection. An empty page says nothing.
pub(crate) fn send_page(step: &mut Step, peer: PeerId, uri: &ChannelUri, page: &TurnPage) {
    let Some(first) = page.turns.first() else {
        return; // there is nothing older
    };
    debug_assert!(
        page.turns.is_sorted_by_key(|turn| turn.n),
        "a page has its turns in their order"
    );
    let mut json = br#"{"type":"chat/turnsLoaded","turns":["#.to_vec();
    for (index, turn) in page.turns.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        json.extend_from_slice(&turn.json);
    }
    json.push(b']');
    if page.older {
        json.extend_from_slice(br#","turnsNextCursor":"#);
        json.extend_from_slice(&rpc::to_json(&format!("before:{}", first.id)));
    }
    json.push(b'}');
    step.act_for_one(peer, uri, &json);
    step.peers_mut().note_sent_turns(peer, uri, first.n);
}

/// Prepares a connection for a cut at a turn that it lacks: it gets the page that ends with it, or its reducer would not know the turn. Where
/// pages are answers alone, up to 0.5.0, all that it has comes after the turn and is cut off.
pub(crate) fn send_before_cut(step: &mut Step, peer: PeerId, uri: &ChannelUri, page: &TurnPage) {
    let generation = step.ready(peer).map(|ready| ready.generation);
    if generation.is_some_and(|of| of <= Generation::V0_5_0) {
        step.act_for_one(peer, uri, br#"{"type":"chat/truncated"}"#)
    } else {
        send_page(step, peer, uri, page)
    }
}
