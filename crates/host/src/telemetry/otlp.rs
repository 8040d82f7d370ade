//! OTLP/JSON: resources, spans and metrics in the shapes that OpenTelemetry gives them.

use serde_json::{Value, json};
use uuid::Uuid;
use wire::Timestamp;

use super::metrics::MetricValue;

const NANOS_PER_MS: i128 = 1_000_000;
/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;
const STATUS_OK: u8 = 1;
const STATUS_ERROR: u8 = 2;

/// Times are texts: they do not fit into a number of JSON.
pub(super) fn nanos(ms: i64) -> String {
    (i128::from(ms) * NANOS_PER_MS).to_string()
}

pub(super) fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// What a batch is about: a space, or without one the whole process. Two spaces of a process count the same things: a collector
/// tells them apart by this.
pub(super) fn resource(space: Option<&str>) -> Value {
    let mut attributes = vec![
        attribute("service.name", "greenroom"),
        attribute("service.version", env!("CARGO_PKG_VERSION")),
    ];
    attributes.extend(space.map(|space| attribute("greenroom.space", space)));
    json!({"attributes": attributes})
}

/// A span: what it is, whose, and when.
pub(super) struct SpanFacts<'a> {
    pub name: &'a str,
    pub trace: &'a str,
    pub id: &'a str,
    pub parent: Option<&'a str>,
    pub began_ms: i64,
    pub ended_ms: i64,
    pub is_error: bool,
    pub attributes: Vec<Value>,
}

pub(super) fn span_of(facts: SpanFacts<'_>) -> Value {
    let code = if facts.is_error { STATUS_ERROR } else { STATUS_OK };
    let mut span = json!({
        "traceId": facts.trace,
        "spanId": facts.id,
        "name": facts.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(facts.began_ms),
        "endTimeUnixNano": nanos(facts.ended_ms.max(facts.began_ms)),
        "attributes": facts.attributes,
        "status": {"code": code},
    });
    if let Some(parent) = facts.parent {
        span["parentSpanId"] = json!(parent);
    }
    span
}

/// The id of a trace.
pub(super) fn new_trace() -> String {
    Uuid::now_v7().simple().to_string()
}

/// The id of a span.
pub(super) fn new_span() -> String {
    // The end of such an id is random.
    Uuid::now_v7().simple().to_string().split_off(16)
}

pub(super) fn metrics_of(values: &[MetricValue], started: Timestamp, now: Timestamp) -> Vec<Value> {
    let metrics = values.iter().map(|metric| {
        let point = json!([{
            "startTimeUnixNano": nanos(started.0),
            "timeUnixNano": nanos(now.0),
            "asDouble": metric.value,
        }]);
        let mut described = json!({"name": metric.name, "description": metric.help});
        if metric.is_sum {
            described["sum"] = json!({
                "dataPoints": point,
                "aggregationTemporality": CUMULATIVE,
                "isMonotonic": true,
            });
        } else {
            described["gauge"] = json!({"dataPoints": point})
        }
        described
    });
    metrics.collect()
}
