//! What agents say between turns, on its way to the kernel.
//!
//! Promises: who says something never waits. What is not heard yet is bounded: a newer word about the same thing takes the place of the
//! older one, and beyond that the oldest goes.
//! Must not know: what the kernel makes of it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use agent_api::{AgentInfo, HostNews};
use kernel::{Input, SessionChange, SessionNews};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::runtime::Handle;
use wire::ChannelUri;

use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::models::AgentRoster;
use crate::task;

/// News that may wait.
const WORDS_MAX: usize = 1_024;

/// Longest title; the kernel may want it shorter.
const TITLE_BYTES_MAX: usize = 4 << 10;

/// Longest name, and longest value, of a setting.
const NAME_BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 64 << 10;

/// All MCP servers of a session.
const SERVERS_BYTES_MAX: usize = 256 << 10;

/// The news of one agent.
pub(crate) struct AgentNews {
    provider: String,
    waiting: Arc<WaitingNews>,
}

/// The news of all agents that wait, the oldest first. A task hands them on while there are any: spaces at rest have none.
#[derive(Default)]
pub(crate) struct WaitingNews {
    words: Mutex<NewsQueue>,
    /// Where they go, and where the task runs. The roster has the agents, and those have this: only while it is there.
    listener: Option<(Weak<AgentRoster>, KernelQueue, Handle)>,
}

#[derive(Default)]
struct NewsQueue {
    items: VecDeque<NewsItem>,
    /// A task hands them on.
    is_served: bool,
}

enum NewsItem {
    Agent(Box<AgentInfo>),
    Session(SessionNews),
}

impl NewsItem {
    /// Whether both are about the same thing.
    fn is_about_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Agent(one), Self::Agent(other)) => one.provider == other.provider,
            (Self::Session(one), Self::Session(other)) => {
                one.session == other.session && one.change.is_about_same(&other.change)
            }
            (Self::Agent(_), Self::Session(_)) | (Self::Session(_), Self::Agent(_)) => false,
        }
    }
}

/// Starts every agent, and hands on what they say for as long as the kernel listens.
pub(crate) fn start_agents(roster: &Arc<AgentRoster>, arrivals: KernelQueue) {
    let waiting = Arc::new(WaitingNews {
        words: Mutex::default(),
        listener: Some((Arc::downgrade(roster), arrivals, Handle::current())),
    });
    for agent in roster.agents() {
        agent.start(Arc::new(AgentNews {
            provider: agent.info().provider,
            waiting: Arc::clone(&waiting),
        }));
    }
}

/// Hands news on one by one, until there is none or the kernel is gone.
async fn forward(waiting: Arc<WaitingNews>) {
    let Some((roster, arrivals, _)) = &waiting.listener else {
        return; // there is no kernel to hand them to
    };
    while let Some(word) = waiting.take_or_end() {
        let Some(roster) = roster.upgrade() else {
            return; // as below
        };
        if send_word(word, &roster, arrivals).await == KernelState::Gone {
            return; // the host goes down; the task counts as there, so that no other is started
        }
    }
}

#[derive(PartialEq, Eq)]
enum KernelState {
    There,
    Gone,
}

async fn send_word(word: NewsItem, roster: &AgentRoster, arrivals: &KernelQueue) -> KernelState {
    let sent = match word {
        NewsItem::Session(news) => arrivals.send(QueuedInput::from(Input::News(news))).await,
        NewsItem::Agent(info) => {
            // The kernel gets changes in the order in which they were made.
            let _order = roster.lock().await;
            let Some(facts) = roster.facts_of(*info) else {
                tracing::error!("news of an agent is dropped: this host has no such agent");
                return KernelState::There;
            };
            let input = Input::AgentChanged(Box::new(facts));
            arrivals.send(QueuedInput::from(input)).await
        }
    };
    match sent {
        Ok(()) => KernelState::There,
        Err(_) => KernelState::Gone,
    }
}

impl WaitingNews {
    fn put(self: &Arc<Self>, word: NewsItem) {
        let mut queue = self.words.lock();
        let words = &mut queue.items;
        let same = words.iter().position(|other| other.is_about_same(&word));
        match same.and_then(|index| words.get_mut(index)) {
            Some(older) => *older = word,
            None => {
                if words.len() >= WORDS_MAX {
                    words.pop_front();
                    tracing::warn!(
                        "too much news from agents between turns; the oldest is dropped"
                    );
                }
                words.push_back(word);
            }
        }
        if queue.is_served {
            return; // the task that is at it takes this one, too
        }
        if let Some((_, _, runtime)) = &self.listener {
            queue.is_served = true;
            task::spawn_on(runtime, forward(Arc::clone(self)));
        }
    }

    /// The next news. Where there is none the task ends: the next sender starts another.
    fn take_or_end(&self) -> Option<NewsItem> {
        let mut queue = self.words.lock();
        let word = queue.items.pop_front();
        if word.is_none() {
            queue.is_served = false;
            queue.items.shrink_to_fit();
        }
        word
    }
}

impl AgentNews {
    fn put(&self, conversation: &str, change: SessionChange) {
        let Ok(session) = ChannelUri::parse(conversation) else {
            // Conversations are named by the host: an agent that makes one up is wrong.
            tracing::error!(provider = %self.provider, "news of an agent is dropped: it names a session that cannot exist");
            return;
        };
        self.waiting.put(NewsItem::Session(SessionNews {
            provider: self.provider.clone(),
            session,
            change,
        }));
    }
}

impl HostNews for AgentNews {
    fn agent_changed(&self, info: AgentInfo) {
        if info.provider != self.provider {
            tracing::error!(provider = %self.provider, "news of an agent is dropped: it is about another agent");
            return;
        }
        self.waiting.put(NewsItem::Agent(Box::new(info)));
    }

    fn setting_changed(&self, conversation: &str, name: &str, value: Value) {
        if name.len() > NAME_BYTES_MAX || wire::rpc::json_bytes(&value) > VALUE_BYTES_MAX {
            tracing::warn!(provider = %self.provider, "a setting that an agent changed is too large and is not taken");
            return;
        }
        let name = name.to_owned();
        self.put(conversation, SessionChange::Setting { name, value });
    }

    fn mcp_servers(&self, conversation: &str, servers: Vec<Value>) {
        let servers_bytes: usize = servers.iter().map(wire::rpc::json_bytes).sum();
        if servers_bytes > SERVERS_BYTES_MAX {
            tracing::warn!(provider = %self.provider, "the MCP servers of a session are too large to be shown");
            return;
        }
        self.put(conversation, SessionChange::McpServers(servers));
    }

    fn title(&self, conversation: &str, mut title: String) {
        title.truncate(title.floor_char_boundary(TITLE_BYTES_MAX));
        self.put(conversation, SessionChange::Title(title));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn news() -> (AgentNews, Arc<WaitingNews>) {
        let waiting = Arc::new(WaitingNews::default());
        let news = AgentNews { provider: "p".to_owned(), waiting: Arc::clone(&waiting) };
        (news, waiting)
    }

    fn changes(waiting: &WaitingNews) -> Vec<(String, SessionChange)> {
        let words = std::iter::from_fn(|| waiting.take_or_end()).map(|word| match word {
            NewsItem::Session(news) => (news.session.to_string(), news.change),
            NewsItem::Agent(info) => panic!("{info:?}"),
        });
        words.collect()
    }

    fn setting(name: &str, value: Value) -> SessionChange {
        SessionChange::Setting { name: name.to_owned(), value }
    }

    #[test]
    fn a_newer_word_takes_the_place_of_an_older_one_about_the_same() {
        let (news, waiting) = news();
        for value in [1, 2, 3] {
            news.setting_changed("x:/1", "mode", json!(value));
            news.setting_changed("x:/1", "pace", json!(value));
            news.setting_changed("x:/2", "mode", json!(value));
            news.title("x:/1", format!("title {value}"));
        }
        let expected = [
            ("x:/1".to_owned(), setting("mode", json!(3))),
            ("x:/1".to_owned(), setting("pace", json!(3))),
            ("x:/2".to_owned(), setting("mode", json!(3))),
            ("x:/1".to_owned(), SessionChange::Title("title 3".to_owned())),
        ];
        assert_eq!(changes(&waiting), expected);
    }

    #[test]
    fn what_waits_is_bounded_and_what_is_too_large_does_not_wait() {
        let (news, waiting) = news();
        for session in 0..WORDS_MAX + 5 {
            news.title(&format!("x:/{session}"), "t".to_owned());
        }
        let heard = changes(&waiting);
        assert_eq!(heard.len(), WORDS_MAX);
        assert_eq!(heard[0].0, "x:/5", "the oldest went");
        news.setting_changed("x:/1", "mode", json!("v".repeat(VALUE_BYTES_MAX)));
        news.setting_changed("x:/1", &"n".repeat(NAME_BYTES_MAX + 1), json!(1));
        news.setting_changed("no uri", "mode", json!(1));
        assert_eq!(changes(&waiting), []);
    }
}
