//! What happened on a host lately, in the shapes of OTLP/JSON: what goes to the clients that subscribed, and to a collector.

use serde_json::{Value, json};

/// What happened since the last batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TelemetryBatch {
    /// The OTLP resource: which service it is about.
    pub resource: Value,
    pub logs: Vec<TelemetryLog>,
    /// OTLP spans.
    pub spans: Vec<Value>,
    /// OTLP metrics.
    pub metrics: Vec<Value>,
}

/// An OTLP log record, and its `severityNumber`.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryLog {
    pub severity: u8,
    pub record: Value,
}

impl TelemetryBatch {
    /// `ExportLogsServiceRequest` of the records of a severity and above; none if there are none.
    pub fn logs_payload(&self, severity_min: u8) -> Option<Value> {
        let records: Vec<&Value> = self
            .logs
            .iter()
            .filter(|log| log.severity >= severity_min)
            .map(|log| &log.record)
            .collect();
        let scope = json!({"scope": {"name": "greenroom"}, "logRecords": records});
        (!records.is_empty())
            .then(|| json!({"resourceLogs": [{"resource": self.resource, "scopeLogs": [scope]}]}))
    }

    /// `ExportTraceServiceRequest`; none without a span.
    pub fn traces_payload(&self) -> Option<Value> {
        let scope = json!({"scope": {"name": "greenroom"}, "spans": self.spans});
        (!self.spans.is_empty())
            .then(|| json!({"resourceSpans": [{"resource": self.resource, "scopeSpans": [scope]}]}))
    }

    /// `ExportMetricsServiceRequest`; none if no metric changed.
    pub fn metrics_payload(&self) -> Option<Value> {
        let scope = json!({"scope": {"name": "greenroom"}, "metrics": self.metrics});
        (!self.metrics.is_empty()).then(
            || json!({"resourceMetrics": [{"resource": self.resource, "scopeMetrics": [scope]}]}),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_what_is_loud_enough() {
        let log = |severity, name: &str| TelemetryLog { severity, record: json!({"body": name}) };
        let batch = TelemetryBatch {
            resource: json!({"attributes": []}),
            logs: vec![log(9, "info"), log(17, "error")],
            ..TelemetryBatch::default()
        };
        let payload = batch.logs_payload(13).unwrap();
        let records = &payload["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
        assert_eq!(*records, json!([{"body": "error"}]));
        assert_eq!(batch.logs_payload(21), None);
        assert_eq!((batch.traces_payload(), batch.metrics_payload()), (None, None));
    }
}
