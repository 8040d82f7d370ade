//! A model server: its address, its credentials, how long to wait for it.
//!
//! Promises: what can be wrong about an address is reported when it is configured, not when it is used; of headers and queries
//! people see the values of those that are known to be no secret, and of all others the names alone.
//! Must not know: what is asked.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use tokio::sync::OnceCell;

use super::key::{ApiKey, Secret};
use super::{Api, ProviderError, ProviderErrorKind, anthropic, tls};
use crate::task;

/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server may be silent before its answer begins: a local one may load a model and read a long prompt.
const FIRST_EVENT: Duration = Duration::from_secs(600);
/// How long a server may be silent in mid-answer. Several local servers hold a tool call back until it is complete, so
/// silence of minutes is no fault; a dead connection is found by keep-alive probes well before.
const IDLE: Duration = Duration::from_secs(300);
/// How often a silence of the server is reported.
const SILENCE_SHOWN: Duration = Duration::from_secs(10);
/// The pause after the first failed try.
const BACK_OFF: Duration = Duration::from_secs(1);

/// After how long a silent connection is probed, how often, and when it counts as dead.
const PROBE_AFTER: Duration = Duration::from_secs(20);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES_MAX: u32 = 4;

/// Stands where a key would.
const REMOVED: &str = "removed";

/// How long to wait for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    pub first_event: Duration,
    pub idle: Duration,
    pub back_off: Duration,
    pub silence_shown: Duration,
}

impl Timeouts {
    /// Gives up on a server that is silent for so long, whether it has begun to answer or not.
    #[must_use]
    pub fn with_stall(self, stall: Duration) -> Self {
        Self { first_event: stall, idle: stall, ..self }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: CONNECT,
            first_event: FIRST_EVENT,
            idle: IDLE,
            back_off: BACK_OFF,
            silence_shown: SILENCE_SHOWN,
        }
    }
}

/// A model server. Clones share their connections.
#[derive(Clone)]
pub struct ModelEndpoint {
    base_url: Url,
    api: Api,
    key: Option<ApiKey>,
    /// The header that carries the key, if not the usual one.
    key_header: Option<HeaderName>,
    headers: HeaderMap,
    timeouts: Timeouts,
    client: Arc<OnceCell<Client>>,
}

/// What is wrong with the configuration of a model server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelEndpointError {
    #[error("the base URL is not a valid URL; include http:// or https:// ({0})")]
    Url(String),
    #[error("the base URL must begin with http:// or https://")]
    Scheme,
    #[error("the base URL must not hold a user name or password: use a key or a header")]
    Credentials,
    #[error(
        "the base URL must not hold the query parameter `{0}`, because addresses are shown: put it into `query = {{ .. }}` of \
         the model, and a key into `key_env`, `key_file` or `key_command`"
    )]
    Query(String),
    #[error("the key would go unencrypted to {0}; use https://")]
    Unencrypted(String),
    #[error("`{0}` is not a valid header name")]
    HeaderName(String),
    #[error("the value of the header `{0}` cannot be sent")]
    HeaderValue(String),
}

impl ModelEndpoint {
    /// A server by its base URL, e.g. `http://localhost:11434/v1`. A query that may be shown is preserved, a fragment is not.
    pub fn new(base_url: &str) -> Result<Self, ModelEndpointError> {
        let mut url = Url::parse(base_url.trim())
            .map_err(|error| ModelEndpointError::Url(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ModelEndpointError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ModelEndpointError::Credentials);
        }
        if let Some((name, _)) = url.query_pairs().find(|(name, _)| !is_shown(name)) {
            let name = name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_SHOWN).collect();
            return Err(ModelEndpointError::Query(name));
        }
        url.set_fragment(None);
        Ok(Self {
            base_url: url,
            api: Api::default(),
            key: None,
            key_header: None,
            headers: HeaderMap::new(),
            timeouts: Timeouts::default(),
            client: Arc::default(),
        })
    }

    pub fn with_key(self, key: ApiKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Speaks this wire format.
    #[must_use]
    pub fn with_api(self, api: Api) -> Self {
        Self { api, ..self }
    }

    /// Sends the key in this header: as it is, or as a bearer's if it is `authorization`.
    pub fn with_key_header(self, name: &str) -> Result<Self, ModelEndpointError> {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ModelEndpointError::HeaderName(name.to_owned()))?;
        Ok(Self { key_header: Some(header), ..self })
    }

    /// Query parameters of every request.
    #[must_use]
    pub fn with_query<'a>(mut self, query: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut query = query.into_iter().peekable();
        if query.peek().is_some() {
            self.base_url.query_pairs_mut().extend_pairs(query);
        }
        self
    }

    /// Sent with every request; replaces one that is sent anyway.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, ModelEndpointError> {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ModelEndpointError::HeaderName(name.to_owned()))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| ModelEndpointError::HeaderValue(name.to_owned()))?;
        value.set_sensitive(!is_shown(header.as_str()));
        self.headers.insert(header, value);
        Ok(self)
    }

    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, client: Arc::default(), ..self }
    }

    pub fn api(&self) -> Api {
        self.api
    }

    pub fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref()
    }

    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Host and port, for people: `localhost:11434`.
    pub fn authority(&self) -> String {
        match self.base_url.port() {
            Some(port) => format!("{}:{port}", self.host()),
            None => self.host().to_owned(),
        }
    }

    pub(crate) fn host(&self) -> &str {
        self.base_url.host_str().unwrap_or_default()
    }

    pub(super) fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base_url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// The address of what lies beside the API: without the version that its addresses begin with.
    pub(super) fn url_beside(&self, path: &[&str]) -> Url {
        let mut url = self.base_url.clone();
        url.set_query(None);
        let last = url.path_segments().and_then(|mut it| it.rfind(|word| !word.is_empty()));
        let has_version = last.is_some_and(is_version);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            if has_version {
                segments.pop();
            }
            segments.extend(path);
        }
        url
    }

    /// Whether its questions are those of Claude on Vertex.
    pub(super) fn is_vertex(&self) -> bool {
        let segments = self.base_url.path_segments();
        self.api == Api::Anthropic && segments.is_some_and(anthropic::vertex::serves)
    }

    /// Whether the server runs on this machine.
    pub(super) fn is_local(&self) -> bool {
        is_this_machine(self.host())
    }

    /// Refuses a server on another machine that would get the key, or whatever else may be one, without encryption.
    pub fn check_encrypted(&self) -> Result<(), ModelEndpointError> {
        let has_secret = self.key.is_some()
            || self.headers.values().any(HeaderValue::is_sensitive)
            || self.base_url.query_pairs().any(|(name, _)| !is_shown(&name));
        if self.base_url.scheme() == "https" || self.is_local() || !has_secret {
            Ok(())
        } else {
            Err(ModelEndpointError::Unencrypted(self.authority()))
        }
    }

    /// Where a question goes, for people to read: only values of the query that are known to be no secret are in it.
    pub(super) fn describe_url(&self, path: &[&str]) -> String {
        let mut url = self.url(path);
        let pairs = url.query_pairs();
        let shown = pairs.map(|(name, value)| {
            if is_shown(&name) {
                (name.into_owned(), value.into_owned())
            } else {
                (name.into_owned(), REMOVED.to_owned())
            }
        });
        let own =
            self.api.query().iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let shown: Vec<(String, String)> = shown.chain(own).collect();
        url.set_query(None);
        if !shown.is_empty() {
            url.query_pairs_mut().extend_pairs(shown);
        }
        url.to_string()
    }

    /// The headers that this server's questions have, for people to read: no key is in them.
    pub(super) fn describe_headers(&self) -> Vec<(String, String)> {
        let mut shown = Vec::new();
        for (name, value) in self.api.headers() {
            shown.push(((*name).to_owned(), (*value).to_owned()));
        }
        if self.key.is_some() {
            let name =
                self.key_header.as_ref().map(HeaderName::as_str).unwrap_or(self.api.key_header());
            shown.push((name.to_owned(), REMOVED.to_owned()));
        }
        for (name, value) in &self.headers {
            shown.retain(|(known, _)| known != name.as_str());
            let value = if value.is_sensitive() {
                REMOVED.to_owned()
            } else {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            };
            shown.push((name.as_str().to_owned(), value));
        }
        shown
    }

    /// What a request carries besides its own headers, and what of it must never be seen.
    pub(super) async fn credentials(&self) -> Result<Credentials, ProviderError> {
        let mut headers = HeaderMap::new();
        let mut secrets = Vec::new();
        for (name, value) in self.api.headers() {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        if let Some(key) = &self.key {
            let secret = key.read().await?;
            let usual = || HeaderName::from_static(self.api.key_header());
            let header = self.key_header.clone().unwrap_or_else(usual);
            let value = if header == reqwest::header::AUTHORIZATION {
                secret.authorization()?
            } else {
                secret.plain_value()?
            };
            headers.insert(header, value);
            secrets.push(secret);
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
            if may_be_key(name.as_str(), value.len()) {
                secrets.extend(Secret::of_header(value));
            }
        }
        let query = self.base_url.query_pairs();
        let keys = query.filter(|(name, value)| may_be_key(name, value.len()));
        secrets.extend(keys.map(|(_, value)| Secret::of_query(&value)));
        Ok(Credentials { headers, secrets })
    }

    /// The server did not accept the key. Whether another may be read by now.
    pub(super) async fn forget_key(&self) -> bool {
        match &self.key {
            Some(key) => key.forget().await,
            None => false,
        }
    }

    /// The client is made at the first use: a server that is never asked costs nothing.
    pub(super) async fn client(&self) -> Result<&Client, ProviderError> {
        self.client.get_or_try_init(|| self.new_client()).await
    }

    async fn new_client(&self) -> Result<Client, ProviderError> {
        let unusable = |error: String| {
            let message = format!("encrypted connections cannot be set up: {error}");
            ProviderError::new(ProviderErrorKind::Unavailable, message)
        };
        let config = match self.base_url.scheme() {
            "https" => task::try_blocking(tls::with_system_roots)
                .await
                .map_err(|error| unusable(error.to_string()))?,
            _ => tls::without_roots(),
        };
        let mut builder = Client::builder()
            .tls_backend_preconfigured(config.map_err(|error| unusable(error.to_string()))?)
            .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
            // A redirect would be followed with the key.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.timeouts.connect)
            .tcp_keepalive(PROBE_AFTER)
            .tcp_keepalive_interval(PROBE_EVERY)
            .tcp_keepalive_retries(PROBES_MAX);
        if is_this_machine(self.host()) {
            // A proxy's "localhost" is another machine.
            builder = builder.no_proxy();
        }
        builder.build().map_err(|error| unusable(error.without_url().to_string()))
    }
}

pub(super) struct Credentials {
    pub headers: HeaderMap,
    pub secrets: Vec<Secret>,
}

impl fmt::Debug for ModelEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the query nor the values of headers: either may hold a key.
        f.debug_struct("Endpoint")
            .field("authority", &self.authority())
            .field("path", &self.base_url.path())
            .field("key", &self.key)
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Headers and query parameters whose values people may see. Whatever else somebody configures may be a key, by any name.
const SHOWN: &[&str] = &[
    "accept",
    "alt",
    "anthropic-beta",
    "anthropic-version",
    "api-version",
    "content-type",
    "http-referer",
    "openai-beta",
    "user-agent",
    "version",
    "x-title",
];

/// How much of the name of a parameter that is refused is repeated.
const NAME_CHARS_SHOWN: usize = 64;

fn is_shown(name: &str) -> bool {
    SHOWN.iter().any(|shown| name.eq_ignore_ascii_case(shown))
}

/// Whether a value is hidden in what a server complains of: one of a telling name is, and every other that is as long as keys
/// are. Short words such as `true` would be hidden in sentences that have nothing to do with them.
fn may_be_key(name: &str, length: usize) -> bool {
    const WORDS: &[&str] = &["auth", "key", "token", "secret", "cookie", "pass", "sig"];
    const KEY_BYTES_MIN: usize = 8;
    let lower = name.to_ascii_lowercase();
    let is_telling = WORDS.iter().any(|word| lower.contains(word));
    !is_shown(name) && (is_telling || length >= KEY_BYTES_MIN)
}

/// `v1`, `v1beta`: what the addresses of an API begin with.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').unwrap_or("").starts_with(|c: char| c.is_ascii_digit())
}

/// An address with this version at the end of its path, unless it has one there. What is no address stays as it is: it is
/// refused when it is used.
pub(crate) fn with_version(address: &str, version: &str) -> String {
    let Ok(mut url) = Url::parse(address) else { return address.to_owned() };
    let last = url.path_segments().and_then(|mut it| it.rfind(|word| !word.is_empty()));
    if !last.is_some_and(is_version)
        && let Ok(mut segments) = url.path_segments_mut()
    {
        segments.pop_if_empty().push(version);
    }
    url.into()
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost"
        || host.ends_with(".localhost")
        || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
