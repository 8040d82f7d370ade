//! One question of an agent, and what people chose or typed as an answer to it.
//!
//! Promises: only an answer that fits its question is taken. What somebody typed is their words, never the number or the name of
//! an option; options are chosen by their index.
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
    #[error("this question is not answered by yes or no")]
    NotYesOrNo,
    #[error("this question is answered by yes or no")]
    OnlyYesOrNo,
    #[error("there is no choice {0}")]
    NotAChoice(usize),
    #[error("only one of them can be chosen")]
    OnlyOneChoice,
    #[error("this question has no choices")]
    NoChoices,
    #[error("only the choices answer this question")]
    NoOwnWords,
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
    pub(super) fn read_text(self, text: &str) -> Result<QuestionAnswer, AnswerError> {
        let value = match self.kind() {
            QuestionKind::Number => self.parse_number(text)?,
            QuestionKind::Integer => {
                text.parse::<i64>().map_err(|_| AnswerError::NotAWholeNumber(text.to_owned()))?;
                self.parse_number(text)?
            }
            QuestionKind::Boolean => return Err(AnswerError::OnlyYesOrNo),
            QuestionKind::SingleSelect | QuestionKind::MultiSelect => {
                return self.select(&[], Some(text));
            }
            QuestionKind::Text => {
                self.check_bounds(text.chars().count() as f64)?;
                json!({"kind": "text", "value": text})
            }
        };
        Ok(QuestionAnswer::submitted(value))
    }

    pub(super) fn read_yes_no(self, is_yes: bool) -> Result<QuestionAnswer, AnswerError> {
        match self.kind() {
            QuestionKind::Boolean => {
                Ok(QuestionAnswer::submitted(json!({"kind": "boolean", "value": is_yes})))
            }
            _ => Err(AnswerError::NotYesOrNo),
        }
    }

    /// The options with these indexes, and words of one's own beside or instead of them.
    pub(super) fn select(
        self,
        indexes: &[usize],
        words: Option<&str>,
    ) -> Result<QuestionAnswer, AnswerError> {
        if words.is_some() && !self.allows_freeform() {
            return Err(AnswerError::NoOwnWords);
        }
        let mut ids: Vec<&str> = Vec::new();
        for index in indexes {
            let option = self.raw_options().get(*index);
            let id = option
                .and_then(|option| option["id"].as_str())
                .ok_or(AnswerError::NotAChoice(index + 1))?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let mut value = match self.kind() {
            QuestionKind::SingleSelect => match (&ids[..], words) {
                // The protocol wants a value beside words of one's own, too.
                ([], Some(_)) => json!({"kind": "selected", "value": ""}),
                ([id], None) => json!({"kind": "selected", "value": id}),
                ([], None) => return Err(AnswerError::Required),
                _ => return Err(AnswerError::OnlyOneChoice),
            },
            QuestionKind::MultiSelect => {
                self.check_bounds((ids.len() + usize::from(words.is_some())) as f64)?;
                json!({"kind": "selected-many", "value": ids})
            }
            _ => return Err(AnswerError::NoChoices),
        };
        if let Some(words) = words {
            value["freeformValues"] = json!([words]);
        }
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
