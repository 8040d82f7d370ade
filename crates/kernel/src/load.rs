//! Loading: sessions at rest are on disk. A handler that needs a channel which is not in memory pauses; later messages of its
//! peer wait in order, other peers go on, and all who wait for one channel share one question.

use wire::ChannelUri;

use crate::journal_query::Query;
use crate::pause::{HandlerAnswers, Load, NotLoaded};
use crate::state::Kernel;
use crate::telemetry;

/// Whether a channel exists; it is in memory then.
pub(crate) fn need_channel(
    kernel: &Kernel,
    uri: &ChannelUri,
    answers: &HandlerAnswers,
) -> Load<bool> {
    need_channel_with(kernel, uri, answers, kernel.limits().open_turns)
}

/// The same, with at least `turns` of its newest turns in memory if it is a chat that has them.
pub(crate) fn need_channel_with(
    kernel: &Kernel,
    uri: &ChannelUri,
    answers: &HandlerAnswers,
    turns: u32,
) -> Load<bool> {
    let bytes_max = kernel.limits().message_out_bytes as u64;
    need_channel_within(kernel, uri, answers, turns, bytes_max)
}

fn need_channel_within(
    kernel: &Kernel,
    uri: &ChannelUri,
    answers: &HandlerAnswers,
    turns: u32,
    bytes_max: u64,
) -> Load<bool> {
    if telemetry::signal_of(uri).is_some() {
        return Ok(true); // it has no state to load
    }
    if let Some(id) = kernel.channels().id_of(uri) {
        if let Some(chat) = kernel.find_chat(uri)
            && chat.lacks(turns, bytes_max)
        {
            // Once it is answered, and there is still less than wanted, the bounds were reached.
            answers.read(Query::Turns {
                chat: id,
                before_n: chat.first_n(),
                turns_max: turns - chat.turn_count(),
                bytes_max: bytes_max.saturating_sub(chat.turn_bytes()),
            })?;
        }
        return Ok(true);
    }
    // What belongs to a session is there if its session is, and comes into memory after it.
    if let Some((session, _)) = uri.session_part()
        && !need_channel_within(kernel, &session, answers, 1, bytes_max)?
    {
        return Ok(false);
    }
    match answers.find(|query| matches!(query, Query::Channel { uri: asked, .. } if asked == uri)) {
        Some((_, Err(failed))) => Err(NotLoaded::Failed(failed.clone())),
        Some((_, Ok(_))) => Ok(false),
        None => Err(NotLoaded::Read(vec![Query::Channel {
            uri: uri.clone(),
            turns_max: turns,
            bytes_max,
        }])),
    }
}

/// Several channels, each with so many turns: which of them exist. They share the bytes of one message, so together they load
/// no more than that.
pub(crate) fn need_channels(
    kernel: &Kernel,
    wanted: &[(ChannelUri, u32)],
    answers: &HandlerAnswers,
) -> Load<Vec<bool>> {
    let share = (kernel.limits().message_out_bytes / wanted.len().max(1)) as u64;
    let loads =
        wanted.iter().map(|(uri, turns)| need_channel_within(kernel, uri, answers, *turns, share));
    need_all(loads)
}

/// All of several things, or all that must be read for them.
pub(crate) fn need_all<T>(loads: impl Iterator<Item = Load<T>>) -> Load<Vec<T>> {
    let mut known = Vec::new();
    let mut queries = Vec::new();
    for load in loads {
        match load {
            Ok(value) => known.push(value),
            Err(NotLoaded::Read(more)) => queries.extend(more),
            Err(failed @ NotLoaded::Failed(_)) => return Err(failed),
        }
    }
    if queries.is_empty() { Ok(known) } else { Err(NotLoaded::Read(queries)) }
}
