//! Text in pieces: one part for each run of pieces of one kind.
//!
//! Promises: a run of nothing but blanks opens no part until something else comes.

use agent_api::{AgentEvent, TextKind};

use super::MapperStep;

/// The run of pieces that is being written.
#[derive(Debug, Default)]
pub(super) struct MappedTextRun(Option<TextRunState>);

#[derive(Debug)]
struct TextRunState {
    kind: TextKind,
    message: Option<String>,
    /// Absent while it has nothing but blanks.
    part: Option<u64>,
    blanks: String,
}

/// Blanks that are held back: more of them say nothing.
const BLANK_BYTES_MAX: usize = 1_024;

impl MappedTextRun {
    pub(super) fn push(
        &mut self,
        kind: TextKind,
        message: Option<String>,
        text: &str,
        last_number: &mut u64,
        steps: &mut Vec<MapperStep>,
    ) {
        let goes_on = self.0.as_ref().is_some_and(|run| {
            run.kind == kind
                && (message.is_none() || run.message.is_none() || message == run.message)
        });
        if !goes_on {
            self.0 = None;
        }
        let run = self.0.get_or_insert_with(|| TextRunState {
            kind,
            message: None,
            part: None,
            blanks: String::new(),
        });
        if message.is_some() {
            run.message = message;
        }
        let (part, text) = match run.part {
            Some(part) => (part, text.to_owned()),
            None if text.trim().is_empty() => {
                let room = BLANK_BYTES_MAX.saturating_sub(run.blanks.len());
                run.blanks.extend(text.chars().take(room));
                return;
            }
            None => {
                *last_number += 1;
                let part = *last_number;
                run.part = Some(part);
                steps.push(MapperStep::Send(AgentEvent::PartOpened { part, kind }));
                (part, std::mem::take(&mut run.blanks) + text)
            }
        };
        if !text.is_empty() {
            steps.push(MapperStep::Send(AgentEvent::Text { part, text }));
        }
    }

    pub(super) fn end(&mut self) {
        self.0 = None;
    }
}
