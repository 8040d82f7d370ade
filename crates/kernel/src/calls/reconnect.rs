//! `reconnect`: replay what was missed, from memory or from the journal, or start over with snapshots (host-rules
//! section 5, G-19, G-20).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use wire::ActionKind;
use wire::published::commands::ReconnectParams;
use wire::rpc::code;
use wire::version;
use wire::{ChannelUri, Generation, Id, RpcError, Timestamp, compat};

use crate::Kernel;
use crate::calls::{FROM_THE_BEGINNING, Serving};
use crate::chore::Chore;
use crate::frame::{Frame, LateBody, LateResponse, Replayed};
use crate::io::PeerId;
use crate::load::{Flow, Load, Memo};
use crate::peers::{Ready, Subscription};
use crate::record::{Answer, ChannelId, FloorRecord, Query, Record, Seq};

/// Replays kept for others who missed the same, and the largest that is.
const CACHED_REPLAYS: usize = 2;
const CACHED_REPLAY_BYTES: usize = 1_024 * 1_024;

/// A replay that is still true: nothing was recorded since.
pub(crate) struct CachedReplay {
    from: BTreeMap<ChannelId, Seq>,
    seq: Seq,
    replay: Arc<Replayed>,
}

/// How often the journal's log is read for one replay before snapshots are the better answer.
const LOG_ROUNDS_MAX: usize = 4;

/// What can be replayed: envelopes in order, or why there must be snapshots.
enum Replay {
    Envelopes(Arc<Replayed>),
    NotPossible,
}

impl Kernel {
    pub(crate) fn reconnect(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &ReconnectParams,
        memo: &Memo,
    ) -> Flow<()> {
        let wanted = match self.wanted_channels(&params.subscriptions) {
            Ok(wanted) => wanted,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        // What the older connection still had to say comes first; only then is the client read and the replay made.
        if self.supersede(peer, &params.client_id) {
            return Flow::Ready(());
        }
        let remembered = self
            .remembered
            .iter()
            .find(|(client, _)| client.client_id == params.client_id);
        let client = match remembered.cloned() {
            Some(client) => Some(client),
            None => {
                let query = Query::Client {
                    client_id: params.client_id.clone(),
                };
                match memo.find(|asked| *asked == query) {
                    None => return Flow::Ask(vec![query]),
                    Some((_, Err(failed))) => return Flow::Failed(failed.clone()),
                    Some((_, Ok(Answer::Client(client)))) => client.clone(),
                    Some((_, Ok(_))) => None,
                }
            }
        };
        let client = client.filter(|_| !self.forgotten.contains(&params.client_id));
        let negotiated = client
            .as_ref()
            .map(|(record, _)| version::negotiate(std::slice::from_ref(&record.version)));
        let (Some((record, floors)), Some(Ok((version, generation)))) = (client, negotiated) else {
            let error = RpcError::new(
                code::NOT_FOUND,
                "this host does not know the client; send `initialize`",
            );
            return self.answer_error(peer, id, &error); // H-088: an error, not a close
        };
        let floors: BTreeMap<ChannelUri, FloorRecord> = floors
            .into_iter()
            .map(|floor| (floor.channel.clone(), floor))
            .collect();
        let depth = self.limits.open_turns;
        let with_views: Vec<_> = wanted.iter().map(|uri| (uri.clone(), depth)).collect();
        let exist = match self.need_channels(&with_views, memo) {
            Flow::Ready(exist) => exist,
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        let (ok, missing): (Vec<_>, Vec<_>) =
            wanted.into_iter().zip(exist).partition(|(_, there)| *there);
        let ok: Vec<ChannelUri> = ok.into_iter().map(|(uri, _)| uri).collect();
        let mut missing: Vec<String> = missing
            .into_iter()
            .map(|(uri, _)| uri.to_string())
            .collect();
        let no_uris = params
            .subscriptions
            .iter()
            .filter(|text| ChannelUri::parse(text).is_err());
        missing.extend(no_uris.cloned()); // H-081: every URI that cannot be resumed
        let last_seen = Seq(u64::try_from(params.last_seen_server_seq).unwrap_or(0));
        let replay = match self.replay(&ok, &floors, last_seen, memo) {
            Flow::Ready(replay) => replay,
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        let oldest = match self.oldest_numbers(&ok, &floors, memo) {
            Flow::Ready(oldest) => oldest,
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        let replay = match self.cut_below_window(&ok, &floors, &oldest, last_seen) {
            true => Replay::NotPossible,
            false => replay,
        };
        if matches!(replay, Replay::NotPossible) {
            // The snapshot form uses the stored view (G-20), so older turns may have to come in first.
            let views: Vec<_> = ok
                .iter()
                .map(|uri| (uri.clone(), view_of(&floors, uri).unwrap_or(u32::MAX)))
                .collect();
            match self.need_channels(&views, memo) {
                Flow::Ready(_) => {}
                Flow::Ask(queries) => return Flow::Ask(queries),
                Flow::Failed(failed) => return Flow::Failed(failed),
            }
        }
        let leaves = self.sessions_left_behind(&params.client_id, &ok);
        let leaves_wanted: Vec<_> = leaves.iter().map(|uri| (uri.clone(), 1)).collect();
        if let Flow::Ask(queries) = self.need_channels(&leaves_wanted, memo) {
            return Flow::Ask(queries);
        }
        let ready = Ready {
            client_id: params.client_id.clone(),
            version,
            generation,
            capabilities: record.capabilities,
            locale: record.locale,
            transform: record.transform,
            volatile: false,
        };
        self.admit(peer, ready.clone());
        self.forget(&ready.client_id);
        // A replay changes nothing that is stored of the client, so it need not wait for a commit.
        let seen =
            Timestamp(record.last_seen_ms).plus_ms(self.limits.client_ttl_s.saturating_mul(250));
        if matches!(replay, Replay::NotPossible) || seen < self.now {
            self.record_client(&ready);
        }
        if let Some(state) = self.peers.get_mut(&peer) {
            state.served.extend(floors.keys().cloned());
        }
        let resumed: BTreeSet<&ChannelUri> = ok.iter().collect();
        for uri in floors.keys().filter(|uri| !resumed.contains(uri)) {
            let (client_id, channel) = (ready.client_id.clone(), uri.clone());
            if self.unwritable().is_none() {
                self.out
                    .records
                    .push(Record::FloorGone { client_id, channel });
            }
        }
        let before = self.seq;
        for session in leaves {
            // H-126: came back without it.
            let client_id = ready.client_id.clone();
            match self.unwritable() {
                None => self.remove_active_client(&session, &client_id),
                Some(_) => self
                    .postponed
                    .push(Chore::RemoveActive { session, client_id }),
            }
        }
        let body = match self.with_what_followed(replay, &ok, before) {
            Replay::Envelopes(envelopes) => {
                self.go_on_watching(peer, &ok, &floors, &oldest);
                let replay = known_to(&ready, envelopes);
                LateBody::ReconnectReplay { replay, missing }
            }
            Replay::NotPossible => {
                let wanted: Vec<_> = ok
                    .into_iter()
                    .map(|uri| {
                        let latency = floors.get(&uri).and_then(|floor| floor.max_latency_ms);
                        (uri.clone(), view_of(&floors, &uri), latency)
                    })
                    .collect();
                let snapshots = self.snapshots_for(peer, &wanted, Serving::Anew);
                LateBody::ReconnectSnapshots(snapshots)
            }
        };
        self.say(
            peer,
            Frame::Response(Arc::new(LateResponse {
                id: id.clone(),
                body,
            })),
        );
        Flow::Ready(())
    }

    /// The envelopes each channel's subscriber missed, in one order, if the rules of G-19 allow a replay at all.
    fn replay(
        &mut self,
        ok: &[ChannelUri],
        floors: &BTreeMap<ChannelUri, FloorRecord>,
        last_seen: Seq,
        memo: &Memo,
    ) -> Load<Replay> {
        let mut from: BTreeMap<ChannelId, Seq> = BTreeMap::new();
        for uri in ok {
            let id = if uri.is_root() {
                Some(ChannelId::ROOT)
            } else {
                self.channels.get(uri).map(|c| c.id)
            };
            let (Some(id), Some(floor)) = (id, floors.get(uri)) else {
                return Flow::Ready(Replay::NotPossible);
            };
            let reused = id.0 > floor.floor.0;
            let unconfirmed = floor.replaced && last_seen < floor.floor;
            let start = last_seen.max(floor.floor);
            if reused || unconfirmed || last_seen > self.seq || start < self.log_floor {
                return Flow::Ready(Replay::NotPossible);
            }
            from.insert(id, start);
        }
        let Some(lowest) = from.values().min().copied() else {
            return Flow::Ready(Replay::Envelopes(Arc::new(Replayed::new(Vec::new()))));
        };
        // After a cut of the network many come back at once, and missed the same.
        let cached = self
            .replays
            .iter()
            .find(|cached| cached.from == from && cached.seq == self.seq);
        if let Some(cached) = cached {
            return Flow::Ready(Replay::Envelopes(Arc::clone(&cached.replay)));
        }
        let mut envelopes = Vec::new();
        let mut through = lowest;
        // The tail may move on while the journal is read: then only what came since is read, a few times.
        while !self.tail.reaches(through) {
            let floors: Vec<(ChannelId, Seq)> = from
                .iter()
                .map(|(id, seq)| (*id, (*seq).max(through)))
                .collect();
            let further = memo.find(|query| {
                matches!(query, Query::Log { floors: asked, through: read, .. } if *asked == floors && *read > through)
            });
            match further {
                None if memo.count(|query| matches!(query, Query::Log { .. }))
                    >= LOG_ROUNDS_MAX =>
                {
                    return Flow::Ready(Replay::NotPossible);
                }
                None => {
                    // Only what is committed for certain: the seqs of this very batch may yet be given to others.
                    let (through, bytes_max) =
                        (self.undo.seq, self.limits.message_out_bytes as u64);
                    return Flow::Ask(vec![Query::Log {
                        floors,
                        through,
                        bytes_max,
                    }]);
                }
                Some((_, Err(failed))) => return Flow::Failed(failed.clone()),
                Some((Query::Log { through: read, .. }, Ok(Answer::Log(slice))))
                    if !slice.overflowed =>
                {
                    envelopes.extend(
                        slice
                            .actions
                            .iter()
                            .map(|(_, _, envelope)| envelope.clone()),
                    );
                    through = *read;
                }
                Some(_) => return Flow::Ready(Replay::NotPossible),
            }
        }
        for (seq, channel, envelope) in self.tail.above(through) {
            if from.get(channel).is_some_and(|start| seq > start) {
                envelopes.push(envelope.clone());
            }
        }
        let bytes: usize = envelopes.iter().map(|envelope| envelope.len() + 1).sum();
        if bytes > self.limits.message_out_bytes {
            return Flow::Ready(Replay::NotPossible);
        }
        let replay = Arc::new(Replayed::new(envelopes));
        if bytes <= CACHED_REPLAY_BYTES {
            let seq = self.seq;
            self.replays.retain(|cached| cached.seq == seq);
            self.replays.truncate(CACHED_REPLAYS - 1);
            let replay = Arc::clone(&replay);
            self.replays.push(CachedReplay { from, seq, replay });
        }
        Flow::Ready(Replay::Envelopes(replay))
    }

    /// What the reconnect itself caused in the channels that are resumed belongs into the replay: nobody watches yet.
    fn with_what_followed(&self, replay: Replay, ok: &[ChannelUri], before: Seq) -> Replay {
        let Replay::Envelopes(replayed) = &replay else {
            return replay;
        };
        if self.seq == before {
            return replay;
        }
        if !self.tail.reaches(before) {
            return Replay::NotPossible;
        }
        let resumed: BTreeSet<ChannelId> = ok
            .iter()
            .map(|uri| match uri.is_root() {
                true => Some(ChannelId::ROOT),
                false => self.channels.get(uri).map(|channel| channel.id),
            })
            .collect::<Option<_>>()
            .unwrap_or_default();
        let followed = self.tail.above(before);
        let followed = followed.filter(|(_, channel, _)| resumed.contains(channel));
        let mut envelopes = replayed.envelopes.clone();
        envelopes.extend(followed.map(|(_, _, envelope)| envelope.clone()));
        Replay::Envelopes(Arc::new(Replayed::new(envelopes)))
    }

    /// Whether a truncate in the gap names a turn older than the oldest in the client's last snapshot: its reducer would
    /// not know the turn, for pages are not replayed (G-19).
    fn cut_below_window(
        &self,
        ok: &[ChannelUri],
        floors: &BTreeMap<ChannelUri, FloorRecord>,
        oldest: &BTreeMap<ChannelUri, u64>,
        last_seen: Seq,
    ) -> bool {
        ok.iter().any(|uri| {
            let (Some(chat), Some(floor)) = (self.chat(uri), floors.get(uri)) else {
                return false;
            };
            let start = last_seen.max(floor.floor);
            match oldest.get(uri) {
                Some(oldest_n) => chat.was_cut_below(*oldest_n, start),
                // Its oldest turn is nowhere to be found: any cut may be below it.
                None => floor.oldest_turn.is_some() && chat.was_cut(start),
            }
        })
    }

    /// The numbers of the oldest turns the client was sent: where its next page ends (G-18).
    fn oldest_numbers(
        &self,
        ok: &[ChannelUri],
        floors: &BTreeMap<ChannelUri, FloorRecord>,
        memo: &Memo,
    ) -> Load<BTreeMap<ChannelUri, u64>> {
        let mut oldest = BTreeMap::new();
        let mut queries = Vec::new();
        for uri in ok {
            let (Some(chat), Some(channel)) = (self.chat(uri), self.channels.get(uri)) else {
                continue;
            };
            let turn = floors.get(uri).and_then(|floor| floor.oldest_turn.as_ref());
            let Some(turn_id) = turn else { continue };
            if turn_id == FROM_THE_BEGINNING {
                oldest.insert(uri.clone(), 0);
                continue;
            }
            if let Some(place) = chat.state.turns.position(turn_id) {
                oldest.extend(chat.ns.get(place).map(|n| (uri.clone(), *n)));
                continue;
            }
            let query = Query::FindTurn {
                chat: channel.id,
                turn_id: turn_id.clone(),
            };
            match memo.find(|asked| *asked == query) {
                None => queries.push(query),
                Some((_, Err(failed))) => return Flow::Failed(failed.clone()),
                Some((_, Ok(Answer::FindTurn(Some(found))))) => {
                    oldest.insert(uri.clone(), found.n);
                }
                Some((_, Ok(_))) => {}
            }
        }
        if queries.is_empty() {
            Flow::Ready(oldest)
        } else {
            Flow::Ask(queries)
        }
    }

    /// After a replay the subscriptions stand as they were, floors included.
    fn go_on_watching(
        &mut self,
        peer: PeerId,
        ok: &[ChannelUri],
        floors: &BTreeMap<ChannelUri, FloorRecord>,
        oldest: &BTreeMap<ChannelUri, u64>,
    ) {
        for uri in ok {
            let Some(floor) = floors.get(uri) else {
                continue;
            };
            let subscription = Subscription {
                floor: floor.floor,
                replaced: floor.replaced,
                oldest_turn: floor.oldest_turn.clone(),
                view_turns: floor.view_turns,
                max_latency_ms: floor.max_latency_ms,
                oldest_n: oldest.get(uri).copied(),
            };
            self.watch_again(peer, uri, subscription);
        }
    }

    /// Sessions the client was active in and did not ask for again.
    fn sessions_left_behind(&self, client_id: &str, ok: &[ChannelUri]) -> Vec<ChannelUri> {
        let kept: BTreeSet<&ChannelUri> = ok.iter().collect();
        let active = self.active.get(client_id).into_iter().flatten();
        active
            .filter(|session| !kept.contains(session))
            .cloned()
            .collect()
    }
}

fn view_of(floors: &BTreeMap<ChannelUri, FloorRecord>, uri: &ChannelUri) -> Option<u32> {
    floors.get(uri).and_then(|floor| floor.view_turns)
}

/// An older client is replayed what it would have heard live (H-089).
fn known_to(ready: &Ready, replay: Arc<Replayed>) -> Arc<Replayed> {
    if ready.generation == Generation::V1_0 {
        return replay;
    }
    let known = replay.envelopes.iter().filter(|envelope| {
        let Ok(outline) = serde_json::from_slice::<Outline>(envelope) else {
            return false;
        };
        let own = outline
            .origin
            .is_some_and(|origin| origin.client_id == ready.client_id);
        own || compat::knows(
            ready.generation,
            ActionKind::from_name(&outline.action.name),
        )
    });
    Arc::new(Replayed::new(known.cloned().collect()))
}

/// As much of an envelope as is needed to know who hears it.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    action: OutlineAction<'a>,
    #[serde(borrow)]
    origin: Option<OutlineOrigin<'a>>,
}

#[derive(Deserialize)]
struct OutlineAction<'a> {
    #[serde(rename = "type", borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct OutlineOrigin<'a> {
    #[serde(rename = "clientId", borrow)]
    client_id: Cow<'a, str>,
}
