//! What stands for something else in the strings of a scene: `$1`.., `{{text}}`, `{{last}}`, `{{steering}}`.
//!
//! Promises: one pass, so what a user wrote is never taken for a placeholder. Unknown placeholders stay as they are.

use serde_json::Value;
use wire::Object;

/// What the placeholders of a scene stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    /// Capture groups from `$1` on; a group that took no part is empty.
    pub(super) groups: Vec<String>,
    pub(super) text: String,
    /// JSON of the last answer, confirmation or tool result.
    pub(super) last: String,
    /// The text of the last steering message that was taken.
    pub(super) steering: String,
}

impl Scope {
    pub(super) fn new(text: &str, groups: Vec<String>) -> Self {
        // Before the first answer there is none: an object without keys, so that `{{last}}` always is JSON.
        let last = "{}".to_owned();
        Self { groups, text: text.to_owned(), last, steering: String::new() }
    }

    pub(super) fn substitute(&self, template: &str) -> String {
        let mut out = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(at) = rest.find(['$', '{']) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            match self.placeholder(from) {
                Some((meaning, length)) => {
                    out.push_str(meaning);
                    rest = &from[length..];
                }
                None => {
                    out.push_str(&from[..1]);
                    rest = &from[1..];
                }
            }
        }
        out.push_str(rest);
        out
    }

    /// Substitution is in values only, never in keys (G-03).
    pub(super) fn substitute_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.substitute(text)),
            Value::Array(items) => items.iter().map(|item| self.substitute_in(item)).collect(),
            Value::Object(fields) => Value::Object(self.substitute_fields(fields)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    pub(super) fn substitute_fields(&self, fields: &Object) -> Object {
        fields.iter().map(|(key, value)| (key.clone(), self.substitute_in(value))).collect()
    }

    /// The meaning and the length of the placeholder that `from` begins with.
    fn placeholder<'a>(&'a self, from: &str) -> Option<(&'a str, usize)> {
        let names =
            [("{{text}}", &self.text), ("{{last}}", &self.last), ("{{steering}}", &self.steering)];
        for (name, meaning) in names {
            if from.starts_with(name) {
                return Some((meaning, name.len()));
            }
        }
        let digits = from.strip_prefix('$')?.bytes().take_while(u8::is_ascii_digit).count();
        // The longest number that is a group: `$10` is group 1 and a zero where there are fewer than ten.
        (1..=digits).rev().find_map(|length| {
            let number: usize = from[1..=length].parse().ok()?;
            let group = self.groups.get(number.checked_sub(1)?)?;
            Some((group.as_str(), length + 1))
        })
    }
}

/// Could this string be another one after substitution?
pub(super) fn may_change(text: &str) -> bool {
    uses_groups(text)
        || ["{{text}}", "{{last}}", "{{steering}}"].iter().any(|name| text.contains(name))
}

/// Does this string name a capture group?
pub(super) fn uses_groups(text: &str) -> bool {
    text.split('$').skip(1).any(|after| after.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_substituted_as_documented() {
        let scope = Scope::new("the text", vec!["one".to_owned(), String::new()]);
        for (template, expected) in [
            ("$1", "one"),
            ("<$2>", "<>"),
            ("$10", "one0"),
            ("$3", "$3"),
            ("$0 $ $x", "$0 $ $x"),
            ("{{text}}!", "the text!"),
            ("{{last}}", "{}"),
            ("[{{steering}}]", "[]"),
            ("{{other}} {{ text }} {", "{{other}} {{ text }} {"),
            ("{{{text}}}", "{the text}"),
            ("ünd $1 – ü", "ünd one – ü"),
        ] {
            assert_eq!(scope.substitute(template), expected, "{template}");
        }
    }

    #[test]
    fn the_tenth_group_wins_where_it_exists() {
        let groups = (1..=10).map(|n| format!("<{n}>")).collect();
        let scope = Scope::new("", groups);
        assert_eq!(scope.substitute("$10 $1 $100 $010"), "<10> <1> <10>0 <10>");
    }

    #[test]
    fn substituted_text_is_not_substituted_again() {
        let scope = Scope::new("$1 {{last}}", vec!["{{text}}".to_owned()]);
        assert_eq!(scope.substitute("{{text}} $1"), "$1 {{last}} {{text}}");
    }

    #[test]
    fn constant_strings_are_recognised() {
        assert!(may_change("$1") && may_change("a{{text}}"));
        assert!(!may_change("seven") && !may_change("$") && !may_change("$x {{y}}"));
    }
}
