//! The states of channels that are their state and nothing else: changesets, annotations, terminals, watches of resources.
//!
//! Promises: a clone shares everything until one of the two changes.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{AnnotationsState, ChangesetState, ResourceWatchState, StateError, TerminalState};
use crate::action::ChannelKind;

/// The state of one such channel.
#[derive(Debug, Clone, PartialEq)]
pub enum PlainState {
    Changeset(Arc<ChangesetState>),
    Annotations(Arc<AnnotationsState>),
    Terminal(Arc<TerminalState>),
    ResourceWatch(Arc<ResourceWatchState>),
}

impl PlainState {
    /// What a snapshot holds, as the fields show that only this kind must have; none of another kind.
    pub fn read(state: Value) -> Result<Option<Self>, StateError> {
        let has = |field: &str| state.get(field).is_some();
        let kind = if has("content") && has("claim") {
            ChannelKind::Terminal
        } else if has("files") && has("status") {
            ChannelKind::Changeset
        } else if has("root") && has("recursive") {
            ChannelKind::ResourceWatch
        } else if state.get("annotations").is_some_and(Value::is_array) {
            ChannelKind::Annotations
        } else {
            return Ok(None);
        };
        Self::of_kind(kind, state)
    }

    /// The state of a channel of a kind; none if channels of that kind are more than their state.
    pub fn of_kind(kind: ChannelKind, state: Value) -> Result<Option<Self>, StateError> {
        Ok(Some(match kind {
            ChannelKind::Changeset => Self::Changeset(Arc::new(ChangesetState::from_value(state)?)),
            ChannelKind::Annotations => {
                Self::Annotations(Arc::new(AnnotationsState::from_value(state)?))
            }
            ChannelKind::Terminal => Self::Terminal(Arc::new(TerminalState::from_value(state)?)),
            ChannelKind::ResourceWatch => {
                Self::ResourceWatch(Arc::new(ResourceWatchState::from_value(state)?))
            }
            ChannelKind::Root
            | ChannelKind::Session
            | ChannelKind::Chat
            | ChannelKind::Automations
            | ChannelKind::AutomationRun
            | ChannelKind::Canvas => return Ok(None),
        }))
    }

    pub fn kind(&self) -> ChannelKind {
        match self {
            Self::Changeset(_) => ChannelKind::Changeset,
            Self::Annotations(_) => ChannelKind::Annotations,
            Self::Terminal(_) => ChannelKind::Terminal,
            Self::ResourceWatch(_) => ChannelKind::ResourceWatch,
        }
    }

    pub fn changeset(&self) -> Option<&ChangesetState> {
        match self {
            Self::Changeset(state) => Some(state),
            Self::Annotations(_) | Self::Terminal(_) | Self::ResourceWatch(_) => None,
        }
    }

    pub fn annotations(&self) -> Option<&AnnotationsState> {
        match self {
            Self::Annotations(state) => Some(state),
            Self::Changeset(_) | Self::Terminal(_) | Self::ResourceWatch(_) => None,
        }
    }

    pub fn terminal(&self) -> Option<&TerminalState> {
        match self {
            Self::Terminal(state) => Some(state),
            Self::Changeset(_) | Self::Annotations(_) | Self::ResourceWatch(_) => None,
        }
    }

    pub fn resource_watch(&self) -> Option<&ResourceWatchState> {
        match self {
            Self::ResourceWatch(state) => Some(state),
            Self::Changeset(_) | Self::Annotations(_) | Self::Terminal(_) => None,
        }
    }

    /// Roughly what it takes as JSON, without encoding it.
    pub fn size_hint(&self) -> usize {
        match self {
            Self::Changeset(state) => state.files.len() * 1_024,
            Self::Annotations(state) => state.size_hint(),
            Self::Terminal(state) => state.chars() + state.content.len() * 256,
            Self::ResourceWatch(_) => 512,
        }
    }
}

impl Serialize for PlainState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Changeset(state) => state.serialize(serializer),
            Self::Annotations(state) => state.serialize(serializer),
            Self::Terminal(state) => state.serialize(serializer),
            Self::ResourceWatch(state) => state.serialize(serializer),
        }
    }
}

impl From<ChangesetState> for PlainState {
    fn from(state: ChangesetState) -> Self {
        Self::Changeset(Arc::new(state))
    }
}

impl From<AnnotationsState> for PlainState {
    fn from(state: AnnotationsState) -> Self {
        Self::Annotations(Arc::new(state))
    }
}

impl From<TerminalState> for PlainState {
    fn from(state: TerminalState) -> Self {
        Self::Terminal(Arc::new(state))
    }
}

impl From<ResourceWatchState> for PlainState {
    fn from(state: ResourceWatchState) -> Self {
        Self::ResourceWatch(Arc::new(state))
    }
}
