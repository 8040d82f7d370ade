//! Carries out the kernel's effects. Each ends as an input to the kernel, where one is promised.
//!
//! Must not know: why the kernel wants something done.

mod agent_words;
mod bodies;
mod complete;
mod files;
mod history;
mod kernel_sink;
mod messages;
mod models;
mod past_turns;
mod prompts;
mod renders;
mod resources;
mod restore;
mod run_turn;
mod services;
mod sources;
mod staging;
mod survey;
mod tools;
mod transcript;
mod turn_client;
mod turn_log;
mod watches;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use agent_api::{Agent, AgentError, AgentReply, SessionFacts};
use agents::sink::PendingReplies;
use kernel::{
    Batch, ChangesInput, ChangesetOperation, ChangesetTarget, ComposeTask, FetchTask, Input,
    MessageCheck, Query, ReadFailed, Rendered, RunId, TerminalTask, Ticket, TurnRun, UnstoredBody,
};
use tokio::task::AbortHandle;
use wire::{ChannelUri, Timestamp};

use agent_words::DeliveredTokens;
pub(crate) use bodies::Bodies;
pub(crate) use files::ClientFileAccess;
use kernel_sink::EventFlow;
pub(crate) use services::TurnServices;
pub(crate) use sources::read_body;
pub(crate) use tools::{EffectTools, MakeTools};

use crate::changes::{self, OperationServices, WorktreeRequest};
use crate::client_plugins::ClientAsker;
use crate::journal::JournalHandle;
use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::pacer::Pacer;
use crate::space_agents::SpaceAgents;
use crate::stream_batcher::StreamBatcher;
use crate::task;
use crate::telemetry::{Telemetry, outcome_of_call};

/// Starts effects and knows which turns run.
pub(crate) struct Effects {
    pub arrivals: KernelQueue,
    pub journal: JournalHandle,
    pub bodies: Bodies,
    pub agents: SpaceAgents,
    pub pace: Arc<Pacer>,
    /// Where pieces of streams wait.
    pub streams: Arc<StreamBatcher>,
    /// What operators see of the space.
    pub telemetry: Option<Arc<Telemetry>>,
    tools: OnceLock<Box<EffectTools>>,
    make_tools: MakeTools,
    runs: HashMap<RunId, RunningAgent>,
    handed_tokens: DeliveredTokens,
}

/// A turn that runs, and the replies its agent waits for.
struct RunningAgent {
    task: AbortHandle,
    replies: PendingReplies,
}

/// Parts of a creation with a worktree: the session itself, the worktree, the agent.
const CREATION_PARTS: i64 = 3;

async fn tell_creation(arrivals: &KernelQueue, session: &ChannelUri, done: i64, message: &str) {
    let progress = ChangesInput::CreationAt {
        session: session.clone(),
        done,
        total: CREATION_PARTS,
        message: message.to_owned(),
    };
    send(arrivals, Input::Changes(progress)).await;
}

impl Effects {
    pub(crate) fn new(
        arrivals: KernelQueue,
        journal: JournalHandle,
        bodies: Bodies,
        agents: SpaceAgents,
        streams: StreamBatcher,
        make_tools: MakeTools,
    ) -> Self {
        Self {
            arrivals,
            journal,
            bodies,
            agents,
            pace: Arc::default(),
            streams: Arc::new(streams),
            telemetry: None,
            tools: OnceLock::new(),
            make_tools,
            runs: HashMap::new(),
            handed_tokens: DeliveredTokens::default(),
        }
    }

    fn tools(&self) -> &EffectTools {
        self.tools.get_or_init(|| {
            let made = (self.make_tools)(&self.arrivals, &self.journal, &self.bodies);
            Box::new(made)
        })
    }

    /// Who asks clients about their files.
    pub(crate) fn asker(&self) -> &ClientAsker {
        &self.tools().asker
    }

    #[cfg(test)]
    fn tools_mut(&mut self) -> &mut EffectTools {
        self.tools();
        self.tools.get_mut().unwrap()
    }

    /// Does something to a terminal.
    pub(crate) fn act_on_terminal(&self, terminal: ChannelUri, act: TerminalTask) {
        self.tools().services.terminals.act(terminal, act);
    }

    pub(crate) fn has_terminals(&self) -> bool {
        let tools = self.tools.get();
        tools.is_some_and(|tools| !tools.services.terminals.is_empty())
    }

    pub(crate) fn read(&self, ticket: Ticket, query: Query) {
        let (journal, arrivals) = (self.journal.clone(), self.arrivals.clone());
        let kind = query.name();
        task::spawn(async move {
            let answer = journal.read(query).await.map_err(|error| ReadFailed(error.to_string()));
            if let Err(failed) = &answer {
                tracing::warn!(error = %failed, query = kind, "the journal could not be read; what waits for it fails");
            }
            send(&arrivals, Input::Read { ticket, answer }).await;
        });
    }

    pub(crate) fn fetch(&self, ticket: Ticket, fetch: FetchTask) {
        let (journal, bodies) = (self.journal.clone(), self.bodies.clone());
        let arrivals = self.arrivals.clone();
        task::spawn(async move {
            let fetched = bodies.fetch(fetch, &journal).await;
            if let Err(failed) = &fetched {
                tracing::error!(error = %failed, "content that a client asked for cannot be read");
            }
            send(&arrivals, Input::Fetched { ticket, fetched }).await;
        });
    }

    pub(crate) fn store_bodies(&self, ticket: Ticket, bodies: Vec<UnstoredBody>) {
        let (store, arrivals) = (self.bodies.clone(), self.arrivals.clone());
        task::spawn(async move {
            let stored = store.store_bodies(bodies).await;
            if let Err(failed) = &stored {
                tracing::warn!(error = %failed, "bodies of a client are not stored; what holds them is refused");
            }
            send(&arrivals, Input::BodiesStored { ticket, stored }).await;
        });
    }

    pub(crate) fn compose(&self, ticket: Ticket, compose: ComposeTask) {
        let (store, arrivals) = (self.bodies.clone(), self.arrivals.clone());
        let entity_kinds = self.tools().services.entities.kinds();
        let agent = self.agent(&compose.context.provider);
        task::spawn(async move {
            let composed = store.compose_message(compose, entity_kinds, agent).await;
            send(&arrivals, Input::Composed { ticket, composed }).await;
        });
    }

    pub(crate) fn check_message(&self, ticket: Ticket, check: MessageCheck) {
        let (store, arrivals) = (self.bodies.clone(), self.arrivals.clone());
        let services = &self.tools().services;
        let entities = Arc::clone(&services.entities);
        let documents = Arc::clone(&services.documents);
        let agent = self.agent(&check.provider);
        task::spawn(async move {
            let checked = store.check_message(check, entities, documents, agent).await;
            send(&arrivals, Input::MessageChecked { ticket, checked }).await;
        });
    }

    /// Computes a changeset for its watchers.
    pub(crate) fn compute_changeset(&self, place: ChangesetTarget) {
        let (bodies, journal) = (self.bodies.clone(), self.journal.clone());
        let arrivals = self.arrivals.clone();
        let computing = &self.tools().computing;
        computing.start(place, bodies, journal, arrivals);
    }

    /// Carries out an operation on a changeset.
    pub(crate) fn operate_changeset(&self, ticket: Ticket, operation: ChangesetOperation) {
        let services = OperationServices {
            bodies: self.bodies.clone(),
            journal: self.journal.clone(),
            arrivals: self.arrivals.clone(),
            session_changes: Arc::clone(&self.tools().services.session_changes),
        };
        let arrivals = self.arrivals.clone();
        task::spawn(async move {
            let outcome = changes::operate(operation, services).await;
            send(&arrivals, Input::ChangesetOperated { ticket, outcome }).await;
        });
    }

    /// A session is gone: its worktree goes unless something in it would be lost.
    pub(crate) fn remove_worktree(&self, facts: serde_json::Value) {
        task::spawn(changes::remove_worktree(facts));
    }

    pub(crate) fn check_worktree(&self, ticket: Ticket, facts: serde_json::Value) {
        let arrivals = self.arrivals.clone();
        task::spawn(async move {
            let kept_because = changes::why_worktree_is_kept(facts).await;
            let checked = Input::WorktreeChecked { ticket, kept_because };
            send(&arrivals, checked).await;
        });
    }

    pub(crate) fn collect(&self, buckets: RangeInclusive<u8>, before: Timestamp) {
        let (journal, bodies) = (self.journal.clone(), self.bodies.clone());
        task::spawn(async move {
            bodies.collect(buckets, before, &journal).await;
            // What the sweep deleted left free pages behind.
            if let Err(error) = journal.release_space().await {
                tracing::warn!(%error, "disk space that nothing uses is not given back; the next sweep tries again");
            }
        });
    }

    pub(crate) fn probe(&self) {
        let (journal, arrivals) = (self.journal.clone(), self.arrivals.clone());
        task::spawn(async move {
            let writable = journal.probe().await.is_ok();
            send(&arrivals, Input::Probed { writable }).await;
        });
    }

    /// A session is ready when its agent is known: no process starts before the first turn (G-28).
    pub(crate) fn start_session(
        &self,
        session: ChannelUri,
        provider: String,
        config: wire::Object,
        working_directories: Vec<String>,
    ) {
        let agent = self.agent(&provider);
        let (arrivals, bodies) = (self.arrivals.clone(), self.bodies.clone());
        let worktree_dir = self.tools().worktree_dir.clone();
        task::spawn(async move {
            let failure = || AgentError {
                error_type: "agentMissing".to_owned(),
                message: format!("this host has no agent `{provider}` any more"),
                resumable: false,
            };
            let mut working_directories = working_directories;
            let request = WorktreeRequest::of(&session, &config, &working_directories);
            if request.is_some() {
                // The agent comes after it, and the end of all.
                tell_creation(&arrivals, &session, 1, "making a worktree").await;
            }
            let made = changes::make_worktree(request, bodies.confinement(), worktree_dir);
            let result = match (&agent, made.await) {
                (Some(agent), Ok(made)) => {
                    if let Some(made) = made {
                        if let Some(first) = working_directories.first_mut() {
                            first.clone_from(&made.replacement);
                        }
                        let made = Input::Changes(ChangesInput::WorktreeMade {
                            session: session.clone(),
                            directory: made.directory,
                            replacement: made.replacement,
                            facts: made.facts,
                        });
                        send(&arrivals, made).await;
                        tell_creation(&arrivals, &session, 2, "starting the agent").await;
                    }
                    agent.begin_session(session.as_str()).await
                }
                (Some(_), Err(error)) => Err(error),
                (None, _) => Err(failure()),
            };
            let started = session.clone();
            let started = Input::SessionStarted { session: started, result };
            send(&arrivals, started).await;
            if !working_directories.is_empty() {
                let directories = &working_directories;
                if !changes::tell_git(&arrivals, &session, directories, &bodies, None).await {
                    // It has changesets all the same: what its turns change.
                    let (session, git) = (session.clone(), None);
                    let found = ChangesInput::GitFound { session, git };
                    send(&arrivals, Input::Changes(found)).await;
                }
            }
            // The session is ready by now: nobody waits for the prompt at its start.
            let facts = SessionFacts {
                conversation: session.to_string(),
                chat: String::new(),
                principal: None, // a prompt is put together, and nothing is asked of anybody
                working_directories,
                attachments: None,
                plugins: Vec::new(),
            };
            if let Some(agent) = agent
                && let Some(sections) = agent.opening_prompt(facts, config).await
            {
                send(&arrivals, Input::OpeningPrompt { session, sections }).await;
            }
        });
    }

    /// Records a render for the operator.
    pub(crate) fn record_render(&self, session: &ChannelUri, rendered: Box<Rendered>) {
        let opens_session = rendered.turn_id.is_none();
        renders::record(&self.journal, session, rendered);
        if !opens_session {
            return; // the turn goes on: its next batch takes the record along
        }
        let journal = self.journal.clone();
        // Nothing else may be written for a while: an empty batch takes the record along.
        task::spawn(async move {
            if let Err(error) = journal.append(Batch::default()).await {
                tracing::debug!(%error, "the render at the start of a session is not recorded");
            }
        });
    }

    pub(crate) fn run_turn(&mut self, turn: TurnRun) {
        self.runs.retain(|_, run| !run.task.is_finished());
        let agent = self.agent(&turn.provider);
        let run = turn.run;
        self.pace.start_run(run);
        let replies = PendingReplies::default();
        let flow = EventFlow { pace: Arc::clone(&self.pace), streams: Arc::clone(&self.streams) };
        let task = task::spawn(run_turn::run(
            agent,
            turn,
            replies.clone(),
            self.arrivals.clone(),
            self.tools().services.clone(),
            flow,
        ))
        .abort_handle();
        self.runs.insert(run, RunningAgent { task, replies });
    }

    /// Clients know a call by this id.
    pub(crate) fn name_call(&self, run: RunId, call: u64, id: String) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.name_call(run, call, id);
        }
    }

    /// Hands a run the reply it waits for. A run that is gone, or waits no more, gets none.
    pub(crate) fn reply(&self, run: RunId, reply: AgentReply) {
        if let (AgentReply::ToolEnded { call, result }, Some(telemetry)) = (&reply, &self.telemetry)
        {
            telemetry.end_call(run, *call, outcome_of_call(result));
        }
        let Some(running) = self.runs.get(&run) else {
            return tracing::debug!(?run, "reply dropped: the run is gone");
        };
        if running.replies.deliver(reply).is_err() {
            tracing::debug!(?run, "reply dropped: the run is not waiting");
        }
    }

    pub(crate) fn stop_turn(&mut self, run: RunId) {
        if let Some(running) = self.runs.remove(&run) {
            running.task.abort();
        }
        self.pace.end_run(run);
    }

    /// Ends every turn: the kernel that began them is gone. Terminals end when nobody takes what they say.
    pub(crate) fn stop_all(&mut self) {
        for run in self.runs.keys().copied().collect::<Vec<_>>() {
            self.stop_turn(run);
        }
    }

    /// A chat, or a session, is gone for good.
    pub(crate) fn end_chat(&self, chat: &ChannelUri) {
        self.forget_plugins(chat);
        let roster = self.agents.roster();
        let agents = roster.iter().flat_map(|roster| roster.agents());
        agents.for_each(|agent| agent.end_chat(chat.as_str()));
    }

    fn agent(&self, provider: &str) -> Option<Arc<dyn Agent>> {
        self.agents.find(provider)
    }
}

/// Hands an input to the kernel. Nobody listens any more only when the host is going down.
pub(crate) async fn send(arrivals: &KernelQueue, input: Input) {
    if arrivals.send(QueuedInput::from(input)).await.is_err() {
        tracing::debug!("an effect ended after the kernel did; its input is dropped");
    }
}

#[cfg(test)]
mod agent_words_tests;
#[cfg(test)]
mod tests;
