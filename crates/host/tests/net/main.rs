//! The network side over real sockets: who is let in, the WebSocket protocol, delivery, published clients.

mod delivery;
mod handshake;
mod interop;
mod protocol;
mod support;
