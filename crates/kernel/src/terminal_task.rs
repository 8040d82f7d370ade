//! Messages between the kernel and the host about terminals.

use agent_api::TerminalHolder;
use wire::ChannelUri;

/// What is to be done to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalTask {
    /// Start a shell in it.
    Start(TerminalStart),
    /// Somebody typed this. Never in a record or a log.
    Write(TypedText),
    Resize {
        columns: i64,
        rows: i64,
    },
    /// Everybody has forgotten what it printed.
    Clear,
    /// Something that it printed could not be recorded: it is to be shown anew.
    Redraw,
    /// Somebody else holds it now.
    Hold(TerminalHolder),
    /// It is gone: what runs in it ends.
    Kill,
}

/// A shell to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalStart {
    /// A `file:` URI; absent: the user's home.
    pub directory: Option<String>,
    pub columns: i64,
    pub rows: i64,
}

/// What somebody typed: perhaps a password.
#[derive(Clone, PartialEq, Eq)]
pub struct TypedText(pub String);

impl std::fmt::Debug for TypedText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TypedText({} bytes)", self.0.len())
    }
}

/// A terminal that a call of an agent runs a command in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownTerminalFacts {
    pub terminal: ChannelUri,
    pub call: u64,
    pub title: String,
    /// A path.
    pub directory: String,
    pub columns: i64,
    pub rows: i64,
}
