//! Pages of older turns, sent to one connection as an action of its own (G-18).

use wire::{ChannelUri, rpc};

use crate::io::PeerId;
use crate::journal_query::TurnPage;
use crate::state::Step;

/// Sends a page of turns to a connection. An empty page says nothing.
pub(crate) fn send_page(step: &mut Step, peer: PeerId, uri: &ChannelUri, page: &TurnPage) {
    let Some(first) = page.turns.first() else {
        return; // there is nothing older
    };
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
