//! A user's message as an agent gets it: typed parts, and what they refer to.
//!
//! Promises: parts stay what they are until they are lowered for a provider.
//! Must not know: where bodies and files lie.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use compositor::part::View;
use compositor::resolve::{FileRead, ImageLimits, Resolved, Scanned, Sources, WhyUnavailable};
use compositor::{Part, part};
use parking_lot::{Mutex, MutexGuard};
use wire::Object;

/// A message of a user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserMessage {
    pub parts: Vec<Part>,
    /// What the references among its parts turned out to be when they were first resolved, by part (C-021).
    pub resolved: BTreeMap<usize, Resolved>,
}

impl UserMessage {
    pub fn text(text: &str) -> Self {
        Self { parts: vec![Part::text(text)], resolved: BTreeMap::new() }
    }

    /// The skills it mentions that exist, each once, in order.
    pub fn skills(&self) -> Vec<&str> {
        let mut skills = Vec::new();
        for part in &self.parts {
            if let View::Mention(part::Mention {
                target: part::MentionTarget::Skill { name, unresolved: false },
                ..
            }) = part.view()
                && !skills.contains(&name)
            {
                skills.push(name);
            }
        }
        skills
    }

    /// The files it mentions, as they are written there.
    pub fn files(&self) -> Vec<&str> {
        let files = self.parts.iter().filter_map(|part| match part.view() {
            View::Mention(part::Mention {
                target: part::MentionTarget::File { path, .. }, ..
            }) => Some(path),
            _ => None,
        });
        files.collect()
    }
}

/// What messages refer to, as far as the host lets it be seen: files, stored bodies, entities. Clones share it.
#[derive(Clone)]
pub struct SharedSources(Arc<Mutex<dyn Sources + Send>>);

impl fmt::Debug for SharedSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSources")
    }
}

impl Default for SharedSources {
    fn default() -> Self {
        Self::new(NoSources)
    }
}

impl SharedSources {
    pub fn new(sources: impl Sources + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(sources)))
    }

    /// Sources that others use too.
    pub fn shared(sources: Arc<Mutex<dyn Sources + Send>>) -> Self {
        Self(sources)
    }

    /// Locks the sources. For callers that may block: reading them waits for disks.
    pub fn lock(&self) -> MutexGuard<'_, dyn Sources + Send + 'static> {
        self.0.lock()
    }
}

/// There is nothing to refer to.
struct NoSources;

impl Sources for NoSources {
    fn file(&mut self, _: &str, _: u64) -> FileRead {
        FileRead::Unavailable(WhyUnavailable::NotFound)
    }

    fn scan(&mut self, _: &str, _: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Scanned {
        Scanned::Unavailable(WhyUnavailable::NotFound)
    }

    fn body(&mut self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn entity(&mut self, _: &str, _: &Object) -> bool {
        false
    }

    fn find_staged_copy(&mut self, _: &Part) -> Option<String> {
        None
    }

    fn fit_image(&mut self, _: &str, _: &[u8], _: &ImageLimits) -> Option<(String, Vec<u8>)> {
        None
    }

    fn absolute(&self, path: &str) -> String {
        path.to_owned()
    }
}
