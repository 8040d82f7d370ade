//! What people and agents run on this machine: a command behind a pipe or in a pseudo-terminal, a shell in a pseudo-terminal,
//! what is on its screen, and which commands its user gave it.
//!
//! Promises: output costs bounded memory however much there is; whoever reads it late gets less of it, never a wrong
//! screen; a process ends with whoever holds it, and with this one.
//! Must not know: the protocol, channels, agents, models.

mod child;
mod decoder;
mod environment;
mod follower;
mod ignored_signals;
mod integration;
mod launch;
mod output;
mod process_record;
mod pty;
mod pump;
mod screen;
mod sequence_guard;
mod session;
mod size;

pub use child::{CommandEnd, CommandHandle, KillOnDrop, OutputSink, ShellCommand, run_to_end};
pub use environment::shell_environment;
pub use integration::{IntegrationFiles, ShellKind};
pub use launch::{Program, StartDirectory, TerminalLaunch};
pub use output::TerminalEvent;
pub use process_record::ProcessRecord;
pub use pump::{RunningTerminal, open};
pub use screen::{SCROLLBACK_ROWS, ScreenModel};
pub use session::{Mark, end_marked, end_processes, kill_all, new_mark};
pub use size::TerminalSize;
