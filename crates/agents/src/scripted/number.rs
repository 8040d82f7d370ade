//! Numbers of a script: written as numbers, or as strings that become numbers by substitution (G-03).
//!
//! Promises: a string that can never become a number is refused when the script is loaded.

use serde_json::Value;

use super::substitute::{Scope, may_change};

/// A number of a script that is not below zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Number {
    Fixed(u64),
    /// A number only after substitution.
    Text(String),
}

impl Number {
    /// Takes a value of a script; the error says what is wrong with it, the caller says where.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        match value {
            Value::Number(number) => {
                number.as_u64().map(Self::Fixed).ok_or_else(|| not_a_number(&number.to_string()))
            }
            Value::String(text) => match text.trim().parse() {
                Ok(number) => Ok(Self::Fixed(number)),
                Err(_) if may_change(text) => Ok(Self::Text(text.clone())),
                Err(_) => Err(not_a_number(&format!("{text:?}"))),
            },
            other => Err(not_a_number(&other.to_string())),
        }
    }

    /// The number in a scene that is being played.
    pub(super) fn value(&self, scope: &Scope) -> Result<u64, String> {
        match self {
            Self::Fixed(number) => Ok(*number),
            Self::Text(text) => {
                let text = scope.substitute(text);
                text.trim().parse().map_err(|_| not_a_number(&format!("{text:?}")))
            }
        }
    }
}

fn not_a_number(what: &str) -> String {
    format!("{what} is not a whole number of at least 0")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_come_as_numbers_or_as_strings() {
        assert_eq!(Number::parse(&json!(7)), Ok(Number::Fixed(7)));
        assert_eq!(Number::parse(&json!("7")), Ok(Number::Fixed(7)));
        assert_eq!(Number::parse(&json!("$1")), Ok(Number::Text("$1".to_owned())));
        for bad in [json!(-1), json!(1.5), json!("seven"), json!(null), json!([1])] {
            assert!(Number::parse(&bad).unwrap_err().contains("not a whole number"), "{bad}");
        }
    }

    #[test]
    fn a_string_is_read_after_substitution() {
        let scope = Scope::new("12", vec!["12".to_owned(), "x".to_owned()]);
        let read = |text: &str| Number::Text(text.to_owned()).value(&scope);
        assert_eq!(read("$1"), Ok(12));
        assert_eq!(read("{{text}}0"), Ok(120));
        assert_eq!(read("$2"), Err("\"x\" is not a whole number of at least 0".to_owned()));
    }
}
