//! An agent's questions: what can be chosen to answer each, and what is asked in lines.
//!
//! Promises: every question is answered by a choice that is confirmed; a text is an answer only in a field that was opened for it. From 1
//! on stands what answers, 7 goes on without an answer of one's own, 8 goes back, 9 declines, 0 dismisses: at every question
//! ([0038](../../../../docs/adr/0038-two-keys.md)).
//! Must not know: terminals, connections, the protocol.

use std::collections::BTreeSet;

use client::chat::{AnswerError, InputResponse, Progress, Question, QuestionForm, QuestionKind};

use super::confirm::{APPROVE, DENY};
use super::line::{Line, Style};
use super::part::answer_text;
use super::prompt::{PromptAction, PromptField, PromptItem, PromptState};
use super::tool::body;
use crate::terminal::{escape, escape_line};

/// Digits for what answers a question.
const ANSWERS_MAX: usize = 6;
const GO_ON: char = '7';
const GO_BACK: char = '8';
const DECLINE: char = '9';
const DISMISS: char = '0';

/// What an answer led to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerOutcome {
    Complete(InputResponse),
    /// There is another question.
    Next,
    /// It is no answer, and why.
    Wrong(String),
}

impl From<Result<Progress, AnswerError>> for AnswerOutcome {
    fn from(progress: Result<Progress, AnswerError>) -> Self {
        match progress {
            Ok(Progress::Next) => Self::Next,
            Ok(Progress::Complete(response)) => Self::Complete(response),
            Err(error @ AnswerError::Required) => {
                Self::Wrong(format!("{error}; {DECLINE} declines the whole request"))
            }
            Err(error) => Self::Wrong(error.to_string()),
        }
    }
}

/// Everything that can be chosen.
pub(crate) fn items(form: &QuestionForm, state: &PromptState) -> Vec<PromptItem> {
    let respond =
        |digit, word, response| PromptItem::new(digit, word, PromptAction::Respond(response));
    let Some(question) = form.question() else {
        // Nothing is asked but whether to go on: that is consent, and has its words.
        return vec![
            respond('1', APPROVE, form.accept()),
            respond('2', DENY, form.decline()),
            respond(DISMISS, "Dismiss", form.cancel()),
        ];
    };
    let mut items = answer_items(question, form, state);
    items.extend(go_on_item(question, form, state));
    if form.position() > 0 {
        items.push(PromptItem::new(GO_BACK, "Back", PromptAction::GoBack));
    }
    items.push(respond(DECLINE, "Decline", form.decline()));
    items.push(respond(DISMISS, "Dismiss", form.cancel()));
    items
}

/// What answers the question.
fn answer_items(
    question: Question<'_>,
    form: &QuestionForm,
    state: &PromptState,
) -> Vec<PromptItem> {
    let mut items = match question.kind() {
        QuestionKind::Text | QuestionKind::Number | QuestionKind::Integer => {
            let field = PromptAction::OpenField(PromptField::Answer);
            let mut item = PromptItem::new('1', "Answer", field);
            item.detail = kind_of_text(question);
            return vec![item];
        }
        QuestionKind::Boolean => {
            let item = |digit, word, is_yes| {
                PromptItem::new(digit, word, PromptAction::AnswerYesNo(is_yes))
            };
            return vec![item('1', "Yes", true), item('2', "No", false)];
        }
        QuestionKind::SingleSelect => option_items(question, None, PromptAction::Select),
        QuestionKind::MultiSelect => {
            option_items(question, Some(&marks(form, state)), PromptAction::Mark)
        }
    };
    if question.allows_freeform() {
        let field = match question.kind() {
            QuestionKind::MultiSelect => PromptField::OwnWords,
            _ => PromptField::Answer,
        };
        items.push(PromptItem {
            digit: answer_digit(items.len()),
            word: "Other…".to_owned(),
            detail: escape_line(&state.own_words),
            mark: None,
            action: PromptAction::OpenField(field),
        });
    }
    items
}

fn option_items(
    question: Question<'_>,
    marks: Option<&BTreeSet<usize>>,
    action: impl Fn(usize) -> PromptAction,
) -> Vec<PromptItem> {
    let options = question.options().enumerate();
    let item = options.map(|(index, option)| {
        let recommended = if option.is_recommended { "recommended" } else { "" };
        let details: Vec<String> = [recommended.to_owned(), escape_line(option.description)]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        PromptItem {
            digit: answer_digit(index),
            word: escape_line(option.label),
            detail: details.join(", "),
            mark: marks.map(|marks| marks.contains(&index)),
            action: action(index),
        }
    });
    item.collect()
}

fn answer_digit(index: usize) -> Option<char> {
    let digit = u32::try_from(index + 1).ok();
    digit.filter(|_| index < ANSWERS_MAX).and_then(|digit| char::from_digit(digit, 10))
}

/// How to go on without an answer of one's own, or with what is marked.
fn go_on_item(
    question: Question<'_>,
    form: &QuestionForm,
    state: &PromptState,
) -> Option<PromptItem> {
    let has_marked = !marks(form, state).is_empty() || !state.own_words.is_empty();
    if question.kind() == QuestionKind::MultiSelect && has_marked {
        let send = PromptAction::SendMarked;
        return Some(PromptItem::new(GO_ON, "Send selection", send));
    }
    if let Some(default) = form.default_answer() {
        let mut item = PromptItem::new(GO_ON, "Use the default", PromptAction::GoOn);
        item.detail = answer_text(question.value(), default.value());
        return Some(item);
    }
    (!question.is_required()).then(|| PromptItem::new(GO_ON, "Skip", PromptAction::GoOn))
}

/// The options that are marked: those of the default answer until one is touched.
pub(crate) fn marks(form: &QuestionForm, state: &PromptState) -> BTreeSet<usize> {
    match &state.marks {
        Some(marks) => marks.clone(),
        None => form.default_options().collect(),
    }
}

/// The question that is asked now.
pub(crate) fn lines(form: &QuestionForm, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(url) = form.url() {
        let text = format!("open {}", escape_line(url));
        lines.extend(body(&text, Style::Warn, width));
    }
    if let Some(question) = form.question() {
        let number = match form.count() {
            1 => String::new(),
            count => format!("{} of {count}: ", form.position() + 1),
        };
        let message = format!("{number}{}", escape(question.message()));
        lines.extend(body(&message, Style::Bold, width));
    }
    lines
}

/// What kind of text answers a question.
fn kind_of_text(question: Question<'_>) -> String {
    let kind = match question.kind() {
        QuestionKind::Number => "a number",
        QuestionKind::Integer => "a whole number",
        _ => "",
    };
    let (min, max, unit) = question.bounds();
    let unit = unit.suffix();
    let bounds = match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max}{unit}"),
        (Some(min), None) => format!("at least {min}{unit}"),
        (None, Some(max)) => format!("at most {max}{unit}"),
        (None, None) => String::new(),
    };
    let both: Vec<String> =
        [kind.to_owned(), bounds].into_iter().filter(|text| !text.is_empty()).collect();
    both.join(", ")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    fn check(form: &QuestionForm, state: &PromptState, expected: Expect) {
        let mut drawn = lines(form, 60);
        drawn.extend(state.lines(&items(form, state), 60, 99));
        drawn.pop(); // the hint
        let drawn: String = drawn.iter().map(|line| format!("|{}\n", line.text())).collect();
        expected.assert_eq(&drawn);
    }

    fn form(questions: Value) -> QuestionForm {
        QuestionForm::new(&json!({"id": "r", "questions": questions}))
    }

    #[test]
    fn a_request_without_questions_is_consent() {
        let request =
            json!({"id": "r", "message": "Sign in", "url": "https://example.org/\u{1b}[2J"});
        let form = QuestionForm::new(&request);
        check(
            &form,
            &PromptState::default(),
            expect![[r#"
                |  open https://example.org/\x1b[2J
                |  1 Approve
                |  2 Deny
                |  0 Dismiss
            "#]],
        );
    }

    #[test]
    fn every_kind_of_question_has_its_choices() {
        let mut form = form(json!([
            {"id": "a", "kind": "single-select", "message": "Which color?", "allowFreeformInput": true, "options": [
                {"id": "r", "label": "Red", "description": "like blood"},
                {"id": "b", "label": "Blue", "recommended": true},
            ]},
            {"id": "b", "kind": "text", "message": "Why?", "required": true, "max": 80},
            {"id": "c", "kind": "integer", "message": "How many?", "min": 1, "defaultValue": 2},
            {"id": "d", "kind": "boolean", "message": "Sure?"},
        ]));
        let state = PromptState::default();
        check(
            &form,
            &state,
            expect![[r#"
                |  1 of 4: Which color?
                |  1 Red: like blood
                |  2 Blue: recommended
                |  3 Other…
                |  7 Use the default: Blue
                |  9 Decline
                |  0 Dismiss
            "#]],
        );
        assert_eq!(form.answer_selected(&[0], None), Ok(Progress::Next));
        check(
            &form,
            &state,
            expect![[r#"
                |  2 of 4: Why?
                |  1 Answer: at most 80 characters
                |  8 Back
                |  9 Decline
                |  0 Dismiss
            "#]],
        );
        assert_eq!(form.answer_text("so"), Ok(Progress::Next));
        check(
            &form,
            &state,
            expect![[r#"
                |  3 of 4: How many?
                |  1 Answer: a whole number, at least 1
                |  7 Use the default: 2
                |  8 Back
                |  9 Decline
                |  0 Dismiss
            "#]],
        );
        assert_eq!(form.answer_by_default(), Ok(Progress::Next));
        check(
            &form,
            &state,
            expect![[r#"
                |  4 of 4: Sure?
                |  1 Yes
                |  2 No
                |  7 Skip
                |  8 Back
                |  9 Decline
                |  0 Dismiss
            "#]],
        );
    }

    #[test]
    fn several_options_are_marked_and_sent_together() {
        let form = form(
            json!([{"id": "a", "kind": "multi-select", "message": "What?", "allowFreeformInput": true,
            "options": [{"id": "s", "label": "A skull", "recommended": true}, {"id": "l", "label": "A lamp"}]}]),
        );
        let mut state = PromptState::default();
        assert_eq!(marks(&form, &state), BTreeSet::from([0]));
        state.marks = Some(BTreeSet::from([1]));
        state.own_words = "A rope".to_owned();
        check(
            &form,
            &state,
            expect![[r#"
                |  What?
                |  1 [ ] A skull: recommended
                |  2 [x] A lamp
                |  3 Other…: A rope
                |  7 Send selection
                |  9 Decline
                |  0 Dismiss
            "#]],
        );
        state = PromptState::default();
        state.marks = Some(BTreeSet::new());
        assert!(
            items(&form, &state)
                .iter()
                .any(|item| item.digit == Some(GO_ON) && item.action == PromptAction::GoOn)
        );
    }

    #[test]
    fn only_so_many_options_have_a_digit() {
        let options: Vec<Value> =
            (0..9).map(|n| json!({"id": n.to_string(), "label": n.to_string()})).collect();
        let form = form(
            json!([{"id": "a", "kind": "single-select", "required": true, "options": options}]),
        );
        let items = items(&form, &PromptState::default());
        let digits: String = items.iter().map(|item| item.digit.unwrap_or('·')).collect();
        assert_eq!(digits, "123456···90");
    }
}
