//! JSON for people: indented, texts of several lines as lines.
//!
//! Promises: nothing is left out; what would control a terminal is written out.

use serde_json::Value;

use crate::terminal::{escape, json_line};

/// A value over several lines.
pub(super) fn pretty(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0);
    text.push('\n');
    text
}

fn write(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().map(|item| (None, item));
            write_all(text, '[', ']', items, depth);
        }
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|(name, value)| (Some(name), value));
            write_all(text, '{', '}', fields, depth);
        }
        Value::String(lines) if lines.contains('\n') => {
            text.push_str("\"\"\"\n");
            for line in lines.split('\n') {
                if !line.is_empty() {
                    indent(text, depth + 1);
                }
                text.push_str(&escape(line));
                text.push('\n');
            }
            indent(text, depth + 1);
            text.push_str("\"\"\"");
        }
        other => text.push_str(&json_line(other)),
    }
}

fn write_all<'a>(
    text: &mut String,
    open: char,
    close: char,
    values: impl ExactSizeIterator<Item = (Option<&'a String>, &'a Value)>,
    depth: usize,
) {
    text.push(open);
    text.push('\n');
    let last = values.len();
    for (number, (name, value)) in (1..).zip(values) {
        indent(text, depth + 1);
        if let Some(name) = name {
            text.push_str(&json_line(&Value::String(name.clone())));
            text.push_str(": ");
        }
        write(text, value, depth + 1);
        text.push_str(if number < last { ",\n" } else { "\n" });
    }
    indent(text, depth);
    text.push(close);
}

fn indent(text: &mut String, depth: usize) {
    for _ in 0..depth {
        text.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_several_lines_are_lines() {
        let value = json!({"a": [], "b": [1, {"c": "x\u{1b}"}], "d": "one\ntwo\u{7}\n"});
        expect![[r#"
            {
              "a": [],
              "b": [
                1,
                {
                  "c": "x\u001b"
                }
              ],
              "d": """
                one
                two\x07

                """
            }
        "#]]
        .assert_eq(&pretty(&value));
    }
}
