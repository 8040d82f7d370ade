//! HTTP of clients: from an accepted socket to answers, or to a WebSocket (ADR 0079).
//!
//! Promises: every request is checked in the order Host, Origin, token; without a token only probes, the proof and the
//! page's own files are answered; what opens a WebSocket leaves nothing of HTTP behind on its socket.
//! Must not know: WebSocket frames, what messages mean.

mod answer;
mod api;
mod content;
mod exchange;
mod forward;
mod gate;
mod http_socket;
mod local_user;
mod page;
mod query;
mod range;
mod request_head;
mod routes;
mod spaces;
mod token;
mod upgrade;

pub(crate) use answer::AnswerBody;
pub(super) use exchange::{Upgraded, refuse_plain, serve};
pub(super) use http_socket::{HttpSocket, UpgradedSocket, UpgradedWay};
pub(crate) use routes::answer_forwarded;

#[cfg(test)]
mod tests;
