//! An agent's questions in lines, and the lines that answer them.
//!
//! Must not know: terminals, connections, the protocol.

use client::chat::{AnswerError, InputResponse, Progress, Question, QuestionForm, QuestionKind};

use super::line::{Line, Style};
use super::part::answer_text;
use super::tool::body;
use super::wrap::wrap;
use crate::terminal::{escape, escape_line};

/// How to get out of a question.
const WAYS_OUT: &str = "/decline: refuse, /cancel: dismiss";

/// What a line did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerOutcome {
    Complete(InputResponse),
    /// There is another question.
    Next,
    /// The line is no answer, and why.
    Wrong(String),
}

impl From<Result<Progress, AnswerError>> for AnswerOutcome {
    fn from(progress: Result<Progress, AnswerError>) -> Self {
        match progress {
            Ok(Progress::Next) => Self::Next,
            Ok(Progress::Complete(response)) => Self::Complete(response),
            Err(error @ AnswerError::Required) => {
                Self::Wrong(format!("{error}; /decline refuses the whole request"))
            }
            Err(error) => Self::Wrong(error.to_string()),
        }
    }
}

/// Takes a line that was typed.
pub(crate) fn answer_line(form: &mut QuestionForm, line: &str) -> AnswerOutcome {
    let line = line.trim();
    match line {
        "/decline" => AnswerOutcome::Complete(form.decline()),
        "/cancel" => AnswerOutcome::Complete(form.cancel()),
        "/back" => {
            form.go_back();
            AnswerOutcome::Next
        }
        _ if form.question().is_none() => {
            // Nothing is asked but whether to go on.
            match line.to_lowercase().as_str() {
                "" | "y" | "yes" | "/accept" => AnswerOutcome::Complete(form.accept()),
                "n" | "no" => AnswerOutcome::Complete(form.decline()),
                _ => AnswerOutcome::Wrong("Press Enter to continue, or type /decline".to_owned()),
            }
        }
        "/skip" => form.skip().into(),
        "" => form.answer_by_default().into(),
        text => form.answer(text).into(),
    }
}

/// The question that is asked now, and how to answer it.
pub(crate) fn lines(form: &QuestionForm, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(url) = form.url() {
        let text = format!("open {}", escape_line(url));
        lines.extend(body(&text, Style::Warn, width));
    }
    let Some(question) = form.question() else {
        lines.extend(bold(&format!("[Enter] continue   {WAYS_OUT}"), width));
        return lines;
    };
    let number = match form.count() {
        1 => String::new(),
        count => format!("{} of {count}: ", form.position() + 1),
    };
    let message = escape(question.message());
    lines.extend(bold(&format!("{number}{message}"), width));
    for (index, option) in question.options().enumerate() {
        let mut text = format!("{} {}", index + 1, escape_line(option.label));
        if !option.description.is_empty() {
            text.push_str(&format!(": {}", escape_line(option.description)));
        }
        if option.is_recommended {
            text.push_str(" (recommended)");
        }
        lines.extend(body(&text, Style::Plain, width));
    }
    lines.extend(body(&hint(form, question), Style::Dim, width));
    lines
}

/// How to answer a question.
fn hint(form: &QuestionForm, question: Question<'_>) -> String {
    let mut hint = match (question.kind(), question.allows_freeform()) {
        (QuestionKind::Number, _) | (QuestionKind::SingleSelect, false) => "a number",
        (QuestionKind::Integer, _) => "a whole number",
        (QuestionKind::Boolean, _) => "y or n",
        (QuestionKind::SingleSelect, true) => "a number, or your own words",
        (QuestionKind::MultiSelect, true) => "numbers like 1,3, or your own words",
        (QuestionKind::MultiSelect, false) => "numbers like 1,3",
        (QuestionKind::Text, _) => "your answer",
    }
    .to_owned();
    hint.push_str(&bounds_text(question));
    match form.default_answer() {
        Some(default) => {
            let default = answer_text(question.value(), default.value());
            hint.push_str(&format!("; Enter for {default}"));
        }
        None if !question.is_required() => hint.push_str("; Enter skips it"),
        None => {}
    }
    hint.push_str(&format!("   {WAYS_OUT}"));
    if form.position() > 0 {
        hint.push_str(", /back");
    }
    hint
}

fn bounds_text(question: Question<'_>) -> String {
    let (min, max, unit) = question.bounds();
    let unit = unit.suffix();
    match (min, max) {
        (Some(min), Some(max)) => format!(", {min} to {max}{unit}"),
        (Some(min), None) => format!(", at least {min}{unit}"),
        (None, Some(max)) => format!(", at most {max}{unit}"),
        (None, None) => String::new(),
    }
}

fn bold(text: &str, width: usize) -> Vec<Line> {
    let lines = wrap(text, width).into_iter();
    lines.map(|text| Line::new(Style::Bold, text)).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn draw(form: &QuestionForm, width: usize) -> String {
        let lines = lines(form, width);
        lines.iter().map(|line| line.text() + "\n").collect()
    }

    #[test]
    fn a_request_without_questions_is_accepted_or_not() {
        let request =
            json!({"id": "r", "message": "Sign in", "url": "https://example.org/\u{1b}[2J"});
        let mut form = QuestionForm::new(&request);
        assert_eq!(
            answer_line(&mut form, ""),
            AnswerOutcome::Complete(form.accept())
        );
        assert_eq!(
            answer_line(&mut form, "no"),
            AnswerOutcome::Complete(form.decline())
        );
        assert!(matches!(
            answer_line(&mut form, "what?"),
            AnswerOutcome::Wrong(_)
        ));
        expect![[r#"
              open https://example.org/\x1b[2J
            [Enter] continue   /decline: refuse, /cancel: dismiss
        "#]]
        .assert_eq(&draw(&form, 60));
    }

    #[test]
    fn a_question_says_how_to_answer_it() {
        let mut form = QuestionForm::new(&json!({"id": "r", "questions": [
            {"id": "a", "kind": "single-select", "message": "Which color?", "options": [
                {"id": "r", "label": "Red", "description": "like blood"},
                {"id": "b", "label": "Blue", "recommended": true},
            ]},
            {"id": "b", "kind": "text", "message": "Why?", "required": true, "max": 80},
        ]}));
        expect![[r#"
            1 of 2: Which color?
              1 Red: like blood
              2 Blue (recommended)
              a number; Enter for Blue   /decline: refuse, /cancel: dismiss
        "#]]
        .assert_eq(&draw(&form, 70));
        assert_eq!(answer_line(&mut form, " 1 "), AnswerOutcome::Next);
        expect![[r#"
            2 of 2: Why?
              your answer, at most 80 characters   /decline: refuse, /cancel:
              dismiss, /back
        "#]]
        .assert_eq(&draw(&form, 70));
        let AnswerOutcome::Wrong(why) = answer_line(&mut form, "") else {
            panic!("it is required")
        };
        assert!(why.contains("/decline"), "{why}");
        assert_eq!(answer_line(&mut form, "/back"), AnswerOutcome::Next);
        assert_eq!(form.position(), 0);
    }
}
