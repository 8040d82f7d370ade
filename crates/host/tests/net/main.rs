//! The network side over real sockets: who is let in, the WebSocket protocol, delivery, published clients.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod content_route;
mod delivery;
mod handshake;
mod interop;
mod markup_route;
mod page;
mod protocol;
mod support;
mod tls;
