//! Whose tokens the servers of a session work with (H-318).
//!
//! Promises: a server that was opened with a token is used for whom it was brought by, and for nobody else. Turns of one principal use
//! the servers together; turns of another wait for no one: meanwhile they go on without those that have tokens.
//! Must not know: how tokens are got, who is a principal.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::{AgentEvent, EventSink, TurnOver};
use parking_lot::Mutex;

use super::{ServerMemory, SessionMcp, shown};
use crate::mcp::{McpServer, ReadyServer, ServerState, ServerToken};

/// Tokens that clients brought, by whose they are and what they are for. In memory alone.
#[derive(Default)]
pub(in super::super) struct ClientTokens(Mutex<BTreeMap<(Option<String>, String), String>>);

/// Tokens of one principal that are held; their first by name goes when they bring more.
const TOKENS_OF_ONE_MAX: usize = 64;

/// Tokens that are held of all together. When there are so many, whoever brings one more loses one of their own, or is refused.
const TOKENS_MAX: usize = 4_096;

impl ClientTokens {
    /// Holds a token, or forgets it. What one principal brings never pushes out what another one brought.
    pub(in super::super) fn set(
        &self,
        principal: Option<&str>,
        resource: &str,
        token: Option<&str>,
    ) {
        let of = (principal.map(str::to_owned), resource.to_owned());
        let mut tokens = self.0.lock();
        match token {
            Some(token) => {
                let mut own = tokens
                    .range((of.0.clone(), String::new())..)
                    .take_while(|((owner, _), _)| *owner == of.0);
                let is_full =
                    tokens.len() >= TOKENS_MAX || own.clone().count() >= TOKENS_OF_ONE_MAX;
                if is_full && !tokens.contains_key(&of) {
                    let first = own.next().map(|(first, _)| first.clone());
                    let Some(first) = first else {
                        tracing::warn!("a token is not stored: too many tokens are stored already");
                        return;
                    };
                    tokens.remove(&first);
                }
                tokens.insert(of, token.to_owned());
            }
            None => {
                tokens.remove(&of);
            }
        }
    }

    /// The token of a principal for a server; of several the one whose resource is the nearest.
    pub(super) fn find(&self, principal: Option<&str>, server: &McpServer) -> Option<ServerToken> {
        let tokens = self.0.lock();
        let fitting = tokens.iter().filter(|((owner, resource), _)| {
            owner.as_deref() == principal && server.takes_token_for(resource)
        });
        let nearest = fitting.max_by_key(|((_, resource), _)| resource.len());
        nearest.map(|((_, resource), token)| ServerToken {
            resource: resource.clone(),
            token: token.clone(),
        })
    }
}

/// Whose the servers are at the moment.
#[derive(Default)]
pub(super) struct ServerUsers {
    /// Who used them last.
    pub(super) principal: Option<String>,
    /// Turns of theirs that run.
    turns: usize,
}

/// The servers of a session as one turn may use them, until it is dropped.
pub(in super::super) struct ServerUse<'a> {
    pub(super) session: &'a SessionMcp,
    /// They work with the tokens of this turn's principal. If not, with those of another one whose turn runs.
    pub(super) is_own: bool,
}

impl ServerUse<'_> {
    pub(super) fn may_use(&self, server: &McpServer) -> bool {
        self.is_own || !is_bound(server)
    }
}

impl Drop for ServerUse<'_> {
    fn drop(&mut self) {
        if self.is_own {
            let mut memory = self.session.memory.lock();
            memory.users.turns -= 1;
            self.session.end_lost_tokens(&memory);
        }
    }
}

/// Whether a server works with somebody's token, or wants one.
fn is_bound(server: &McpServer) -> bool {
    server.has_token() || matches!(server.state(), ServerState::TokenWanted(_))
}

impl SessionMcp {
    /// A turn of a principal begins: the servers are theirs unless a turn of another one uses them.
    pub(super) fn begin_use(&self, principal: Option<&str>) -> ServerUse<'_> {
        // In one piece, so that nobody else's turn begins between the answer and the count.
        let mut memory = self.memory.lock();
        let is_own = self.pass_locked(&mut memory, principal);
        if is_own {
            memory.users.turns += 1;
        }
        drop(memory);
        ServerUse { session: self, is_own }
    }

    /// Lets the servers work with the tokens of a principal from now on, unless a turn of another one uses them; whether they do. The
    /// memory stays held while tokens are exchanged: whose the servers are and which tokens they have is never seen apart. A server
    /// takes no lock of its session.
    pub(super) fn pass_locked(&self, memory: &mut ServerMemory, principal: Option<&str>) -> bool {
        if memory.users.principal.as_deref() == principal {
            return true;
        }
        if memory.users.turns > 0 {
            return false;
        }
        memory.users.principal = principal.map(str::to_owned);
        for server in self.servers.all() {
            server.exchange_token(self.tokens.find(principal, &server));
        }
        true
    }

    /// What was opened with a token that its owner took back, or that ran out, ends; in a turn, with the turn: what it does may end.
    fn end_lost_tokens(&self, memory: &ServerMemory) {
        if memory.users.turns == 0 {
            for server in self.servers.all() {
                server.end_lost_token();
            }
        }
    }

    /// The servers that can be asked something for a principal between turns, with the connections that they have now: what is opened
    /// later may be somebody else's.
    pub(super) fn ready(&self, principal: Option<&str>) -> Vec<ReadyServer> {
        // In one piece: nobody else's turn begins between the question whose they are and the connections.
        let memory = self.memory.lock();
        let is_theirs = memory.users.principal.as_deref() == principal;
        let servers = self.servers.all().into_iter();
        let usable = servers.filter(|server| is_theirs || !is_bound(server));
        usable.filter_map(|server| server.ready()).collect()
    }

    /// Makes these the session's servers. New ones get the tokens of whose the servers are; those that stay have them.
    pub(super) fn replace_servers(&self, servers: Vec<Arc<McpServer>>) {
        let memory = self.memory.lock();
        let before = self.servers.all();
        for server in &servers {
            let is_new = !before.iter().any(|known| Arc::ptr_eq(known, server));
            if is_new {
                let principal = memory.users.principal.as_deref();
                server.set_token(self.tokens.find(principal, server));
            }
        }
        self.servers.replace(servers);
        drop(memory);
        // Those that nobody else uses end here.
        drop(before);
    }

    /// A principal brought a token for a resource, or took one back. A server that waits for it is started.
    pub(in super::super) fn bring_token(
        &self,
        principal: Option<&str>,
        resource: &str,
        token: Option<&str>,
    ) {
        let wants = |server: &Arc<McpServer>| matches!(server.state(), ServerState::TokenWanted(_));
        let mut memory = self.memory.lock();
        let servers: Vec<Arc<McpServer>> = self
            .servers
            .all()
            .into_iter()
            .filter(|server| server.takes_token_for(resource))
            .collect();
        // Known before they are passed on, which ends what they wait for.
        let mut waiting: Vec<Arc<McpServer>> = servers.clone();
        waiting.retain(|server| token.is_some() && wants(server));
        let is_theirs = memory.users.principal.as_deref() == principal;
        // Who signs in where somebody is wanted to, while no turn runs, has it ready for their next one.
        if !is_theirs && (waiting.is_empty() || !self.pass_locked(&mut memory, principal)) {
            return; // it is held for their own turns
        }
        for server in &servers {
            server.set_token(token.map(|token| ServerToken {
                resource: resource.to_owned(),
                token: token.to_owned(),
            }));
        }
        self.end_lost_tokens(&memory);
        drop(memory);
        for server in waiting.iter().filter(|server| self.is_due(server)) {
            server.start();
        }
    }

    /// Says that a server is not there for this turn.
    pub(super) async fn report_taken(
        &self,
        server: &McpServer,
        events: &dyn EventSink,
    ) -> Result<(), TurnOver> {
        let text = format!(
            "The MCP server `{}` works with somebody else's sign-in at the moment, so this turn goes on without it.",
            shown(&server.declaration().name)
        );
        // Not once in a session: it may be the other one who reads it next time.
        events.send(AgentEvent::Notice { text }).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::mcp::testing::{FakeHttp, declare, make_server, remote_server, token_wanted};
    use crate::mcp::{DeclaredServer, McpTransport};

    const RESOURCE: &str = "https://mcp.example/";

    const URL: &str = "https://mcp.example/v1";

    /// A session with a server that takes tokens and one that takes none.
    fn session() -> (SessionMcp, Arc<McpServer>, Arc<McpServer>) {
        let session = SessionMcp::new("c", None, Arc::default());
        let remote = remote_server(URL);
        let local = make_server(declare(McpTransport::Process {
            command: "true".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
        }));
        let servers = vec![Arc::clone(&remote), Arc::clone(&local)];
        session.servers.replace(servers);
        for (who, token) in [(None, "host"), (Some("ann"), "ann"), (Some("bob"), "bob")] {
            session.tokens.set(who, RESOURCE, Some(token));
        }
        (session, remote, local)
    }

    fn token(server: &McpServer) -> Option<String> {
        server.token().map(|token| token.token)
    }

    #[test]
    fn h_318_servers_work_with_the_tokens_of_whose_turn_it_is() {
        let (session, remote, local) = session();
        let ann = session.begin_use(Some("ann"));
        assert!(ann.may_use(&remote) && ann.may_use(&local));
        assert_eq!(token(&remote).as_deref(), Some("ann"));
        // Meanwhile somebody else has what needs nobody's token.
        let bob = session.begin_use(Some("bob"));
        assert!(!bob.may_use(&remote) && bob.may_use(&local));
        assert_eq!(token(&remote).as_deref(), Some("ann"));
        let also_ann = session.begin_use(Some("ann"));
        drop(ann);
        assert!(!session.begin_use(Some("bob")).may_use(&remote));
        drop((also_ann, bob));
        let bob = session.begin_use(Some("bob"));
        assert!(bob.may_use(&remote));
        assert_eq!(token(&remote).as_deref(), Some("bob"));
        drop(bob);
        let carl = session.begin_use(Some("carl"));
        assert!(carl.may_use(&remote), "it has no token now");
        assert_eq!((token(&remote), token(&local)), (None, None));
    }

    #[test]
    fn h_318_a_token_reaches_the_servers_of_its_owner_alone() {
        let (session, remote, _) = session();
        let _bob = session.begin_use(Some("bob"));
        session.bring_token(Some("ann"), RESOURCE, Some("newer"));
        session.bring_token(None, RESOURCE, None);
        assert_eq!(token(&remote).as_deref(), Some("bob"));
        session.bring_token(Some("bob"), RESOURCE, Some("newer"));
        assert_eq!(token(&remote).as_deref(), Some("newer"));
        session.bring_token(Some("bob"), RESOURCE, None);
        assert_eq!(token(&remote), None);
    }

    #[test]
    fn h_318_turns_that_begin_at_once_never_have_each_others_tokens() {
        let (session, remote, _) = session();
        std::thread::scope(|threads| {
            for who in ["ann", "bob"] {
                let (session, remote) = (&session, &remote);
                threads.spawn(move || {
                    for _ in 0..500 {
                        let used = session.begin_use(Some(who));
                        if used.is_own {
                            assert_eq!(token(remote).as_deref(), Some(who));
                        }
                    }
                });
            }
        });
        assert_eq!(session.memory.lock().users.turns, 0);
    }

    #[test]
    fn h_318_a_server_that_is_added_has_the_token_of_whose_the_servers_are() {
        let (session, remote, local) = session();
        let _ann = session.begin_use(Some("ann"));
        // One that stays is left alone, whatever was brought since.
        session.tokens.set(Some("ann"), RESOURCE, Some("newer"));
        let added = remote_server(URL);
        session.replace_servers(vec![Arc::clone(&remote), local, Arc::clone(&added)]);
        assert_eq!(token(&added).as_deref(), Some("newer"));
        assert_eq!(token(&remote).as_deref(), Some("ann"));
    }

    #[tokio::test]
    async fn h_318_who_signs_in_where_it_is_wanted_has_the_server_unless_a_turn_runs() {
        let (session, remote, _) = session();
        session.memory.lock().known.push(DeclaredServer {
            name: "s".to_owned(),
            file: PathBuf::from("/f"),
            span: None,
            plugin: None,
            is_users: true,
            digest: String::new(),
            is_sse: false,
            variables: Vec::new(),
            wanted: Vec::new(),
            inputs: Vec::new(),
            declaration: Ok(remote.declaration().clone()),
        });
        let ann = session.begin_use(Some("ann"));
        remote.set_state(token_wanted());
        session.bring_token(Some("bob"), RESOURCE, Some("bob"));
        assert_eq!(token(&remote).as_deref(), Some("ann"), "her turn runs");
        drop(ann);
        session.bring_token(Some("bob"), RESOURCE, Some("bob"));
        assert_eq!(token(&remote).as_deref(), Some("bob"));
        // Nothing is awaited in this test, so nothing is connected to.
        assert_eq!(remote.state(), ServerState::Starting);
        remote.stop();
    }

    /// A session whose server runs on this machine with the token of ann, who used it last.
    async fn running_session() -> (SessionMcp, FakeHttp, Arc<McpServer>) {
        let fake = FakeHttp::start().await;
        let session = SessionMcp::new("c", None, Arc::default());
        for who in ["ann", "bob"] {
            session.tokens.set(Some(who), &fake.url, Some(who));
        }
        drop(session.begin_use(Some("ann")));
        let server = fake.connect("ann", std::time::Duration::from_secs(30)).await;
        session.servers.replace(vec![Arc::clone(&server)]);
        (session, fake, server)
    }

    #[tokio::test]
    async fn h_318_what_is_asked_between_turns_never_goes_out_with_the_token_of_another() {
        let (session, fake, server) = running_session().await;
        let asked = session.expand_prompt(Some("ann"), "mcp:s:whose", &[]).await;
        assert_eq!(asked.as_deref(), Ok("ann"));
        // A turn of another one begins after it was found out that she may ask, and before the server is asked.
        let ready = session.ready(Some("ann"));
        let _bob = session.begin_use(Some("bob"));
        server.start();
        server.wait_until_settled().await;
        let late = ready[0].get_prompt("whose", Default::default()).await;
        assert!(late.is_err(), "{late:?}");
        let refused = session.expand_prompt(Some("ann"), "mcp:s:whose", &[]).await;
        assert!(refused.is_err(), "{refused:?}");
        let asked = session.expand_prompt(Some("bob"), "mcp:s:whose", &[]).await;
        assert_eq!(asked.as_deref(), Ok("bob"));
        assert_eq!(*fake.prompted.lock(), ["ann", "bob"]);
    }

    #[tokio::test]
    async fn mc_14_a_token_that_is_taken_back_is_used_no_longer_than_the_turn() {
        let (session, fake, server) = running_session().await;
        let turn = session.begin_use(Some("ann"));
        session.tokens.set(Some("ann"), &fake.url, None);
        session.bring_token(Some("ann"), &fake.url, None);
        assert_eq!(server.state(), ServerState::Ready, "what it does may end");
        drop(turn);
        assert_eq!(server.state(), ServerState::Stopped);
        let (session, fake, server) = running_session().await;
        session.bring_token(Some("bob"), &fake.url, None);
        assert_eq!(server.state(), ServerState::Ready, "it is not his");
        session.bring_token(Some("ann"), &fake.url, None);
        assert_eq!(server.state(), ServerState::Stopped);
    }

    #[test]
    fn h_318_nobody_pushes_out_the_tokens_of_others() {
        let (session, remote, _) = session();
        for n in 0..=TOKENS_OF_ONE_MAX {
            let resource = format!("https://{n}.example/");
            session.tokens.set(Some("bob"), &resource, Some("bob"));
        }
        let held = session.tokens.0.lock().clone();
        let count = |who: Option<&str>| {
            let owners = held.keys().filter(|(owner, _)| owner.as_deref() == who);
            owners.count()
        };
        assert_eq!(count(Some("bob")), TOKENS_OF_ONE_MAX);
        assert_eq!((count(None), count(Some("ann"))), (1, 1));
        // When there is no room at all, it is the same.
        for n in held.len()..TOKENS_MAX {
            let who = format!("member {n}");
            session.tokens.set(Some(&who), RESOURCE, Some("theirs"));
        }
        session.tokens.set(Some("carl"), RESOURCE, Some("carl"));
        session.tokens.set(Some("ann"), "https://other.example/", Some("ann"));
        let found = |who: Option<&str>| session.tokens.find(who, &remote).is_some();
        assert!(found(None) && found(Some("member 100")));
        assert!(!found(Some("carl")), "it is refused");
        assert!(!found(Some("ann")), "she gave up one of her own");
        assert_eq!(session.tokens.0.lock().len(), TOKENS_MAX);
    }
}
