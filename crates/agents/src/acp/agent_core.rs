//! What all sessions of one agent share.
//!
//! Promises: what the agent says of itself is stored and told once it changed. Holds tokens in memory alone.
//! Must not know: chats and turns.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use agent_api::{AgentCommand, AgentInfo, HostNews};
use serde_json::Value;

use super::config::{AcpAgentConfig, AcpAuth};
use super::connection::Abilities;
use super::known::{Known, KnownAgentFile};
use super::mcp_servers::ServerRecords;
use super::pool::ProcessPool;
use super::turn::{AcpTurn, TurnStopped};
use super::view::SessionView;
use crate::mcp_settings::McpSettings;
use crate::trust::TrustStore;

pub(super) struct AgentCore {
    pub(super) config: Arc<AcpAgentConfig>,
    pub(super) trust: Arc<TrustStore>,
    pub(super) known: KnownAgentFile,
    pub(super) pool: ProcessPool,
    news: OnceLock<Arc<dyn HostNews>>,
    token: Mutex<BroughtValue>,
    /// Servers that the agent is handed over; none without.
    pub(super) mcp: OnceLock<Arc<McpSettings>>,
    /// Those of them that the user declares for all sessions, as clients see them.
    pub(super) own_servers: OnceLock<Vec<Value>>,
    servers: Mutex<ServerRecords>,
    /// What was said in a session and is not said again.
    told: Mutex<BTreeSet<(String, String)>>,
}

/// Sentences that are remembered; forgotten when there are more.
const TOLD_MAX: usize = 256;

/// A token that a client brought, and how often it was another one.
#[derive(Clone, Default)]
pub(super) struct BroughtValue {
    pub(super) value: Option<String>,
    pub(super) generation: u64,
}

impl AgentCore {
    pub(super) fn new(
        config: AcpAgentConfig,
        known: KnownAgentFile,
        trust: Arc<TrustStore>,
    ) -> Arc<Self> {
        let config = Arc::new(config);
        Arc::new(Self {
            pool: ProcessPool::new(Arc::clone(&config)),
            config,
            trust,
            known,
            news: OnceLock::new(),
            token: Mutex::default(),
            mcp: OnceLock::new(),
            own_servers: OnceLock::new(),
            servers: Mutex::default(),
            told: Mutex::default(),
        })
    }

    pub(super) fn start(&self, news: Arc<dyn HostNews>) {
        // Called once; a second host has no business here.
        let _ = self.news.set(news);
    }

    pub(super) fn info(&self) -> AgentInfo {
        AgentInfo {
            customizations: self.own_servers.get().cloned().unwrap_or_default(),
            ..self.known.get().info(&self.config)
        }
    }

    fn learn(&self, change: impl FnOnce(&mut Known)) {
        if self.known.change(change)
            && let Some(news) = self.news.get()
        {
            news.agent_changed(self.info());
        }
    }

    pub(super) fn learn_abilities(&self, abilities: &Abilities) {
        self.learn(|known| known.abilities = Some(abilities.clone()));
    }

    pub(super) fn learn_view(&self, view: &SessionView) {
        self.learn(|known| known.hear_view(view));
    }

    pub(super) fn learn_sign_in(&self, signed_in: bool) {
        self.known.change(|known| known.signed_in = Some(signed_in));
    }

    pub(super) fn learn_commands(&self, commands: &[AgentCommand]) {
        // Clients ask for commands when they need them.
        self.known.change(|known| known.set_commands(commands));
    }

    pub(super) fn tell_setting(&self, conversation: &str, name: &str, value: Value) {
        if let Some(news) = self.news.get() {
            news.setting_changed(conversation, name, value);
        }
    }

    pub(super) fn servers(&self) -> MutexGuard<'_, ServerRecords> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell_servers(&self, conversation: &str, servers: Vec<Value>) {
        if let Some(news) = self.news.get() {
            news.mcp_servers(conversation, servers);
        }
    }

    /// Says something once in a session.
    pub(super) async fn tell_once(
        &self,
        turn: &AcpTurn<'_>,
        text: String,
    ) -> Result<(), TurnStopped> {
        let is_new = {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() >= TOLD_MAX {
                told.clear();
            }
            told.insert((turn.facts.conversation.clone(), text.clone()))
        };
        match is_new {
            true => Ok(turn.notice(text).await?),
            false => Ok(()),
        }
    }

    pub(super) fn tell_title(&self, conversation: &str, title: &str) {
        let title = super::label::label(title, super::mapper::TITLE_CHARS_MAX);
        if let Some(news) = self.news.get().filter(|_| !title.is_empty()) {
            news.title(conversation, title);
        }
    }

    pub(super) fn token(&self) -> BroughtValue {
        self.token
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn set_token(&self, resource: &str, token: &str) {
        let Some(AcpAuth::Resource { resource: own, .. }) = &self.config.auth else {
            return; // it takes none
        };
        if own == resource {
            let mut held = self.token.lock().unwrap_or_else(PoisonError::into_inner);
            let value = (!token.is_empty()).then(|| token.to_owned());
            // The same one again needs no other process.
            if held.value != value {
                held.value = value;
                held.generation += 1;
                let generation = held.generation;
                drop(held);
                self.pool.retire_all_but(generation);
            }
        }
    }
}
