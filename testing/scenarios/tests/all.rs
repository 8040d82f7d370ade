//! What the host does, told as stories. One executable: it is linked once.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod active_clients;
mod agent_news;
mod agent_notes;
mod annotations;
mod awaited_steering;
mod bodies;
mod bounds;
mod budget;
mod changesets;
mod chats;
mod client_files;
mod client_tools;
mod commands;
mod content;
mod customizations;
mod dispatch;
mod forks;
mod full_disk;
mod handshake;
mod import;
mod input_needed;
mod input_requests;
mod loading;
mod mcp_lifecycle;
mod messages;
mod models;
mod moved_chats;
mod principals;
mod queue;
mod reconnect;
mod resource_watches;
mod restore_files;
mod roles;
mod root;
mod sessions;
mod status;
mod steering;
mod subscriptions;
mod system_message_transform;
mod telemetry_and_progress;
mod terminals;
mod tool_call_ends;
mod tool_calls;
mod truncation;
mod turn_size;
mod turns;
mod unused_sessions;
mod unwritable_record;
mod withdrawals;
mod workers;
mod working_directories;
