//! The list of models a server has.

use serde_json::Value;

use super::super::ProviderErrorKind::Unreadable;
use super::super::{CHECK_BASE_URL, ProviderError};

/// More than anybody chooses from.
const NAMES_MAX: usize = 20_000;

/// `{"data": [{"id"}]}`, or `{"models": [{"name"}]}` of some.
pub(crate) fn model_names(body: &[u8]) -> Result<Vec<String>, ProviderError> {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let list = ["data", "models"].into_iter().find_map(|field| value[field].as_array());
    let Some(list) = list else {
        let message = "the server does not answer with a list of models";
        let error = ProviderError::new(Unreadable, message);
        return Err(error.with_advice(CHECK_BASE_URL));
    };
    let name = |model: &Value| {
        let name = ["id", "name", "model"].into_iter().find_map(|field| model[field].as_str());
        name.map(str::to_owned)
    };
    Ok(list.iter().filter_map(name).take(NAMES_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_in_two_shapes() {
        let names = |body: &str| model_names(body.as_bytes());
        assert_eq!(
            names(r#"{"object":"list","data":[{"id":"a"},{"id":"b"},{}]}"#).unwrap(),
            ["a", "b"]
        );
        assert_eq!(names(r#"{"models":[{"name":"a","model":"a:latest"}]}"#).unwrap(), ["a"]);
        assert!(names(r#"{"data":[]}"#).unwrap().is_empty());
        for body in ["", "<html>", "[]", r#"{"data":1}"#] {
            assert_eq!(names(body).unwrap_err().kind, Unreadable);
        }
    }
}
