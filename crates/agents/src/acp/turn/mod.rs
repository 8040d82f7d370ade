//! One turn of a chat: from the user's message to the end of the agent's prompt.
//!
//! Promises: nothing is prompted before it is on the disk which session it goes to (AG-40); never two prompts of a session at once. A turn
//! that is dropped cancels its prompt, and the next one waits for that (AG-30).
//! Must not know: processes beyond the one it works in.

mod answers;
mod changed_calls;
mod commands;
mod edits;
mod files;
mod output_tail;
mod prepare;
mod prompt;
mod requested_command;
mod run;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use agent_api::{AgentError, AgentEvent, EventSink, Lowering, SessionFacts, TurnInput, TurnOver};
use serde_json::Value;

use super::agent_core::AgentCore;
use super::agent_process::AgentProcess;
use super::connection::{AcpConnection, RequestError};
use super::errors;
use super::live_session::LiveSession;
use super::open::SignInTry;
use super::rpc::AcpError;
use run::{PromptEnd, RunningTurn};

/// How long a cancelled prompt may take to end (AG-30).
pub(super) const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// Why a turn ends before its prompt does.
pub(super) enum TurnStopped {
    /// Nobody listens any more.
    Over,
    Failed(AgentError),
}

impl From<TurnOver> for TurnStopped {
    fn from(_: TurnOver) -> Self {
        Self::Over
    }
}

impl From<AgentError> for TurnStopped {
    fn from(error: AgentError) -> Self {
        Self::Failed(error)
    }
}

/// Works on a turn.
pub(super) async fn run(
    core: &Arc<AgentCore>,
    facts: &SessionFacts,
    input: TurnInput,
    events: &dyn EventSink,
) -> Result<(), AgentError> {
    let turn = AcpTurn { core, facts, input, events };
    match turn.work().await {
        Ok(()) | Err(TurnStopped::Over) => Ok(()),
        Err(TurnStopped::Failed(error)) => Err(error),
    }
}

pub(super) struct AcpTurn<'a> {
    pub(super) core: &'a Arc<AgentCore>,
    pub(super) facts: &'a SessionFacts,
    pub(super) input: TurnInput,
    pub(super) events: &'a dyn EventSink,
}

impl AcpTurn<'_> {
    async fn work(&self) -> Result<(), TurnStopped> {
        if !self.input.reaches_model && self.input.compact.is_none() && self.input.resume.is_none()
        {
            return Ok(()); // the host has done all of it
        }
        let mut reopened = false;
        let mut has_signed_in = false;
        loop {
            let directories = prepare::open_directories(self).await?;
            let prepared = prepare::open(self, &directories).await?;
            let (prompt, lowering) = prompt::blocks(self, &prepared).await?;
            let model = prepare::settings(self, &prepared).await?;
            let turn_id = Some(self.input.turn_id.clone());
            let noting = prepare::note(self, &prepared, turn_id);
            // Both are on the disk before the agent reads anything; neither waits for the other.
            let (through, ()) = tokio::join!(noting, self.record(lowering));
            let through = through?;
            let mut running = RunningTurn::new(self, &prepared, &directories, model);
            let end = running.follow(prompt).await?;
            let has_output = running.has_output();
            drop(running);
            let mut error = match end {
                PromptEnd::Done => {
                    let told = prepared.process.connection.sign_in();
                    // Who is answered is signed in, unless the agent says otherwise.
                    self.core.learn_sign_in(told.unwrap_or(true));
                    return Ok(());
                }
                PromptEnd::Failed(error) => return Err(error.into()),
                PromptEnd::Refused(error) => error,
            };
            if !has_output {
                // It did not take the message: a resumed turn says it again.
                prepare::note(self, &prepared, through).await?;
            }
            if errors::is_unknown_session(&error) && !has_output && !reopened {
                reopened = true;
                prepared.process.close_session(&self.facts.chat);
                continue;
            }
            if errors::is_sign_in(&error) && !has_signed_in {
                match super::open::sign_in(self.core, &prepared.process).await {
                    SignInTry::Taken => {
                        has_signed_in = true;
                        continue;
                    }
                    SignInTry::Refused(why) => error = error.caused_by(&why),
                    SignInTry::NotConfigured => {}
                }
            }
            return Err(self.failed(&prepared.process, &RequestError::Refused(error)));
        }
    }

    /// Records how a message was lowered, for whoever inspects the turn.
    async fn record(&self, lowering: Option<Lowering>) {
        if let Some(lowering) = lowering {
            self.events.record_lowering(lowering).await;
        }
    }

    pub(super) async fn notice(&self, text: String) -> Result<(), TurnOver> {
        self.events.send(AgentEvent::Notice { text }).await
    }

    /// Shows what became of settings, and what the agent said while no turn listened.
    async fn show_held_notices(
        &self,
        process: &AgentProcess,
        session: &LiveSession,
    ) -> Result<(), TurnOver> {
        for held in session.reported.take_notices() {
            let title = held.title.as_deref();
            if title.is_none_or(|title| process.is_new_notice(title)) {
                self.notice(held.text).await?;
            }
        }
        Ok(())
    }

    /// The model that the message names, unless it leaves the choice to the agent.
    fn chosen_model(&self) -> Option<&str> {
        let id = self.input.message["model"]["id"].as_str();
        id.filter(|id| *id != super::known::DEFAULT_MODEL)
    }

    /// An error of a request that the turn cannot do without.
    fn failed(&self, process: &AgentProcess, error: &RequestError) -> TurnStopped {
        let config = &self.core.config;
        TurnStopped::Failed(match error {
            RequestError::Refused(refused) if errors::is_sign_in(refused) => {
                self.core.learn_sign_in(false);
                errors::sign_in(config, &process.abilities, process.connection.tail(), refused)
            }
            error => errors::request(config, &process.connection, error),
        })
    }
}

/// Ends the turn in the agent, too, when it is dropped.
struct PromptGuard {
    core: Arc<AgentCore>,
    process: Arc<AgentProcess>,
    session: Arc<LiveSession>,
}

impl Drop for PromptGuard {
    fn drop(&mut self) {
        let connection: &AcpConnection = &self.process.connection;
        if !connection.end_turn(&self.session.inbox) {
            return; // the prompt is answered
        }
        let (core, process) = (Arc::clone(&self.core), Arc::clone(&self.process));
        let session = Arc::clone(&self.session);
        let wait = async move {
            let free = session.inbox.wait_until_free();
            if tokio::time::timeout(CANCEL_LIMIT, free).await.is_err() {
                core.pool.give_up(&process, &session.inbox.session);
            }
        };
        connection.spawn(Box::pin(wait));
    }
}

/// The answer to a prompt, as far as it can be read.
fn read_answer(answer: &str) -> Result<Value, AcpError> {
    let read = serde_json::from_str(answer);
    read.map_err(|error| AcpError::new(super::rpc::INTERNAL_ERROR, error.to_string()))
}
