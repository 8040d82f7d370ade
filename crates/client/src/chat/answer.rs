//! One question of an agent, and what people type read as an answer to it.
//!
//! Promises: only an answer that fits its question is taken.
//! Must not know: connections, how a question is shown.

use serde_json::{Value, json};

/// A question, as the agent asked it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question<'a>(pub(super) &'a Value);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionKind {
    /// Text; any kind that is not known is answered by text, too.
    Text,
    Number,
    Integer,
    Boolean,
    SingleSelect,
    MultiSelect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionOption<'a> {
    pub label: &'a str,
    pub description: &'a str,
    pub is_recommended: bool,
}

/// An answer as it is sent: a value, or that the question was skipped.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionAnswer(pub(super) Value);

/// What a bound of a question counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundUnit {
    /// The number itself.
    None,
    Characters,
    Choices,
}

/// Why a text is not an answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnswerError {
    #[error("`{0}` is not a number")]
    NotANumber(String),
    #[error("`{0}` is not a whole number")]
    NotAWholeNumber(String),
    #[error("answer y or n")]
    NotYesOrNo,
    #[error("`{0}` is none of the choices")]
    NotAChoice(String),
    #[error("at least {min}{}", unit.suffix())]
    TooSmall { min: f64, unit: BoundUnit },
    #[error("at most {max}{}", unit.suffix())]
    TooLarge { max: f64, unit: BoundUnit },
    #[error("an answer is required")]
    Required,
}

impl BoundUnit {
    /// What stands behind the number.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Characters => " characters",
            Self::Choices => " of them",
        }
    }
}

impl QuestionAnswer {
    pub(super) fn submitted(value: Value) -> Self {
        Self(json!({"state": "submitted", "value": value}))
    }

    pub(super) fn skipped() -> Self {
        Self(json!({"state": "skipped"}))
    }

    /// The answer as it stands in a request's part.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl<'a> Question<'a> {
    pub(super) fn id(self) -> &'a str {
        self.0["id"].as_str().unwrap_or("")
    }

    /// The question as it stands in a request's part.
    pub fn value(self) -> &'a Value {
        self.0
    }

    pub fn kind(self) -> QuestionKind {
        match self.0["kind"].as_str() {
            Some("number") => QuestionKind::Number,
            Some("integer") => QuestionKind::Integer,
            Some("boolean") => QuestionKind::Boolean,
            Some("single-select") => QuestionKind::SingleSelect,
            Some("multi-select") => QuestionKind::MultiSelect,
            _ => QuestionKind::Text,
        }
    }

    pub fn message(self) -> &'a str {
        self.0["message"].as_str().unwrap_or("")
    }

    pub fn is_required(self) -> bool {
        self.0["required"] == true
    }

    /// Whether words of one's own may be chosen.
    pub fn allows_freeform(self) -> bool {
        self.0["allowFreeformInput"] == true
    }

    pub fn options(self) -> impl Iterator<Item = QuestionOption<'a>> {
        self.raw_options().iter().map(|option| QuestionOption {
            label: option["label"].as_str().unwrap_or(""),
            description: option["description"].as_str().unwrap_or(""),
            is_recommended: option["recommended"] == true,
        })
    }

    /// The smallest and the largest answer, and what is counted.
    pub fn bounds(self) -> (Option<f64>, Option<f64>, BoundUnit) {
        let unit = match self.kind() {
            QuestionKind::Text => BoundUnit::Characters,
            QuestionKind::MultiSelect => BoundUnit::Choices,
            QuestionKind::Number
            | QuestionKind::Integer
            | QuestionKind::Boolean
            | QuestionKind::SingleSelect => BoundUnit::None,
        };
        (self.0["min"].as_f64(), self.0["max"].as_f64(), unit)
    }

    pub(super) fn raw_options(self) -> &'a [Value] {
        self.0["options"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The default or the recommended answer, if there is one.
    pub(super) fn default_answer(self) -> Option<QuestionAnswer> {
        let recommended = self.raw_options().iter();
        let mut recommended = recommended.filter(|option| option["recommended"] == true);
        let default = || self.0.get("defaultValue").filter(|value| !value.is_null());
        let value = match self.kind() {
            QuestionKind::SingleSelect => {
                json!({"kind": "selected", "value": recommended.next()?["id"]})
            }
            QuestionKind::MultiSelect => {
                let ids: Vec<&Value> = recommended.map(|option| &option["id"]).collect();
                if ids.is_empty() {
                    return None;
                }
                json!({"kind": "selected-many", "value": ids})
            }
            QuestionKind::Integer | QuestionKind::Number => {
                json!({"kind": "number", "value": default()?})
            }
            QuestionKind::Boolean => json!({"kind": "boolean", "value": default()?}),
            QuestionKind::Text => {
                let kind = self.0["kind"].as_str().unwrap_or("text");
                json!({"kind": kind, "value": default()?})
            }
        };
        Some(QuestionAnswer::submitted(value))
    }

    /// Reads what was typed as an answer.
    pub(super) fn parse(self, text: &str) -> Result<QuestionAnswer, AnswerError> {
        let value = match self.kind() {
            QuestionKind::Number => self.parse_number(text)?,
            QuestionKind::Integer => {
                text.parse::<i64>()
                    .map_err(|_| AnswerError::NotAWholeNumber(text.to_owned()))?;
                self.parse_number(text)?
            }
            QuestionKind::Boolean => match text.to_lowercase().as_str() {
                "y" | "yes" | "true" => json!({"kind": "boolean", "value": true}),
                "n" | "no" | "false" => json!({"kind": "boolean", "value": false}),
                _ => return Err(AnswerError::NotYesOrNo),
            },
            QuestionKind::SingleSelect => match self.find_option(text) {
                Some(id) => json!({"kind": "selected", "value": id}),
                None if self.allows_freeform() => {
                    json!({"kind": "selected", "value": "", "freeformValues": [text]})
                }
                None => return Err(AnswerError::NotAChoice(text.to_owned())),
            },
            QuestionKind::MultiSelect => self.parse_many(text)?,
            QuestionKind::Text => {
                self.check_bounds(text.chars().count() as f64)?;
                json!({"kind": "text", "value": text})
            }
        };
        Ok(QuestionAnswer::submitted(value))
    }

    fn parse_number(self, text: &str) -> Result<Value, AnswerError> {
        let number: Option<f64> = text.parse().ok();
        let number = number
            .filter(|number| number.is_finite())
            .ok_or_else(|| AnswerError::NotANumber(text.to_owned()))?;
        self.check_bounds(number)?;
        let value = match text.parse::<i64>() {
            Ok(whole) => json!(whole),
            Err(_) => json!(number),
        };
        Ok(json!({"kind": "number", "value": value}))
    }

    fn parse_many(self, text: &str) -> Result<Value, AnswerError> {
        let mut ids: Vec<String> = Vec::new();
        let mut freeform: Vec<&str> = Vec::new();
        let words = text.split(',').map(str::trim);
        for word in words.filter(|word| !word.is_empty()) {
            match self.find_option(word) {
                Some(id) if ids.contains(&id) => {}
                Some(id) => ids.push(id),
                None if self.allows_freeform() => freeform.push(word),
                None => return Err(AnswerError::NotAChoice(word.to_owned())),
            }
        }
        self.check_bounds((ids.len() + freeform.len()) as f64)?;
        let mut value = json!({"kind": "selected-many", "value": ids});
        if !freeform.is_empty() {
            value["freeformValues"] = json!(freeform);
        }
        Ok(value)
    }

    /// The id of the option that a number, a label or an id names.
    fn find_option(self, text: &str) -> Option<String> {
        let options = self.raw_options();
        let by_number = text
            .parse::<usize>()
            .ok()
            .and_then(|number| options.get(number.checked_sub(1)?));
        let is_named = |option: &&Value| {
            let label = option["label"].as_str().unwrap_or("");
            label.to_lowercase() == text.to_lowercase() || option["id"] == text
        };
        let option = by_number.or_else(|| options.iter().find(is_named))?;
        option["id"].as_str().map(str::to_owned)
    }

    fn check_bounds(self, measure: f64) -> Result<(), AnswerError> {
        let (min, max, unit) = self.bounds();
        if let Some(min) = min.filter(|min| measure < *min) {
            return Err(AnswerError::TooSmall { min, unit });
        }
        if let Some(max) = max.filter(|max| measure > *max) {
            return Err(AnswerError::TooLarge { max, unit });
        }
        Ok(())
    }
}
