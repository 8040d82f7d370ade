//! Agents that speak the Agent Client Protocol, each in processes of its own.
//!
//! Promises: nothing of the protocol's shapes leaves this module; processes live here and end with it. None starts before a turn needs it.
//! Must not know: channels, peers, sequence numbers.

mod agent_core;
mod agent_process;
mod approvals;
pub mod config;
mod connection;
pub mod entry;
mod environment;
mod errors;
mod failed_server;
mod known;
mod label;
mod line;
mod line_mapper;
mod live_session;
mod mapper;
mod mcp_servers;
mod notes;
mod open;
mod plugin_instructions;
mod pool;
pub mod presets;
mod process;
mod question;
mod rpc;
#[cfg(test)]
mod tests;
mod transcript;
mod turn;
mod view;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use agent_api::{
    Agent, AgentCommand, AgentError, AgentInfo, AgentSession, EventSink, HostNews, McpRequest,
    SessionFacts, SettingValue, TurnInput,
};
use async_trait::async_trait;

use crate::mcp_settings::McpSettings;
use crate::trust::TrustStore;
use agent_core::AgentCore;
pub use config::{AcpAgentConfig, AcpAuth, EnvSource, Share, TrustPolicy};
pub use entry::AgentEntry;
use known::KnownAgentFile;
pub use line_mapper::{LineMapper, NotAnUpdate};

/// An agent that speaks ACP.
pub struct AcpAgent {
    core: Arc<AgentCore>,
}

/// What is known of an agent, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentReport {
    pub title: Option<String>,
    pub version: Option<String>,
    /// Absent if nobody knows.
    pub signed_in: Option<bool>,
    pub models: Vec<String>,
    /// What it can do beyond the least.
    pub can: Vec<String>,
    /// Processes that run now.
    pub processes: usize,
}

impl AcpAgent {
    /// Hands these servers over to the agent, as far as its entry says so. Blocks: those of the user are looked up.
    #[must_use]
    pub fn with_mcp(self, settings: Arc<McpSettings>) -> Self {
        if self.core.config.hands_over_mcp {
            let _ = self.core.own_servers.set(settings.own_entries());
        }
        // Set once: an agent is made for one host.
        let _ = self.core.mcp.set(settings);
        self
    }

    /// What it last said of itself is read from, and stored in, the data directory.
    pub fn new(config: AcpAgentConfig, data: &Path, trust: Arc<TrustStore>) -> Self {
        let known = KnownAgentFile::open(data, &config.id);
        Self { core: AgentCore::new(config, known, trust) }
    }

    pub fn report(&self) -> AgentReport {
        let known = self.core.known.get();
        let processes = self.core.pool.processes();
        let told = processes.iter().find_map(|process| process.connection.sign_in());
        let can = known.abilities.as_ref();
        let abilities = can
            .map(|can| {
                [
                    (can.resume || can.load, "go on after a restart"),
                    (can.steering, "be steered"),
                    (can.images, "read images"),
                    (can.audio, "hear audio"),
                    (can.system_prompt, "take system prompts"),
                    (can.additional_directories, "work in several directories"),
                ]
            })
            .into_iter()
            .flatten()
            .filter(|(can, _)| *can);
        AgentReport {
            title: can.and_then(|can| can.title.clone()),
            version: can.and_then(|can| can.version.clone()),
            signed_in: told.or(known.signed_in),
            models: known
                .info(&self.core.config)
                .models
                .into_iter()
                .map(|model| model.id)
                .collect(),
            can: abilities.map(|(_, what)| what.to_owned()).collect(),
            processes: processes.len(),
        }
    }
}

#[async_trait]
impl Agent for AcpAgent {
    fn info(&self) -> AgentInfo {
        self.core.info()
    }

    fn start(&self, news: Arc<dyn HostNews>) {
        self.core.start(news);
    }

    fn lowers_messages(&self) -> bool {
        true
    }

    fn joins_text(&self) -> bool {
        true
    }

    fn changes_files_unannounced(&self) -> bool {
        true
    }

    fn has_own_commands(&self) -> bool {
        true
    }

    fn commands(&self, session: &SessionFacts) -> Vec<AgentCommand> {
        let processes = self.core.pool.processes();
        let live = processes.iter().find_map(|process| process.session(&session.chat));
        match live {
            Some(live) => live.reported.view().commands,
            None => self.core.known.get().agent_commands(),
        }
    }

    fn setting_values(&self, conversation: &str, property: &str) -> Vec<SettingValue> {
        let processes = self.core.pool.processes();
        let mut live = processes.iter().flat_map(|process| process.all_sessions());
        let live = live.find(|live| live.reported.conversation == conversation);
        let of_view =
            live.and_then(|live| Some(live.reported.view().setting(property)?.setting_values()));
        of_view.unwrap_or_else(|| {
            let known = self.core.known.get().settings;
            let setting = known.iter().find(|setting| setting.property() == property);
            setting.map(|setting| setting.setting_values()).unwrap_or_default()
        })
    }

    fn custom_agents(&self, conversation: &str) -> Option<BTreeSet<String>> {
        let processes = self.core.pool.processes();
        let mut live = processes.iter().flat_map(|process| process.all_sessions());
        let live = live.find(|live| live.reported.conversation == conversation);
        let mode = match live {
            Some(live) => live.reported.view().mode().cloned(),
            None => view::mode_of(&self.core.known.get().settings).cloned(),
        };
        let values = mode.into_iter().flat_map(|mode| mode.values);
        Some(values.flat_map(|value| [value.id, value.name]).collect())
    }

    fn receive_settings(&self, conversation: &str, config: &wire::Object) {
        for process in self.core.pool.processes() {
            for session in process.all_sessions() {
                if session.reported.conversation == conversation
                    && session.want_settings(config.clone())
                {
                    let connection = process.connection.clone();
                    process.connection.spawn(Box::pin(async move {
                        session.apply_wanted(&connection).await;
                    }));
                }
            }
        }
    }

    fn receive_title(&self, chat: &str, title: &str) {
        for process in self.core.pool.processes() {
            process.set_title(chat, title);
        }
    }

    fn receive_token(&self, principal: Option<&str>, resource: &str, token: &str) {
        self.core.set_token(principal, resource, token);
    }

    fn handle_mcp_request(&self, conversation: &str, id: &str, request: McpRequest) {
        let pending = match request {
            McpRequest::SwitchOn | McpRequest::SwitchOff => Some(id),
            McpRequest::Start | McpRequest::Stop | McpRequest::Background | McpRequest::Report => {
                None
            }
        };
        self.core.show_servers_again(conversation, pending);
    }

    fn log_tail(&self) -> Option<String> {
        Some(self.core.pool.log_tail())
    }

    fn takes_servers(&self) -> bool {
        self.core.config.hands_over_mcp
    }

    fn end_chat(&self, chat: &str) {
        self.unload_chat(chat);
    }

    fn unload_chat(&self, chat: &str) {
        for process in self.core.pool.processes() {
            process.close_session(chat);
        }
    }

    async fn open(&self, session: SessionFacts) -> Result<Box<dyn AgentSession>, AgentError> {
        Ok(Box::new(AcpSession { core: Arc::clone(&self.core), facts: session }))
    }
}

/// A chat's conversation with the agent. What it has in a process lives there.
struct AcpSession {
    core: Arc<AgentCore>,
    facts: SessionFacts,
}

#[async_trait]
impl AgentSession for AcpSession {
    async fn turn(&mut self, input: TurnInput, events: &dyn EventSink) -> Result<(), AgentError> {
        turn::run(&self.core, &self.facts, input, events).await
    }
}
