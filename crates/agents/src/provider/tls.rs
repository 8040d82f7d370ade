//! Whom an encrypted connection trusts: the certificates of the system.
//!
//! Promises: they are read once, and only when a server is asked by `https`; a system without any still runs.
//! Must not know: requests.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore};

/// For servers asked in the clear: trusts no certificate and loads none.
pub fn without_roots() -> Result<ClientConfig, rustls::Error> {
    trusting(RootCertStore::empty())
}

/// Blocks while it reads files.
pub fn with_system_roots() -> Result<ClientConfig, rustls::Error> {
    static SYSTEM: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(config) = SYSTEM.get() {
        return Ok(config.clone());
    }
    let mut roots = RootCertStore::empty();
    // Certificates that cannot be read are left out: a handshake that needs them says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = trusting(roots)?;
    Ok(SYSTEM.get_or_init(|| config).clone())
}

fn trusting(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
