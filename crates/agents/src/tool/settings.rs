//! What the operator says of tools.

use std::time::Duration;

/// How long a command may take if its call does not say.
const TIMEOUT_SECONDS: u64 = 120;

/// How long it may take at most.
const TIMEOUT_SECONDS_MAX: u64 = 600;

/// What the operator says of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSettings {
    /// Variables of the host's environment that commands get beside the usual ones (G-51).
    pub command_variables: Vec<String>,
    /// How long a command may take if its call does not say.
    pub command_timeout: Duration,
    /// How long it may take at most.
    pub command_timeout_max: Duration,
    /// Hosts with their ports (`wiki.local:443`) that pages are fetched from though they are in a private network.
    pub web_fetch_allow: Vec<String>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            command_variables: Vec::new(),
            command_timeout: Duration::from_secs(TIMEOUT_SECONDS),
            command_timeout_max: Duration::from_secs(TIMEOUT_SECONDS_MAX),
            web_fetch_allow: Vec::new(),
        }
    }
}

impl ToolSettings {
    /// The default and the most; a default above the most raises it.
    pub(super) fn command_timeouts(&self) -> (Duration, Duration) {
        let most = self.command_timeout_max.max(self.command_timeout);
        (self.command_timeout, most)
    }
}
