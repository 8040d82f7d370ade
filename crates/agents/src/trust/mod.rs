//! Trust in directories: an external agent starts only where its user lets it, since files of a directory can make it run
//! commands without asking (TR-1).
//!
//! Promises: nothing is trusted but by the settings file or by an answer of the user; no permission mode answers for them
//! (G-63). An answer is on the disk before anything is started on it. A file that cannot be read trusts nothing.
//! Must not know: processes, what agents do.

mod command_files;
mod file;
mod question;
mod server;
mod store;
#[cfg(test)]
mod tests;

use crate::task;
pub use command_files::{CommandFiles, printable_path};
pub use file::{ItemEntry, TRUST_FILE, TrustEntry};
pub use question::require_trust;
pub(crate) use server::{
    DeclaredItem, ServerAnswer, ask_about_server, describe_refusal, next_ask, printable_text,
};
pub use store::{DirectoryTrust, TrustError, TrustStore, TrustedItem};

/// Runs work on the store on a thread that may block.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TrustError> + Send + 'static,
) -> Result<T, TrustError> {
    let done = task::try_blocking(work).await;
    done.unwrap_or_else(|_| Err(TrustError("it could not be looked at".to_owned())))
}
