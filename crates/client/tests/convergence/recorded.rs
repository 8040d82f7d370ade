//! A replica whose calls are written down with what came of them, so that a replica in another language can be put through the
//! same.
//!
//! Nothing is written down unless it is asked for: a story that only checks itself costs no more than before.

use std::ops::Deref;

use client::{
    ApplyOutcome, DropReason, DroppedAction, Envelope, EnvelopeEffect, ReconnectOutcome, Replica,
    Snapshot, TooManyPending,
};
use serde_json::{Value, json};
use wire::Action;
use wire::action::to_value;
use wire::state::StateError;

pub struct RecordedReplica {
    replica: Replica,
    calls: Option<Vec<Value>>,
}

thread_local! {
    /// Whether the replicas that this thread makes write their calls down.
    static IS_RECORDING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Tells a story whose replicas write their calls down.
pub fn recording<T>(tell: impl FnOnce() -> T) -> T {
    IS_RECORDING.set(true);
    let told = tell();
    IS_RECORDING.set(false);
    told
}

impl Deref for RecordedReplica {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        &self.replica
    }
}

impl RecordedReplica {
    pub fn new(client_id: &str) -> Self {
        Self { replica: Replica::new(client_id), calls: IS_RECORDING.get().then(Vec::new) }
    }

    /// The calls so far: `{call, .., gives, after}`.
    pub fn calls(&self) -> &[Value] {
        self.calls.as_deref().unwrap_or_default()
    }

    pub fn dispatch(&mut self, channel: &str, action: Action) -> Result<i64, TooManyPending> {
        let call = json!({"call": "dispatch", "channel": channel, "action": action.body});
        let client_seq = self.replica.dispatch(channel, action)?;
        self.note(call, json!(client_seq));
        Ok(client_seq)
    }

    pub fn take_unsent(&mut self) -> Option<Value> {
        let unsent = self.replica.take_unsent();
        self.note(json!({"call": "takeUnsent"}), json!(unsent));
        unsent
    }

    pub fn sent_up_to(&mut self) -> i64 {
        let client_seq = self.replica.sent_up_to();
        self.note(json!({"call": "sentUpTo"}), json!(client_seq));
        client_seq
    }

    pub fn drop_channel(&mut self, channel: &str) {
        self.replica.drop_channel(channel);
        self.note(json!({"call": "dropChannel", "channel": channel}), Value::Null);
    }

    pub fn remove_channel(&mut self, channel: &str) -> Vec<DroppedAction> {
        let dropped = self.replica.remove_channel(channel);
        let call = json!({"call": "removeChannel", "channel": channel});
        self.note(call, dropped_value(&dropped));
        dropped
    }

    pub fn take_snapshot(&mut self, snapshot: Value, sent_before: i64) -> Result<(), StateError> {
        let call = json!({"call": "takeSnapshot", "snapshot": snapshot, "sentBefore": sent_before});
        let snapshot = Snapshot::from_value(snapshot).expect("a snapshot");
        self.replica.take_snapshot(snapshot, sent_before)?;
        self.note(call, Value::Null);
        Ok(())
    }

    pub fn receive(&mut self, envelope: Value) -> (Envelope, EnvelopeEffect) {
        let call = json!({"call": "receive", "envelope": envelope});
        let envelope = Envelope::from_value(envelope).expect("an envelope");
        let effect = self.replica.receive(&envelope);
        self.note(call, effect_value(&effect));
        (envelope, effect)
    }

    pub fn apply_replay(&mut self, actions: Vec<Value>, missing: &[String]) -> ReconnectOutcome {
        let call = json!({"call": "applyReplay", "actions": actions, "missing": missing});
        let envelopes = actions.into_iter().map(Envelope::from_value);
        let envelopes: Vec<Envelope> = envelopes.collect::<Result<_, _>>().expect("envelopes");
        let outcome = self.replica.apply_replay(&envelopes, missing);
        self.note(call, outcome_value(&outcome));
        outcome
    }

    pub fn apply_snapshots(
        &mut self,
        snapshots: Vec<Value>,
    ) -> Result<ReconnectOutcome, StateError> {
        let call = json!({"call": "applySnapshots", "snapshots": snapshots});
        let snapshots = snapshots.into_iter().map(Snapshot::from_value);
        let snapshots = snapshots.collect::<Result<_, _>>().expect("snapshots");
        let outcome = self.replica.apply_snapshots(snapshots)?;
        self.note(call, outcome_value(&outcome));
        Ok(outcome)
    }

    fn note(&mut self, mut call: Value, gives: Value) {
        let after = self.calls.is_some().then(|| self.after());
        if let (Some(calls), Some(after)) = (&mut self.calls, after) {
            call["gives"] = gives;
            call["after"] = after;
            calls.push(call);
        }
    }

    /// Everything that can be seen of the replica.
    fn after(&self) -> Value {
        let replica = &self.replica;
        let states = |is_confirmed: bool| -> Value {
            let states = replica.channels().map(|channel| {
                let (root, session, chat) = if is_confirmed {
                    let session = replica.confirmed_session(channel);
                    (replica.confirmed_root(), session, replica.confirmed_chat(channel))
                } else {
                    (replica.root(), replica.session(channel), replica.chat(channel))
                };
                let state = chat
                    .map(|chat| chat.value())
                    .or_else(|| session.map(|session| to_value(&**session)))
                    .or_else(|| root.map(|root| to_value(&**root)));
                (channel.to_owned(), json!(state))
            });
            Value::Object(states.collect())
        };
        let pending = replica.pending().map(|pending| pending.client_seq);
        json!({
            "confirmed": states(true),
            "shown": states(false),
            "pending": pending.collect::<Vec<_>>(),
            "hasUnsent": replica.has_unsent(),
            "lastSeen": replica.last_seen(),
        })
    }
}

fn applied_name(applied: ApplyOutcome) -> &'static str {
    match applied {
        ApplyOutcome::Changed => "changed",
        ApplyOutcome::Unchanged => "unchanged",
        ApplyOutcome::Rejected => "rejected",
        ApplyOutcome::NotHeld => "not-held",
    }
}

fn effect_value(effect: &EnvelopeEffect) -> Value {
    match effect {
        EnvelopeEffect::Foreign(applied) => {
            json!({"kind": "foreign", "applied": applied_name(*applied)})
        }
        EnvelopeEffect::Own { client_seq, applied } => {
            json!({"kind": "own", "clientSeq": client_seq, "applied": applied_name(*applied)})
        }
        EnvelopeEffect::Refused { channel, client_seq, action, reason } => json!({
            "kind": "refused", "channel": channel, "clientSeq": client_seq,
            "action": action.body, "reason": reason,
        }),
        EnvelopeEffect::NotForUs => json!({"kind": "not-for-us"}),
    }
}

fn dropped_value(dropped: &[DroppedAction]) -> Value {
    let one = |dropped: &DroppedAction| {
        let why = match dropped.why {
            DropReason::MovedOn => "moved-on",
            DropReason::StateReplaced => "state-replaced",
            DropReason::ChannelGone => "channel-gone",
            DropReason::NotWatched => "not-watched",
            DropReason::SentTooOften => "sent-too-often",
        };
        json!({
            "channel": dropped.channel, "clientSeq": dropped.client_seq,
            "action": dropped.action.body, "why": why,
        })
    };
    Value::Array(dropped.iter().map(one).collect())
}

fn outcome_value(outcome: &ReconnectOutcome) -> Value {
    let effects: Vec<Value> = outcome.effects.iter().map(effect_value).collect();
    json!({
        "effects": effects, "reset": outcome.reset, "gone": outcome.gone,
        "notResent": dropped_value(&outcome.not_resent),
    })
}
