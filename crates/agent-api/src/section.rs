//! A section of a system prompt.
//!
//! Must not know: which sections there are, who rewrites them.

use std::borrow::Cow;

/// A section of a system prompt: its name and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub id: Cow<'static, str>,
    pub content: Cow<'static, str>,
    /// Set by the host in what it renders: the model may read it, nobody else may.
    pub restricted: bool,
}

impl Section {
    pub fn new(id: impl Into<Cow<'static, str>>, content: impl Into<Cow<'static, str>>) -> Self {
        Self { id: id.into(), content: content.into(), restricted: false }
    }
}
