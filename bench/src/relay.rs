//! The floor of a model's answer: the host's HTTP library reads it, and each piece as it comes is one frame to every
//! watcher. Nothing is decoded or decided; nothing is recorded, unless it has a recorder.

use std::sync::Arc;

use anyhow::{Context, Result};
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use rustls::{ClientConfig, RootCertStore};

use crate::host_api::net::{Frame, Link};
use crate::recorder::{Hearers, Recorder};
use crate::wire_format::WireFormat;

pub(crate) struct Relay {
    client: Client,
    wire: WireFormat,
    url: String,
    recorder: Option<Recorder>,
}

impl Relay {
    /// `WIRE+URL` of a server in the clear, on this machine.
    pub(crate) fn to(server: &str, recorder: Option<Recorder>) -> Result<Self> {
        let (wire, base_url) = WireFormat::parse(server)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let without_trust = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let client =
            Client::builder().tls_backend_preconfigured(without_trust).no_proxy().build()?;
        Ok(Self { client, wire, url: format!("{base_url}/{}", wire.path()), recorder })
    }

    /// Asks, and hands on what is answered to these, each with its delivery window.
    pub(crate) fn ask(&self, text: &str, to: Vec<(Arc<Link>, u32)>) {
        let body = self.wire.request(text);
        let request = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        let (recorder, to) = (self.recorder.clone(), Hearers::from(to));
        tokio::spawn(async move {
            if let Err(error) = hand_on(request, recorder, &to).await {
                eprintln!("relay: {error:#}");
            }
        });
    }
}

async fn hand_on(
    request: reqwest::RequestBuilder,
    recorder: Option<Recorder>,
    to: &Hearers,
) -> Result<()> {
    let mut response = request.send().await?.error_for_status()?;
    while let Some(piece) = response.chunk().await.context("the answer broke off")? {
        if let Some(recorder) = &recorder {
            recorder.push(piece, to);
            continue;
        }
        for (link, window_ms) in to.iter() {
            link.push(Frame::Text(piece.clone()), *window_ms);
        }
    }
    Ok(())
}
