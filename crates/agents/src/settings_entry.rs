//! What is wrong with one table of a list in the settings file: `[[agents]]`, `[[mcp]]`, `[[spaces]]`, `[[mounts]]`.
//!
//! Must not know: which list it is, where in the file the table stands.

/// A table with which a host could not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SettingsEntryError {
    /// Which of the tables, counted from 0.
    pub index: usize,
    /// The key in it.
    pub key: &'static str,
    pub message: String,
}
