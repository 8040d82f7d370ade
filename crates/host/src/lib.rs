//! What touches the operating system: sockets, disk, tasks, the clock.
//!
//! Promises: every batch of the kernel is written, then spoken, then acted on, in that order (ADR 0002).
//! Must not know: why anything is allowed.

pub mod arrival;
pub mod blobs;
mod clock;
pub mod complete;
pub mod compose;
mod config;
mod effects;
pub mod entities;
pub mod journal;
mod kernel_task;
pub mod net;
mod pace;
pub mod preview;
mod run;
mod secret;

pub use config::{
    Config, ConfigError, DEFAULT_PORT, JournalChoice, Limits, LogLevelHook, Model, TokenChoice,
};
pub use run::{Ready, ServeError, VERSION, ask_for, serve};
pub use secret::Endpoint;
