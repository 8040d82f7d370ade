//! Takes long texts out of a JSON value for a while, so that something can read its shape without copying them.

use serde_json::Value;

/// Longer ones are worth two walks through the value.
const LONG_BYTES: usize = 4 * 1_024;

/// The long texts of one value: each with the number of texts before it.
pub(super) struct LongTexts(Vec<(usize, String)>);

impl LongTexts {
    /// Leaves an empty text where each long one was.
    pub(super) fn take_from(value: &mut Value) -> Self {
        let (mut taken, mut index) = (Vec::new(), 0);
        visit_texts(value, &mut |text| {
            if text.len() > LONG_BYTES {
                taken.push((index, std::mem::take(text)));
            }
            index += 1;
        });
        Self(taken)
    }

    /// Restores the value that they were taken from.
    pub(super) fn put_back(self, value: &mut Value) {
        if self.0.is_empty() {
            return; // Most values have no long text: no second walk.
        }
        let (mut taken, mut index) = (self.0.into_iter().peekable(), 0);
        visit_texts(value, &mut |text| {
            if let Some((_, long)) = taken.next_if(|(position, _)| *position == index) {
                *text = long;
            }
            index += 1;
        });
        assert!(taken.next().is_none(), "the value is the one they came from");
    }
}

fn visit_texts(value: &mut Value, visit: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| visit_texts(item, visit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| visit_texts(field, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_whole_again_and_its_long_texts_were_moved() {
        let long = |letter: &str| letter.repeat(LONG_BYTES + 1);
        let original =
            json!({"a": long("a"), "b": ["", {"c": long("c")}, 7], "d": "x".repeat(LONG_BYTES)});
        let mut value = original.clone();
        let address = |value: &Value| value["b"][1]["c"].as_str().map(str::as_ptr);
        let before = address(&value);
        let taken = LongTexts::take_from(&mut value);
        assert_eq!((&value["a"], &value["b"][1]["c"]), (&json!(""), &json!("")));
        assert_eq!(value["d"], original["d"]);
        taken.put_back(&mut value);
        assert_eq!(value, original);
        assert_eq!(address(&value), before);
    }
}
