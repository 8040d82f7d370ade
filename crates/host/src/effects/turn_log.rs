//! What the log says of a turn: when it began, how it ended, and why if it failed.
//!
//! Promises: one line at the start and one at the end, whatever ends it. Nothing of a message, an answer, a path or an error's
//! own words is in them: an error is named by its kind alone, a session and a chat by the last characters of their names.
//! Must not know: what turns do.

use std::sync::Arc;
use std::time::Instant;

use agent_api::{AgentError, AgentEvent};
use kernel::{RunId, TurnRun};
use tracing::Span;
use wire::ChannelUri;

use crate::telemetry::{MetricCounter, Telemetry};

/// Characters of a name: enough to find it in the list of sessions.
const SHORT_CHARS: usize = 8;
/// The first chat of a session is named after it (G-26).
const DEFAULT_CHAT: &str = "ahp-chat://default/";

/// A turn that is being logged; dropped before its end is recorded it was cancelled, or the host stops.
pub(super) struct TurnLog {
    span: Span,
    begun: Instant,
    has_ended: bool,
    telemetry: Option<(Arc<Telemetry>, RunId)>,
}

impl TurnLog {
    pub(super) fn begin(turn: &TurnRun, telemetry: Option<Arc<Telemetry>>) -> Self {
        // Of the highest level, so that warnings say which turn they are about when nothing else is logged.
        let span = tracing::error_span!(
            "turn",
            session = shorten(&turn.session),
            chat = name_chat(&turn.chat),
        );
        let model = turn.message["model"]["id"].as_str().map(keep_name);
        tracing::info!(
            parent: &span,
            agent = keep_name(&turn.provider),
            model,
            resumed = turn.resume.is_some().then_some(true),
            "started"
        );
        Self {
            span,
            begun: Instant::now(),
            has_ended: false,
            telemetry: telemetry.map(|telemetry| {
                telemetry.begin_turn(turn);
                (telemetry, turn.run)
            }),
        }
    }

    /// What is logged while the turn runs says which turn it is.
    pub(super) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(super) fn record_end(&mut self, event: &AgentEvent) {
        self.has_ended = true;
        let seconds = self.seconds();
        match event {
            AgentEvent::Failed(AgentError { error_type, resumable, .. }) => {
                let kind = keep_name(error_type);
                tracing::warn!(parent: &self.span, kind, resumable, seconds, "failed");
                self.count(MetricCounter::TurnsFailed, &kind);
            }
            _ => {
                tracing::info!(parent: &self.span, seconds, "ended");
                self.count(MetricCounter::TurnsCompleted, "completed");
            }
        }
    }

    fn count(&self, counter: MetricCounter, outcome: &str) {
        if let Some((telemetry, run)) = &self.telemetry {
            telemetry.end_turn(*run, counter, outcome);
        }
    }

    /// With one digit behind the point.
    fn seconds(&self) -> f64 {
        (self.begun.elapsed().as_secs_f64() * 10.0).round() / 10.0
    }
}

impl Drop for TurnLog {
    fn drop(&mut self) {
        if !self.has_ended {
            let seconds = self.seconds();
            tracing::info!(parent: &self.span, seconds, "cancelled");
            self.count(MetricCounter::TurnsCancelled, "cancelled");
        }
    }
}

/// The end of a name, without what a client may have put into it beside letters and digits.
fn shorten(uri: &ChannelUri) -> String {
    let mut end: Vec<char> =
        uri.as_str().chars().rev().filter(char::is_ascii_alphanumeric).take(SHORT_CHARS).collect();
    end.reverse();
    end.into_iter().collect()
}

fn name_chat(uri: &ChannelUri) -> String {
    if uri.as_str().starts_with(DEFAULT_CHAT) { "default".to_owned() } else { shorten(uri) }
}

/// Ids of agents and models and kinds of errors are the operator's or ours; all the same nothing long or odd of them is logged.
fn keep_name(name: &str) -> String {
    const CHARS_MAX: usize = 64;
    let is_kept = |c: &char| c.is_ascii_alphanumeric() || "-_.:/@".contains(*c);
    name.chars().filter(is_kept).take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_hold_nothing_odd() {
        let uri = |text: &str| ChannelUri::parse(text).unwrap();
        let session = uri("native:/0190f2c4-8a6b-7c3d-9e1f-0123456789ab");
        assert_eq!(shorten(&session), "456789ab");
        assert_eq!(name_chat(&uri("ahp-chat://default/c2NyaXB0ZWQ")), "default");
        assert_eq!(name_chat(&uri("ahp-chat:/side-1")), "hatside1");
        assert_eq!(keep_name("vendor/model-1.5:free"), "vendor/model-1.5:free");
        assert_eq!(keep_name("a\u{1b}[31m b\n"), "a31mb");
        assert_eq!(keep_name(&"x".repeat(500)).len(), 64);
    }
}
