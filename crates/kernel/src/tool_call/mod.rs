//! Tool calls: what an agent makes of them, and what clients may do to them.

mod of_agent;
pub(crate) mod of_client;
