//! What the program logs: on standard error, or in the log file of a host without a terminal, at a level that can change while
//! the host runs.
//!
//! Promises: standard output is never touched, unless it is the log file. Content and tokens are left out by those who log, not
//! filtered here.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Mutex;

use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::log_file::{LogFile, Streams};

const LEVEL_DEFAULT: &str = "info";

/// The library that speaks with MCP servers logs what they send: that is for a server's own log.
const QUIET: &str = "rmcp=off";

fn read_filter(directives: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(format!("{directives},{QUIET}"))
}

/// Where the log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogDestination {
    StandardError,
    File(PathBuf, Streams),
}

/// Changes the level of the logs.
#[derive(Clone)]
pub(crate) struct LogLevel(reload::Handle<EnvFilter, Registry>);

impl LogLevel {
    /// Takes `error`, `warn`, `info` or `debug`; anything else changes nothing.
    pub(crate) fn set(&self, level: &str) {
        let Ok(filter) = read_filter(level) else {
            tracing::warn!("log level unchanged: the requested one is not valid");
            return;
        };
        if let Err(error) = self.0.reload(filter) {
            tracing::warn!(%error, "the log level could not be changed");
        }
    }
}

/// Starts logging at the level GREENROOM_LOG names.
pub(crate) fn start(destination: LogDestination) -> LogLevel {
    let directives = std::env::var("GREENROOM_LOG").unwrap_or_else(|_| LEVEL_DEFAULT.to_owned());
    let filter = read_filter(&directives).unwrap_or_else(|error| {
        eprintln!("greenroom: GREENROOM_LOG={directives} is not understood ({error}); using info");
        EnvFilter::new(format!("{LEVEL_DEFAULT},{QUIET}"))
    });
    let (filter, handle) = reload::Layer::new(filter);
    let lines = fmt::layer().with_target(false);
    let file = match destination {
        LogDestination::StandardError => None,
        LogDestination::File(path, streams) => match LogFile::create(path.clone(), streams) {
            Ok(file) => Some(file),
            Err(error) => {
                // A host that cannot log still serves.
                eprintln!("greenroom: the log {} cannot be written: {error}", path.display());
                None
            }
        },
    };
    let lines: Box<dyn Layer<_> + Send + Sync> = match file {
        Some(file) => Box::new(lines.with_writer(Mutex::new(file)).with_ansi(false)),
        None => {
            Box::new(lines.with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()))
        }
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .with(host::telemetry::TelemetryLayer)
        .init();
    LogLevel(handle)
}
