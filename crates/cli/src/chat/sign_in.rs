//! Signing in to MCP servers from a chat: a page is shown, the token that comes of it is brought to the host, and is renewed while
//! the chat is open (MC-14).
//!
//! Promises: a page is shown, never opened. Tokens are in memory alone, and go to the host and nowhere else. A token that the server
//! refuses as soon as it has it is not renewed over and over: somebody is asked. A renewal that fails on the way is tried again, with
//! longer and longer pauses; somebody is asked only if the authorisation server says that it is over.
//! Must not know: terminals, how a code becomes a token.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use client::Live;
use client::chat::{OpenChat, WantedToken};
use client::token::bring_token;
use host::sign_in::{
    OAuthClient, RedirectedAddresses, RenewalError, SignInWanted, TokenGrant, TokenRenewal,
    begin_sign_in,
};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Events that may wait; each comes of a sign-in that somebody began.
const EVENTS_MAX: usize = 16;
/// A token that is not taken this soon after it was brought is not renewed.
const RENEWAL_PAUSE: Duration = Duration::from_secs(10);
/// The pause after the first renewal that failed on the way; each further one is twice as long, up to the longest.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
const RETRY_PAUSE_MAX: Duration = Duration::from_mins(5);
/// How long before its end a token is renewed, at most.
const MARGIN_S_MAX: u64 = 60;

/// How a sign-in went on.
#[derive(Debug)]
pub(crate) enum SignInEvent {
    /// Somebody has to visit this page.
    Page {
        name: String,
        host: String,
        url: String,
        returned: RedirectedAddresses,
    },
    Done {
        name: String,
    },
    Failed {
        name: String,
        why: String,
    },
    /// A renewal failed on the way; it is tried again.
    Delayed {
        name: String,
        why: String,
    },
}

impl SignInEvent {
    /// In words, where lines are printed one after the other. Names and reasons are those of servers: not safe to print as they are.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Page { name, host, url, .. } => format!("Sign in to {name} at {host}:\n{url}"),
            Self::Done { name } => format!("Signed in to {name}"),
            Self::Failed { name, why } => format!("Not signed in to {name}: {why}"),
            Self::Delayed { name, why } => {
                format!("The token of {name} could not be renewed yet, which is tried again: {why}")
            }
        }
    }
}

/// The sign-ins of a chat.
#[derive(Debug)]
pub(crate) struct SignIns {
    events: mpsc::Sender<SignInEvent>,
    received: mpsc::Receiver<SignInEvent>,
    /// By resource.
    kept: HashMap<String, RunningSignIn>,
    /// Where an address of the newest page is brought.
    returned: Option<RedirectedAddresses>,
}

#[derive(Debug)]
struct RunningSignIn {
    task: AbortHandle,
    renew: mpsc::Sender<()>,
    /// The server wanted a token when it was last looked at.
    was_wanted: bool,
}

impl Drop for RunningSignIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SignIns {
    pub(crate) fn new() -> Self {
        let (events, received) = mpsc::channel(EVENTS_MAX);
        Self { events, received, kept: HashMap::new(), returned: None }
    }

    /// The next event. May be dropped and called again: nothing is lost.
    pub(crate) async fn next(&mut self) -> SignInEvent {
        match self.received.recv().await {
            Some(event) => event,
            // Only without a sender, and one is here.
            None => std::future::pending().await,
        }
    }

    /// Begins to sign in; a page that is open for the same resource is of no use any more.
    pub(crate) fn begin(&mut self, live: &Live, name: &str, wanted: &WantedToken) {
        let (renew, wanted_again) = mpsc::channel(1);
        let sign_in = SignInTask {
            live: live.clone(),
            name: name.to_owned(),
            resource: wanted.resource.clone(),
            events: self.events.clone(),
        };
        let wanted = to_wanted(wanted, live.is_host_here());
        let resource = wanted.resource.clone();
        let task = tokio::spawn(async move {
            if let Some(grant) = sign_in.get_token(&wanted).await {
                sign_in.keep_token(grant, wanted_again).await;
            }
        });
        let kept = RunningSignIn { task: task.abort_handle(), renew, was_wanted: true };
        self.kept.insert(resource, kept);
    }

    /// What `/sign-in` was given: a server, nothing, or the address that a browser elsewhere was sent to. What to say, if anything.
    pub(crate) async fn enter(&mut self, chat: &OpenChat, typed: &str) -> Result<String, String> {
        if typed.starts_with("http://") || typed.starts_with("https://") {
            return self.bring_address(typed).await;
        }
        let mut wanting = chat.wanted_tokens();
        if !typed.is_empty() {
            wanting.retain(|(name, _)| name == typed);
        }
        match wanting.as_slice() {
            [(name, wanted)] => {
                self.begin(chat.live(), name, wanted);
                Ok(format!("Asking how to sign in to {name} …"))
            }
            [] if typed.is_empty() => Err("no MCP server of this session wants a token".to_owned()),
            [] => {
                Err(format!("no MCP server of this session that is called {typed} wants a token"))
            }
            several => {
                let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
                Err(format!("/sign-in needs one of: {}", names.join(", ")))
            }
        }
    }

    async fn bring_address(&mut self, address: &str) -> Result<String, String> {
        let nobody = || "no sign-in waits for an address; /sign-in begins one".to_owned();
        let returned = self.returned.as_ref().ok_or_else(nobody)?;
        returned.send(address.to_owned()).await.map_err(|_| nobody())?;
        Ok("Looking at that address …".to_owned())
    }

    /// Looks whether a token that was got here is wanted anew, and renews it.
    pub(crate) fn renew_wanted(&mut self, chat: &OpenChat) {
        if self.kept.is_empty() {
            return; // nobody signed in here
        }
        let wanting = chat.wanted_tokens();
        for (resource, kept) in &mut self.kept {
            let mut wanting = wanting.iter();
            let wanted = wanting.find(|(_, wanted)| wanted.resource == *resource);
            if let Some((_, wanted)) = wanted
                && wanted.is_renewable
                && !kept.was_wanted
            {
                // Full: it is about to renew. Closed: there is nothing to renew with, and somebody is asked.
                let _ = kept.renew.try_send(());
            }
            kept.was_wanted = wanted.is_some();
        }
    }

    /// Takes note of an event before it is shown.
    pub(crate) fn take(&mut self, event: &SignInEvent) {
        match event {
            SignInEvent::Page { returned, .. } => self.returned = Some(returned.clone()),
            SignInEvent::Done { .. } | SignInEvent::Failed { .. } => self.returned = None,
            SignInEvent::Delayed { .. } => {} // a page that is open is of another sign-in
        }
    }
}

fn to_wanted(wanted: &WantedToken, is_host_here: bool) -> SignInWanted {
    let client =
        wanted.client_id.clone().map(|id| OAuthClient { id, secret: wanted.client_secret.clone() });
    SignInWanted {
        resource: wanted.resource.clone(),
        authorization_servers: wanted.authorization_servers.clone(),
        scopes: wanted.scopes.clone(),
        client,
        is_host_here,
    }
}

/// One sign-in, in the background.
struct SignInTask {
    live: Live,
    name: String,
    resource: String,
    events: mpsc::Sender<SignInEvent>,
}

impl SignInTask {
    async fn tell(&self, event: SignInEvent) {
        // The user has left this sign-in meanwhile: nothing is shown.
        let _ = self.events.send(event).await;
    }

    async fn fail(&self, why: String) {
        let name = self.name.clone();
        self.tell(SignInEvent::Failed { name, why }).await;
    }

    /// The first token.
    async fn get_token(&self, wanted: &SignInWanted) -> Option<TokenGrant> {
        let signing_in = async {
            let page = begin_sign_in(wanted).await?;
            self.tell(SignInEvent::Page {
                name: self.name.clone(),
                host: page.host().to_owned(),
                url: page.url().to_owned(),
                returned: page.returned_addresses(),
            })
            .await;
            page.finish().await
        };
        match signing_in.await {
            Ok(grant) => {
                if self.bring(&grant).await {
                    let name = self.name.clone();
                    self.tell(SignInEvent::Done { name }).await;
                }
                Some(grant)
            }
            Err(error) => {
                self.fail(error.to_string()).await;
                None
            }
        }
    }

    async fn bring(&self, grant: &TokenGrant) -> bool {
        let brought = bring_token(&self.live, &self.resource, &grant.token, grant.expires_in_s);
        match brought.await {
            Ok(()) => true,
            Err(error) => {
                self.fail(format!("the host refused the token: {error}")).await;
                false
            }
        }
    }

    /// Renews the token before it ends, and when it is wanted earlier.
    async fn keep_token(&self, grant: TokenGrant, mut wanted_again: mpsc::Receiver<()>) {
        let mut newest = grant;
        let mut got_at = Instant::now();
        while let Some(renewal) = newest.renewal.take() {
            let due = newest.expires_in_s.map(time_before_end);
            loop {
                let is_wanted = tokio::select! {
                    () = wait(due, got_at) => true,
                    wanted = wanted_again.recv() => match wanted {
                        Some(()) => got_at.elapsed() >= RENEWAL_PAUSE,
                        None => return, // another sign-in took its place
                    },
                };
                if is_wanted {
                    break;
                }
            }
            match self.renew(&renewal, &mut wanted_again).await {
                Some(grant) => (newest, got_at) = (grant, Instant::now()),
                None => return,
            }
        }
    }

    /// Another token, however long it takes to get it; none if somebody has to sign in again.
    async fn renew(
        &self,
        renewal: &TokenRenewal,
        wanted_again: &mut mpsc::Receiver<()>,
    ) -> Option<TokenGrant> {
        let mut pause = RETRY_PAUSE;
        loop {
            let why = match renewal.renew().await {
                Ok(grant) => {
                    self.bring(&grant).await;
                    return Some(grant);
                }
                Err(RenewalError::Ended(why)) => {
                    self.fail(format!("the token could not be renewed: {why}")).await;
                    return None;
                }
                Err(RenewalError::Later(why)) => why,
            };
            // Once for each row of faults: what is tried again is no news.
            if pause == RETRY_PAUSE {
                let name = self.name.clone();
                self.tell(SignInEvent::Delayed { name, why }).await;
            }
            tokio::time::sleep(pause).await;
            // It is tried now in any case.
            let _ = wanted_again.try_recv();
            pause = next_pause(pause);
        }
    }
}

fn next_pause(pause: Duration) -> Duration {
    (pause * 2).min(RETRY_PAUSE_MAX)
}

/// Waits until a token that was got at a moment is to be renewed; for ever if it does not end.
async fn wait(due: Option<Duration>, got_at: Instant) {
    match due {
        Some(due) => tokio::time::sleep_until((got_at + due).into()).await,
        None => std::future::pending().await,
    }
}

fn time_before_end(seconds: u64) -> Duration {
    let margin = MARGIN_S_MAX.min(seconds / 4);
    // A server that gives tokens for no time at all is not asked without a pause.
    Duration::from_secs((seconds - margin).clamp(1, u64::from(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_on_the_way_is_tried_less_and_less_often() {
        let mut pause = RETRY_PAUSE;
        let mut longest = pause;
        for _ in 0..20 {
            let next = next_pause(pause);
            assert!(next > pause || next == RETRY_PAUSE_MAX);
            (pause, longest) = (next, longest.max(next));
        }
        assert_eq!(longest, RETRY_PAUSE_MAX);
    }

    #[test]
    fn tokens_are_renewed_before_they_end() {
        for (seconds, after) in [(3_600, 3_540), (8, 6), (1, 1), (0, 1)] {
            assert_eq!(time_before_end(seconds), Duration::from_secs(after));
        }
    }
}
