//! Logs: on standard error, at a level that can change while the host runs.
//!
//! Promises: standard output is never touched. Content and tokens are left out by those who log, not filtered here.

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

const LEVEL_DEFAULT: &str = "info";

/// Changes the level of the logs.
#[derive(Clone)]
pub(crate) struct LogLevel(reload::Handle<EnvFilter, Registry>);

impl LogLevel {
    /// Takes `error`, `warn`, `info` or `debug`; anything else changes nothing.
    pub(crate) fn set(&self, level: &str) {
        let Ok(filter) = EnvFilter::try_new(level) else {
            tracing::warn!("log level unchanged: the requested one is not valid");
            return;
        };
        if let Err(error) = self.0.reload(filter) {
            tracing::warn!(%error, "the log level could not be changed");
        }
    }
}

/// Starts logging at the level GREENROOM_LOG names.
pub(crate) fn start() -> LogLevel {
    let directives = std::env::var("GREENROOM_LOG").unwrap_or_else(|_| LEVEL_DEFAULT.to_owned());
    let filter = EnvFilter::try_new(&directives).unwrap_or_else(|error| {
        eprintln!("greenroom: GREENROOM_LOG={directives} is not understood ({error}); using info");
        EnvFilter::new(LEVEL_DEFAULT)
    });
    let (filter, handle) = reload::Layer::new(filter);
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .init();
    LogLevel(handle)
}
