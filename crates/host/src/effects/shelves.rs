//! Where a turn finds what it needs and leaves what is kept beside it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use kernel::{Batch, ChannelId, Record, Seq};

use super::Bodies;
use super::messages::Messages;
use super::outside;
use crate::entities::{Entities, NoEntities};
use crate::journal::JournalThread;

/// Handles for the tasks of a turn.
#[derive(Clone)]
pub(crate) struct Shelves {
    pub journal: JournalThread,
    pub bodies: Bodies,
    /// Where copies of attachments lie; none are made without.
    pub staging: Option<PathBuf>,
    pub entities: Arc<dyn Entities>,
}

impl Shelves {
    pub fn new(journal: JournalThread, bodies: Bodies) -> Self {
        Self {
            journal,
            bodies,
            staging: None,
            entities: Arc::new(NoEntities),
        }
    }

    /// What was said in a chat.
    pub fn messages(&self, chat: ChannelId, working_directories: &[String]) -> Messages {
        let blobs = self.bodies.store();
        let outside = outside::open(
            working_directories,
            Arc::clone(&blobs),
            self.staging.clone(),
            Arc::clone(&self.entities),
        );
        Messages {
            journal: self.journal.clone(),
            blobs,
            outside: Arc::new(Mutex::new(outside)),
            chat,
            now: self.bodies.now(),
        }
    }

    /// Keeps something for inspectors; a turn does not fail for it.
    pub async fn keep_beside(&self, record: Record) {
        let batch = Batch {
            seq: Seq(0),
            records: vec![record],
        };
        if let Err(error) = self.journal.append(batch).await {
            tracing::warn!(%error, "what a model was shown is not kept for inspectors");
        }
    }
}
