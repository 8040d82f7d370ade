//! What the kernel wants done. Each effect ends as an input to the kernel, or in silence where none is owed.

mod bodies;
mod complete;
mod history;
mod messages;
mod outside;
mod render;
mod run_turn;
mod shelves;
mod staging;
mod words;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use agents::{Agent, Replies, SessionFacts};
use kernel::{
    AgentFailure, AgentReply, Batch, Body, ChannelId, Compose, Fetch, Input, Query, ReadFailed,
    Rendered, RunId, Ticket, TurnRun,
};
use serde_json::Value;
use tokio::task::AbortHandle;
use wire::{ChannelUri, Timestamp};

pub(crate) use bodies::Bodies;
use complete::Completions;
pub(crate) use shelves::Shelves;

use crate::arrival::{Arrival, Arrivals};
use crate::complete::Completer;
use crate::journal::JournalThread;
use crate::pace::Pace;

/// Starts effects and knows which turns run.
pub(crate) struct Effects {
    pub arrivals: Arrivals,
    pub journal: JournalThread,
    pub bodies: Bodies,
    pub agents: Vec<Arc<dyn Agent>>,
    completions: Completions,
    pub pace: Arc<Pace>,
    pub shelves: Shelves,
    runs: HashMap<RunId, Running>,
}

/// A turn that runs, and what its agent waits for.
struct Running {
    task: AbortHandle,
    replies: Replies,
    session: ChannelUri,
    chat: ChannelId,
    directories: Vec<String>,
}

impl Effects {
    pub fn new(
        arrivals: Arrivals,
        journal: JournalThread,
        bodies: Bodies,
        agents: Vec<Arc<dyn Agent>>,
    ) -> Self {
        let completions = Completions::new(Completer::new(bodies.discovery()));
        let shelves = Shelves::new(journal.clone(), bodies.clone());
        Self {
            shelves,
            arrivals,
            journal,
            bodies,
            agents,
            completions,
            pace: Arc::default(),
            runs: HashMap::new(),
        }
    }

    pub fn read(&self, ticket: Ticket, query: Query) {
        let (journal, arrivals) = (self.journal.clone(), self.arrivals.clone());
        tokio::spawn(async move {
            let answer = journal
                .read(query)
                .await
                .map_err(|error| ReadFailed(error.to_string()));
            if let Err(failed) = &answer {
                tracing::warn!(error = %failed, "a read failed");
            }
            send(&arrivals, Input::Read { ticket, answer }).await;
        });
    }

    pub fn fetch(&self, ticket: Ticket, fetch: Fetch) {
        let (journal, bodies) = (self.journal.clone(), self.bodies.clone());
        let arrivals = self.arrivals.clone();
        tokio::spawn(async move {
            let fetched = bodies.fetch(fetch, &journal).await;
            if let Err(failed) = &fetched {
                tracing::error!(error = %failed, "content cannot be read");
            }
            send(&arrivals, Input::Fetched { ticket, fetched }).await;
        });
    }

    pub fn keep(&self, ticket: Ticket, bodies: Vec<Body>) {
        let (store, arrivals) = (self.bodies.clone(), self.arrivals.clone());
        tokio::spawn(async move {
            let kept = store.compose(bodies).await;
            if let Err(failed) = &kept {
                tracing::warn!(error = %failed, "a client's bodies are not kept");
            }
            send(&arrivals, Input::Kept { ticket, kept }).await;
        });
    }

    pub fn compose(&self, ticket: Ticket, compose: Compose) {
        let (store, arrivals) = (self.bodies.clone(), self.arrivals.clone());
        tokio::spawn(async move {
            let composed = store.understand(compose).await;
            send(&arrivals, Input::Composed { ticket, composed }).await;
        });
    }

    pub fn collect(&self, buckets: RangeInclusive<u8>, before: Timestamp) {
        let (journal, bodies) = (self.journal.clone(), self.bodies.clone());
        tokio::spawn(async move { bodies.collect(buckets, before, &journal).await });
    }

    pub fn probe(&self) {
        let (journal, arrivals) = (self.journal.clone(), self.arrivals.clone());
        tokio::spawn(async move {
            let writable = journal.probe().await.is_ok();
            send(&arrivals, Input::Probed { writable }).await;
        });
    }

    /// A session is ready when its agent is known: no process starts before the first turn (G-28).
    pub fn start_session(
        &self,
        session: ChannelUri,
        provider: String,
        config: wire::Object,
        working_directories: Vec<String>,
    ) {
        let agent = self.agent(&provider);
        let arrivals = self.arrivals.clone();
        tokio::spawn(async move {
            let failure = || AgentFailure {
                error_type: "agentMissing".to_owned(),
                message: format!("this host has no agent `{provider}` any more"),
                resumable: false,
            };
            let result = agent.as_ref().map(|_| ()).ok_or_else(failure);
            let started = session.clone();
            let started = Input::SessionStarted {
                session: started,
                result,
            };
            send(&arrivals, started).await;
            // The session is ready by now: nobody waits for what is rendered at its start.
            let facts = SessionFacts {
                conversation: session.to_string(),
                working_directories,
            };
            if let Some(agent) = agent
                && let Some(sections) = agent.opening(facts, config).await
            {
                let sections = words::sections(sections);
                send(&arrivals, Input::Opening { session, sections }).await;
            }
        });
    }

    /// What was rendered when a session began is kept for the operator.
    pub fn opened(&self, session: &ChannelUri, rendered: &Rendered) {
        render::note(&self.journal, session, rendered);
        let journal = self.journal.clone();
        // Nothing else may be written for a while: an empty batch takes the note along.
        tokio::spawn(async move {
            if let Err(error) = journal.append(Batch::default()).await {
                tracing::debug!(%error, "a render is not kept");
            }
        });
    }

    pub fn run_turn(&mut self, turn: TurnRun) {
        self.runs.retain(|_, run| !run.task.is_finished());
        let agent = self.agent(&turn.provider);
        let (run, session) = (turn.run, turn.session.clone());
        self.pace.began(run);
        let replies = Replies::default();
        let (chat, directories) = (turn.history.chat, turn.working_directories.clone());
        let task = tokio::spawn(run_turn::run(
            agent,
            turn,
            replies.clone(),
            self.arrivals.clone(),
            self.shelves.clone(),
            Arc::clone(&self.pace),
        ));
        let task = task.abort_handle();
        let running = Running {
            task,
            replies,
            session,
            chat,
            directories,
        };
        self.runs.insert(run, running);
    }

    /// Tells a run what it waits for. A run that is gone, or waits no more, hears nothing.
    pub fn reply(&self, run: RunId, reply: AgentReply) {
        let Some(running) = self.runs.get(&run) else {
            return tracing::debug!(?run, "a reply for a run that is gone");
        };
        if let AgentReply::Rendered { rendered, .. } = &reply {
            render::note(&self.journal, &running.session, rendered);
        }
        if let AgentReply::Steered {
            steer,
            message: message @ Some(_),
            message_id: Some(id),
        } = reply
        {
            return self.steer(running, steer, message, id);
        }
        if running.replies.deliver(words::reply(reply)).is_err() {
            tracing::debug!(?run, "a reply that nobody waits for");
        }
    }

    /// What the user says in between means what was found out when it was sent.
    fn steer(&self, running: &Running, steer: u64, message: Option<Value>, id: String) {
        let messages = self.shelves.messages(running.chat, &running.directories);
        let replies = running.replies.clone();
        tokio::spawn(async move {
            let user = messages.one(id).await;
            let reply = agents::AgentReply::Steered {
                steer,
                message,
                user,
            };
            if replies.deliver(reply).is_err() {
                tracing::debug!("a word in between that nobody waits for");
            }
        });
    }

    pub fn stop_turn(&mut self, run: RunId) {
        if let Some(running) = self.runs.remove(&run) {
            running.task.abort();
        }
        self.pace.ended(run);
    }

    fn agent(&self, provider: &str) -> Option<Arc<dyn Agent>> {
        self.agents
            .iter()
            .find(|agent| agent.info().provider == provider)
            .cloned()
    }
}

/// Hands an input to the kernel. Nobody listens any more only when the host is going down.
async fn send(arrivals: &Arrivals, input: Input) {
    if arrivals.send(Arrival::Input(input)).await.is_err() {
        tracing::debug!("an effect ended after the host did");
    }
}

#[cfg(test)]
mod tests;
