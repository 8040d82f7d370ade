//! Tool calls: what an agent makes of them, what clients may do to them, and how the agent hears of it.

pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod client_tool;
pub(crate) mod offer;
pub(crate) mod reply;
