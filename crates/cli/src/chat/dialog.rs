//! The prompt about what the agent waits for: what it is about, what can be chosen, what choosing does, and all of it in lines.
//!
//! Promises: what is decided on is what is shown: an input that was edited stands in the place of the one that does not run.
//! Must not know: terminals, connections.

use client::chat::{AskedInput, InputResponse, PendingInput, ToolDecision, WantedToken};

use super::line::{Line, Style};
use super::part::part_lines_with;
use super::prompt::{PromptAction, PromptField, PromptItem, PromptState};
use super::questions::AnswerOutcome;
use super::render::Page;
use super::tool::{Detail, References, body, fold_end};
use super::{confirm, questions};
use crate::terminal::escape_line;

/// What confirming an item led to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PromptOutcome {
    Decided(ToolDecision),
    Responded(InputResponse),
    /// The prompt goes on, perhaps with another question.
    Stays,
    /// A text is to be typed.
    Opens(PromptField),
    /// This input is to be edited.
    Edits(String),
    /// This token is to be got.
    SignsIn(Box<WantedToken>),
    /// It is no answer, and why.
    Wrong(String),
}

pub(crate) fn items(input: &PendingInput, state: &PromptState) -> Vec<PromptItem> {
    match input {
        PendingInput::Confirmation(confirmation) => confirm::items(confirmation),
        PendingInput::Questions(form) => questions::items(form, state),
    }
}

/// An item was confirmed.
pub(crate) fn apply(
    input: &mut PendingInput,
    state: &mut PromptState,
    action: PromptAction,
) -> PromptOutcome {
    let form = match (action, input) {
        (PromptAction::Decide(decision), _) => return PromptOutcome::Decided(decision),
        (PromptAction::Respond(response), _) => return PromptOutcome::Responded(response),
        (PromptAction::OpenField(field), _) => return PromptOutcome::Opens(field),
        (PromptAction::Edit(text), _) => return PromptOutcome::Edits(text),
        (PromptAction::SignIn(wanted), _) => return PromptOutcome::SignsIn(wanted),
        (PromptAction::Mark(index), PendingInput::Questions(form)) => {
            let mut marks = questions::marks(form, state);
            if !marks.remove(&index) {
                marks.insert(index);
            }
            state.marks = Some(marks);
            return PromptOutcome::Stays;
        }
        (PromptAction::GoBack, PendingInput::Questions(form)) => {
            form.go_back();
            *state = PromptState::default();
            return PromptOutcome::Stays;
        }
        (PromptAction::Select(index), PendingInput::Questions(form)) => {
            form.answer_selected(&[index], None)
        }
        (PromptAction::AnswerYesNo(is_yes), PendingInput::Questions(form)) => {
            form.answer_yes_no(is_yes)
        }
        (PromptAction::GoOn, PendingInput::Questions(form)) => form.answer_by_default(),
        (PromptAction::SendMarked, PendingInput::Questions(form)) => {
            let marked: Vec<usize> = questions::marks(form, state).into_iter().collect();
            let words = Some(state.own_words.as_str()).filter(|words| !words.is_empty());
            form.answer_selected(&marked, words)
        }
        (
            PromptAction::Mark(_)
            | PromptAction::GoBack
            | PromptAction::Select(_)
            | PromptAction::AnswerYesNo(_)
            | PromptAction::GoOn
            | PromptAction::SendMarked,
            PendingInput::Confirmation(_),
        ) => {
            debug_assert!(false, "a decision has no questions");
            return PromptOutcome::Stays;
        }
    };
    advance(state, form.into())
}

/// A text was entered that the prompt asked for.
pub(crate) fn enter_field(
    input: &mut PendingInput,
    state: &mut PromptState,
    field: PromptField,
    text: &str,
) -> PromptOutcome {
    match (field, input) {
        (PromptField::Reason, PendingInput::Confirmation(confirmation)) => {
            PromptOutcome::Decided(confirmation.deny(text))
        }
        (PromptField::Input, PendingInput::Confirmation(confirmation)) => {
            confirmation.edit_input(text.to_owned());
            PromptOutcome::Stays
        }
        (PromptField::OwnWords, PendingInput::Questions(_)) => {
            state.own_words = text.trim().to_owned();
            PromptOutcome::Stays
        }
        (PromptField::Answer, PendingInput::Questions(form)) => match text.trim() {
            "" => PromptOutcome::Wrong("Nothing is typed; Escape goes back".to_owned()),
            text => {
                let answered = form.answer_text(text).into();
                advance(state, answered)
            }
        },
        (PromptField::Reason | PromptField::Input, PendingInput::Questions(_))
        | (PromptField::OwnWords | PromptField::Answer, PendingInput::Confirmation(_)) => {
            debug_assert!(false, "the field belongs to another prompt");
            PromptOutcome::Stays
        }
    }
}

/// Whether the question is the one that was asked before. A call whose input was edited is not: it is to be read first.
pub(crate) fn is_same_question(before: Option<usize>, input: &PendingInput) -> bool {
    before.is_some() && before == question_position(input)
}

/// Which of several questions is asked; none where a call is decided on.
pub(crate) fn question_position(input: &PendingInput) -> Option<usize> {
    match input {
        PendingInput::Questions(form) => Some(form.position()),
        PendingInput::Confirmation(_) => None,
    }
}

/// The next question starts with nothing chosen.
fn advance(state: &mut PromptState, outcome: AnswerOutcome) -> PromptOutcome {
    match outcome {
        AnswerOutcome::Complete(response) => PromptOutcome::Responded(response),
        AnswerOutcome::Next => {
            *state = PromptState::default();
            PromptOutcome::Stays
        }
        AnswerOutcome::Wrong(why) => PromptOutcome::Wrong(why),
    }
}

/// Where a question stands among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PromptNumber {
    /// From 0.
    pub(crate) index: usize,
    pub(crate) count: usize,
}

/// Lines of all that a question is about, where it is printed once.
const SUBJECT_LINES_MAX: usize = 4_000;

/// What the question is about.
pub(crate) fn subject_lines(
    asked: &AskedInput,
    detail: Detail,
    page: Page,
    references: &References,
) -> Vec<Line> {
    let width = page.width;
    let mut lines = Vec::new();
    if let Some(worker) = &asked.worker {
        let worker = format!("  worker {}", escape_line(worker));
        lines.push(Line::new(Style::Warn, worker).clip(width));
    }
    let part = || part_lines_with(asked.part(), page, detail, references);
    lines.extend(match &asked.input {
        PendingInput::Confirmation(confirmation) => {
            confirm::edited_lines(confirmation, asked.part(), width, detail).unwrap_or_else(part)
        }
        PendingInput::Questions(form) => {
            let mut lines = part();
            lines.extend(questions::lines(form, width));
            lines
        }
    });
    match detail {
        Detail::Brief | Detail::Unfolded => lines,
        Detail::Whole => fold_end(lines, SUBJECT_LINES_MAX),
    }
}

/// Whether all that the question refers to was looked for.
pub(crate) fn is_subject_complete(asked: &AskedInput, references: &References) -> bool {
    let call = asked.part().get("toolCall").and_then(|call| call.as_object());
    call.is_none_or(|call| references.is_complete(call))
}

/// What is asked about it, in a line or two.
pub(crate) fn question_lines(asked: &AskedInput, number: PromptNumber, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if number.count > 1 {
        let text = format!("{} of {} that wait for you", number.index + 1, number.count);
        lines.extend(body(&text, Style::Warn, width));
    }
    if let PendingInput::Confirmation(confirmation) = &asked.input {
        lines.extend(confirm::lines(confirmation, width));
    }
    lines
}

/// What stands before a text that a prompt asked for.
pub(crate) fn field_prompt(field: PromptField) -> &'static str {
    match field {
        PromptField::Reason => "why › ",
        PromptField::Answer | PromptField::OwnWords => "answer › ",
        PromptField::Input => "input › ",
    }
}

/// What becomes of a text that a prompt asked for.
pub(crate) fn field_hint(field: PromptField) -> &'static str {
    match field {
        PromptField::Reason => "Enter denies and says this; Escape goes back",
        PromptField::Answer => "Enter sends this answer; Escape goes back",
        PromptField::OwnWords => "Enter adds this as your own answer; Escape goes back",
        PromptField::Input => "Enter takes this as the input; you still decide on it",
    }
}
