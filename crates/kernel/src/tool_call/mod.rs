//! Tool calls: how an agent makes them, what clients may do to them, and how the agent is answered.

pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod client_tool;
pub(crate) mod offer;
pub(crate) mod reply;
