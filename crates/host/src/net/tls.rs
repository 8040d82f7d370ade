//! TLS in front of everything else: a certificate and its key from files, read again when they change (ADR 0081).
//!
//! Promises: a certificate that cannot be used keeps a host from starting, and keeps a running one at the one before; a peer has
//! `handshake_timeout_ms` for its handshake; nothing but TLS is answered to other machines.
//! Must not know: HTTP, WebSocket, who is admitted.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::stall::StallGuard;
use crate::task;

/// The first byte of every TLS connection: a record of the handshake. No HTTP request begins with it.
const HANDSHAKE_RECORD: u8 = 22;
/// A peer that takes nothing for so long is given up. Longer than any limit of the host's own writers, which come first.
const CARRIED_STALL: Duration = Duration::from_secs(300);
/// How long a peer may still send after the host's last byte.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Why a certificate cannot be used; the operator reads it.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("tls_cert: {path}: {message}")]
    Certificate { path: PathBuf, message: String },
    #[error("tls_key: {path}: {message}")]
    Key { path: PathBuf, message: String },
    #[error(
        "the private key in {key} (tls_key) does not belong to the certificate in {cert} (tls_cert); \
         name the key that this certificate was made with, and where a file holds several certificates, put yours first"
    )]
    OtherKey { cert: PathBuf, key: PathBuf },
    #[error("tls_cert and tls_key cannot be used: {0}")]
    Pair(rustls::Error),
}

/// A certificate and its key, and what was last read of them.
pub struct TlsIdentity {
    cert: PathBuf,
    key: PathBuf,
    current: Mutex<LoadedIdentity>,
}

struct LoadedIdentity {
    stamps: FileStamps,
    config: Arc<ServerConfig>,
}

/// When both files were last written, and how long they are: what changes when they do.
type FileStamps = [Option<(SystemTime, u64)>; 2];

impl TlsIdentity {
    /// Reads both files.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let stamps = stamps_of(cert, key);
        let config = read_config(cert, key)?;
        Ok(Self {
            cert: cert.to_owned(),
            key: key.to_owned(),
            current: Mutex::new(LoadedIdentity { stamps, config }),
        })
    }

    /// What new connections are given. Looks at the times of two files, and reads them if they changed.
    fn config(&self) -> Arc<ServerConfig> {
        let stamps = stamps_of(&self.cert, &self.key);
        let mut current = self.current.lock();
        if current.stamps != stamps {
            // Noted in any case: a file that cannot be used is reported once.
            current.stamps = stamps;
            match read_config(&self.cert, &self.key) {
                Ok(config) => {
                    tracing::info!("the TLS certificate changed and is in use");
                    current.config = config;
                }
                Err(error) => {
                    let reason = error.reason();
                    tracing::warn!(
                        reason,
                        "the TLS certificate changed and cannot be used; the one before stays in use"
                    );
                }
            }
        }
        Arc::clone(&current.config)
    }

    /// The inner side of a connection: bytes in the clear, over a socket of this process. A task of its own carries them.
    pub(super) async fn accept(&self, socket: TcpStream) -> io::Result<UnixStream> {
        spawn_decrypting_relay(TlsAcceptor::from(self.config()).accept(socket).await?)
    }
}

/// The inner side of an encrypted connection.
pub(crate) fn spawn_decrypting_relay(outer: TlsStream<TcpStream>) -> io::Result<UnixStream> {
    let (inner, carried) = UnixStream::pair()?;
    task::spawn(carry(outer, carried));
    Ok(inner)
}

/// Carries bytes until the host's side has ended, however silent the peer is: the host bounds how long it waits for one, and
/// with its side goes the connection. Errors end a direction; there is nobody to tell.
async fn carry(outer: TlsStream<TcpStream>, carried: UnixStream) {
    let (mut from_peer, to_peer) = tokio::io::split(outer);
    let mut to_peer = StallGuard::new(to_peer, CARRIED_STALL);
    let (mut from_host, mut to_host) = carried.into_split();
    let inward = async {
        let _ = tokio::io::copy(&mut from_peer, &mut to_host).await;
        let _ = to_host.shutdown().await;
    };
    let outward = async {
        let _ = tokio::io::copy(&mut from_host, &mut to_peer).await;
        let _ = to_peer.shutdown().await;
    };
    tokio::pin!(inward, outward);
    tokio::select! {
        () = &mut outward => {
            // What the peer still sends is read for a moment, so that it sees a close and not a reset.
            let _ = tokio::time::timeout(CLOSE_WAIT, inward).await;
        }
        () = &mut inward => outward.await,
    }
}

/// What the other side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionSecurity {
    Tls,
    /// Programs on this machine need no encryption, and no name that a certificate is for.
    PlainFromHere,
    PlainFromElsewhere,
}

/// Looks at the first byte without taking it.
pub(super) async fn listen_to(
    socket: &TcpStream,
    peer: SocketAddr,
) -> io::Result<ConnectionSecurity> {
    let mut first = [0];
    if socket.peek(&mut first).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if first == [HANDSHAKE_RECORD] {
        return Ok(ConnectionSecurity::Tls);
    }
    let is_here = peer.ip().is_loopback() || socket.local_addr()?.ip() == peer.ip();
    Ok(if is_here {
        ConnectionSecurity::PlainFromHere
    } else {
        ConnectionSecurity::PlainFromElsewhere
    })
}

impl TlsError {
    /// The reason without paths, which do not belong into a log.
    fn reason(&self) -> String {
        match self {
            Self::Certificate { message, .. } => format!("tls_cert: {message}"),
            Self::Key { message, .. } => format!("tls_key: {message}"),
            Self::OtherKey { .. } => {
                "the private key in tls_key does not belong to the certificate in tls_cert"
                    .to_owned()
            }
            Self::Pair(error) => error.to_string(),
        }
    }
}

fn stamps_of(cert: &Path, key: &Path) -> FileStamps {
    [cert, key].map(|path| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}

fn read_config(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let bad_certificate =
        |message: String| TlsError::Certificate { path: cert.to_owned(), message };
    let bad_key = |message: String| TlsError::Key { path: key.to_owned(), message };
    let pem = fs::read(cert).map_err(|error| bad_certificate(error.to_string()))?;
    let certificates = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad_certificate(error.to_string()))?;
    if certificates.is_empty() {
        let message =
            "there is no certificate in this file; it must be PEM, your certificate first";
        return Err(bad_certificate(message.to_owned()));
    }
    let pem = fs::read(key).map_err(|error| bad_key(error.to_string()))?;
    let private_key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|error| bad_key(format!("there is no private key in this file: {error}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_single_cert(certificates, private_key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                TlsError::OtherKey { cert: cert.to_owned(), key: key.to_owned() }
            }
            other => TlsError::Pair(other),
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
