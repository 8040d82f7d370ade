//! Looks up completions, where waiting for a disk harms nobody.
//!
//! Must not know: what is completed.

use std::sync::Arc;

use compositor::command::agent::AgentCommands;
use kernel::{Complete, Completed, Input, Ticket, WorkFailed};
use tokio::sync::Semaphore;

use super::{Effects, send};
use crate::complete::{Completer, completions};
use crate::compose::commands_of;

/// Lookups at a time; the others wait.
const LOOKUPS_MAX: usize = 4;

/// Answers completion requests, a few at a time.
#[derive(Debug, Clone)]
pub(crate) struct Completions {
    completer: Completer,
    permits: Arc<Semaphore>,
}

impl Completions {
    pub(super) fn new(completer: Completer) -> Self {
        Self {
            completer,
            permits: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }

    async fn look_up(
        &self,
        complete: Complete,
        agent_commands: AgentCommands,
    ) -> Result<Completed, WorkFailed> {
        let failed = || WorkFailed("completions cannot be looked up now".to_owned());
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let _permit = permit.map_err(|_| failed())?;
        let completer = self.completer.clone();
        let look_up = move || completions(&completer, complete, agent_commands);
        let looked = tokio::task::spawn_blocking(look_up);
        looked.await.map_err(|error| {
            tracing::error!(%error, "a lookup of completions failed");
            failed()
        })
    }
}

impl Effects {
    pub(crate) fn complete(&self, ticket: Ticket, complete: Complete) {
        let (completions, arrivals) = (self.completions.clone(), self.arrivals.clone());
        let agent = self.agent(&complete.place.provider);
        tokio::spawn(async move {
            let directories = &complete.working_directories;
            let commands = commands_of(agent.as_deref(), &complete.place, directories);
            let completed = completions.look_up(complete, commands).await;
            send(&arrivals, Input::Completed { ticket, completed }).await;
        });
    }
}
