//! Changes the models of an agent, one change after the other.
//!
//! Must not know: what a model is.

use kernel::{Input, ModelChange, Ticket, WorkFailed};

use super::{Effects, send};
use crate::task;

impl Effects {
    pub(crate) fn change_models(&self, ticket: Ticket, change: ModelChange) {
        let (agents, arrivals) = (self.agents.clone(), self.arrivals.clone());
        task::spawn(async move {
            let Some(roster) = agents.roster() else {
                let changed = Err(WorkFailed("this host's models cannot be changed".to_owned()));
                return send(&arrivals, Input::ModelsChanged { ticket, changed }).await;
            };
            // The kernel gets changes in the order in which they were made.
            let _order = roster.lock().await;
            let changing = std::sync::Arc::clone(&roster);
            let changed = task::spawn_blocking(move || changing.change(change)).await;
            let changed = changed.unwrap_or_else(|error| {
                tracing::error!(%error, "a change of the models failed");
                Err(WorkFailed("the models cannot be changed now".to_owned()))
            });
            send(&arrivals, Input::ModelsChanged { ticket, changed }).await;
        });
    }
}
