//! What a turn is resumed from: the next step, and what `{{last}}` and `{{steering}}` stood for (G-04).

use agent_api::AgentError;
use bytes::Bytes;
use serde_json::{Value, json};

use super::super::substitute::Scope;

/// The largest checkpoint the host stores (G-04).
pub(super) const CHECKPOINT_BYTES_MAX: usize = 64 * 1_024;

/// Where a turn goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Checkpoint {
    step: usize,
    /// Absent: as at the beginning.
    last: Option<String>,
    steering: Option<String>,
}

/// The checkpoint before a step. What does not fit is forgotten, the longer of the two first.
pub(super) fn encode(next_step: usize, scope: &Scope) -> Bytes {
    let write = |last: &str, steering: &str| {
        let mut out = format!("{{\"step\":{next_step}");
        if scope.last != "{}" {
            out.push_str(",\"last\":");
            out.push_str(last); // is JSON already
        }
        if !scope.steering.is_empty() {
            out.push_str(",\"steering\":");
            out.push_str(&json!(steering).to_string());
        }
        out.push('}');
        Bytes::from(out)
    };
    let (last, steering) = (scope.last.as_str(), scope.steering.as_str());
    let one = if last.len() >= steering.len() { ("{}", steering) } else { (last, "") };
    [(last, steering), one]
        .into_iter()
        .map(|(last, steering)| write(last, steering))
        .find(|data| data.len() <= CHECKPOINT_BYTES_MAX)
        .unwrap_or_else(|| write("{}", ""))
}

impl Checkpoint {
    pub(super) fn read(data: &[u8]) -> Result<Self, AgentError> {
        Self::parse(data).ok_or_else(|| AgentError {
            error_type: "checkpoint".to_owned(),
            message: "the checkpoint of this turn cannot be read; send the message again"
                .to_owned(),
            resumable: false,
        })
    }

    fn parse(data: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(data).ok()?;
        Some(Self {
            step: usize::try_from(value["step"].as_u64()?).ok()?,
            last: value.get("last").map(Value::to_string),
            steering: value["steering"].as_str().map(str::to_owned),
        })
    }

    /// The step to go on with; what placeholders stood for is put back.
    pub(super) fn restore(self, scope: &mut Scope) -> usize {
        if let Some(last) = self.last {
            scope.last = last;
        }
        if let Some(steering) = self.steering {
            scope.steering = steering;
        }
        self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(last: &str, steering: &str) -> Scope {
        Scope { last: last.to_owned(), steering: steering.to_owned(), ..Scope::new("", Vec::new()) }
    }

    fn resumed(from: &Scope) -> (usize, Scope) {
        let mut into = scope("{\"stale\":true}", "stale");
        let data = encode(7, from);
        assert!(data.len() <= CHECKPOINT_BYTES_MAX);
        let step = Checkpoint::read(&data).unwrap().restore(&mut into);
        (step, into)
    }

    #[test]
    fn placeholders_have_the_same_values_after_a_resume() {
        let before = scope(r#"{"response":"accept","answers":{"b":1.50,"a":"\""}}"#, "left \"a\"");
        let (step, after) = resumed(&before);
        assert_eq!((step, after.steering), (7, before.steering));
        assert_eq!(after.last, r#"{"response":"accept","answers":{"b":1.5,"a":"\""}}"#);
        assert_eq!(encode(3, &scope("{}", "")), &b"{\"step\":3}"[..]);
    }

    #[test]
    fn values_that_do_not_fit_are_dropped_and_the_others_stored() {
        let long = "x".repeat(CHECKPOINT_BYTES_MAX);
        let long_last = json!({"content": long}).to_string();
        let (_, after) = resumed(&scope(&long_last, "left"));
        assert_eq!((after.last.as_str(), after.steering.as_str()), ("{}", "left"));
        let (_, after) = resumed(&scope("{\"a\":1}", &long));
        assert_eq!((after.last.as_str(), after.steering.as_str()), ("{\"a\":1}", ""));
        let (_, after) = resumed(&scope(&long_last, &long));
        assert_eq!((after.last.as_str(), after.steering.as_str()), ("{}", ""));
    }
}
