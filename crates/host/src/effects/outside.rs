//! The world outside a message: files of the working directories, bodies of the blob store, copies of them for tools.
//!
//! Promises: files are opened anew and confined each time; every read is bounded. Blocks.
//! Must not know: messages and models.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use agents::files::{Files, Reach, Store};
use compositor::Part;
use compositor::resolve::{FileRead, PictureLimits, Scanned, Sources, WhyUnavailable};
use wire::{Digest, Object};

use super::staging::Staging;
use crate::blobs::{Blobs, Found};
use crate::entities::Entities;

/// The largest body that is read to be shown to a model: no provider takes more.
const BODY_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// What the host lets be seen of it.
pub(crate) struct Outside {
    /// None if the working directories cannot be opened.
    files: Option<Files>,
    shelf: Shelf,
}

/// Bodies, and what the embedder knows.
struct Shelf {
    blobs: Arc<dyn Blobs>,
    staging: Staging,
    entities: Arc<dyn Entities>,
}

impl Outside {
    pub fn open(
        working_directories: &[String],
        blobs: Arc<dyn Blobs>,
        staging: Option<PathBuf>,
        entities: Arc<dyn Entities>,
    ) -> Self {
        let shelf = Shelf {
            blobs,
            staging: Staging::at(staging),
            entities,
        };
        let files = Files::open(working_directories);
        if let Err(error) = &files {
            tracing::debug!(%error, "no file of a session's directories can be shown");
        }
        Self {
            files: files.ok(),
            shelf,
        }
    }

    fn reach(&mut self) -> Option<Reach<'_>> {
        let files = self.files.as_ref()?;
        let store = &mut self.shelf;
        Some(Reach { files, store })
    }
}

/// The digest in a content id.
pub(crate) fn digest_in(content_id: &str) -> Option<Digest> {
    let hex = content_id.strip_prefix("sha256:")?;
    Digest::from_hex(hex)
}

impl Store for Shelf {
    fn body(&mut self, content_id: &str) -> Option<Vec<u8>> {
        let digest = digest_in(content_id)?;
        match self.blobs.read(&digest, BODY_BYTES_MAX) {
            Ok(Found::Body(body)) => Some(body),
            Ok(Found::Missing | Found::TooLarge { .. }) => None,
            Err(error) => {
                tracing::error!(%error, "a body that a message refers to cannot be read");
                None
            }
        }
    }

    fn staged(&mut self, part: &Part) -> Option<String> {
        self.staging.stage(part, &*self.blobs)
    }

    fn entity(&mut self, kind: &str, target: &Object) -> bool {
        self.entities.has(kind, target)
    }
}

impl Sources for Outside {
    fn file(&mut self, path: &str, limit_bytes: u64) -> FileRead {
        match self.reach() {
            Some(mut reach) => reach.file(path, limit_bytes),
            None => FileRead::Unavailable(WhyUnavailable::NotFound),
        }
    }

    fn scan(&mut self, path: &str, each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Scanned {
        match self.reach() {
            Some(mut reach) => reach.scan(path, each),
            None => Scanned::Unavailable(WhyUnavailable::NotFound),
        }
    }

    fn body(&mut self, content_id: &str) -> Option<Vec<u8>> {
        Store::body(&mut self.shelf, content_id)
    }

    fn entity(&mut self, kind: &str, target: &Object) -> bool {
        Store::entity(&mut self.shelf, kind, target)
    }

    fn staged(&mut self, part: &Part) -> Option<String> {
        Store::staged(&mut self.shelf, part)
    }

    fn fit_picture(
        &mut self,
        mime: &str,
        bytes: &[u8],
        limits: &PictureLimits,
    ) -> Option<(String, Vec<u8>)> {
        agents::picture::fit(mime, bytes, limits)
    }

    fn absolute(&self, path: &str) -> String {
        match &self.files {
            Some(files) => files.absolute(path),
            None => path.to_owned(),
        }
    }
}
