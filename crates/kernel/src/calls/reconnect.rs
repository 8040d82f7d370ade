//! `reconnect`: replay what was missed, from memory or from the journal, or start over with snapshots (H-080 to H-090, G-19,
//! G-20).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::published::commands::ReconnectParams;
use wire::rpc::code;
use wire::version;
use wire::{ChannelUri, Id, RpcError, Timestamp};

use super::initialize::wait_for_older;
use super::replay::{self, Floors, Replay};
use super::serve::{SnapshotMode, WantedChannel, serve_snapshots, subscribe_stateless};
use super::uri::wanted_channels;
use crate::background_task::BackgroundTask;
use crate::channels::FROM_THE_BEGINNING;
use crate::clients::record_client;
use crate::customization::survey_plugins_of;
use crate::frame::{Frame, LateResponse, LateResponseBody};
use crate::io::PeerId;
use crate::journal_query::{Answer, Query};
use crate::load::{need_all, need_channels};
use crate::pause::{HandlerAnswers, Load, NotLoaded, RequestStop};
use crate::peers::{NegotiatedPeer, Subscription};
use crate::record::{ClientRecord, FloorRecord, Record, Seq};
use crate::rights::{check_client_id, may_watch};
use crate::sessions::remove_active_client;
use crate::state::{Kernel, Step};
use crate::telemetry;

/// A client that comes back, and what it missed.
pub(super) struct ReturningClient {
    ready: NegotiatedPeer,
    last_seen_ms: i64,
    floors: Floors,
    /// Channels that are there, and URIs that cannot be resumed.
    channels: Vec<ChannelUri>,
    /// Those without state, of which nothing is missed.
    stateless: Vec<ChannelUri>,
    missing: Vec<String>,
    /// What it missed; snapshots are sent instead if that is not possible.
    replay: Option<Replay>,
    /// The number of the oldest turn it was sent, by chat.
    oldest_numbers: BTreeMap<ChannelUri, u64>,
    /// Sessions it was active in and did not ask for again.
    left_sessions: Vec<ChannelUri>,
}

pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &ReconnectParams,
    answers: &HandlerAnswers,
) -> Result<ReturningClient, RequestStop> {
    let wanted = wanted_channels(kernel, &params.subscriptions)?;
    // What the older connection still had to say comes first; only then is the client read and the replay made.
    check_client_id(kernel, peer, &params.client_id)?;
    wait_for_older(kernel, peer, &params.client_id)?;
    let (record, floors) = find_client(kernel, &params.client_id, answers)?
        .filter(|_| !kernel.peers().is_forgotten(&params.client_id))
        .ok_or_else(unknown_client)?;
    let (version, generation) =
        version::negotiate(std::slice::from_ref(&record.version)).map_err(|_| unknown_client())?;
    let floors: Floors = floors.into_iter().map(|floor| (floor.channel.clone(), floor)).collect();
    let (stateless, wanted): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|uri| telemetry::signal_of(uri).is_some());
    let role = kernel.role(peer);
    let (stateless, refused): (Vec<_>, Vec<_>) =
        stateless.into_iter().partition(|uri| may_watch(role, uri));
    let (channels, mut missing) = resolve(kernel, wanted, params, answers)?;
    missing.extend(refused.iter().map(ToString::to_string));
    let last_seen = Seq(u64::try_from(params.last_seen_server_seq).unwrap_or(0));
    let replay = replay::gather(kernel, &channels, &floors, last_seen, answers)?;
    let oldest_numbers = oldest_numbers(kernel, &channels, &floors, answers)?;
    let cut = was_cut_below_window(kernel, &channels, &floors, &oldest_numbers, last_seen);
    let replay = replay.filter(|_| !cut);
    if replay.is_none() {
        // The snapshot form uses the stored view (G-20), so older turns may have to come in first.
        let views =
            channels.iter().map(|uri| (uri.clone(), view_of(&floors, uri).unwrap_or(u32::MAX)));
        need_channels(kernel, &views.collect::<Vec<_>>(), answers)?;
    }
    let left_sessions = sessions_left_behind(kernel, &params.client_id, &channels);
    let left = left_sessions.iter().map(|uri| (uri.clone(), 1));
    let loaded = need_channels(kernel, &left.collect::<Vec<_>>(), answers);
    // A session that cannot be read now is left when its grace ends.
    if let Err(unread @ NotLoaded::Read(_)) = loaded {
        return Err(unread.into());
    }
    Ok(ReturningClient {
        ready: NegotiatedPeer {
            client_id: params.client_id.clone(),
            version,
            generation,
            capabilities: record.capabilities,
            locale: record.locale,
            transform: record.transform,
            volatile: false,
        },
        last_seen_ms: record.last_seen_ms,
        floors,
        channels,
        stateless,
        missing,
        replay,
        oldest_numbers,
        left_sessions,
    })
}

/// H-088: an error, not a close.
fn unknown_client() -> RpcError {
    RpcError::new(code::NOT_FOUND, "this host does not know the client; send `initialize`")
}

fn find_client(
    kernel: &Kernel,
    client_id: &str,
    answers: &HandlerAnswers,
) -> Load<Option<(ClientRecord, Vec<FloorRecord>)>> {
    if let Some(client) = kernel.peers().remembered(client_id) {
        return Ok(Some(client));
    }
    let client_id = client_id.to_owned();
    match answers.read(Query::Client { client_id })? {
        Answer::Client(client) => Ok(client.clone()),
        _ => unreachable!("answers fit their queries"),
    }
}

/// Which of the wanted channels are there, and every URI that cannot be resumed (H-081).
fn resolve(
    kernel: &Kernel,
    wanted: Vec<ChannelUri>,
    params: &ReconnectParams,
    answers: &HandlerAnswers,
) -> Load<(Vec<ChannelUri>, Vec<String>)> {
    let depth = kernel.limits().open_turns;
    let with_views: Vec<_> = wanted.iter().map(|uri| (uri.clone(), depth)).collect();
    let exist = need_channels(kernel, &with_views, answers)?;
    let found = wanted.into_iter().zip(exist);
    let (there, missing): (Vec<_>, Vec<_>) = found.partition(|(_, there)| *there);
    let missing = missing.into_iter().map(|(uri, _)| uri.to_string());
    let no_uris = params.subscriptions.iter().filter(|text| ChannelUri::parse(text).is_err());
    let missing = missing.chain(no_uris.cloned()).collect();
    Ok((there.into_iter().map(|(uri, _)| uri).collect(), missing))
}

/// The numbers of the oldest turns the client was sent: where its next page ends (G-18).
fn oldest_numbers(
    kernel: &Kernel,
    channels: &[ChannelUri],
    floors: &Floors,
    answers: &HandlerAnswers,
) -> Load<BTreeMap<ChannelUri, u64>> {
    let loads = channels.iter().map(|uri| {
        let n = oldest_number(kernel, uri, floors, answers)?;
        Ok(n.map(|n| (uri.clone(), n)))
    });
    Ok(need_all(loads)?.into_iter().flatten().collect())
}

fn oldest_number(
    kernel: &Kernel,
    uri: &ChannelUri,
    floors: &Floors,
    answers: &HandlerAnswers,
) -> Load<Option<u64>> {
    let turn = floors.get(uri).and_then(|floor| floor.oldest_turn.as_ref());
    let (Some(chat), Some(turn_id)) = (kernel.find_chat(uri), turn) else {
        return Ok(None); // not a chat, or it was sent without turns
    };
    if turn_id == FROM_THE_BEGINNING {
        return Ok(Some(0));
    }
    if let Some(n) = chat.number_of(turn_id) {
        return Ok(Some(n));
    }
    let answer =
        answers.read(Query::FindTurn { chat: kernel.id_of(uri), turn_id: turn_id.clone() })?;
    Ok(match answer {
        Answer::FindTurn(found) => found.map(|found| found.n),
        _ => None,
    })
}

/// Whether a truncate in the gap names a turn older than the oldest in the client's last snapshot: its reducer would not know
/// the turn, for pages are not replayed (G-19).
fn was_cut_below_window(
    kernel: &Kernel,
    channels: &[ChannelUri],
    floors: &Floors,
    oldest_numbers: &BTreeMap<ChannelUri, u64>,
    last_seen: Seq,
) -> bool {
    channels.iter().any(|uri| {
        let (Some(chat), Some(floor)) = (kernel.find_chat(uri), floors.get(uri)) else {
            return false;
        };
        let start = last_seen.max(floor.floor);
        match oldest_numbers.get(uri) {
            Some(oldest_n) => chat.private().was_cut_below(*oldest_n, start),
            // Its oldest turn is nowhere to be found: any cut may be below it.
            None => floor.oldest_turn.is_some() && chat.private().was_cut(start),
        }
    })
}

/// Sessions the client was active in and did not ask for again.
fn sessions_left_behind(
    kernel: &Kernel,
    client_id: &str,
    channels: &[ChannelUri],
) -> Vec<ChannelUri> {
    let stays: BTreeSet<&ChannelUri> = channels.iter().collect();
    let active = kernel.active_clients().sessions_of(client_id);
    active.filter(|session| !stays.contains(session)).cloned().collect()
}

fn view_of(floors: &Floors, uri: &ChannelUri) -> Option<u32> {
    floors.get(uri).and_then(|floor| floor.view_turns)
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, client: ReturningClient) {
    let ready = &client.ready;
    step.peers_mut().admit(peer, ready.clone());
    step.find_active_client_again(&ready.client_id);
    survey_plugins_of(step, &ready.client_id);
    // A replay changes nothing that is stored of the client, so it need not wait for a commit.
    let quarter_ttl_ms = step.limits().client_ttl_s.saturating_mul(250);
    let seen_until = Timestamp(client.last_seen_ms).plus_ms(quarter_ttl_ms);
    if client.replay.is_none() || seen_until < step.now() {
        record_client(step, ready);
    }
    let served = client.floors.keys().cloned();
    step.peers_mut().add_served(peer, served);
    forget_floors(step, &client);
    let before = step.seq();
    leave_sessions(step, &client);
    let body = match resume(step, peer, &client, before) {
        Some(body) => body,
        None => {
            let channels = client.channels.iter();
            let wanted: Vec<_> = channels
                .map(|uri| WantedChannel {
                    uri: uri.clone(),
                    view_turns: view_of(&client.floors, uri),
                    max_latency_ms: client.floors.get(uri).and_then(|floor| floor.max_latency_ms),
                })
                .collect();
            let snapshots = serve_snapshots(step, peer, &wanted, SnapshotMode::Replacing);
            LateResponseBody::ReconnectSnapshots(snapshots)
        }
    };
    for uri in &client.stateless {
        let floor = client.floors.get(uri);
        let latency = floor.and_then(|floor| floor.max_latency_ms);
        subscribe_stateless(step, peer, uri, latency);
    }
    let id = id.clone();
    let response = LateResponse { id, generation: ready.generation, body };
    step.send(peer, Frame::Response(Arc::new(response)));
}

/// Channels that the client did not ask for again need not be remembered for it.
fn forget_floors(step: &mut Step, client: &ReturningClient) {
    if step.unwritable().is_some() {
        return; // the rows stay until the client subscribes or leaves again
    }
    let resumed: BTreeSet<&ChannelUri> = client.channels.iter().chain(&client.stateless).collect();
    let gone = client.floors.keys().filter(|uri| !resumed.contains(uri));
    for uri in gone {
        step.record(Record::FloorGone {
            client_id: client.ready.client_id.clone(),
            channel: uri.clone(),
        });
    }
}

/// H-126: it came back without them.
fn leave_sessions(step: &mut Step, client: &ReturningClient) {
    for session in &client.left_sessions {
        let client_id = client.ready.client_id.clone();
        if step.unwritable().is_some() {
            let session = session.clone();
            let task = BackgroundTask::RemoveActiveClient { session, client_id };
            step.recovery_mut().postpone(task);
        } else if step.find_session(session).is_some() {
            remove_active_client(step, session, &client_id);
        }
    }
}

/// The replay, and the subscriptions as they were, floors included; `None` if there must be snapshots.
fn resume(
    step: &mut Step,
    peer: PeerId,
    client: &ReturningClient,
    before: Seq,
) -> Option<LateResponseBody> {
    let Replay { from, envelopes } = client.replay.as_ref()?;
    if step.seq() == before {
        step.replays_mut().add(from.clone(), before, envelopes);
    }
    let envelopes = replay::with_actions_since(step, envelopes, &client.channels, before)?;
    let envelopes = replay::filter_for_version(&client.ready, envelopes)?;
    for uri in &client.channels {
        let Some(floor) = client.floors.get(uri) else {
            unreachable!("what is replayed was served before");
        };
        let subscription = Subscription {
            floor: floor.floor,
            replaced: floor.replaced,
            oldest_turn: floor.oldest_turn.clone(),
            view_turns: floor.view_turns,
            max_latency_ms: floor.max_latency_ms,
            oldest_n: client.oldest_numbers.get(uri).copied(),
        };
        step.peers_mut().subscribe(peer, uri, subscription);
    }
    Some(LateResponseBody::ReconnectReplay { replay: envelopes, missing: client.missing.clone() })
}

#[cfg(test)]
#[path = "reconnect_tests.rs"]
mod tests;
