//! What only the host decides: who may do what, in which order, and what follows from it.
//!
//! Promises: [`Kernel::step`] is pure and deterministic; the same inputs at the same times give the same bytes.
//! Must not know: clock, disk, network, tasks, randomness, vendors.
//!
//! From the bottom up: vocabulary (`ids`, `io`, `host_work`, `record`, `journal_query`, `frame`), owners with private fields (`log`, `channels`, `peers`,
//! `active_clients`, `runs`, `requests`, `queries`, `recovery`, `upkeep`), the [`state`] that holds them and the `Step` that
//! changes them, handlers, and `route`, which sends every input to its handler.

mod active_clients;
mod agent_action;
mod agent_event;
mod agent_word;
mod agents;
mod ask_client;
mod attached_annotations;
mod author;
mod background_task;
pub mod bodies;
mod calls;
mod changeset_content;
mod changeset_work;
mod changesets;
mod channels;
mod chat_move;
mod chats;
mod client_dispatch;
mod client_file;
mod client_plugin;
mod clients;
mod composed_message;
mod config;
#[cfg(test)]
mod copies_tests;
mod customization;
mod derive;
mod dispatch;
mod file_task;
#[cfg(test)]
mod fixture_tests;
mod follow_up;
mod frame;
mod host_command;
mod host_facts;
mod host_guard;
mod host_work;
mod ids;
mod inbox;
mod io;
mod journal_query;
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
mod plain;
mod plugin_server;
mod prepare;
mod progress;
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
mod resource_watch;
mod reverse_request;
mod rewind_choice;
mod rights;
mod role;
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
mod telemetry;
mod telemetry_batch;
mod terminal;
mod terminal_task;
mod tool_call;
mod truncate;
mod turn;
mod turn_pages;
mod upkeep;
mod watch_task;
mod worker;
mod working_directories;

pub use bodies::{BodyData, UnstoredBody};
pub use changeset_work::{
    ChangesInput, ChangesetKind, ChangesetOperation, ChangesetTarget, ComputedChangeset, LookId,
    OperationOutcome, TurnChangesReport,
};
pub use client_file::{
    ClientAnswer, ClientFile, ClientFileBody, ClientFileError, ClientQuestion, ListedEntry,
};
pub use client_plugin::PluginOffer;
pub use composed_message::{ComposedMessage, MessagePart};
pub use frame::{
    ChannelSnapshot, EncodedContent, Frame, LateResponse, LateResponseBody, OutgoingFrame,
    Recipient, Recipients, RefusedAction, Replayed, SnapshotState,
};
pub use host_guard::HostGuard;
pub use io::*;
pub use journal_query::*;
pub use kernel::DamagedRoot;
pub use limits::{EmbedLimits, Limits, check_limit};
pub use model_call::{DocumentPiece, ModelCallEndRecord, ModelCallRecord};
pub use received::Received;
pub use record::*;
pub use rendered::{Rendered, Transform, TransformAttempt, TransformFailure, TransformSkipped};
pub use role::{HolderName, Role};
pub use state::Kernel;
pub use submission::{FrozenPart, HostAction, Submission, find_conflict};
pub use telemetry_batch::{TelemetryBatch, TelemetryLog};
