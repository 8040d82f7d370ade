//! What the task of a turn reads from and writes to, beside the kernel.
//!
//! Must not know: what an agent does with it.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::{Batch, ChannelId, Record, Seq};
use parking_lot::Mutex;

use super::Bodies;
use super::messages::TurnMessages;
use super::resources::ResourceReader;
use super::sources;
use crate::accounts::SpaceBounds;
use crate::budget::Budget;
use crate::changes::{SharedLooks, TurnChanges};
use crate::client_plugins::ClientAsker;
use crate::cluster::Tenure;
use crate::document_reader::DocumentReader;
use crate::entities::{Entities, NoEntities};
use crate::journal::JournalHandle;
use crate::sent_request::CallRetention;
use crate::telemetry::Telemetry;
use crate::terminals::Terminals;

/// Handles for the tasks of a turn.
#[derive(Clone)]
pub(crate) struct TurnServices {
    pub journal: JournalHandle,
    pub bodies: Bodies,
    /// Where copies of attachments are made for tools; none are made without.
    pub staging: Option<PathBuf>,
    pub entities: Arc<dyn Entities>,
    pub documents: Arc<DocumentReader>,
    /// How much of what models are asked is kept.
    pub calls: CallRetention,
    /// What turns may spend; anything if absent.
    pub budget: Option<Arc<Budget>>,
    /// Where commands of agents are shown.
    pub terminals: Terminals,
    /// Who reads what messages refer to and is no file.
    pub resources: Option<Arc<ResourceReader>>,
    /// What the space may take, where its database says so.
    pub bounds: Option<Arc<SpaceBounds>>,
    /// What operators see of turns.
    pub telemetry: Option<Arc<Telemetry>>,
    /// Held while the row of what a session changed is read and written.
    pub session_changes: Arc<tokio::sync::Mutex<()>>,
    /// What changesets are computed from when a turn is over.
    pub looks: SharedLooks,
    /// Who asks clients about their files.
    pub asker: ClientAsker,
    /// What the turn changes in files, if somebody watches over it.
    pub changes: Option<Arc<TurnChanges>>,
    /// Whether this node may still speak for the space, where another could.
    pub tenure: Option<Tenure>,
}

impl TurnServices {
    pub(crate) fn new(
        journal: JournalHandle,
        bodies: Bodies,
        terminals: Terminals,
        asker: ClientAsker,
    ) -> Self {
        Self {
            asker,
            terminals,
            journal,
            bodies,
            staging: None,
            entities: Arc::new(NoEntities),
            documents: Arc::default(),
            calls: CallRetention::default(),
            budget: None,
            resources: None,
            bounds: None,
            telemetry: None,
            session_changes: Arc::default(),
            looks: SharedLooks::default(),
            changes: None,
            tenure: None,
        }
    }

    /// Waits until something may be accepted or begun for the space here; `false`: it never may again.
    pub(crate) async fn may_act(&self) -> bool {
        match &self.tenure {
            None => true, // no other node can have it
            Some(tenure) => tenure.wait_until_heard().await,
        }
    }

    /// A reader of the messages of a chat.
    pub(crate) fn messages(&self, chat: ChannelId, working_directories: &[String]) -> TurnMessages {
        let blobs = self.bodies.store();
        let sources = sources::open(
            working_directories,
            self.bodies.confinement(),
            Arc::clone(&blobs),
            self.staging.clone(),
            Arc::clone(&self.entities),
            Arc::clone(&self.documents),
        );
        TurnMessages {
            journal: self.journal.clone(),
            blobs,
            sources: Arc::new(Mutex::new(sources)),
            chat,
            resources: self.resources.clone(),
            now: self.bodies.now(),
        }
    }

    /// Stores a record for inspectors; a turn does not fail for it.
    pub(crate) async fn append_inspection_record(&self, record: Record) {
        let batch = Batch { seq: Seq(0), records: vec![record] };
        if let Err(error) = self.journal.append(batch).await {
            tracing::warn!(%error, "what a model was shown is not recorded; inspectors will miss it");
        }
    }
}
