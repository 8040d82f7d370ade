//! What a client missed, as actions: from memory, from the journal, or not at all (G-19).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use wire::compat::{self, AfterAction, OlderForm};
use wire::{Action, ActionKind, ChannelUri, Generation, Object, rpc};

use crate::frame::Replayed;
use crate::journal_query::{Answer, Query};
use crate::pause::{HandlerAnswers, Load, NotLoaded};
use crate::peers::NegotiatedPeer;
use crate::record::{ChannelId, FloorRecord, Seq};
use crate::state::Kernel;

/// How often the journal's log is read for one replay before snapshots are the better answer.
const LOG_ROUNDS_MAX: usize = 4;

/// What a client was last served, by channel.
pub(super) type Floors = BTreeMap<ChannelUri, FloorRecord>;

/// The envelopes that were missed, and from where on in each channel.
pub(super) struct Replay {
    pub from: BTreeMap<ChannelId, Seq>,
    pub envelopes: Arc<Replayed>,
}

/// The envelopes each channel's subscriber missed, in one order; `None` if the rules of G-19 do not allow a replay.
pub(super) fn gather(
    kernel: &Kernel,
    channels: &[ChannelUri],
    floors: &Floors,
    last_seen: Seq,
    answers: &HandlerAnswers,
) -> Load<Option<Replay>> {
    let Some(from) = starts(kernel, channels, floors, last_seen) else { return Ok(None) };
    let Some(lowest) = from.values().min().copied() else {
        let envelopes = Arc::new(Replayed::new(Vec::new()));
        return Ok(Some(Replay { from, envelopes }));
    };
    if let Some(envelopes) = kernel.replays().find(&from, kernel.seq()) {
        return Ok(Some(Replay { from, envelopes }));
    }
    let mut envelopes = Vec::new();
    let mut through = lowest;
    let log = kernel.log();
    // The tail may move on while the journal is read: then only what came since is read, a few times.
    while !log.reaches(through) {
        let rest: Vec<(ChannelId, Seq)> =
            from.iter().map(|(id, seq)| (*id, (*seq).max(through))).collect();
        match read_log(kernel, rest, through, answers)? {
            Some((slice, read)) => {
                envelopes.extend(slice);
                through = read;
            }
            None => return Ok(None),
        }
    }
    for (seq, channel, envelope) in log.above(through) {
        if from.get(channel).is_some_and(|start| seq > start) {
            envelopes.push(envelope.clone());
        }
    }
    let envelopes = Arc::new(Replayed::new(envelopes));
    let fits = envelopes.size_hint() <= kernel.limits().message_out_bytes;
    Ok(fits.then_some(Replay { from, envelopes }))
}

/// From where on each channel was missed; `None` if what the client holds of one of them cannot be built upon.
fn starts(
    kernel: &Kernel,
    channels: &[ChannelUri],
    floors: &Floors,
    last_seen: Seq,
) -> Option<BTreeMap<ChannelId, Seq>> {
    let starts = channels.iter().map(|uri| {
        let (id, floor) = (kernel.channels().id_of(uri)?, floors.get(uri)?);
        let reused = id.0 > floor.floor.0;
        let unconfirmed = floor.replaced && last_seen < floor.floor;
        let start = last_seen.max(floor.floor);
        let from_the_future = last_seen > kernel.seq();
        let forgotten = start < kernel.log().floor();
        (!reused && !unconfirmed && !from_the_future && !forgotten).then_some((id, start))
    });
    starts.collect()
}

/// Envelopes of the journal's log above their floors, and up to which seq; `None` if snapshots are the better answer.
fn read_log(
    kernel: &Kernel,
    floors: Vec<(ChannelId, Seq)>,
    above: Seq,
    answers: &HandlerAnswers,
) -> Load<Option<(Vec<bytes::Bytes>, Seq)>> {
    let further = answers.find(|query| {
        matches!(query, Query::Log { floors: asked, through, .. } if *asked == floors && *through > above)
    });
    match further {
        None if answers.count(|query| matches!(query, Query::Log { .. })) >= LOG_ROUNDS_MAX => {
            Ok(None)
        }
        // Only what is committed for certain: the seqs of this very batch may yet be given to others.
        None => Err(NotLoaded::Read(vec![Query::Log {
            floors,
            through: kernel.log().committed(),
            bytes_max: kernel.limits().message_out_bytes as u64,
        }])),
        Some((_, Err(failed))) => Err(NotLoaded::Failed(failed.clone())),
        Some((Query::Log { through, .. }, Ok(Answer::Log(slice)))) if !slice.overflowed => {
            let actions = slice.actions.iter();
            let envelopes = actions.map(|(_, _, envelope)| envelope.clone()).collect();
            Ok(Some((envelopes, *through)))
        }
        Some(_) => Ok(None),
    }
}

/// What the reconnect itself caused in the channels that are resumed belongs into the replay: nobody watches yet. `None` if it
/// is not in memory any more.
pub(super) fn with_actions_since(
    kernel: &Kernel,
    replayed: &Arc<Replayed>,
    channels: &[ChannelUri],
    before: Seq,
) -> Option<Arc<Replayed>> {
    if kernel.seq() == before {
        return Some(Arc::clone(replayed));
    }
    let log = kernel.log();
    if !log.reaches(before) {
        return None;
    }
    let resumed: BTreeSet<ChannelId> =
        channels.iter().filter_map(|uri| kernel.channels().id_of(uri)).collect();
    let followed = log.above(before).filter(|(_, channel, _)| resumed.contains(channel));
    let mut envelopes = replayed.envelopes.clone();
    envelopes.extend(followed.map(|(_, _, envelope)| envelope.clone()));
    Some(Arc::new(Replayed::new(envelopes)))
}

/// Replays to an older client what it would have been sent live (H-089). `None` if that needs earlier states, which are gone.
pub(super) fn filter_for_version(
    ready: &NegotiatedPeer,
    replay: Arc<Replayed>,
) -> Option<Arc<Replayed>> {
    let generation = ready.generation;
    if generation == Generation::V1_0 {
        return Some(replay);
    }
    let mut known = Vec::with_capacity(replay.envelopes.len());
    for envelope in &replay.envelopes {
        let Ok(outline) = serde_json::from_slice::<Outline>(envelope) else {
            debug_assert!(false, "an envelope that was recorded can be read");
            continue;
        };
        let kind = ActionKind::from_name(&outline.action.name);
        if compat::needs_state(generation, kind) {
            return None;
        }
        let origin = outline.origin;
        let own = origin.is_some_and(|origin| origin.client_id == ready.client_id);
        match older_form(generation, kind, envelope) {
            None => known.push(envelope.clone()),
            // Its sender waits for the echo, whether its version knows the action or not (G-23).
            Some(forms) if forms.is_empty() && own => known.push(envelope.clone()),
            Some(forms) => known.extend(forms),
        }
    }
    Some(Arc::new(Replayed::new(known)))
}

/// The envelopes an older client gets in the place of one; `None` if it gets the same as everyone.
fn older_form(generation: Generation, kind: ActionKind, envelope: &Bytes) -> Option<Vec<Bytes>> {
    if compat::is_same(generation, kind) {
        return None;
    }
    let mut whole: Object = serde_json::from_slice(envelope).ok()?;
    let action = Action::from_record(whole.get_mut("action")?.take())?;
    match compat::down_action(generation, &action, AfterAction::Root) {
        OlderForm::Same => None,
        OlderForm::Instead(actions) => {
            let forms = actions.into_iter().map(|action| {
                whole.insert("action".to_owned(), Value::Object(action));
                Bytes::from(rpc::to_json(&whole))
            });
            Some(forms.collect())
        }
    }
}

/// As much of an envelope as is needed to find its recipients.
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
