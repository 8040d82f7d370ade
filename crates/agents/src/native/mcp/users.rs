//! Whose tokens the servers of a session work with (H-318).
//!
//! Promises: a server that was opened with a token is used for whom it was brought by, and for nobody else. Turns of one principal use
//! the servers together; turns of another wait for no one: meanwhile they go on without those that have tokens.
//! Must not know: how tokens are got, who is a principal.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent_api::{AgentEvent, EventSink, TurnOver};

use super::{SessionMcp, shown};
use crate::mcp::{McpServer, ServerState, ServerToken};

/// Tokens that clients brought, by whose they are and what they are for. In memory alone.
#[derive(Default)]
pub(in super::super) struct BroughtTokens(Mutex<BTreeMap<(Option<String>, String), String>>);

/// Tokens that are held; the first by name goes when there are more.
const TOKENS_MAX: usize = 256;

impl BroughtTokens {
    /// Holds a token, or forgets it.
    pub(in super::super) fn set(
        &self,
        principal: Option<&str>,
        resource: &str,
        token: Option<&str>,
    ) {
        let of = (principal.map(str::to_owned), resource.to_owned());
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match token {
            Some(token) => {
                if tokens.len() >= TOKENS_MAX && !tokens.contains_key(&of) {
                    tokens.pop_first();
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
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
            self.session.lock().users.turns -= 1;
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
        let is_own = self.pass_to(principal);
        if is_own {
            self.lock().users.turns += 1;
        }
        ServerUse {
            session: self,
            is_own,
        }
    }

    /// Lets the servers work with the tokens of a principal from now on, unless a turn of another one uses them; whether they do.
    pub(super) fn pass_to(&self, principal: Option<&str>) -> bool {
        {
            let mut memory = self.lock();
            if memory.users.principal.as_deref() == principal {
                return true;
            }
            if memory.users.turns > 0 {
                return false;
            }
            memory.users.principal = principal.map(str::to_owned);
        }
        for server in self.servers.all() {
            server.exchange_token(self.tokens.find(principal, &server));
        }
        true
    }

    /// Whether a server may be used for a principal between turns.
    pub(super) fn is_usable_by(&self, principal: Option<&str>, server: &McpServer) -> bool {
        self.lock().users.principal.as_deref() == principal || !is_bound(server)
    }

    /// A principal brought a token for a resource, or took one back. A server that waits for it is started.
    pub(in super::super) fn bring_token(
        &self,
        principal: Option<&str>,
        resource: &str,
        token: Option<&str>,
    ) {
        let servers = self.servers.all().into_iter();
        let servers = servers.filter(|server| server.takes_token_for(resource));
        let servers: Vec<Arc<McpServer>> = servers.collect();
        let wants = |server: &Arc<McpServer>| matches!(server.state(), ServerState::TokenWanted(_));
        let is_theirs = self.lock().users.principal.as_deref() == principal;
        // Who signs in where somebody is wanted to, while no turn runs, has it ready for their next one.
        let is_taken_over =
            || token.is_some() && servers.iter().any(wants) && self.pass_to(principal);
        if !is_theirs && !is_taken_over() {
            return; // it is held for their own turns
        }
        for server in servers {
            server.set_token(token.map(|token| ServerToken {
                resource: resource.to_owned(),
                token: token.to_owned(),
            }));
            if wants(&server) && token.is_some() && self.is_due(&server) {
                server.start();
            }
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
    use crate::mcp::{McpDeclaration, McpTransport, ServerPlace};

    const RESOURCE: &str = "https://mcp.example/";

    fn server(transport: McpTransport) -> Arc<McpServer> {
        let declaration = McpDeclaration {
            name: "s".to_owned(),
            transport,
            program: None,
            tools: None,
            timeout: None,
            trust_hints: false,
            oauth: None,
        };
        let place = ServerPlace {
            directory: PathBuf::from("/"),
            roots: Vec::new(),
        };
        Arc::new(McpServer::new(declaration, place))
    }

    /// A session with a server that takes tokens and one that takes none.
    fn session() -> (SessionMcp, Arc<McpServer>, Arc<McpServer>) {
        let session = SessionMcp::new("c", None, Arc::default());
        let remote = server(McpTransport::Http {
            url: "https://mcp.example/v1".to_owned(),
            headers: BTreeMap::new(),
        });
        let local = server(McpTransport::Process {
            command: "true".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
        });
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
        assert!(!session.is_usable_by(Some("bob"), &remote));
        assert!(session.is_usable_by(Some("bob"), &local));
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
}
