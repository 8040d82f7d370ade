//! TLS, HTTP, WebSocket and stdio: accept, authenticate, read, write.
//!
//! Promises: for each connection the kernel's task gets `Joined` first and `Disconnected` last, once each; a slow
//! reader never delays another; an idle connection holds no buffer (ADR 0006).
//! Must not know: what messages mean, why anything is allowed.

mod access;
mod admission;
mod connection;
#[cfg(test)]
mod direct_write_tests;
mod handshakes;
mod http;
mod inbound;
mod link;
mod listen;
mod outbox;
mod read_buffer;
mod reader;
mod registration;
mod socket;
mod space_handles;
mod stall;
pub mod stdio;
mod text_run;
mod tls;
mod writer;
pub mod ws;

pub(crate) use access::Access;
pub use admission::Admission;
pub(crate) use admission::{ConnectionCapacity, ConnectionSlot};
pub(crate) use connection::{drain_until_closed, run as run_connection};
pub(crate) use handshakes::Handshakes;
pub(crate) use http::{AnswerBody, answer_forwarded};
pub use link::Link;
pub use listen::serve;
pub(crate) use listen::serve_spaces;
pub use outbox::Backlog;
pub(crate) use outbox::WrittenBy;
pub(crate) use space_handles::{DescribeMetrics, SpaceHandle, SpaceHandles};
pub(crate) use stall::StallGuard;
pub(crate) use text_run::{LinkItem, TextRun};
pub(crate) use tls::spawn_decrypting_relay;
pub use tls::{TlsError, TlsIdentity};
