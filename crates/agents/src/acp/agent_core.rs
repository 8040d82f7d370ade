//! What all sessions of one agent share.
//!
//! Promises: what the agent says of itself is stored and told once it changed. Holds tokens in memory alone.
//! Must not know: chats and turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
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
    /// By whose they are.
    tokens: Mutex<BTreeMap<Option<String>, BroughtValue>>,
    /// Counts tokens: none of these is used twice.
    generations: AtomicU64,
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

/// Principals whose tokens are held; the first by name goes when there are more, and brings its token again.
const TOKENS_MAX: usize = 256;

/// A token that a client brought, and how often it was another one.
#[derive(Clone, Default)]
pub(super) struct BroughtValue {
    pub(super) value: Option<String>,
    pub(super) generation: u64,
}

/// Whose credentials a process was started with; none if it got nobody's.
pub(super) type ProcessCredentials = Option<(Option<String>, u64)>;

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
            tokens: Mutex::default(),
            generations: AtomicU64::new(0),
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

    /// The token of a principal, and which credentials these are.
    pub(super) fn token_of(&self, principal: Option<&str>) -> (Option<String>, ProcessCredentials) {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = principal.map(str::to_owned);
        match tokens.get(&owner) {
            Some(BroughtValue {
                value: Some(token),
                generation,
            }) => (Some(token.clone()), Some((owner, *generation))),
            Some(BroughtValue { value: None, .. }) | None => (None, None),
        }
    }

    pub(super) fn set_token(&self, principal: Option<&str>, resource: &str, token: &str) {
        let Some(AcpAuth::Resource { resource: own, .. }) = &self.config.auth else {
            return; // it takes none
        };
        if own != resource {
            return; // it is for an MCP server, which gets none through this agent (MC-9)
        }
        let value = (!token.is_empty()).then(|| token.to_owned());
        let owner = principal.map(str::to_owned);
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS_MAX
            && !tokens.contains_key(&owner)
            && let Some((left_out, _)) = tokens.pop_first()
        {
            self.pool
                .retire_other_credentials(left_out.as_deref(), None);
        }
        let held = tokens.entry(owner).or_default();
        // The same one again needs no other process.
        if held.value != value {
            held.value = value;
            held.generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
            let generation = held.generation;
            drop(tokens);
            self.pool
                .retire_other_credentials(principal, Some(generation));
        }
    }
}
