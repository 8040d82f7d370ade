//! MCP servers: where they are declared, how they are started, asked and ended. One connection for each session and server
//! (MC-3).
//!
//! Promises: everything a server sends is bounded; a server that hangs, floods or dies holds nobody up for longer than its
//! time limit; its processes end with it, and with the host. What it prints and logs stays in a log of its own.
//! Must not know: the Agent Host Protocol, models, who is asked for consent.

mod allowed_addresses;
mod any_transport;
mod ask;
mod auth;
mod call;
mod connection;
mod content;
mod declaration;
mod document;
mod entry;
mod error;
mod expand;
mod find;
mod handler;
mod http;
mod jsonc;
mod lines;
mod log;
mod names;
mod oauth;
mod oauth_client;
mod oauth_entry;
mod offers;
mod old_sse;
mod plugin;
mod process;
mod program;
mod prompt;
mod server;
mod servers;
mod span;
mod sse;
#[cfg(test)]
pub(crate) mod testing;
mod tool_list;

pub use auth::{TokenChallenge, TokenReason, TokenRequest};
pub use call::{CallHost, Elicitation, ElicitationAnswer, ElicitationForm};
pub use connection::{McpConnection, ServerDirectories};
pub use content::{McpContent, McpResult};
pub use declaration::{DirectoryProgram, McpDeclaration, McpTransport, is_server_name};
pub use entry::McpEntry;
pub use error::McpError;
pub use expand::{FileInputs, McpInputs};
pub use find::{DeclaredServer, DeclaredServers, McpInput, ServerSources, find_declared};
pub use names::{model_names, typed_name};
pub use oauth::{
    OAuthClient, PendingSignIn, RedirectedAddresses, RenewalError, SignInError, SignInPage,
    SignInWanted, TokenGrant, TokenRenewal, begin_sign_in, begin_sign_in_at,
};
pub use oauth_entry::OAuthEntry;
pub use offers::{McpArgument, McpPrompt, McpResource, McpTemplate, ServerOffers};
pub use plugin::{PluginOrigin, client_plugins};
pub use program::start_program;
pub use server::{McpServer, ReadyServer, ServerState, ServerToken};
pub use servers::{SessionServers, SessionTool};
pub use tool_list::{McpTool, ToolHints};
