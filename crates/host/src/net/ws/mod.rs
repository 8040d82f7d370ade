//! The WebSocket protocol of RFC 6455, server side, as pure functions over bytes.
//!
//! Must not know: sockets, tasks, time, peers.

pub mod batch;
pub mod frame;
