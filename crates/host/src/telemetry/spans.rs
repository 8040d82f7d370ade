//! Turns and their tool calls as spans of one trace (H-320).
//!
//! Promises: a call's span is told when the call is over and its id is known, a turn's when it is over; what a turn leaves open ends
//! with it. Of one turn only so many calls are told, of the others how many. Nothing of what a call got or gave is in it.
//! Must not know: who reads spans.

use agent_api::{AgentEvent, ToolResult};
use kernel::{RunId, TurnRun};
use serde_json::Value;

use super::otlp::{SpanFacts, attribute, new_span, new_trace, span_of};
use crate::sorted_map::SortedMap;

/// Calls of one turn that get a span.
const CALLS_MAX: usize = 256;

/// Characters of the name of a tool: servers of others choose them.
const NAME_CHARS_MAX: usize = 64;

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanOutcome {
    Completed,
    Failed,
    Refused,
    Cancelled,
}

/// How a call went by its result.
pub(crate) fn outcome_of_call(result: &ToolResult) -> SpanOutcome {
    if result.success() { SpanOutcome::Completed } else { SpanOutcome::Failed }
}

/// Spans that are not over, by run.
#[derive(Default)]
pub(super) struct OpenSpans {
    turns: SortedMap<RunId, TurnSpan>,
}

struct TurnSpan {
    began_ms: i64,
    trace: String,
    id: String,
    /// Of the turn; its calls have the ids among them, too.
    attributes: Vec<Value>,
    ids: Vec<Value>,
    calls: SortedMap<u64, CallSpan>,
    /// Calls that got a span or were left out.
    calls_seen: usize,
    is_over: bool,
}

struct CallSpan {
    began_ms: i64,
    name: String,
    id: Option<String>,
    end: Option<(i64, SpanOutcome)>,
}

impl OpenSpans {
    pub(super) fn begin_turn(&mut self, turn: &TurnRun, now_ms: i64) {
        let ids = vec![
            attribute("ahp.session.id", turn.session.as_str()),
            attribute("ahp.chat.id", turn.chat.as_str()),
            attribute("ahp.turn.id", &turn.turn_id),
        ];
        let mut attributes = ids.clone();
        attributes.push(attribute("gen_ai.agent.id", &turn.provider));
        if let Some(model) = turn.message["model"]["id"].as_str() {
            attributes.push(attribute("gen_ai.request.model", model));
        }
        let span = TurnSpan {
            began_ms: now_ms,
            trace: new_trace(),
            id: new_span(),
            attributes,
            ids,
            calls: SortedMap::default(),
            calls_seen: 0,
            is_over: false,
        };
        self.turns.insert(turn.run, span);
    }

    /// Takes an agent's event; returns the span of a call that it ends.
    pub(super) fn observe_event(
        &mut self,
        run: RunId,
        event: &AgentEvent,
        now_ms: i64,
    ) -> Option<Value> {
        match event {
            AgentEvent::ToolStarted { call, start } => {
                self.begin_call(run, *call, &start.name, now_ms);
                None
            }
            AgentEvent::ClientTool { call, name, .. } => {
                self.begin_call(run, *call, name, now_ms);
                None
            }
            AgentEvent::ToolCompleted { call, result, .. } => {
                self.end_call(run, *call, outcome_of_call(result), now_ms)
            }
            AgentEvent::ToolRefused { call, .. } => {
                self.end_call(run, *call, SpanOutcome::Refused, now_ms)
            }
            _ => None, // everything else is not about the beginning or the end of a call
        }
    }

    fn begin_call(&mut self, run: RunId, call: u64, name: &str, now_ms: i64) {
        let Some(turn) = self.turns.get_mut(&run) else {
            return; // it was cancelled: it gets no span
        };
        turn.calls_seen += 1;
        if turn.calls_seen <= CALLS_MAX {
            let name = name.chars().take(NAME_CHARS_MAX).collect();
            let (id, end) = (None, None);
            let span = CallSpan { began_ms: now_ms, name, id, end };
            turn.calls.get_or_insert_with(call, || span);
        }
    }

    pub(super) fn name_call(&mut self, run: RunId, call: u64, id: String) -> Option<Value> {
        let turn = self.turns.get_mut(&run)?;
        turn.calls.get_mut(&call)?.id = Some(id);
        turn.take_finished(call)
    }

    pub(super) fn end_call(
        &mut self,
        run: RunId,
        call: u64,
        outcome: SpanOutcome,
        now_ms: i64,
    ) -> Option<Value> {
        let turn = self.turns.get_mut(&run)?;
        turn.calls.get_mut(&call)?.end.get_or_insert((now_ms, outcome));
        turn.take_finished(call)
    }

    /// The turn is over: its span. `outcome` is `completed`, `cancelled`, or the kind of error.
    pub(super) fn end_turn(&mut self, run: RunId, outcome: &str, now_ms: i64) -> Option<Value> {
        let turn = self.turns.get_mut(&run)?;
        turn.is_over = true;
        for call in turn.calls.values_mut() {
            call.end.get_or_insert((now_ms, SpanOutcome::Cancelled));
        }
        let mut attributes = turn.attributes.clone();
        attributes.push(attribute("ahp.turn.outcome", outcome));
        if turn.calls_seen > 0 {
            let calls = turn.calls_seen.to_string();
            attributes.push(attribute("greenroom.tool_calls", &calls));
        }
        Some(span_of(SpanFacts {
            name: "turn",
            trace: &turn.trace,
            id: &turn.id,
            parent: None,
            began_ms: turn.began_ms,
            ended_ms: now_ms,
            is_error: !matches!(outcome, "completed" | "cancelled"),
            attributes,
        }))
    }

    /// Calls of turns that are over and that never got an id: no client knows them.
    pub(super) fn take_unnamed(&mut self) -> Vec<Value> {
        let mut spans = Vec::new();
        self.turns.retain(|_, turn| {
            if turn.is_over {
                let calls = std::mem::take(&mut turn.calls);
                spans.extend(calls.values().filter_map(|call| turn.call_span(call)));
            }
            !turn.is_over
        });
        spans
    }
}

impl TurnSpan {
    /// The span of a call if it is over and has its id.
    fn take_finished(&mut self, call: u64) -> Option<Value> {
        let known = self.calls.get(&call)?;
        if known.id.is_none() || known.end.is_none() {
            return None;
        }
        let known = self.calls.remove(&call)?;
        self.call_span(&known)
    }

    fn call_span(&self, call: &CallSpan) -> Option<Value> {
        let (ended_ms, outcome) = call.end?;
        let mut attributes = self.ids.clone();
        if let Some(id) = &call.id {
            attributes.push(attribute("ahp.tool_call.id", id));
        }
        attributes.push(attribute("gen_ai.tool.name", &call.name));
        let said = match outcome {
            SpanOutcome::Completed => "completed",
            SpanOutcome::Failed => "failed",
            SpanOutcome::Refused => "refused",
            SpanOutcome::Cancelled => "cancelled",
        };
        attributes.push(attribute("greenroom.tool_call.outcome", said));
        Some(span_of(SpanFacts {
            name: "tool call",
            trace: &self.trace,
            id: &new_span(),
            parent: Some(&self.id),
            began_ms: call.began_ms,
            ended_ms,
            is_error: outcome == SpanOutcome::Failed,
            attributes,
        }))
    }
}
