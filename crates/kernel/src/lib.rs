//! What only the host decides: who may do what, in which order, and what follows from it.
//!
//! Promises: [`Kernel::step`] is pure and deterministic; the same inputs at the same times give the same bytes.
//! Must not know: clock, disk, network, tasks, randomness, vendors.
//!
//! From the bottom up: vocabulary (`ids`, `io`, `record`, `frame`), owners with private fields (`log`, `channels`, `peers`,
//! `active_clients`, `runs`, `requests`, `queries`, `recovery`, `upkeep`), the [`state`] that holds them and the `Step` that
//! changes them, handlers, and `route`, which sends every input to its handler.

mod active_clients;
mod agent_action;
mod agent_event;
mod agent_word;
mod agents;
mod ask_client;
mod background_task;
pub mod bodies;
mod calls;
mod channels;
mod chats;
mod client_dispatch;
mod client_file;
mod clients;
mod config;
mod customization;
mod derive;
mod dispatch;
mod follow_up;
mod frame;
mod hold;
mod host_command;
mod host_facts;
mod ids;
mod inbox;
mod io;
mod kernel;
mod limits;
mod load;
mod loading;
mod log;
mod message;
mod model_call;
mod pause;
mod peers;
mod pending;
mod prepare;
mod queries;
mod question;
mod received;
mod record;
mod record_message;
mod recovery;
mod references;
mod refusal;
mod render;
mod rendered;
mod replay_cache;
mod requests;
mod reverse_request;
mod rewind_choice;
mod route;
mod run;
mod runs;
mod selection;
mod sessions;
mod state;
mod steering;
mod steering_agent;
mod submission;
mod summary;
mod sweep;
mod tail;
mod tasks;
mod tool_call;
mod truncate;
mod turn;
mod turn_pages;
mod upkeep;
mod worker;

pub use bodies::{Body, Data};
pub use client_file::{ClientFile, ClientFileBody, ClientFileError};
pub use frame::{
    ChannelSnapshot, Content, Frame, LateBody, LateResponse, Outgoing, Recipient, Recipients,
    RefusedAction, Replayed, SnapshotState,
};
pub use hold::Hold;
pub use io::*;
pub use limits::{EmbedLimits, Limits, check_limit};
pub use model_call::{DocumentPiece, ModelCallEndRecord, ModelCallRecord};
pub use received::Received;
pub use record::*;
pub use rendered::{Asked, NotAsked, Rendered, Transform, TransformFailure};
pub use state::Kernel;
pub use submission::{FrozenPart, HostAction, Submission, find_conflict};
