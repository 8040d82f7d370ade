//! A collector that everything is exported to: OTLP over HTTP, as JSON.
//!
//! Promises: a collector that is slow or away costs nothing but its batch, and the log says so once until it answers again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agents::provider::{plain_client_config, trusting_client_config};
use kernel::TelemetryBatch;
use serde_json::Value;

use crate::task;

/// How long a collector may take.
const TIMEOUT: Duration = Duration::from_secs(4);

/// What is wrong with the address of a collector.
pub(crate) fn check_endpoint(endpoint: &str) -> Result<(), String> {
    let url = reqwest::Url::parse(endpoint).map_err(|error| format!("otlp_endpoint: {error}"))?;
    match (url.scheme(), url.host_str()) {
        ("http" | "https", Some(_)) => Ok(()),
        _ => Err("otlp_endpoint is an address such as http://127.0.0.1:4318".to_owned()),
    }
}

/// A collector, and whether it answered last.
pub(crate) struct Collector {
    endpoint: String,
    client: reqwest::Client,
    is_away: AtomicBool,
}

impl Collector {
    pub(crate) async fn new(endpoint: &str) -> Result<Option<Self>, String> {
        let is_encrypted = endpoint.starts_with("https:");
        let trust = task::spawn_blocking(move || {
            if is_encrypted { trusting_client_config() } else { plain_client_config() }
        })
        .await
        .map_err(|error| error.to_string())?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(trust.map_err(|error| error.to_string())?)
            .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Some(Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            client,
            is_away: AtomicBool::new(false),
        }))
    }

    pub(crate) async fn send(&self, batch: &TelemetryBatch) {
        let parts = [
            ("/v1/logs", batch.logs_payload(0)),
            ("/v1/traces", batch.traces_payload()),
            ("/v1/metrics", batch.metrics_payload()),
        ];
        for (path, payload) in parts {
            let Some(payload) = payload else { continue };
            let sent = self.post(path, &payload).await;
            let was_away = self.is_away.swap(sent.is_err(), Ordering::Relaxed);
            match sent {
                Ok(()) if was_away => tracing::info!("the telemetry collector answers again"),
                Err(why) if !was_away => {
                    tracing::warn!(why, "the telemetry collector does not take what is sent");
                }
                Ok(()) | Err(_) => {}
            }
            if was_away && self.is_away.load(Ordering::Relaxed) {
                return; // it is not asked three times
            }
        }
    }

    /// Why it was not taken, without the address: that may hold a secret.
    async fn post(&self, path: &str, payload: &Value) -> Result<(), String> {
        let request = self
            .client
            .post(format!("{}{path}", self.endpoint))
            .header("content-type", "application/json")
            .body(payload.to_string());
        let answer = request.send().await.map_err(|error| error.without_url().to_string())?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(format!("HTTP {}", answer.status().as_u16()))
        }
    }
}
