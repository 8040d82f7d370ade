//! Who a node is for its peers: a key and a certificate that are made when it starts, and the fingerprint that others know it by.
//!
//! Peers need no authority that vouches for them: whoever may write the table of nodes is a node, and its row has the SHA-256 of
//! its certificate (ADR 0097).
//!
//! Promises: the key never leaves this process; nothing but TLS 1.3 is spoken; a connection to a node goes on only if it holds the
//! key of the very certificate that its row names, and a peer that connects here has shown that it holds the key of the one it
//! came with.
//! Must not know: which nodes live, what is sent.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, PeerIncompatible,
    ServerConfig, SignatureScheme,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The name in every certificate. It means nothing: the fingerprint does.
const CERTIFICATE_NAME: &str = "greenroom-node";

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeFingerprint([u8; 32]);

impl NodeFingerprint {
    pub(crate) fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }

    /// As a row of the table of nodes has it; `None` if it cannot be one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for NodeFingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for NodeFingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

/// Why a node could not make its key.
#[derive(Debug, thiserror::Error)]
pub enum PeerIdentityError {
    #[error("no key could be made for connections between nodes: {0}")]
    Key(#[from] rcgen::Error),
    #[error("the key for connections between nodes cannot be used: {0}")]
    Tls(#[from] rustls::Error),
}

/// The key of this start of this process.
pub struct PeerIdentity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    fingerprint: NodeFingerprint,
    provider: Arc<CryptoProvider>,
    server: Arc<ServerConfig>,
}

impl PeerIdentity {
    /// Makes a key and a certificate for it.
    pub fn make() -> Result<Self, PeerIdentityError> {
        let key = rcgen::KeyPair::generate()?;
        let params = rcgen::CertificateParams::new(vec![CERTIFICATE_NAME.to_owned()])?;
        let certificate = params.self_signed(&key)?.der().clone();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(Arc::new(KeyHolderVerifier {
                algorithms: provider.signature_verification_algorithms,
            }))
            .with_single_cert(vec![certificate.clone()], PrivateKeyDer::from(key.clone_key()))?;
        Ok(Self {
            fingerprint: NodeFingerprint::of(&certificate),
            certificate,
            key,
            provider,
            server: Arc::new(server),
        })
    }

    /// What the table of nodes says of this one.
    pub fn fingerprint(&self) -> NodeFingerprint {
        self.fingerprint
    }

    pub(super) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// For a connection to the node with this fingerprint and to no other.
    pub(super) fn client(&self, node: NodeFingerprint) -> Result<ClientConfig, rustls::Error> {
        let key = PrivateKeyDer::from(self.key.clone_key());
        ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(SingleNodeVerifier {
                node,
                algorithms: self.provider.signature_verification_algorithms,
            }))
            .with_client_auth_cert(vec![self.certificate.clone()], key)
    }

    /// The name that is asked for: that of every node.
    pub(super) fn server_name() -> Result<ServerName<'static>, rustls::Error> {
        ServerName::try_from(CERTIFICATE_NAME).map_err(|_| {
            rustls::Error::General("the name of certificates of nodes is no name".to_owned())
        })
    }
}

/// The signatures of both verifiers: of TLS 1.3 alone.
macro_rules! verify_tls13_alone {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _certificate: &CertificateDer<'_>,
            _signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(PeerIncompatible::Tls12NotOffered.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            verify_tls13_signature(message, certificate, signature, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

/// Accepts one node.
#[derive(Debug)]
struct SingleNodeVerifier {
    node: NodeFingerprint,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for SingleNodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if NodeFingerprint::of(end_entity).is(&self.node) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    verify_tls13_alone!();
}

/// Accepts whoever holds the key of its certificate. Whether that one lives is asked right after the handshake: a node that has
/// just started is looked up then, and a handshake cannot wait for a database.
#[derive(Debug)]
struct KeyHolderVerifier {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for KeyHolderVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    verify_tls13_alone!();
}
