//! Signing in to a server for somebody who sits at this machine: the authorisation server is found and asked for a code by a
//! page, the code comes back over loopback, or to an address that whoever asked can receive, and is redeemed for a token (RFC 6749
//! with 7591, 7636, 8252, 8414, 8707, 9207).
//!
//! Promises: the page is shown by whoever asked for it, never opened here. A code counts only with the state that was made for it,
//! and is redeemed with a verifier that nobody else knows. Nothing is sent but over https or on this machine, to addresses that the
//! server may make this machine ask. The secret of a registered client goes to the one authorisation server it is for. Tokens are in
//! no error and no `Debug`, and nothing is stored.
//! Must not know: who holds a token, how a page is shown.

mod authorization_server;
mod redirect;
mod returned;
mod token_request;

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use reqwest::Url;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

pub use self::token_request::RenewalError;
pub use super::oauth_client::OAuthClient;

use self::authorization_server::{AuthorizationServer, OFFLINE_ACCESS};
use self::redirect::Redirect;
use self::returned::{ExpectedRedirect, FOREIGN, RedirectAnswer};
use self::token_request::TokenEndpoint;
use super::allowed_addresses::AllowedAddresses;

/// How long a person may take at the page.
const PAGE_MAX: Duration = Duration::from_mins(10);

/// What somebody must know to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInWanted {
    /// What the token is for.
    pub resource: String,
    /// Those that the resource names; its own origin without any.
    pub authorization_servers: Vec<String>,
    pub scopes: Vec<String>,
    /// The client that the authorisation server knows; one is registered without it.
    pub client: Option<OAuthClient>,
    /// Whether the host that says all this is this machine. One elsewhere must not have this machine ask itself or its own network.
    pub is_host_here: bool,
}

/// Why nobody is signed in, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    #[error("its resource {0} is not an address that tokens are sent to")]
    Resource(String),
    #[error("its authorisation server {0}")]
    Server(String),
    #[error(
        "its authorisation server registers no clients; register one there and write \
         `oauth = {{ client_id = \"..\" }}` into the server's declaration"
    )]
    NoRegistration,
    #[error("no port of this machine can be listened on for the answer: {0}")]
    Port(String),
    /// With what went wrong last on the way back from the page.
    #[error("the page was not finished within {} minutes{}", PAGE_MAX.as_secs() / 60, describe_fault(.last_fault.as_deref()))]
    TooLate { last_fault: Option<String> },
    #[error(
        "its client has a secret, which is for one authorisation server alone, and {0} are named; this host needs an `issuer` in \
         the `oauth` of the server’s declaration"
    )]
    ManyIssuers(usize),
    #[error("the sign-in was refused: {0}")]
    Refused(String),
}

fn describe_fault(fault: Option<&str>) -> String {
    fault.map_or_else(String::new, |fault| format!("; {fault}"))
}

/// A page that somebody has to visit, and the way back from it to a port of this machine.
#[derive(Debug)]
pub struct SignInPage {
    redirect: Redirect,
    pending: PendingSignIn,
}

/// A page that somebody has to visit, whose answer is brought by who asked for it.
#[derive(Debug)]
pub struct PendingSignIn {
    /// What to open.
    pub url: String,
    /// Who is visited, for people to check.
    pub host: String,
    redirect_uri: String,
    expected: ExpectedRedirect,
    endpoint: TokenEndpoint,
    verifier: String,
}

/// A token, and how another is got when it ends.
pub struct TokenGrant {
    pub token: String,
    pub expires_in_s: Option<u64>,
    pub renewal: Option<TokenRenewal>,
}

impl fmt::Debug for TokenGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenGrant")
            .field("expires_in_s", &self.expires_in_s)
            .finish_non_exhaustive()
    }
}

/// Another token without another page.
pub struct TokenRenewal {
    endpoint: TokenEndpoint,
    refresh_token: String,
}

impl fmt::Debug for TokenRenewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRenewal").finish_non_exhaustive()
    }
}

/// Where an address goes that somebody copied from a browser on another machine.
pub type RedirectedAddresses = mpsc::Sender<String>;

/// Finds the authorisation server of a resource and makes the page to sign in at; the answer comes to a port of this machine.
pub async fn begin_sign_in(wanted: &SignInWanted) -> Result<SignInPage, SignInError> {
    let redirect = Redirect::listen().await?;
    let pending = begin_sign_in_at(wanted, redirect.uri()).await?;
    Ok(SignInPage { redirect, pending })
}

/// The same, with the answer sent to an address of whoever asks.
pub async fn begin_sign_in_at(
    wanted: &SignInWanted,
    redirect_uri: &str,
) -> Result<PendingSignIn, SignInError> {
    let resource = Url::parse(&wanted.resource).ok().filter(super::auth::is_safe);
    let resource = resource.ok_or_else(|| SignInError::Resource(wanted.resource.clone()))?;
    let has_secret = wanted.client.as_ref().is_some_and(|it| it.secret.is_some());
    let named = &wanted.authorization_servers;
    if has_secret && named.len() != 1 {
        return Err(SignInError::ManyIssuers(named.len()));
    }
    let allowed =
        if wanted.is_host_here { AllowedAddresses::Own } else { AllowedAddresses::Public };
    let server = AuthorizationServer::find(&resource, named, allowed).await?;
    let scopes = scopes_to_ask_for(&server, &wanted.scopes);
    let client = match &wanted.client {
        Some(client) => client.clone(),
        None => server.register(redirect_uri, &scopes).await?,
    };
    let (state, verifier) = (random()?, random()?);
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let mut page = server.authorization_endpoint.clone();
    {
        let mut query = page.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &wanted.resource);
        if scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
            // Without both there is no refresh token (OpenID Connect Core, 11).
            query.append_pair("prompt", "consent");
        }
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.join(" "));
        }
    }
    let host = page.host_str().unwrap_or_default().to_owned();
    Ok(PendingSignIn {
        url: page.into(),
        host,
        redirect_uri: redirect_uri.to_owned(),
        expected: ExpectedRedirect::new(&state, &server),
        endpoint: TokenEndpoint::new(&server, client, wanted.resource.clone()),
        verifier,
    })
}

/// Those that are wanted, and that tokens can be renewed where the server knows of that. Where none is wanted the server gives its own:
/// naming one would be asking for that one alone.
fn scopes_to_ask_for(server: &AuthorizationServer, wanted: &[String]) -> Vec<String> {
    let mut scopes = wanted.to_vec();
    let is_named = scopes.iter().any(|scope| scope == OFFLINE_ACCESS);
    if !scopes.is_empty() && !is_named && server.offers_offline_access() {
        scopes.push(OFFLINE_ACCESS.to_owned());
    }
    scopes
}

impl SignInPage {
    /// What to open.
    pub fn url(&self) -> &str {
        &self.pending.url
    }

    /// Who is visited, for people to check.
    pub fn host(&self) -> &str {
        &self.pending.host
    }

    /// Where the address goes that a browser on another machine was sent to and could not open.
    pub fn returned_addresses(&self) -> RedirectedAddresses {
        self.redirect.returned_addresses()
    }

    /// Waits until somebody has been at the page, and gets the token.
    pub async fn finish(self) -> Result<TokenGrant, SignInError> {
        let Self { redirect, pending } = self;
        let PendingSignIn { redirect_uri, expected, endpoint, verifier, .. } = pending;
        let code = redirect.code(expected).await?;
        endpoint.redeem(&code, &verifier, &redirect_uri).await
    }
}

impl PendingSignIn {
    /// Whether an address that a browser was sent to is the answer to this page.
    pub fn is_answered_by(&self, address: &str) -> bool {
        self.expected.read(address) != RedirectAnswer::Foreign
    }

    /// Gets the token for the address that the browser was sent to.
    pub async fn finish(self, address: &str) -> Result<TokenGrant, SignInError> {
        let code = match self.expected.read(address) {
            RedirectAnswer::Code(code) => code,
            RedirectAnswer::Refused(why) => return Err(SignInError::Refused(why)),
            RedirectAnswer::Foreign => return Err(SignInError::Refused(FOREIGN.to_owned())),
        };
        self.endpoint.redeem(&code, &self.verifier, &self.redirect_uri).await
    }
}

impl TokenRenewal {
    /// Another token. What it is renewed with is kept until then: a fault on the way says nothing of it.
    pub async fn renew(&self) -> Result<TokenGrant, RenewalError> {
        self.endpoint.clone().renew(&self.refresh_token).await
    }
}

/// 32 random bytes in letters that need no escapes.
fn random() -> Result<String, SignInError> {
    let mut bytes = [0; 32];
    let drawn = getrandom::fill(&mut bytes);
    drawn.map_err(|error| SignInError::Port(format!("no random numbers: {error}")))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
