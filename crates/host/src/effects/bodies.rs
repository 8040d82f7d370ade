//! Bodies: stored before they are recorded, read for clients and collected when nothing refers to them, away from the
//! kernel's task and its thread.
//!
//! Promises: a body is on disk before its name is given out.
//! Must not know: why a body is large.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use agent_api::{Agent, AgentEvent, ModelCall};
use kernel::bodies::{detach_from_event, fill_event};
use kernel::{
    Answer, ComposeTask, FetchTask, FetchedContent, Limits, MessageCheck, Query, Record,
    Submission, UnstoredBody, WorkFailed,
};
use serde_json::Value;
use tokio::sync::Semaphore;
use wire::published::state::ContentRef;
use wire::{Digest, NamedBody, Timestamp};
use workspace::discovery::DiscoveryCache;
use workspace::{Confinement, UserDirectories};

use crate::blobs::{self, BlobError, Blobs, BodyHold, HeldBodies};
use crate::client_plugins::ClientPlugins;
use crate::clock::Clock;
use crate::compose::{self, KnownNames, commands_of};
use crate::document_reader::DocumentReader;
use crate::entities::Entities;
use crate::journal::JournalHandle;
use crate::message_check::{CheckContext, check_message};
use crate::sent_request::{CallIdentity, CallRetention, make_record};
use crate::task;

/// Bodies that are in memory at once on their way from or to the disk; others wait.
const BODIES_MAX: usize = 4;

/// Bodies that are looked up and removed between two batches.
const COLLECT_MAX: usize = 32;

/// A handle on the blob store for tasks. It is small: a space has several, and a node thousands of spaces.
#[derive(Clone)]
pub(crate) struct Bodies {
    shared: Arc<SharedBodies>,
}

#[derive(Clone)]
struct SharedBodies {
    blobs: Arc<dyn Blobs>,
    clock: Clock,
    result_bytes_max: usize,
    permits: Arc<Semaphore>,
    discovery: DiscoveryCache,
    plugins: ClientPlugins,
    confinement: Confinement,
    held: HeldBodies,
}

impl Bodies {
    pub(crate) fn new(blobs: Arc<dyn Blobs>, clock: Clock, limits: &Limits) -> Self {
        let shared = SharedBodies {
            blobs,
            clock,
            result_bytes_max: limits.inline_result_bytes,
            permits: Arc::new(Semaphore::new(BODIES_MAX)),
            discovery: DiscoveryCache::with_report(|kind, count| {
                let kind = kind.name();
                tracing::warn!(
                    kind,
                    count,
                    "commands or skills of a project are skipped; `greenroom compose` shows which"
                );
            }),
            plugins: ClientPlugins::default(),
            confinement: Confinement::none(),
            held: HeldBodies::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Reads no file of a directory that sessions may not work in.
    #[must_use]
    pub(crate) fn with_confinement(mut self, confinement: Confinement) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        shared.discovery = shared.discovery.clone().with_confinement(confinement.clone());
        shared.confinement = confinement;
        self
    }

    /// Finds what the user keeps for agents as well.
    #[must_use]
    pub(crate) fn with_user_directories(mut self, user: UserDirectories) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        shared.discovery = shared.discovery.clone().with_user_directories(user);
        self
    }

    /// Where sessions may work.
    pub(crate) fn confinement(&self) -> &Confinement {
        &self.shared.confinement
    }

    pub(crate) fn store(&self) -> Arc<dyn Blobs> {
        Arc::clone(&self.shared.blobs)
    }

    /// Spares bodies that nothing refers to yet.
    pub(crate) fn hold(&self) -> BodyHold {
        self.shared.held.begin()
    }

    /// The commands and skills of working directories.
    pub(crate) fn discovery(&self) -> DiscoveryCache {
        self.shared.discovery.clone()
    }

    /// What clients brought along.
    pub(crate) fn plugins(&self) -> &ClientPlugins {
        &self.shared.plugins
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Content for a client, encoded.
    pub(crate) async fn fetch(
        &self,
        fetch: FetchTask,
        journal: &JournalHandle,
    ) -> Result<FetchedContent, WorkFailed> {
        let digest = fetch.digest;
        let content_type = match journal.read(Query::ContentType { digest }).await {
            Ok(Answer::ContentType(content_type)) => content_type,
            // It can be served without.
            Ok(_) | Err(_) => None,
        };
        self.work(move |store| blobs::fetch(store, &fetch, content_type).map_err(failed)).await
    }

    /// Stores the bodies of a message or a result; where each of their names belongs.
    pub(crate) async fn store_bodies(
        &self,
        bodies: Vec<UnstoredBody>,
    ) -> Result<Vec<(String, Digest)>, WorkFailed> {
        let clock = self.shared.clock;
        self.work(move |store| blobs::store_bodies(store, bodies, clock.now())).await
    }

    /// Composes a message: its parts, commands and mentions.
    pub(crate) async fn compose_message(
        &self,
        compose: ComposeTask,
        entity_kinds: BTreeSet<String>,
        agent: Option<Arc<dyn Agent>>,
    ) -> Result<Box<Submission>, WorkFailed> {
        let clock = self.shared.clock;
        let (discovery, plugins) = (self.shared.discovery.clone(), self.shared.plugins.clone());
        let prompts = self.ask_for_prompts(&compose, agent.as_ref()).await?;
        self.work(move |store| {
            let mut known =
                known_names(&discovery, &plugins, &compose, agent.as_deref(), entity_kinds);
            prompts.add_to(&mut known);
            compose::compose_and_store(store, &known, compose, clock.now())
        })
        .await
    }

    /// Says what would become of a message.
    pub(crate) async fn check_message(
        &self,
        check: MessageCheck,
        entities: Arc<dyn Entities>,
        documents: Arc<DocumentReader>,
        agent: Option<Arc<dyn Agent>>,
    ) -> Result<Value, WorkFailed> {
        let (clock, confinement) = (self.shared.clock, self.shared.confinement.clone());
        let (discovery, plugins) = (self.shared.discovery.clone(), self.shared.plugins.clone());
        let prompts = self.ask_for_prompts(&check.compose, agent.as_ref()).await?;
        self.work(move |store| {
            let compose = &check.compose;
            let mut known =
                known_names(&discovery, &plugins, compose, agent.as_deref(), entities.kinds());
            prompts.add_to(&mut known);
            let context = CheckContext {
                known: &known,
                confinement: Some(&confinement),
                blobs: store,
                entities: &*entities,
                documents: &documents,
                now: clock.now(),
            };
            let (model, refusals) = (check.model.clone(), check.refusals.clone());
            check_message(check, &context, |message| {
                agent?.model_terms(model.as_deref(), refusals.as_deref(), message)
            })
        })
        .await
    }

    /// Stores a body that an agent will refer to.
    pub(crate) async fn store_body(
        &self,
        body: Vec<u8>,
        content_type: &str,
    ) -> Result<ContentRef, WorkFailed> {
        let (bytes, clock) = (body.len(), self.shared.clock);
        let stored = self.work(move |store| store.put(&body, clock.now()).map_err(failed));
        Ok(reference(&stored.await?, bytes, content_type))
    }

    /// The same for a body whose digest is known.
    pub(crate) async fn store_named_body(
        &self,
        body: NamedBody,
        content_type: &str,
    ) -> Result<ContentRef, WorkFailed> {
        let (digest, bytes, clock) = (body.digest(), body.len(), self.shared.clock);
        let stored =
            self.work(move |store| store.put_named(&digest, &body, clock.now()).map_err(failed));
        stored.await?;
        Ok(reference(&digest, bytes, content_type))
    }

    /// Makes the record of a call of a model, with the bodies in it stored.
    pub(crate) async fn record_call(
        &self,
        call: ModelCall,
        recorded_as: CallIdentity,
        retention: CallRetention,
    ) -> Result<Record, WorkFailed> {
        let now = self.shared.clock.now();
        self.work(move |store| {
            make_record(&call, recorded_as, now, retention, store).map_err(failed)
        })
        .await
    }

    /// Stores the bodies of an event that are too large for state; the event refers to them instead.
    pub(crate) async fn detach_bodies(&self, mut event: AgentEvent) -> AgentEvent {
        let bodies = detach_from_event(&mut event, self.shared.result_bytes_max);
        if bodies.is_empty() {
            return event;
        }
        let places = bodies.iter().map(|body| body.pointer.clone()).collect();
        let stored = self.store_bodies(bodies).await.map_err(|failed| {
            tracing::error!(error = %failed, "a tool result of an agent is not stored; its call says so");
            failed.to_string()
        });
        fill_event(&mut event, places, stored);
        event
    }

    /// Removes what nothing refers to, a few at a time: all batches wait for each removal.
    pub(crate) async fn collect(
        &self,
        buckets: RangeInclusive<u8>,
        before: Timestamp,
        journal: &JournalHandle,
    ) {
        let aged = self.work(move |store| store.list_older_than(buckets, before).map_err(failed));
        let Ok(aged) = aged.await else {
            return; // logged already; the next sweep tries again
        };
        for some in aged.chunks(COLLECT_MAX) {
            let (blobs, held) = (Arc::clone(&self.shared.blobs), self.shared.held.clone());
            let collected = journal.collect(some.to_vec(), move |unreferred| {
                let unneeded: Vec<Digest> = unreferred.iter().filter(|digest| !held.contains(digest)).copied().collect();
                if let Err(error) = blobs.remove_all(&unneeded, before) {
                    tracing::warn!(%error, "a body that nothing refers to could not be removed; a later collection tries again");
                }
            });
            if let Err(error) = collected.await {
                tracing::warn!(%error, "bodies that nothing refers to could not be looked up; the next collection tries again");
                return;
            }
        }
    }

    /// Does what may wait for the disk where waiting harms nobody.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Blobs) -> Result<T, WorkFailed> + Send + 'static,
    ) -> Result<T, WorkFailed> {
        let _permit = self.shared.permits.acquire().await;
        let blobs = Arc::clone(&self.shared.blobs);
        let done = task::spawn_blocking(move || work(&*blobs)).await;
        done.unwrap_or_else(|died| Err(WorkFailed(died.to_string())))
    }
}

/// The commands and skills that a message may name.
pub(super) fn known_names(
    discovery: &DiscoveryCache,
    plugins: &ClientPlugins,
    compose: &ComposeTask,
    agent: Option<&dyn Agent>,
    entity_kinds: BTreeSet<String>,
) -> KnownNames {
    let found = discovery.get_enabled(
        &compose.working_directories,
        &plugins.searched_plugins(&compose.context.session),
        &compose.context.switched_off,
    );
    let skills = found.skills.iter().filter(|skill| skill.is_for_users());
    let mut catalogue = found.catalogue.clone();
    let directories = &compose.working_directories;
    catalogue.add_agent_commands(&commands_of(agent, &compose.context, directories));
    KnownNames { catalogue, skills: skills.map(|skill| skill.name.clone()).collect(), entity_kinds }
}

fn reference(digest: &Digest, bytes: usize, content_type: &str) -> ContentRef {
    ContentRef {
        uri: digest.uri(),
        size_hint: i64::try_from(bytes).ok(),
        content_type: Some(content_type.to_owned()),
        nonce: None,
    }
}

fn failed(error: BlobError) -> WorkFailed {
    WorkFailed(error.to_string())
}
