//! Where to connect to, and how a socket is opened there.
//!
//! Promises: the token goes nowhere before what the destination has to prove was proven, and into no log.
//! Must not know: what is said over a connection.

use std::fmt;

use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::ClientError;
use crate::proof::{self, ProofError};

/// Largest message taken from a host: above what a host sends at most.
const MESSAGE_IN_BYTES: usize = 64 * 1_024 * 1_024;
/// Of `ws://` URLs without one.
const DEFAULT_PORT: u16 = 80;

/// Where to connect to.
#[derive(Clone, PartialEq, Eq)]
pub struct HostTarget {
    /// `ws://HOST:PORT/`
    pub url: String,
    pub token: Option<String>,
}

/// The token stays out of logs and panics.
impl fmt::Debug for HostTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "(hidden)");
        f.debug_struct("Target").field("url", &self.url).field("token", &token).finish()
    }
}

/// Where to connect to, and what has to be shown there before the token is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    target: HostTarget,
    /// Whoever listens there must prove that it knows this (G-62).
    prove: Option<ProofSecret>,
}

#[derive(Clone, PartialEq, Eq)]
struct ProofSecret(String);

impl fmt::Debug for ProofSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Destination {
    /// An address that somebody else wrote down: who listens there now must prove that it knows `secret`.
    pub fn proven(target: HostTarget, secret: String) -> Self {
        Self { target, prove: Some(ProofSecret(secret)) }
    }

    pub fn target(&self) -> &HostTarget {
        &self.target
    }

    pub fn must_prove(&self) -> bool {
        self.prove.is_some()
    }
}

/// An address that the user named is trusted as it is.
impl From<HostTarget> for Destination {
    fn from(target: HostTarget) -> Self {
        Self { target, prove: None }
    }
}

/// Opens the socket, once who listens there has proven what it must.
pub(crate) async fn open_socket(
    destination: &Destination,
) -> Result<WebSocketStream<TcpStream>, ClientError> {
    let request = upgrade_request(&destination.target)?;
    let (stream, _) = open_stream(destination).await?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_IN_BYTES))
        .max_frame_size(Some(MESSAGE_IN_BYTES));
    let upgraded = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
    let (socket, _) =
        upgraded.map_err(|error| connect_error(destination.target.url.clone(), error))?;
    Ok(socket)
}

/// A connection over which nothing was sent but the question for the proof, and the name of the host for requests on it.
pub(crate) async fn open_stream(
    destination: &Destination,
) -> Result<(TcpStream, String), ClientError> {
    let Destination { target, prove } = destination;
    let request = upgrade_request(target)?;
    let url = || target.url.clone();
    let unreachable =
        |error: std::io::Error| ClientError::Unreachable { url: url(), why: error.to_string() };
    let no_host = || ClientError::BadUrl { url: url(), why: "it names no host".to_owned() };
    let authority = request.uri().authority().ok_or_else(no_host)?;
    // An IPv6 address is in brackets in a URL, and nowhere else.
    let host = authority.host().trim_matches(['[', ']']);
    let port = authority.port_u16().unwrap_or(DEFAULT_PORT);
    let mut stream = TcpStream::connect((host, port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    if let Some(ProofSecret(secret)) = prove {
        proof::demand(&mut stream, request.uri(), secret).await.map_err(
            |unproven| match unproven {
                ProofError::Failed(why) => ClientError::NotProven { url: url(), why },
                ProofError::Busy => ClientError::Refused { url: url(), status: proof::BUSY },
            },
        )?;
    }
    Ok((stream, authority.as_str().to_owned()))
}

fn upgrade_request(
    target: &HostTarget,
) -> Result<tungstenite::handshake::client::Request, ClientError> {
    let bad = |why: String| ClientError::BadUrl { url: target.url.clone(), why };
    let mut request =
        target.url.as_str().into_client_request().map_err(|error| bad(error.to_string()))?;
    if request.uri().scheme_str() != Some("ws") {
        return Err(bad("only ws:// is supported".to_owned()));
    }
    if let Some(token) = &target.token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| bad("the token contains invalid characters".to_owned()))?;
        value.set_sensitive(true);
        request.headers_mut().insert("authorization", value);
    }
    Ok(request)
}

fn connect_error(url: String, error: tungstenite::Error) -> ClientError {
    match error {
        tungstenite::Error::Http(response) => match response.status().as_u16() {
            401 => ClientError::Unauthorized { url },
            status => ClientError::Refused { url, status },
        },
        tungstenite::Error::Url(error) => ClientError::BadUrl { url, why: error.to_string() },
        other => ClientError::Unreachable { url, why: other.to_string() },
    }
}
