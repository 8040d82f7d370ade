//! What can be chosen about a model: the settings that its agent published, and values that people type for them.
//!
//! Promises: only a value that the published schema permits is taken; the error for another says what is permitted.
//! Must not know: connections, how settings are shown.

use serde_json::{Number, Value};

/// A setting of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSetting {
    pub key: String,
    pub title: String,
    pub description: String,
    pub kind: SettingKind,
    pub default: Option<Value>,
}

/// What values a setting may have.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingKind {
    /// One of a few.
    OneOf(Vec<ModelSettingValue>),
    Number {
        is_whole: bool,
        min: Option<f64>,
        max: Option<f64>,
    },
    Text,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettingValue {
    pub value: Value,
    /// What people call it.
    pub label: String,
}

/// Why a value cannot be set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingError {
    #[error("{key} is one of {values}")]
    NotOffered { key: String, values: String },
    #[error("{key} is a {}number{}", if *is_whole { "whole " } else { "" }, bounds(*min, *max))]
    NotSuchNumber { key: String, is_whole: bool, min: Option<f64>, max: Option<f64> },
}

fn bounds(min: Option<f64>, max: Option<f64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        (Some(min), None) => format!(" of at least {min}"),
        (None, Some(max)) => format!(" of at most {max}"),
        (None, None) => String::new(),
    }
}

impl ModelSetting {
    /// A setting as a schema describes it; none if it is of a kind that nobody can type.
    pub(super) fn read(key: &str, schema: &Value) -> Option<Self> {
        let kind = match (schema["enum"].as_array(), schema["type"].as_str()) {
            (Some(values), _) if values.is_empty() => return None,
            (Some(values), _) => {
                let labels = &schema["enumLabels"];
                let value = |(index, value): (usize, &Value)| ModelSettingValue {
                    label: match labels[index].as_str() {
                        Some(label) => label.to_owned(),
                        None => text_of(value),
                    },
                    value: value.clone(),
                };
                SettingKind::OneOf(values.iter().enumerate().map(value).collect())
            }
            (None, Some("boolean")) => SettingKind::OneOf(
                [(false, "off"), (true, "on")]
                    .map(|(value, label)| ModelSettingValue {
                        value: Value::Bool(value),
                        label: label.to_owned(),
                    })
                    .to_vec(),
            ),
            (None, Some(kind @ ("integer" | "number"))) => SettingKind::Number {
                is_whole: kind == "integer",
                min: schema["minimum"].as_f64(),
                max: schema["maximum"].as_f64(),
            },
            (None, Some("string")) => SettingKind::Text,
            (None, _) => return None,
        };
        Some(Self {
            key: key.to_owned(),
            title: schema["title"].as_str().unwrap_or(key).to_owned(),
            description: schema["description"].as_str().unwrap_or("").to_owned(),
            default: schema.get("default").cloned(),
            kind,
        })
    }

    /// The values to choose from; none if any number or text will do.
    pub fn values(&self) -> &[ModelSettingValue] {
        match &self.kind {
            SettingKind::OneOf(values) => values,
            SettingKind::Number { .. } | SettingKind::Text => &[],
        }
    }

    /// Reads what was typed as a value.
    pub fn parse(&self, text: &str) -> Result<Value, SettingError> {
        match &self.kind {
            SettingKind::OneOf(values) => {
                let is_named = |value: &&ModelSettingValue| {
                    text_of(&value.value) == text || value.label.eq_ignore_ascii_case(text)
                };
                let found = values.iter().find(is_named);
                found.map(|value| value.value.clone()).ok_or_else(|| SettingError::NotOffered {
                    key: self.key.clone(),
                    values: values
                        .iter()
                        .map(|value| text_of(&value.value))
                        .collect::<Vec<_>>()
                        .join(", "),
                })
            }
            SettingKind::Number { is_whole, min, max } => parse_number(text, *is_whole, *min, *max)
                .ok_or(SettingError::NotSuchNumber {
                    key: self.key.clone(),
                    is_whole: *is_whole,
                    min: *min,
                    max: *max,
                }),
            SettingKind::Text => Ok(Value::from(text)),
        }
    }

    /// What people call a value.
    pub fn label_of(&self, value: &Value) -> String {
        let known = self.values().iter().find(|known| known.value == *value);
        known.map_or_else(|| text_of(value), |known| known.label.clone())
    }
}

fn parse_number(text: &str, is_whole: bool, min: Option<f64>, max: Option<f64>) -> Option<Value> {
    let whole = text.parse::<i64>().ok();
    let number: f64 = text.parse().ok()?;
    let is_within = min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max);
    match (whole, is_whole) {
        _ if !is_within => None,
        (Some(whole), _) => Some(Value::from(whole)),
        (None, true) => None,
        (None, false) => Number::from_f64(number).map(Value::Number),
    }
}

/// A value as it is typed.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn setting(schema: &Value) -> ModelSetting {
        ModelSetting::read("effort", schema).unwrap()
    }

    #[test]
    fn one_of_a_few_is_named_by_its_value_or_its_label() {
        let efforts = setting(&json!({
            "type": "string", "title": "Reasoning effort", "enum": ["low", "xhigh"],
            "enumLabels": ["Low", "Extra high"], "default": "low", "description": "How much",
        }));
        assert_eq!(efforts.parse("xhigh"), Ok(json!("xhigh")));
        assert_eq!(efforts.parse("extra HIGH"), Ok(json!("xhigh")));
        assert_eq!(efforts.parse("most").unwrap_err().to_string(), "effort is one of low, xhigh");
        assert_eq!(efforts.label_of(&json!("xhigh")), "Extra high");
        assert_eq!(efforts.label_of(&json!("other")), "other");
        let fast = setting(&json!({"type": "boolean"}));
        assert_eq!(fast.parse("on"), Ok(json!(true)));
        assert!(fast.parse("1").is_err());
        assert_eq!(fast.values().len(), 2);
    }

    #[test]
    fn numbers_keep_their_bounds() {
        let tokens = setting(&json!({"type": "integer", "minimum": 256, "maximum": 4_000}));
        assert_eq!(tokens.parse("256"), Ok(json!(256)));
        for wrong in ["255", "4001", "300.5", "many", ""] {
            assert_eq!(
                tokens.parse(wrong).unwrap_err().to_string(),
                "effort is a whole number from 256 to 4000"
            );
        }
        let temperature = setting(&json!({"type": "number", "maximum": 2}));
        assert_eq!(temperature.parse("0.5"), Ok(json!(0.5)));
        for wrong in ["2.5", "NaN", "-inf"] {
            assert_eq!(
                temperature.parse(wrong).unwrap_err().to_string(),
                "effort is a number of at most 2"
            );
        }
    }

    #[test]
    fn what_nobody_can_type_is_no_setting() {
        assert_eq!(ModelSetting::read("x", &json!({"type": "object"})), None);
        assert_eq!(ModelSetting::read("x", &json!({"enum": []})), None);
        assert_eq!(ModelSetting::read("x", &json!(null)), None);
        let text = setting(&json!({"type": "string"}));
        assert_eq!(text.parse("a b"), Ok(json!("a b")));
    }
}
