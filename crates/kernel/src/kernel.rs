//! `boot` and `step`: the entrance of the kernel.
//!
//! `step` takes one input and says what is to be recorded, sent and done. It changes memory only; the host writes the records
//! before anything is sent, and calls [`Kernel::committed`], [`Kernel::rolled_back`] or [`Kernel::step_failed`] accordingly.

use std::sync::Arc;

use serde_json::Value;
use wire::state::{ConfigState, RootState};
use wire::{ChannelUri, Object, Timestamp};

use crate::agents;
use crate::background_task::BackgroundTask;
use crate::channels::Enablement;
use crate::config;
use crate::derive::derive;
use crate::io::{Effect, HostFacts, Input, Output};
use crate::limits::Limits;
use crate::log::Log;
use crate::record::{Boot, BootWork, StoredKind};
use crate::route;
use crate::state::{Kernel, Step};

/// The root channel in the journal cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the root channel in the journal is damaged: {0}")]
pub struct DamagedRoot(String);

impl From<serde_json::Error> for DamagedRoot {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

impl Kernel {
    /// A kernel that goes on where the journal ends. The output is to be treated like that of a step. A root that cannot be
    /// read is an error: to go on without it would replace settings and lists of the user by those of an empty host.
    pub fn boot(
        boot: Boot,
        facts: impl Into<Arc<HostFacts>>,
        limits: impl Into<Arc<Limits>>,
        now: Timestamp,
    ) -> Result<(Self, Output), DamagedRoot> {
        let (facts, limits) = (facts.into(), limits.into());
        let stored = boot.root.map(|json| read_root(&json)).transpose()?;
        let published = facts.published_agents();
        let is_new = stored.as_ref().is_none_or(|stored| stored.extra != facts.root_extra());
        let root = root_state(&facts, stored, &published);
        let agents_changed = root.agents != published;
        let log = Log::new(boot.seq, boot.log_floor, limits.tail_bytes);
        let enablement = if boot.root_private.is_empty() {
            // a new journal, or one of a host that stored nothing with the root
            Enablement::default()
        } else {
            serde_json::from_slice(&boot.root_private)?
        };
        let mut kernel = Self::new(facts, limits, now, log, root, enablement);
        let mut step = kernel.begin_step(now);
        if agents_changed {
            agents::announce(&mut step);
        } else if is_new {
            step.mark_head(&ChannelUri::root());
        }
        let values = step.channels().root().config.as_ref();
        let values = values.map(|config| config.values.clone());
        if let Some(values) = values.filter(|values| *values != step.facts().config_values) {
            step.effect(Effect::Configure { values });
        }
        for (uri, kind, work) in boot.boot_work {
            schedule_boot_work(&mut step, uri, kind, work);
        }
        let output = finish(step);
        Ok((kernel, output))
    }

    /// A record can never be written, whatever the state of the disk: that at `record` of the output at `index`, among the
    /// outputs of all steps since the last commit, records included. Its step fails alone, with those that rest on it: their
    /// outputs become what is sent and done instead. The others are to be written again.
    pub fn step_failed(&mut self, outputs: &mut [Output], index: usize, record: usize, why: &str) {
        if let Some(output) = outputs.get_mut(index)
            && record < output.deferred
        {
            return self.drop_deferred(output, record);
        }
        let seq = outputs.get(index).map(|output| output.seq);
        let instead = finish(self.take_back(outputs, index, why));
        if let Some(output) = outputs.get_mut(index) {
            let seq = seq.unwrap_or(instead.seq);
            *output = Output { seq, ..instead };
        }
    }

    /// One input, at one moment, and all that follows from it.
    pub fn step(&mut self, input: Input, now: Timestamp) -> Output {
        let mut step = self.begin_step(now);
        route::input(&mut step, input);
        finish(step)
    }
}

/// Does everything that follows, computes everything derived, and ends the step.
pub(crate) fn finish(mut step: Step) -> Output {
    while let Some(follow_up) = step.next_follow_up() {
        route::follow_up(&mut step, follow_up);
    }
    derive(&mut step);
    step.finish()
}

fn read_root(json: &[u8]) -> Result<RootState, DamagedRoot> {
    let value = serde_json::from_slice::<Value>(json)?;
    RootState::from_value(value).map_err(|error| DamagedRoot(error.to_string()))
}

/// The root as it was, with the settings this host has now. Agents that changed are announced after it.
fn root_state(facts: &HostFacts, stored: Option<RootState>, agents: &[Value]) -> RootState {
    let mut values = facts.config_values.clone();
    let (mut known_agents, mut active_sessions) = (agents.to_vec(), Some(0));
    let mut extra = facts.root_extra();
    if let Some(stored) = stored {
        known_agents = stored.agents;
        active_sessions = stored.active_sessions;
        // As it was recorded: those whose process ended with the last host end by actions.
        let terminals = stored.extra.get("terminals").cloned();
        extra.extend(terminals.map(|list| ("terminals".to_owned(), list)));
        let before = stored.config.map(|config| config.values);
        let before = config::known_values(&facts.config_schema, &before.unwrap_or_default());
        // Settings that this host's schema forbids by now are those of its configuration again.
        if let Ok(before) = before {
            values.extend(before);
        }
    }
    RootState {
        agents: known_agents,
        active_sessions,
        config: Some(ConfigState {
            schema: facts.config_schema.clone(),
            values,
            extra: Object::new(),
        }),
        extra,
    }
}

/// What the last process left open in a channel.
fn schedule_boot_work(step: &mut Step, uri: ChannelUri, kind: StoredKind, work: BootWork) {
    match kind {
        StoredKind::Chat if work.open_turn => {
            step.start_task(BackgroundTask::CloseInterruptedTurn(uri));
        }
        StoredKind::Session if work.creating || work.active_clients => {
            step.start_task(BackgroundTask::ReviveSession(uri));
        }
        StoredKind::Terminal if work.running_process => {
            step.start_task(BackgroundTask::CloseInterruptedTerminal(uri));
        }
        StoredKind::Chat
        | StoredKind::Session
        | StoredKind::Root
        | StoredKind::Changeset
        | StoredKind::Annotations
        | StoredKind::Terminal => {}
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::io::Timer;

    fn boot(root: Option<&'static str>, private: &'static str) -> Result<Value, String> {
        let boot = Boot {
            root: root.map(|json| Bytes::from_static(json.as_bytes())),
            root_private: Bytes::from_static(private.as_bytes()),
            ..Boot::default()
        };
        Kernel::boot(boot, HostFacts::default(), Limits::default(), Timestamp(0))
            .map(|(kernel, _)| kernel.digest()["enablement"].clone())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn agents_whose_announcement_could_not_be_written_are_announced_again() {
        let boot = Boot {
            root: Some(Bytes::from_static(br#"{"agents":[{"provider":"gone"}]}"#)),
            ..Boot::default()
        };
        let (facts, limits) = (HostFacts::default(), Limits::default());
        let (mut kernel, output) = Kernel::boot(boot, facts, limits, Timestamp(0)).unwrap();
        assert_eq!(kernel.channels().root().agents.len(), 0);
        let mut outputs = [output];
        kernel.step_failed(&mut outputs, 0, 0, "too large");
        assert_eq!(kernel.channels().root().agents.len(), 1, "taken back");
        kernel.committed();
        let is_awaited = |effect: &Effect| {
            let timer = Timer::Postponed;
            matches!(effect, Effect::WakeAt { timer: set, .. } if *set == timer)
        };
        assert!(outputs[0].effects.iter().any(is_awaited));
        let output = kernel.step(Input::Woke(Timer::Postponed), Timestamp(1));
        assert!(!output.records.is_empty());
        assert_eq!(kernel.channels().root().agents.len(), 0);
    }

    #[test]
    fn a_root_that_cannot_be_read_is_not_replaced() {
        let root = r#"{"agents":[]}"#;
        let decided = boot(Some(root), r#"{"global":{"a":false}}"#).unwrap();
        assert_eq!(decided["global"], json!({"a": false}));
        // A new journal, and one of a host that stored nothing with the root.
        assert_eq!(boot(None, "").unwrap()["global"], json!({}));
        assert_eq!(boot(Some(root), "").unwrap()["global"], json!({}));
        for (root, private) in [(root, "{"), ("{", ""), ("[]", ""), ("{}", "")] {
            let error = boot(Some(root), private).unwrap_err();
            assert!(error.contains("the root channel in the journal is damaged"), "{error}");
        }
    }
}
