//! Published clients, ours, and external agents over real sockets. One executable: it is linked once.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod acp_changes;
mod acp_consent;
mod acp_control;
mod acp_custom_agents;
mod acp_faults;
mod acp_files;
mod acp_floods;
mod acp_published_clients;
mod acp_questions;
mod acp_real;
mod acp_reopen;
mod acp_settings;
mod acp_terminals;
mod acp_tools;
mod acp_trust;
mod acp_turns;
mod annotations;
mod changeset_actions;
mod changesets;
mod client_plugins;
mod client_resources;
mod completions;
mod compose_check;
mod content;
mod documented_configurations;
mod followed_actions;
mod hashed_once;
mod hostile_repository;
mod interop;
mod llama_cpp;
mod mcp;
mod mcp_faults;
mod mcp_handed_over;
mod mcp_offers;
mod mcp_servers;
mod mcp_sign_in;
mod mcp_switches;
mod merges;
mod native_background;
mod native_bodies;
mod native_bounds;
mod native_budget;
mod native_client_tools;
mod native_compaction;
mod native_consent;
mod native_conversation;
mod native_customizations;
mod native_directories;
mod native_ends;
mod native_faults;
mod native_history;
mod native_messages;
mod native_models;
mod native_own_directory;
mod native_plan;
mod native_published_client;
mod native_reasoning;
mod native_refusals;
mod native_rules;
mod native_silence;
mod native_skills;
mod native_tasks;
mod native_terminals;
mod native_titles;
mod native_tools;
mod native_undo;
mod native_web;
mod native_wires;
mod our_client;
mod plugin_window;
mod published_client;
mod real_agents;
mod real_oauth;
mod real_servers;
mod recorded_git;
mod refusing_servers;
mod resources;
mod slow_reader;
mod spoken;
mod telemetry;
mod terminal_clients;
mod terminals;
mod vscode_agent;
mod vscode_context;
mod vscode_dialect;
mod vscode_sessions;
mod vscode_steering;
mod worktrees;
