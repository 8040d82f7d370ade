//! What all sessions of one agent share.
//!
//! Promises: what the agent says of itself is stored and told once it changed. Holds tokens in memory alone.
//! Must not know: chats and turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use agent_api::{AgentCommand, AgentInfo, HostNews};
use parking_lot::{Mutex, MutexGuard};
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
    tokens: Mutex<BTreeMap<Option<String>, TokenVersion>>,
    /// Counts tokens: none of these is used twice.
    generations: AtomicU64,
    /// Servers that the agent is handed over; none without.
    pub(super) mcp: OnceLock<Arc<McpSettings>>,
    /// Those of them that the user declares for all sessions, as clients see them.
    pub(super) own_servers: OnceLock<Vec<Value>>,
    servers: Mutex<ServerRecords>,
    /// What was said in a session and is not said again.
    sent_notices: Mutex<BTreeSet<(String, String)>>,
}

/// Sentences that are remembered; forgotten when there are more.
const SENT_NOTICES_MAX: usize = 256;

/// Principals whose tokens are held; of more none is taken, until somebody takes theirs back.
const TOKENS_MAX: usize = 256;

/// A token that a client brought, and which one it is of all that were.
struct TokenVersion {
    value: String,
    generation: u64,
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
            sent_notices: Mutex::default(),
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
        self.learn(|known| known.apply_view(view));
    }

    pub(super) fn learn_sign_in(&self, signed_in: bool) {
        self.known.change(|known| known.signed_in = Some(signed_in));
    }

    pub(super) fn learn_commands(&self, commands: &[AgentCommand]) {
        // Clients ask for commands when they need them.
        self.known.change(|known| known.set_commands(commands));
    }

    pub(super) fn report_setting(&self, conversation: &str, name: &str, value: Value) {
        if let Some(news) = self.news.get() {
            news.setting_changed(conversation, name, value);
        }
    }

    pub(super) fn servers(&self) -> MutexGuard<'_, ServerRecords> {
        self.servers.lock()
    }

    pub(super) fn tell_servers(&self, conversation: &str, servers: Vec<Value>) {
        if let Some(news) = self.news.get() {
            news.mcp_servers(conversation, servers);
        }
    }

    /// Says something once in a session.
    pub(super) async fn notify_once(
        &self,
        turn: &AcpTurn<'_>,
        text: String,
    ) -> Result<(), TurnStopped> {
        let is_new = {
            let mut sent_notices = self.sent_notices.lock();
            if sent_notices.len() >= SENT_NOTICES_MAX {
                sent_notices.clear();
            }
            sent_notices.insert((turn.facts.conversation.clone(), text.clone()))
        };
        if is_new { Ok(turn.notice(text).await?) } else { Ok(()) }
    }

    pub(super) fn tell_title(&self, conversation: &str, title: &str) {
        let title = super::label::label(title, super::mapper::TITLE_CHARS_MAX);
        if let Some(news) = self.news.get().filter(|_| !title.is_empty()) {
            news.title(conversation, title);
        }
    }

    /// The token of a principal, and which credentials these are.
    pub(super) fn token_of(&self, principal: Option<&str>) -> (Option<String>, ProcessCredentials) {
        let tokens = self.tokens.lock();
        let owner = principal.map(str::to_owned);
        match tokens.get(&owner) {
            Some(held) => (Some(held.value.clone()), Some((owner, held.generation))),
            None => (None, None),
        }
    }

    pub(super) fn set_token(&self, principal: Option<&str>, resource: &str, token: &str) {
        let Some(AcpAuth::Resource { resource: own, .. }) = &self.config.auth else {
            return; // it takes none
        };
        if own != resource {
            return; // it is for an MCP server, which gets none through this agent (MC-9)
        }
        let owner = principal.map(str::to_owned);
        let mut tokens = self.tokens.lock();
        let held = tokens.get(&owner).map(|held| held.value.as_str());
        if held.unwrap_or_default() == token {
            return; // the same one again needs no other process
        }
        if held.is_none() && tokens.len() >= TOKENS_MAX {
            tracing::warn!("a token is not stored: too many tokens are stored already");
            return;
        }
        let generation = if token.is_empty() {
            tokens.remove(&owner);
            None
        } else {
            let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
            let value = token.to_owned();
            tokens.insert(owner, TokenVersion { value, generation });
            Some(generation)
        };
        drop(tokens);
        self.pool.retire_other_credentials(principal, generation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn h_318_nobody_pushes_out_the_tokens_of_others() {
        const RESOURCE: &str = "https://r.example";
        let data = tempfile::tempdir().unwrap();
        let mut config = AcpAgentConfig::new("fake", "fake");
        config.auth = Some(AcpAuth::Resource {
            resource: RESOURCE.to_owned(),
            token_env: "SOME_TOKEN".to_owned(),
            required: false,
        });
        let known = KnownAgentFile::open(data.path(), "fake");
        let trust = Arc::new(TrustStore::new(data.path(), Vec::new()));
        let core = AgentCore::new(config, known, trust);
        core.set_token(None, RESOURCE, "host");
        for n in 1..TOKENS_MAX {
            core.set_token(Some(&format!("member {n}")), RESOURCE, "theirs");
        }
        let token_of = |who: Option<&str>| core.token_of(who).0;
        core.set_token(Some("ann"), RESOURCE, "ann");
        assert_eq!(token_of(Some("ann")), None, "there is no room");
        assert_eq!(token_of(None).as_deref(), Some("host"));
        core.set_token(None, RESOURCE, "newer");
        assert_eq!(token_of(None).as_deref(), Some("newer"));
        // Whoever takes theirs back makes room.
        core.set_token(Some("member 1"), RESOURCE, "");
        core.set_token(Some("ann"), RESOURCE, "ann");
        assert_eq!(token_of(Some("ann")).as_deref(), Some("ann"));
        let (_, before) = core.token_of(Some("ann"));
        core.set_token(Some("ann"), RESOURCE, "");
        assert_eq!(core.token_of(Some("ann")), (None, None));
        core.set_token(Some("ann"), RESOURCE, "ann");
        assert_ne!(core.token_of(Some("ann")).1, before, "it is another one");
    }
}
