//! Looks up completions, where waiting for a disk harms nobody.
//!
//! Must not know: what is completed.

use std::sync::Arc;

use compositor::command::agent::AgentCommands;
use kernel::{CompletionAnswer, CompletionTask, Input, Ticket, WorkFailed};
use serde_json::Value;
use tokio::sync::Semaphore;
use workspace::ClientPluginCopy;
use workspace::completion::SUGGESTIONS_MAX;

use super::{Effects, send};
use crate::complete::{Completer, completions, suggestions};
use crate::compose::{commands_of, facts_of};
use crate::task;

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
        Self { completer, permits: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }

    async fn look_up(
        &self,
        complete: CompletionTask,
        brought: Vec<ClientPluginCopy>,
        agent_commands: AgentCommands,
    ) -> Result<CompletionAnswer, WorkFailed> {
        let failed = || WorkFailed("completions cannot be looked up now".to_owned());
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let _permit = permit.map_err(|_| failed())?;
        let completer = self.completer.clone();
        let look_up = move || completions(&completer, complete, brought, agent_commands);
        let looked = task::spawn_blocking(look_up);
        looked.await.map_err(|error| {
            tracing::error!(%error, "a lookup of completions failed");
            failed()
        })
    }
}

impl Effects {
    pub(crate) fn complete(&self, ticket: Ticket, complete: CompletionTask) {
        let (completions, arrivals) = (self.tools().completions.clone(), self.arrivals.clone());
        let agent = self.agent(&complete.context.provider);
        let brought = self.bodies.plugins().searched_plugins(&complete.context.session);
        task::spawn(async move {
            let directories = &complete.working_directories;
            let commands = commands_of(agent.as_deref(), &complete.context, directories);
            let of_agent = match &agent {
                Some(agent) => {
                    let facts = facts_of(&complete.context, directories);
                    suggestions(&**agent, &facts, &complete.text, complete.offset).await
                }
                None => Vec::new(),
            };
            let completed = completions.look_up(complete, brought, commands).await;
            let completed = completed.map(|completed| with_more(completed, of_agent));
            send(&arrivals, Input::Completed { ticket, completed }).await;
        });
    }
}

/// What the agent suggests comes first: it is asked only for what nobody else knows.
fn with_more(completed: CompletionAnswer, mut of_agent: Vec<Value>) -> CompletionAnswer {
    match completed {
        CompletionAnswer::Items(items) => {
            of_agent.extend(items);
            of_agent.truncate(SUGGESTIONS_MAX);
            CompletionAnswer::Items(of_agent)
        }
        CompletionAnswer::OutsideText => CompletionAnswer::OutsideText,
    }
}
