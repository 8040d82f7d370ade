//! `fetchTurns`: a page of older turns for one connection, as an action before the answer (H-238, H-240, G-18).

use serde_json::{Value, json};
use wire::published::commands::FetchTurnsParams;
use wire::{ChannelUri, Generation, Id, compat};

use super::uri;
use crate::io::PeerId;
use crate::journal_query::{Answer, Query, TurnPage};
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, Load, RequestStop};
use crate::state::{Kernel, Step};
use crate::turn_pages::send_page;

/// A page of older turns of a chat.
pub(super) struct FetchedTurns {
    chat: ChannelUri,
    page: TurnPage,
}

pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &FetchTurnsParams,
    answers: &HandlerAnswers,
) -> Result<FetchedTurns, RequestStop> {
    let uri = uri::parse("channel", &params.channel)?;
    need_channel(kernel, &uri, answers)?;
    if uri.is_root() || kernel.find_session(&uri).is_some() {
        return Err(uri::bad("`channel` must be a chat").into());
    }
    let Some(chat) = kernel.find_chat(&uri) else {
        return Err(uri::not_found(kernel, &uri).into());
    };
    let Some(subscription) = kernel.peers().subscription(peer, &uri) else {
        return Err(uri::bad("subscribe to the chat before fetching its turns").into());
    };
    let before_n = match params.cursor.as_deref() {
        None => subscription.oldest_n.unwrap_or(chat.next_n()),
        Some("newest") => chat.next_n(),
        Some(cursor) => {
            number_at(kernel, &uri, cursor, answers)?.ok_or_else(|| uri::bad("unknown `cursor`"))?
        }
    };
    let answer = answers.read(Query::Turns {
        chat: kernel.id_of(&uri),
        before_n,
        turns_max: kernel.limits().page_turns,
        bytes_max: kernel.limits().page_bytes as u64,
    })?;
    // A page uses a seq, which must be recorded (G-18).
    uri::check_writable(kernel)?;
    match answer {
        Answer::Turns(page) => Ok(FetchedTurns { chat: uri, page: page.clone() }),
        _ => unreachable!("answers fit their queries"),
    }
}

pub(super) fn apply(
    step: &mut Step,
    peer: PeerId,
    id: &Id,
    fetched: &FetchedTurns,
    limit: Option<usize>,
) {
    let FetchedTurns { chat, page } = fetched;
    let generation = step.ready(peer).map(|ready| ready.generation);
    if let Some(generation) = generation.filter(|of| *of <= Generation::V0_5_0) {
        // Their page is the answer itself, and the next one is asked for by the turn it begins with.
        let skipped = page.turns.len().saturating_sub(limit.unwrap_or(usize::MAX));
        let turns: Vec<Value> = page
            .turns
            .iter()
            .skip(skipped)
            .map(|turn| compat::down_turn(generation, turn_value(&turn.json)))
            .collect();
        let result = json!({"turns": turns, "hasMore": page.older || skipped > 0});
        return step.respond(peer, id, &result);
    }
    send_page(step, peer, chat, page);
    step.respond(peer, id, &json!({}));
}

/// A stored turn; null if its bytes are not JSON, which only a damaged journal can cause.
fn turn_value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap_or_default()
}

/// The number of the turn that a cursor names. A cursor describes itself: `before:<turn id>`.
fn number_at(
    kernel: &Kernel,
    uri: &ChannelUri,
    cursor: &str,
    answers: &HandlerAnswers,
) -> Load<Option<u64>> {
    let Some(turn_id) = cursor.strip_prefix("before:") else { return Ok(None) };
    if let Some(n) = kernel.chat(uri).number_of(turn_id) {
        return Ok(Some(n));
    }
    let answer =
        answers.read(Query::FindTurn { chat: kernel.id_of(uri), turn_id: turn_id.to_owned() })?;
    Ok(match answer {
        Answer::FindTurn(Some(found)) if found.visible => Some(found.n),
        _ => None,
    })
}
