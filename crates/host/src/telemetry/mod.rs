//! What operators see of a host: counters, spans of turns and calls, and log records; for `/metrics`, for clients that subscribe to
//! telemetry, and for a collector (H-319, H-320, G-58, ADR 0090).
//!
//! Promises: nothing of a message, a prompt, a path or an error's own words is in any of it; nothing here waits for anybody, and
//! what nobody fetches in time is dropped, oldest first, and counted.
//! Must not know: who is allowed to see it.

mod collector;
mod layer;
mod metrics;
mod otlp;
mod sender;
mod spans;

use std::collections::VecDeque;
use std::sync::Arc;

use agent_api::AgentEvent;
use kernel::{RunId, TelemetryBatch, TurnRun};
use parking_lot::Mutex;
use serde_json::Value;

pub(crate) use collector::{Collector, check_endpoint};
pub use layer::TelemetryLayer;
pub(crate) use metrics::{HostMetrics, MetricCounter};
pub(crate) use sender::{
    TELEMETRY_EVERY, export_log_while_running, open_collector, send_while_running,
};
pub(crate) use spans::{SpanOutcome, outcome_of_call};

use crate::clock::Clock;
use spans::OpenSpans;

/// Spans that wait to be sent.
const SPANS_MAX: usize = 1_024;

/// The telemetry of one host.
pub(crate) struct Telemetry {
    pub metrics: HostMetrics,
    /// Which space it is of.
    space: Option<String>,
    spans: Mutex<VecDeque<Value>>,
    open: Mutex<OpenSpans>,
    clock: Clock,
}

impl Telemetry {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Self::of_space(clock, None)
    }

    /// That of a space with this name.
    pub(crate) fn of_space(clock: Clock, space: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            metrics: HostMetrics::new(clock.now()),
            space,
            spans: Mutex::default(),
            open: Mutex::default(),
            clock,
        })
    }

    /// A turn begins.
    pub(crate) fn begin_turn(&self, turn: &TurnRun) {
        self.metrics.add(MetricCounter::TurnsStarted, 1);
        self.open.lock().begin_turn(turn, self.now_ms());
    }

    /// Takes an agent's event of a turn.
    pub(crate) fn observe_event(&self, run: RunId, event: &AgentEvent) {
        let span = self.open.lock().observe_event(run, event, self.now_ms());
        self.add_spans(span);
    }

    /// Clients know a call by this id.
    pub(crate) fn name_call(&self, run: RunId, call: u64, id: String) {
        let span = self.open.lock().name_call(run, call, id);
        self.add_spans(span);
    }

    /// A call is over that somebody else than the agent carried out.
    pub(crate) fn end_call(&self, run: RunId, call: u64, outcome: SpanOutcome) {
        let span = self.open.lock().end_call(run, call, outcome, self.now_ms());
        self.add_spans(span);
    }

    /// A turn ended: `completed`, `cancelled`, or in a kind of error.
    pub(crate) fn end_turn(&self, run: RunId, counter: MetricCounter, outcome: &str) {
        self.metrics.add(counter, 1);
        let span = self.open.lock().end_turn(run, outcome, self.now_ms());
        self.add_spans(span);
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().0
    }

    fn add_spans(&self, spans: impl IntoIterator<Item = Value>) {
        for span in spans {
            self.add_span(span);
        }
    }

    fn add_span(&self, span: Value) {
        let mut spans = self.spans.lock();
        if spans.len() == SPANS_MAX {
            spans.pop_front();
            self.metrics.add(MetricCounter::TelemetryDropped, 1);
        }
        spans.push_back(span);
    }

    /// What happened since this was last called; none if nothing did. `connections` are open now. The log is that of the whole
    /// process: with several spaces it is for none of their clients.
    pub(crate) fn take_batch(&self, connections: usize, with_log: bool) -> Option<TelemetryBatch> {
        let unnamed = self.open.lock().take_unnamed();
        self.add_spans(unnamed);
        let spans: Vec<Value> = {
            let mut spans = self.spans.lock();
            spans.drain(..).collect()
        };
        let (logs, dropped) = if with_log { layer::take_records() } else { (Vec::new(), 0) };
        self.metrics.add(MetricCounter::TelemetryDropped, dropped);
        let metrics = self.metrics.take_changed(connections);
        if logs.is_empty() && spans.is_empty() && metrics.is_none() {
            return None;
        }
        let metrics = metrics
            .map(|values| otlp::metrics_of(&values, self.metrics.started(), self.clock.now()));
        Some(TelemetryBatch {
            resource: otlp::resource(self.space.as_deref()),
            logs,
            spans,
            metrics: metrics.unwrap_or_default(),
        })
    }
}

/// What the process logged since this was last called, about no space; none if nothing.
fn take_log_batch() -> Option<TelemetryBatch> {
    let (logs, _) = layer::take_records();
    (!logs.is_empty()).then(|| TelemetryBatch {
        resource: otlp::resource(None),
        logs,
        ..TelemetryBatch::default()
    })
}
