//! What a server does between its start and its end: connected, its lists asked for again, started again once after a crash, signed in
//! where it wants that.
//!
//! Promises: a run that somebody ended, or began anew, changes nothing any more.
//! Must not know: who uses the server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{LiveServer, McpServerCore, ServerState};
use crate::mcp::auth::{self, TokenChallenge, TokenRequest};
use crate::mcp::connection::McpConnection;
use crate::mcp::declaration::McpTransport;
use crate::mcp::error::McpError;

/// How long after a crash it is started again.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// A server that ran this long before it crashed is not one that crashes all the time.
const STABLE_AFTER: Duration = Duration::from_secs(300);

/// Lists are requested again when the server has not sent a change for this long (MC-8).
const QUIET: Duration = Duration::from_millis(250);

/// A server that never stops saying that its list changed is listed again after this long all the same.
const QUIET_MAX: Duration = Duration::from_secs(2);

impl McpServerCore {
    /// Changes what is there, unless it was stopped or started again since; whether it did.
    fn change(&self, run: u64, state: ServerState, change: impl FnOnce(&mut LiveServer)) -> bool {
        let mut live = self.live.lock();
        let is_current = live.run == run;
        if is_current {
            change(&mut live);
            if matches!(state, ServerState::Failed(_)) {
                live.failed_at = Some(Instant::now());
            }
            self.state.send_replace(state);
        }
        is_current
    }

    /// Keeps it running until it fails for good.
    pub(super) async fn run(&self, run: u64) {
        let mut may_restart = true;
        loop {
            let began = Instant::now();
            let reason = match self.connect(run).await {
                Ok(Some(connection)) => self.follow(&connection).await,
                Ok(None) => return, // it was stopped meanwhile
                Err(error) => {
                    if self.fail(run, error).await {
                        continue;
                    } else {
                        return;
                    }
                }
            };
            may_restart |= began.elapsed() >= STABLE_AFTER;
            if !std::mem::take(&mut may_restart) {
                if self.fail(run, reason).await { continue } else { return }
            }
            self.change(run, ServerState::Starting, LiveServer::disconnect);
            sleep(RESTART_AFTER).await;
        }
    }

    /// The connection, unless nobody wants it any more.
    async fn connect(&self, run: u64) -> Result<Option<Arc<McpConnection>>, McpError> {
        let token = {
            let mut live = self.live.lock();
            let token = live.token.clone();
            live.used_token.clone_from(&token);
            token.map(|token| token.token)
        };
        let directories = self.directories.lock().clone();
        let opening = McpConnection::open(&self.declaration, &directories, token.as_deref());
        let connection = Arc::new(opening.await?);
        let (tools, offers) = tokio::join!(connection.list(), connection.list_offers());
        let (tools, offers) = (Arc::new(tools?), Arc::new(offers));
        let is_wanted = self.change(run, ServerState::Ready, |live| {
            live.connection = Some(Arc::clone(&connection));
            live.tools = tools;
            live.offers = offers;
        });
        // They may have changed while it started.
        let roots = self.directories.lock().roots.clone();
        connection.set_roots(roots);
        Ok(is_wanted.then_some(connection))
    }

    /// Lists the tools again whenever they changed, until the connection ends; why it ended.
    async fn follow(&self, connection: &Arc<McpConnection>) -> McpError {
        loop {
            tokio::select! {
                reason = connection.ended() => return reason,
                () = connection.lists_changed() => {}
            }
            let began = Instant::now();
            while began.elapsed() < QUIET_MAX {
                let changed = tokio::time::timeout(QUIET, connection.lists_changed());
                if changed.await.is_err() {
                    break;
                }
            }
            let changed = connection.take_changed();
            // What it listed before still holds if it cannot say what it has now.
            if changed.tools
                && let Ok(tools) = connection.list().await
            {
                self.live.lock().tools = Arc::new(tools);
            }
            if changed.prompts || changed.resources {
                let offers = connection.list_offers().await;
                self.live.lock().offers = Arc::new(offers);
            }
        }
    }

    /// What somebody must know to get a token.
    async fn find_sign_in(
        &self,
        url: &str,
        challenge: &TokenChallenge,
    ) -> Result<TokenRequest, String> {
        let client = match &self.declaration.oauth {
            Some(oauth) => Some(oauth.client().await?),
            None => None,
        };
        let request = auth::discover(url, challenge).await?;
        match (client, &self.declaration.oauth) {
            (Some(client), Some(oauth)) => request.with_client(client, oauth.issuer.as_deref()),
            _ => Ok(request),
        }
    }

    /// Whether it is to be tried again: a token may have come while another one was tried.
    pub(super) async fn fail(&self, run: u64, error: McpError) -> bool {
        let state = match (error, &self.declaration.transport) {
            (McpError::TokenWanted(challenge), McpTransport::Http { url, .. }) => {
                match self.find_sign_in(url, &challenge).await {
                    Ok(request) => ServerState::TokenWanted(Box::new(request)),
                    Err(why) => ServerState::Failed(McpError::NoSignIn(why)),
                }
            }
            (error, _) => ServerState::Failed(error),
        };
        let wants_token = matches!(state, ServerState::TokenWanted(_));
        // It was stopped on purpose: nothing is reported.
        let is_current = self.change(run, state, LiveServer::disconnect);
        let has_newer = {
            let live = self.live.lock();
            live.token.is_some() && live.token != live.used_token
        };
        wants_token && is_current && has_newer && self.change(run, ServerState::Starting, |_| {})
    }
}
