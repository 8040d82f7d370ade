//! Values that must not be shown, blanked out of texts of programs that know them (AG-18, TR-5).
//!
//! Must not know: where a text is shown.

use std::sync::Arc;

/// Shorter values would blank out half of every line.
const SECRET_BYTES_MIN: usize = 4;

const BLANK: &str = "***";

/// Secrets of one process. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct SecretValues {
    /// Longest first: one may contain another.
    values: Arc<[String]>,
}

impl std::fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretValues").finish_non_exhaustive()
    }
}

impl SecretValues {
    pub(crate) fn new(mut values: Vec<String>) -> Self {
        values.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        values.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { values: values.into() }
    }

    /// A text without them.
    pub(crate) fn blank(&self, mut text: String) -> String {
        for secret in self.values.iter() {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), BLANK);
            }
        }
        text
    }
}
