//! What the process logs, as OTLP log records. The log is one for the process, and so is this.
//!
//! Promises: a fixed number of records waits at most; what is logged says nothing of users' content, by the rule for logs.

use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use kernel::TelemetryLog;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::otlp::{attribute, nanos};

/// Records that wait to be sent.
const RECORDS_MAX: usize = 2_048;
/// Of one field.
const FIELD_CHARS_MAX: usize = 512;

/// A line of the log. It becomes JSON when it is taken: as JSON, two thousand of them took megabytes.
struct LogRecord {
    at_ms: i64,
    level: Level,
    target: &'static str,
    fields: LogFields,
}

#[derive(Default)]
struct LogRecords {
    records: VecDeque<LogRecord>,
    dropped: u64,
}

static WAITING: Mutex<LogRecords> = Mutex::new(LogRecords { records: VecDeque::new(), dropped: 0 });

/// What waits, and how many were dropped before.
pub(super) fn take_records() -> (Vec<TelemetryLog>, u64) {
    let LogRecords { records, dropped } = take_waiting();
    (records.into_iter().map(LogRecord::into_otlp).collect(), dropped)
}

/// Drops what waits: there is nobody to send it to.
pub(super) fn discard_log() {
    drop(take_waiting());
}

fn take_waiting() -> LogRecords {
    std::mem::take(&mut *WAITING.lock())
}

impl LogRecord {
    fn into_otlp(self) -> TelemetryLog {
        let (severity, name) = severity_of(self.level);
        let LogFields { message, attributes } = self.fields;
        let attributes = attributes.iter().map(|(name, value)| attribute(name, value));
        let target = attribute("code.namespace", self.target);
        let record = json!({
            "timeUnixNano": nanos(self.at_ms),
            "severityNumber": severity,
            "severityText": name,
            "body": {"stringValue": message},
            "attributes": attributes.chain([target]).collect::<Vec<Value>>(),
        });
        TelemetryLog { severity, record }
    }
}

/// A layer of the log that keeps its records for telemetry.
#[derive(Debug, Default)]
pub struct TelemetryLayer;

/// The fields of a span, kept with it.
struct SpanFields(Vec<(&'static str, Box<str>)>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TelemetryLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = LogFields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(SpanFields(fields.attributes));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = LogFields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(SpanFields(more)) = span.extensions().get() {
                fields.attributes.extend(more.iter().cloned());
            }
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at_ms = since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        let record = LogRecord {
            at_ms,
            level: *event.metadata().level(),
            target: event.metadata().target(),
            fields,
        };
        let mut waiting = WAITING.lock();
        if waiting.records.len() == RECORDS_MAX {
            waiting.records.pop_front();
            waiting.dropped += 1;
        }
        waiting.records.push_back(record);
    }
}

/// `SeverityNumber` and its short name.
fn severity_of(level: Level) -> (u8, &'static str) {
    match level {
        Level::ERROR => (17, "ERROR"),
        Level::WARN => (13, "WARN"),
        Level::INFO => (9, "INFO"),
        Level::DEBUG => (5, "DEBUG"),
        Level::TRACE => (1, "TRACE"),
    }
}

#[derive(Default)]
struct LogFields {
    message: Box<str>,
    attributes: Vec<(&'static str, Box<str>)>,
}

impl Visit for LogFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(text, "{value:?}");
        self.put(field, &text);
    }
}

impl LogFields {
    fn put(&mut self, field: &Field, value: &str) {
        let end = value.char_indices().nth(FIELD_CHARS_MAX);
        let value = &value[..end.map_or(value.len(), |(at, _)| at)];
        match field.name() {
            "message" => self.message = value.into(),
            name => self.attributes.push((name, value.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn a_line_of_the_log_is_a_record_with_what_its_span_says() {
        let subscriber = tracing_subscriber::registry().with(TelemetryLayer);
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::error_span!("turn", session = "abcd");
            let _entered = span.enter();
            tracing::warn!(kind = "timeout", seconds = 1.5, "failed for telemetry");
        });
        let (records, _) = take_records();
        let record =
            records.iter().find(|log| log.record["body"]["stringValue"] == "failed for telemetry");
        let record = record.expect("a record");
        assert_eq!((record.severity, &record.record["severityText"]), (13, &json!("WARN")));
        let attributes = record.record["attributes"].as_array().unwrap();
        for (key, value) in [("kind", "timeout"), ("seconds", "1.5"), ("session", "abcd")] {
            assert!(attributes.contains(&attribute(key, value)), "{key}: {attributes:?}");
        }
    }
}
