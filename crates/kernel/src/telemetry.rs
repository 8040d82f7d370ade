//! Telemetry channels: logs, traces and metrics as OTLP/JSON (H-319). They have no state, nothing is recorded, and nothing is
//! repeated after a reconnect.
//!
//! Must not know: what is sent, but for the severity of a log record.

use serde_json::json;
use wire::ChannelUri;
use wire::methods::HostNotification;

use crate::state::Step;
use crate::telemetry_batch::TelemetryBatch;

/// Advertised in `initialize`; a client expands `{level}`.
pub(crate) const LOGS: &str = "ahp-otlp://host/logs/{level}";
pub(crate) const TRACES: &str = "ahp-otlp://host/traces";
pub(crate) const METRICS: &str = "ahp-otlp://host/metrics";

/// How the URIs of logs begin.
const LOGS_OF_LEVEL: &str = "ahp-otlp://host/logs/";

/// What a telemetry channel sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TelemetrySignal {
    /// Records of at least this severity.
    Logs(u8),
    Traces,
    Metrics,
}

/// What is subscribed to under a URI; none if it is no telemetry channel of this host.
pub(crate) fn signal_of(uri: &ChannelUri) -> Option<TelemetrySignal> {
    match uri.as_str() {
        TRACES => return Some(TelemetrySignal::Traces),
        METRICS => return Some(TelemetrySignal::Metrics),
        _ => {}
    }
    let level = uri.as_str().strip_prefix(LOGS_OF_LEVEL)?;
    // The lowest `SeverityNumber` of each band.
    let severity = match level.to_ascii_lowercase().as_str() {
        "trace" => 1,
        "debug" => 5,
        "info" => 9,
        "warn" => 13,
        "error" => 17,
        "fatal" => 21,
        _ => return None,
    };
    Some(TelemetrySignal::Logs(severity))
}

/// Sends a batch to everyone who subscribed.
pub(crate) fn send(step: &mut Step, batch: &TelemetryBatch) {
    let watched = step.peers().watched().filter_map(|uri| Some((uri.clone(), signal_of(uri)?)));
    for (uri, signal) in watched.collect::<Vec<_>>() {
        let (notification, payload) = match signal {
            TelemetrySignal::Logs(severity) => {
                let payload = batch.logs_payload(severity);
                (HostNotification::ExportLogs, payload)
            }
            TelemetrySignal::Traces => (HostNotification::ExportTraces, batch.traces_payload()),
            TelemetrySignal::Metrics => (HostNotification::ExportMetrics, batch.metrics_payload()),
        };
        if let Some(payload) = payload {
            let params = json!({"channel": uri.as_str(), "payload": payload});
            step.notify_watchers(&uri, notification, &params);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_bands_and_others_are_no_channels() {
        let signal = |uri: &str| signal_of(&ChannelUri::parse(uri).unwrap());
        assert_eq!(signal("ahp-otlp://host/logs/WARN"), Some(TelemetrySignal::Logs(13)));
        assert_eq!(signal("ahp-otlp://host/traces"), Some(TelemetrySignal::Traces));
        for other in
            ["ahp-otlp://host/logs/", "ahp-otlp://host/logs/loud", "ahp-otlp://else/traces"]
        {
            assert_eq!(signal(other), None, "{other}");
        }
    }
}
