//! The updates of a connection, read by the one chat that is open on it.
//!
//! Promises: waiting for a change of the state reads updates, never a clock; an update with news for the application that
//! is read meanwhile is delivered later, in its order.

use std::collections::VecDeque;

use crate::{ConnectionEvent, Live, Update, Updates};

use super::ChatError;

#[derive(Debug)]
pub(super) struct UpdateFeed {
    updates: Updates,
    /// What was read while something else was waited for. Bounded by the actions this client has pending, the attempts
    /// to reconnect and what the host says about its list of sessions during one wait.
    backlog: VecDeque<Update>,
}

impl UpdateFeed {
    pub(super) fn new(updates: Updates) -> Self {
        Self { updates, backlog: VecDeque::new() }
    }

    /// The next update; none once the client is closed. May be dropped and called again: nothing is lost.
    pub(super) async fn next(&mut self) -> Option<Update> {
        match self.backlog.pop_front() {
            Some(update) => Some(update),
            None => self.updates.next().await,
        }
    }

    /// The next update if one is there already.
    pub(super) fn try_next(&mut self) -> Option<Update> {
        self.backlog.pop_front().or_else(|| self.updates.try_next())
    }

    /// Waits until `look` finds something in the state; it is called after every update.
    pub(super) async fn wait_until<T>(
        &mut self,
        live: &Live,
        look: impl Fn() -> Result<Option<T>, ChatError>,
    ) -> Result<T, ChatError> {
        loop {
            if let Some(result) = look()? {
                return Ok(result);
            }
            match self.updates.next().await {
                Some(Update::Connection(ConnectionEvent::Closed { why })) => return Err(why.into()),
                Some(update) if is_news(&update) => self.backlog.push_back(update),
                Some(_) => {} // the state has it already
                None => return Err(live.closed_error().into()),
            }
        }
    }
}

/// Whether an update says more than that the state changed.
fn is_news(update: &Update) -> bool {
    match update {
        Update::Changed { .. } | Update::Reset { .. } => false,
        Update::Notification(_)
        | Update::Refused { .. }
        | Update::NotResent { .. }
        | Update::Gone { .. }
        | Update::Connection(_) => true,
    }
}
