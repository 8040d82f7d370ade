//! HTTP at the door: from an accepted socket to answers, or to a WebSocket (ADR 0079).
//!
//! Promises: every request is checked in the order Host, Origin, token; without a token only probes, the proof and the
//! page's own files are answered; what opens a WebSocket leaves nothing of HTTP behind on its socket.
//! Must not know: WebSocket frames, what messages mean.

mod answer;
mod api;
mod exchange;
mod gate;
mod page;
mod routes;
mod token;
mod upgrade;
mod visitor;

pub(super) use exchange::{Upgraded, serve};
pub(super) use visitor::Visitor;

#[cfg(test)]
mod tests;
