//! HTTP, WebSocket and stdio: accept, authenticate, read, write.
//!
//! Promises: for each connection the kernel's task gets `Joined` first and `Disconnected` last, once each; a slow
//! reader never delays another; an idle connection holds no buffer (ADR 0006).
//! Must not know: what messages mean, why anything is allowed.

mod access;
mod admission;
mod connection;
mod handshakes;
mod http;
mod inbound;
mod link;
mod listen;
mod outbox;
mod read_buffer;
mod reader;
mod registration;
mod stall;
pub mod stdio;
mod text_run;
mod writer;
pub mod ws;

pub use admission::Admission;
pub use link::Link;
pub use listen::serve;
pub use outbox::Backlog;
pub(crate) use text_run::{LinkItem, TextRun};
