//! Terminals between the host and the agent that runs something in one: what happens in it, and what people do to it.
//!
//! Promises: changes are bounded by their sender, and replaying them gives the screen that the terminal has.
//! Must not know: processes, channels, clients.

use std::sync::Arc;

use async_trait::async_trait;

/// What happens in a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalChange {
    /// It printed this.
    Data(String),
    /// All that it printed before is to be forgotten; what it shows follows.
    Cleared,
    /// Its shell reports from now on where commands begin and end.
    CommandDetection,
    CommandStarted {
        id: String,
        line: String,
        /// In milliseconds since 1970.
        at: u64,
    },
    CommandFinished {
        id: String,
        exit_code: Option<i64>,
        duration_ms: u64,
    },
    Title(String),
    /// The directory that its shell is in.
    Directory(String),
    /// The last.
    Exited {
        exit_code: Option<i64>,
    },
}

/// Who holds a terminal: only they type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalHolder {
    /// The call that runs in it.
    Call,
    /// The chat, but no call: who waits for the command goes on without its end.
    Chat,
    /// A person.
    Client,
}

/// A terminal, for the host to show.
#[async_trait]
pub trait ShownTerminal: Send + Sync {
    /// Waits for changes since the last call, at least one; none after the last. For one reader.
    async fn next(&self) -> Option<Vec<TerminalChange>>;

    /// Types; false if the program in it reads nothing and no more fits.
    fn write(&self, text: &str) -> bool;

    fn resize(&self, columns: i64, rows: i64);

    /// Clears the output before this moment for everyone who watches.
    fn clear(&self);

    /// Output was lost on the way to its watchers: its screen is to be sent again.
    fn redraw(&self);

    /// Has what runs in it killed. Like all of these it does not wait: the host's own thread calls it.
    fn kill(&self);

    /// Somebody else holds it now.
    fn set_holder(&self, holder: TerminalHolder);
}

/// A terminal that a call runs a command in.
#[derive(Clone)]
pub struct TerminalOffer {
    pub call: u64,
    pub title: String,
    /// A path.
    pub directory: String,
    pub columns: i64,
    pub rows: i64,
    pub terminal: Arc<dyn ShownTerminal>,
}
