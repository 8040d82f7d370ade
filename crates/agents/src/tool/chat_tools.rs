//! What the tools of one chat share, and what outlives their calls and its turns.

use super::bash::BackgroundCommands;

/// What the tools of one chat share. Dropping it ends what they left running.
#[derive(Debug, Default)]
pub struct ChatTools {
    pub(super) background: BackgroundCommands,
}

impl ChatTools {
    /// Whether something would end if this were dropped.
    pub fn is_in_use(&self) -> bool {
        self.background.is_any_running()
    }

    /// Ends what the tools left running.
    pub fn end(&self) {
        self.background.kill_all();
    }
}
