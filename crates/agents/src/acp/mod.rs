//! Agents that speak the Agent Client Protocol, each in processes of its own.
//!
//! Promises: nothing of the protocol's shapes leaves this module; processes live here and end with it.
//! Must not know: channels, peers, sequence numbers.

mod connection;
mod label;
mod line;
mod mapper;
mod process;
mod rpc;
