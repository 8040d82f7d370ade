//! What only the host decides: who may do what, in which order, and what follows from it.
//!
//! Promises: [`Kernel::step`] is pure and deterministic; the same inputs at the same times give the same bytes.
//! Must not know: clock, disk, network, tasks, randomness.

mod authority;
pub mod bodies;
mod calls;
mod channel;
mod chats;
mod chore;
mod clients;
mod config;
mod directory;
mod errand;
mod frame;
mod host_action;
mod io;
mod kernel;
mod limits;
mod load;
mod message;
mod needs;
mod peers;
mod pending;
mod prepare;
mod question;
mod record;
mod refer;
mod render;
mod rendered;
mod request;
mod rollback;
mod run;
mod speak;
mod submit;
mod summary;
mod sweep;
mod tail;
mod tool_call;
mod truncate;
mod turn;
mod worker;

pub use bodies::{Body, Data};
pub use frame::{Frame, LateBody, LateResponse, Outgoing, Replayed, Snapshot, SnapshotState};
pub use io::*;
pub use kernel::Kernel;
pub use limits::{Limits, check_limit};
pub use record::*;
pub use rendered::*;
pub use submit::{HostAction, Submission};
