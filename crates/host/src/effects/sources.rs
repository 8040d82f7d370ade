//! What messages refer to: files of the working directories, bodies of the blob store, copies of them for tools.
//!
//! Promises: files are opened anew and confined each time; every read is bounded. Blocks.
//! Must not know: messages and models.

use std::path::PathBuf;
use std::sync::Arc;

use compositor::Part;
use compositor::resolve::DocumentRead;
use wire::{Digest, Object};
use workspace::{Confinement, ContentStore, Workspace, WorkspaceSources};

use super::staging::Staging;
use crate::blobs::{Blobs, Found};
use crate::document_reader::DocumentReader;
use crate::entities::Entities;

/// The largest body that is read to be shown to a model: no provider takes more.
const BODY_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// What messages of this host refer to.
pub(crate) type HostSources = WorkspaceSources<HostStore>;

/// Stored bodies, copies of attachments, and the entities that the embedder knows.
pub(crate) struct HostStore {
    blobs: Arc<dyn Blobs>,
    staging: Staging,
    entities: Arc<dyn Entities>,
    documents: Arc<DocumentReader>,
}

pub(crate) fn open(
    working_directories: &[String],
    confinement: &Confinement,
    blobs: Arc<dyn Blobs>,
    staging: Option<PathBuf>,
    entities: Arc<dyn Entities>,
    documents: Arc<DocumentReader>,
) -> HostSources {
    let workspace = Workspace::open(working_directories, confinement);
    if let Err(error) = &workspace {
        let reason = error.reason();
        tracing::debug!(
            reason,
            "working directories cannot be opened; files in messages are unavailable"
        );
    }
    WorkspaceSources {
        workspace: workspace.ok(),
        store: HostStore { blobs, staging: Staging::at(staging), entities, documents },
    }
}

/// The digest in a content id.
pub(super) fn digest_in(content_id: &str) -> Option<Digest> {
    let hex = content_id.strip_prefix("sha256:")?;
    Digest::from_hex(hex)
}

/// The stored body of a content id; none if it is not there or too large.
pub(crate) fn read_body(blobs: &dyn Blobs, content_id: &str) -> Option<Vec<u8>> {
    match blobs.read(&digest_in(content_id)?, BODY_BYTES_MAX) {
        Ok(Found::Body(body)) => Some(body),
        Ok(Found::Missing | Found::TooLarge { .. }) => None,
        Err(error) => {
            tracing::error!(%error, "a body that a message refers to cannot be read");
            None
        }
    }
}

impl ContentStore for HostStore {
    fn body(&mut self, content_id: &str) -> Option<Vec<u8>> {
        read_body(&*self.blobs, content_id)
    }

    fn find_staged_copy(&mut self, part: &Part) -> Option<String> {
        self.staging.stage(part, &*self.blobs)
    }

    fn entity(&mut self, kind: &str, target: &Object) -> bool {
        self.entities.has(kind, target)
    }

    fn read_document(&mut self, bytes: &[u8]) -> Option<DocumentRead> {
        self.documents.read(bytes)
    }
}
