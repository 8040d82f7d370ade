//! Questions an agent waits for: asked one by one, answered by lines, sent together.
//!
//! Promises: only answers that fit their question are taken; a required one is not skipped by accident.
//! Must not know: terminals, connections.

use serde_json::{Map, Value, json};

use super::part::answer_words;
use super::styled::{Line, Style};
use super::tool::body;
use super::wrap::wrap;
use crate::terminal::{clean, clean_line};

/// A request and what was answered so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Questions {
    request: Value,
    /// Answers by question, and which question comes next.
    answers: Map<String, Value>,
    next: usize,
}

/// What a line did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answered {
    /// The action that says it to the host.
    Act(Value),
    /// There is another question.
    Next,
    /// The line is no answer, and why.
    Wrong(String),
}

impl Questions {
    pub(crate) fn of(request: &Value) -> Self {
        Self {
            request: request.clone(),
            answers: Map::new(),
            next: 0,
        }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.request["id"] == other.request["id"]
            && self.request["questions"] == other.request["questions"]
    }

    fn questions(&self) -> &[Value] {
        self.request["questions"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    fn question(&self) -> Option<&Value> {
        self.questions().get(self.next)
    }

    /// A line was typed.
    pub(crate) fn line(&mut self, line: &str) -> Answered {
        match line.trim() {
            "/decline" => return Answered::Act(self.complete("decline")),
            "/cancel" => return Answered::Act(self.complete("cancel")),
            "/back" => {
                self.next = self.next.saturating_sub(1);
                return Answered::Next;
            }
            _ => {}
        }
        let Some(question) = self.question() else {
            // Nothing is asked but whether to go on.
            return match line.trim().to_lowercase().as_str() {
                "" | "y" | "yes" | "/accept" => Answered::Act(self.complete("accept")),
                "n" | "no" => Answered::Act(self.complete("decline")),
                _ => Answered::Wrong("Enter goes on; /decline refuses".to_owned()),
            };
        };
        let answer = match line.trim() {
            "/skip" => skip(question),
            "" => self.default_of(question).map_or_else(|| skip(question), Ok),
            text => parse(question, text),
        };
        match answer {
            Ok(answer) => {
                let id = question["id"].as_str().unwrap_or("").to_owned();
                self.answers.insert(id, answer);
                self.next += 1;
                if self.next < self.questions().len() {
                    Answered::Next
                } else {
                    Answered::Act(self.complete("accept"))
                }
            }
            Err(why) => Answered::Wrong(why),
        }
    }

    fn complete(&self, response: &str) -> Value {
        let mut action = json!({
            "type": "chat/inputCompleted",
            "requestId": self.request["id"],
            "response": response,
        });
        if response == "accept" && !self.answers.is_empty() {
            action["answers"] = Value::Object(self.answers.clone());
        }
        action
    }

    /// What an empty line stands for: what was answered before, here or elsewhere, or the default.
    fn default_of(&self, question: &Value) -> Option<Value> {
        let id = question["id"].as_str().unwrap_or("");
        if let Some(answer) = self.answers.get(id) {
            return Some(answer.clone());
        }
        let drafted = &self.request["answers"][id];
        if drafted["value"].is_object() {
            return Some(submitted(drafted["value"].clone()));
        }
        let kind = question["kind"].as_str().unwrap_or("text");
        let value = match kind {
            "single-select" => {
                let mut options = question["options"].as_array()?.iter();
                let chosen = options.find(|option| option["recommended"] == true)?;
                json!({"kind": "selected", "value": chosen["id"]})
            }
            "multi-select" => {
                let options = question["options"].as_array()?.iter();
                let chosen = options.filter(|option| option["recommended"] == true);
                let ids: Vec<&Value> = chosen.map(|option| &option["id"]).collect();
                if ids.is_empty() {
                    return None;
                }
                json!({"kind": "selected-many", "value": ids})
            }
            _ => {
                let default = question
                    .get("defaultValue")
                    .filter(|value| !value.is_null())?;
                let kind = if kind == "integer" { "number" } else { kind };
                json!({"kind": kind, "value": default})
            }
        };
        Some(submitted(value))
    }

    /// The question that is asked now, and how to answer it.
    pub(crate) fn lines(&self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(url) = self.request["url"].as_str() {
            let words = format!("open {}", clean_line(url));
            lines.extend(body(&words, Style::Warn, width));
        }
        let Some(question) = self.question() else {
            let how = "[Enter] go on   /decline refuses   /cancel gives it up";
            lines.extend(bold(how, width));
            return lines;
        };
        let count = self.questions().len();
        let number = match count {
            1 => String::new(),
            _ => format!("{} of {count}: ", self.next + 1),
        };
        let message = clean(question["message"].as_str().unwrap_or(""));
        lines.extend(bold(&format!("{number}{message}"), width));
        let options = question["options"].as_array().into_iter().flatten();
        for (index, option) in options.enumerate() {
            let text = |field: &str| clean_line(option[field].as_str().unwrap_or(""));
            let mut words = format!("{} {}", index + 1, text("label"));
            if !text("description").is_empty() {
                words.push_str(&format!(": {}", text("description")));
            }
            if option["recommended"] == true {
                words.push_str(" (recommended)");
            }
            lines.extend(body(&words, Style::Plain, width));
        }
        lines.extend(body(&self.how(question), Style::Dim, width));
        lines
    }

    fn how(&self, question: &Value) -> String {
        let freeform = question["allowFreeformInput"] == true;
        let mut how = match question["kind"].as_str() {
            Some("number") => "a number",
            Some("integer") => "a whole number",
            Some("boolean") => "y or n",
            Some("single-select") if freeform => "a number, or your own words",
            Some("single-select") => "a number",
            Some("multi-select") if freeform => "numbers like 1,3, or your own words",
            Some("multi-select") => "numbers like 1,3",
            _ => "your answer",
        }
        .to_owned();
        how.push_str(&bounds(question));
        match self.default_of(question) {
            Some(default) => {
                how.push_str(&format!("; Enter for {}", answer_words(question, &default)));
            }
            None if question["required"] != true => how.push_str("; Enter skips it"),
            None => {}
        }
        how.push_str("   /decline refuses   /cancel gives it up");
        if self.next > 0 {
            how.push_str("   /back");
        }
        how
    }
}

fn bold(text: &str, width: usize) -> Vec<Line> {
    let lines = wrap(text, width).into_iter();
    lines.map(|text| Line::new(Style::Bold, text)).collect()
}

fn bounds(question: &Value) -> String {
    let unit = match question["kind"].as_str() {
        Some("text") | None => " characters",
        Some("multi-select") => " of them",
        _ => "",
    };
    let bound = |field: &str| question.get(field).filter(|value| value.is_number());
    match (bound("min"), bound("max")) {
        (Some(min), Some(max)) => format!(", {min} to {max}{unit}"),
        (Some(min), None) => format!(", at least {min}{unit}"),
        (None, Some(max)) => format!(", at most {max}{unit}"),
        (None, None) => String::new(),
    }
}

fn submitted(value: Value) -> Value {
    json!({"state": "submitted", "value": value})
}

fn skip(question: &Value) -> Result<Value, String> {
    if question["required"] == true {
        return Err("an answer is needed; /decline refuses the whole request".to_owned());
    }
    Ok(json!({"state": "skipped"}))
}

fn parse(question: &Value, text: &str) -> Result<Value, String> {
    let value = match question["kind"].as_str() {
        Some("number") => number(question, text)?,
        Some("integer") => {
            text.parse::<i64>()
                .map_err(|_| format!("`{text}` is no whole number"))?;
            number(question, text)?
        }
        Some("boolean") => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => json!({"kind": "boolean", "value": true}),
            "n" | "no" | "false" => json!({"kind": "boolean", "value": false}),
            _ => return Err("y or n".to_owned()),
        },
        Some("single-select") => match option(question, text) {
            Some(id) => json!({"kind": "selected", "value": id}),
            None if question["allowFreeformInput"] == true => {
                json!({"kind": "selected", "value": "", "freeformValues": [text]})
            }
            None => return Err(format!("`{text}` is none of the choices")),
        },
        Some("multi-select") => many(question, text)?,
        _ => {
            within(question, text.chars().count() as f64, " characters")?;
            json!({"kind": "text", "value": text})
        }
    };
    Ok(submitted(value))
}

fn number(question: &Value, text: &str) -> Result<Value, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if !number.is_finite() {
        return Err(format!("`{text}` is no number"));
    }
    within(question, number, "")?;
    let value = match text.parse::<i64>() {
        Ok(whole) => json!(whole),
        Err(_) => json!(number),
    };
    Ok(json!({"kind": "number", "value": value}))
}

fn many(question: &Value, text: &str) -> Result<Value, String> {
    let mut ids: Vec<String> = Vec::new();
    let mut freeform: Vec<&str> = Vec::new();
    for word in text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        match option(question, word) {
            Some(id) if ids.contains(&id) => {}
            Some(id) => ids.push(id),
            None if question["allowFreeformInput"] == true => freeform.push(word),
            None => return Err(format!("`{word}` is none of the choices")),
        }
    }
    within(question, (ids.len() + freeform.len()) as f64, " of them")?;
    let mut value = json!({"kind": "selected-many", "value": ids});
    if !freeform.is_empty() {
        value["freeformValues"] = json!(freeform);
    }
    Ok(value)
}

/// The id of the option that a number, a label or an id names.
fn option(question: &Value, text: &str) -> Option<String> {
    let options = question["options"].as_array()?;
    let by_number = text
        .parse::<usize>()
        .ok()
        .and_then(|n| options.get(n.checked_sub(1)?));
    let named = |option: &&Value| {
        let label = option["label"].as_str().unwrap_or("");
        label.to_lowercase() == text.to_lowercase() || option["id"] == text
    };
    let option = by_number.or_else(|| options.iter().find(named))?;
    option["id"].as_str().map(str::to_owned)
}

fn within(question: &Value, measure: f64, unit: &str) -> Result<(), String> {
    if let Some(min) = question["min"].as_f64().filter(|min| measure < *min) {
        return Err(format!("at least {min}{unit}"));
    }
    if let Some(max) = question["max"].as_f64().filter(|max| measure > *max) {
        return Err(format!("at most {max}{unit}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn asked(question: Value) -> Questions {
        let mut question = question;
        question["id"] = json!("q");
        Questions::of(&json!({"id": "r", "questions": [question]}))
    }

    /// The value that an answer to a single question is sent as.
    fn sent(question: Value, line: &str) -> Result<Value, String> {
        match asked(question).line(line) {
            Answered::Act(action) => Ok(action["answers"]["q"].clone()),
            Answered::Wrong(why) => Err(why),
            Answered::Next => panic!("there is one question"),
        }
    }

    fn value(kind: &str, value: Value) -> Result<Value, String> {
        Ok(submitted(json!({"kind": kind, "value": value})))
    }

    #[test]
    fn every_kind_of_question_takes_its_answers() {
        let wrong = |why: &str| Err(why.to_owned());
        let text = json!({"kind": "text", "min": 2, "required": true});
        assert_eq!(sent(text.clone(), "  Ann "), value("text", json!("Ann")));
        assert_eq!(sent(text.clone(), "A"), wrong("at least 2 characters"));
        assert!(sent(text, "").unwrap_err().contains("/decline"));

        let number = json!({"kind": "number", "max": 2.5});
        assert_eq!(sent(number.clone(), "1.5"), value("number", json!(1.5)));
        assert_eq!(sent(number.clone(), "3"), wrong("at most 2.5"));
        assert_eq!(sent(number, "inf"), wrong("`inf` is no number"));
        let integer = json!({"kind": "integer"});
        assert_eq!(sent(integer.clone(), "7"), value("number", json!(7)));
        assert_eq!(sent(integer, "7.5"), wrong("`7.5` is no whole number"));

        let boolean = json!({"kind": "boolean", "defaultValue": false});
        assert_eq!(sent(boolean.clone(), "Yes"), value("boolean", json!(true)));
        assert_eq!(sent(boolean.clone(), ""), value("boolean", json!(false)));
        assert_eq!(sent(boolean, "perhaps"), wrong("y or n"));

        let options =
            json!([{"id": "r", "label": "Red"}, {"id": "b", "label": "Blue", "recommended": true}]);
        let single = json!({"kind": "single-select", "options": options});
        assert_eq!(sent(single.clone(), "1"), value("selected", json!("r")));
        assert_eq!(sent(single.clone(), "red"), value("selected", json!("r")));
        assert_eq!(sent(single.clone(), ""), value("selected", json!("b")));
        assert_eq!(sent(single, "9"), wrong("`9` is none of the choices"));
        let multi = json!({"kind": "multi-select", "options": options, "min": 1, "allowFreeformInput": true});
        assert_eq!(
            sent(multi.clone(), "1, 2,1"),
            value("selected-many", json!(["r", "b"]))
        );
        let mixed = json!({"kind": "selected-many", "value": ["b"], "freeformValues": ["Green"]});
        assert_eq!(sent(multi.clone(), "Green, blue"), Ok(submitted(mixed)));
        assert_eq!(sent(multi, ","), wrong("at least 1 of them"));

        let optional = json!({"kind": "something-new"});
        assert_eq!(sent(optional.clone(), ""), Ok(json!({"state": "skipped"})));
        assert_eq!(sent(optional, "x"), value("text", json!("x")));
    }

    #[test]
    fn several_questions_are_answered_together_and_can_be_gone_back_to() {
        let mut questions = Questions::of(&json!({"id": "r", "questions": [
            {"id": "a", "kind": "text", "message": "Name?"},
            {"id": "b", "kind": "boolean", "message": "Sure?"},
        ]}));
        assert_eq!(questions.line("Ann"), Answered::Next);
        assert_eq!(questions.line("/back"), Answered::Next);
        assert_eq!(
            questions.line(""),
            Answered::Next,
            "what was answered stands"
        );
        let Answered::Act(action) = questions.line("n") else {
            panic!("it was the last")
        };
        let expected = json!({"type": "chat/inputCompleted", "requestId": "r", "response": "accept", "answers": {
            "a": {"state": "submitted", "value": {"kind": "text", "value": "Ann"}},
            "b": {"state": "submitted", "value": {"kind": "boolean", "value": false}},
        }});
        assert_eq!(action, expected);
        let declined =
            json!({"type": "chat/inputCompleted", "requestId": "r", "response": "decline"});
        assert_eq!(questions.line("/decline"), Answered::Act(declined));
    }

    #[test]
    fn a_request_without_questions_is_accepted_or_not() {
        let request =
            json!({"id": "r", "message": "Sign in", "url": "https://example.org/\u{1b}[2J"});
        let mut questions = Questions::of(&request);
        let accepted =
            json!({"type": "chat/inputCompleted", "requestId": "r", "response": "accept"});
        assert_eq!(questions.line(""), Answered::Act(accepted));
        assert!(matches!(questions.line("what?"), Answered::Wrong(_)));
        let lines = questions.lines(60);
        let text: String = lines.iter().map(|line| line.text() + "\n").collect();
        expect![[r#"
              open https://example.org/
            [Enter] go on   /decline refuses   /cancel gives it up
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_question_says_how_to_answer_it() {
        let mut questions = Questions::of(&json!({"id": "r", "questions": [
            {"id": "a", "kind": "single-select", "message": "Which color?", "options": [
                {"id": "r", "label": "Red", "description": "like blood"},
                {"id": "b", "label": "Blue", "recommended": true},
            ]},
            {"id": "b", "kind": "text", "message": "Why?", "required": true, "max": 80},
        ]}));
        let shown = |questions: &Questions| -> String {
            let lines = questions.lines(70);
            lines.iter().map(|line| line.text() + "\n").collect()
        };
        expect![[r#"
            1 of 2: Which color?
              1 Red: like blood
              2 Blue (recommended)
              a number; Enter for Blue   /decline refuses   /cancel gives it up
        "#]]
        .assert_eq(&shown(&questions));
        questions.line("1");
        expect![[r#"
            2 of 2: Why?
              your answer, at most 80 characters   /decline refuses   /cancel
              gives it up   /back
        "#]]
        .assert_eq(&shown(&questions));
    }
}
