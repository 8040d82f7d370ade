//! Reconnecting: what was missed is applied, and what is pending is sent again or dropped (G-30).

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::Action;
use wire::ActionKind;
use wire::state::{ChatState, StateError};

use super::resend::{DropReason, Resend, resend};
use super::{EchoWatch, EnvelopeEffect, PendingAction, Replica, Sending};
use crate::{Envelope, Mirror, Snapshot};

/// Connections that an action may go down with. One that every connection ends at is likely what ends them.
const SENDS_MAX: u32 = 5;

/// What a reconnect did.
#[derive(Debug, Default, PartialEq)]
pub struct ReconnectOutcome {
    /// What each replayed envelope did, in order.
    pub effects: Vec<EnvelopeEffect>,
    /// Channels whose state was replaced.
    pub reset: Vec<String>,
    /// Channels that are not there any more.
    pub gone: Vec<String>,
    /// For the caller to decide about.
    pub not_resent: Vec<DroppedAction>,
}

/// An action that is neither confirmed nor refused nor sent again.
#[derive(Debug, Clone, PartialEq)]
pub struct DroppedAction {
    pub channel: String,
    pub client_seq: i64,
    pub action: Arc<Action>,
    pub why: DropReason,
}

impl Replica {
    /// Takes the `replay` form of a reconnect. What is to be sent again is unsent from now on.
    pub fn apply_replay(&mut self, envelopes: &[Envelope], missing: &[String]) -> ReconnectOutcome {
        let effects = envelopes.iter().map(|envelope| self.receive(envelope)).collect();
        let touched: BTreeSet<&str> =
            envelopes.iter().map(|envelope| envelope.channel.as_str()).collect();
        for channel in missing {
            self.confirmed.drop_channel(channel);
        }
        let not_resent = self.decide_pending(|_, pending| {
            if missing.contains(&pending.channel) {
                return Err(DropReason::ChannelGone);
            }
            match (pending.watch, pending.sending) {
                (EchoWatch::NotWatched, Sending::Sent) => Err(DropReason::NotWatched),
                (EchoWatch::NotWatched, Sending::Unsent) => Ok(()),
                (EchoWatch::Watched, _) => match resend(&pending.action) {
                    Resend::IfNothingHappened if touched.contains(pending.channel.as_str()) => {
                        Err(DropReason::MovedOn)
                    }
                    Resend::IfNothingHappened | Resend::Freely => Ok(()),
                },
            }
        });
        ReconnectOutcome {
            effects,
            gone: missing.to_vec(),
            not_resent,
            ..ReconnectOutcome::default()
        }
    }

    /// Takes the `snapshot` form of a reconnect, or the answer to a new `initialize`: every channel that is not in it is
    /// gone. Nothing is changed on an error.
    pub fn apply_snapshots(
        &mut self,
        snapshots: Vec<Snapshot>,
    ) -> Result<ReconnectOutcome, StateError> {
        let mut fresh = Mirror::default();
        for snapshot in snapshots {
            fresh.take_snapshot(snapshot)?;
        }
        let before = std::mem::replace(&mut self.confirmed, fresh);
        let is_held = |channel: &&str| self.confirmed.state(channel).is_some();
        let reset = self.confirmed.channels().map(str::to_owned).collect();
        let gone: Vec<String> =
            before.channels().filter(|channel| !is_held(channel)).map(str::to_owned).collect();
        let not_resent = self.decide_pending(|confirmed, pending| {
            if gone.contains(&pending.channel) {
                return Err(DropReason::ChannelGone);
            }
            let Some(state) = confirmed.state(&pending.channel) else {
                return Err(DropReason::NotWatched);
            };
            let is_new_turn =
                state.chat().is_some_and(|chat| starts_unknown_turn(&pending.action, chat));
            if is_new_turn { Ok(()) } else { Err(DropReason::StateReplaced) }
        });
        Ok(ReconnectOutcome { effects: Vec::new(), reset, gone, not_resent })
    }

    /// Takes the news that a channel was disposed of. What is pending on it came too late: it is reported at once, and the
    /// host's refusal finds it gone (H-068, G-23a).
    pub fn remove_channel(&mut self, channel: &str) -> Vec<DroppedAction> {
        self.drop_channel(channel);
        let mut dropped = Vec::new();
        self.pending.retain(|pending| {
            let is_on_it = pending.channel == channel;
            if is_on_it {
                dropped.push(pending.to_dropped(DropReason::ChannelGone));
            }
            !is_on_it
        });
        dropped
    }

    /// Decides about each pending action: to be sent again, or dropped and why.
    fn decide_pending(
        &mut self,
        decide: impl Fn(&Mirror, &PendingAction) -> Result<(), DropReason>,
    ) -> Vec<DroppedAction> {
        self.ahead.clear();
        let mut dropped = Vec::new();
        for mut pending in std::mem::take(&mut self.pending) {
            let decided = match decide(&self.confirmed, &pending) {
                Ok(()) if pending.sends >= SENDS_MAX => Err(DropReason::SentTooOften),
                decided => decided,
            };
            match decided {
                Ok(()) => {
                    pending.sending = Sending::Unsent;
                    pending.watch = self.watch_of(&pending.channel, &pending.action);
                    self.pending.push_back(pending);
                }
                Err(why) => dropped.push(pending.to_dropped(why)),
            }
        }
        let channels: BTreeSet<String> =
            self.pending.iter().map(|pending| pending.channel.clone()).collect();
        for channel in channels {
            self.rebase(&channel);
        }
        dropped
    }
}

impl PendingAction {
    fn to_dropped(&self, why: DropReason) -> DroppedAction {
        DroppedAction {
            channel: self.channel.clone(),
            client_seq: self.client_seq,
            action: Arc::clone(&self.action),
            why,
        }
    }
}

fn starts_unknown_turn(action: &Action, chat: &ChatState) -> bool {
    let Some(id) = action.text("turnId").filter(|_| action.kind == ActionKind::ChatTurnStarted)
    else {
        return false;
    };
    let is_active = chat.active_turn.as_ref().is_some_and(|turn| turn.id == id);
    !is_active && chat.turns.position(id).is_none()
}
