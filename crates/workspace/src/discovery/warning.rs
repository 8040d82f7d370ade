//! What is wrong with a file of a project: in full for its users, by kind for logs.

use std::fmt;

use super::checked_text::is_unshowable;

/// Why something of a project was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub kind: WarningKind,
    /// A sentence that names the file.
    message: String,
}

/// The kind of a warning: all of it that may be logged, because the rest names files of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WarningKind {
    /// A directory or a file cannot be opened or read.
    Unreadable,
    /// The content of a file cannot be used.
    Invalid,
    /// Its name is taken, or cannot be typed.
    Name,
    /// There is more than is read.
    LimitReached,
}

impl Warning {
    pub(super) fn new(kind: WarningKind, message: String) -> Self {
        // A name of a file must not be able to look like a line of its own.
        let message = message.replace(is_unshowable, "\u{fffd}");
        Self { kind, message }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl WarningKind {
    /// For a field of a log line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Invalid => "invalid",
            Self::Name => "name taken or invalid",
            Self::LimitReached => "limit reached",
        }
    }
}
