//! Arguments of a command: split into words, named, and put together again (C-048, C-050).

use serde_json::{Value, json};
use wire::Object;

/// How many words are split; what comes after them is one more, as it was typed. A text of a million words is not
/// a million arguments.
pub const WORDS_MAX: usize = 4_096;

/// What follows a command's name: leading blanks are no part of it, the rest is untouched.
pub fn raw_of(after_name: &str) -> &str {
    after_name.trim_start()
}

/// The `args` of a command part.
pub fn object(raw: &str) -> Object {
    let mut args = Object::new();
    if !raw.is_empty() {
        args.insert("raw".to_owned(), json!(raw));
        args.insert("argv".to_owned(), json!(split(raw)));
    }
    args
}

/// What was typed after the name and its words, of a command part that may come from anybody: one that was made by a
/// form has neither, and its values are its words.
pub fn read(args: &Object) -> (String, Vec<String>) {
    if let Some(raw) = args.get("raw").and_then(Value::as_str) {
        return (raw.to_owned(), split(raw));
    }
    let words = match args.get("argv") {
        Some(Value::Array(words)) => words.iter().filter_map(word_of).take(WORDS_MAX).collect(),
        _ => args.values().filter_map(word_of).take(WORDS_MAX).collect::<Vec<_>>(),
    };
    (words.join(" "), words)
}

fn word_of(value: &Value) -> Option<String> {
    match value {
        Value::String(word) => Some(word.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Splits at blanks. Quotes group and vanish; one without its fellow is a character like any other.
pub fn split(raw: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    // Once a quote found no fellow none of its kind further on does: looking again would cost a square.
    let (mut singles, mut doubles) = (true, true);
    let mut rest = raw;
    while let Some(c) = rest.chars().next() {
        if words.len() == WORDS_MAX {
            word = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
            break;
        }
        let after = &rest[c.len_utf8()..];
        let quoted = match c {
            '\'' if singles => {
                let quoted = single_quoted(after);
                singles = quoted.is_some();
                quoted
            }
            '"' if doubles => {
                let quoted = double_quoted(after);
                doubles = quoted.is_some();
                quoted
            }
            _ => None,
        };
        if let Some((text, beyond)) = quoted {
            word.get_or_insert_default().push_str(&text);
            rest = beyond;
            continue;
        }
        if c.is_whitespace() {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(c);
        }
        rest = after;
    }
    words.extend(word);
    words
}

fn single_quoted(after: &str) -> Option<(String, &str)> {
    let (inside, beyond) = after.split_once('\'')?;
    Some((inside.to_owned(), beyond))
}

/// Inside of double quotes a backslash takes away what a double quote and a backslash mean.
fn double_quoted(after: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = after.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((text, &after[at + 1..])),
            '\\' => match chars.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                Some((_, literal)) => text.push(literal),
                None => text.push(c),
            },
            _ => text.push(c),
        }
    }
    None
}

/// The named arguments of a prompt, filled from words in the order in which they are declared; the last one takes what
/// is left over, as a sentence needs no quotes then (C-050).
pub fn named(declared: &[String], words: &[String]) -> Object {
    let mut args = Object::new();
    for (index, name) in declared.iter().enumerate() {
        let Some(word) = words.get(index) else { break };
        let is_last = index + 1 == declared.len();
        let value = if is_last { words[index..].join(" ") } else { word.clone() };
        args.insert(name.clone(), json!(value));
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, words: &[&str]) {
        assert_eq!(split(raw), words, "{raw:?}");
    }

    #[test]
    fn c_048_blanks_separate_and_quotes_group() {
        check("", &[]);
        check("  a \t b\nc\u{a0}d ", &["a", "b", "c", "d"]);
        check(r#""my file.ts" 'very high'"#, &["my file.ts", "very high"]);
        check(r#"--name="a b"c"#, &["--name=a bc"]);
        check(r#""" ''"#, &["", ""]);
        check(r#""a\"b" "a\\" "a\n""#, &[r#"a"b"#, r"a\", r"a\n"]);
        check(r#"'a\' b"#, &[r"a\", "b"]);
    }

    #[test]
    fn c_048_an_unbalanced_quote_is_a_character() {
        check("it's bad", &["it's", "bad"]);
        check(r#"5" and 'x y'"#, &[r#"5""#, "and", "x y"]);
        check(r#""a\" b"#, &[r#""a\""#, "b"]);
    }

    #[test]
    fn many_quotes_without_a_fellow_are_looked_at_once() {
        let hostile = r#" \""#.repeat(4_000) + &r#"\""#.repeat(400_000);
        assert_eq!(split(&hostile).len(), 4_000);
    }

    #[test]
    fn a_million_words_are_not_a_million_arguments() {
        let words = split(&"a ".repeat(1_000_000));
        assert_eq!(words.len(), WORDS_MAX + 1);
        assert_eq!(words[WORDS_MAX].len(), 2 * (1_000_000 - WORDS_MAX) - 1);
    }

    #[test]
    fn c_050_named_arguments_are_filled_in_declared_order() {
        let names = ["file".to_owned(), "why".to_owned()];
        let words = split("a.ts it is slow");
        let args = Value::Object(named(&names, &words));
        assert_eq!(args, json!({"file": "a.ts", "why": "it is slow"}));
        assert_eq!(Value::Object(named(&names, &[])), json!({}));
    }

    #[test]
    fn arguments_of_a_form_are_its_values() {
        let Value::Object(args) = json!({"query": "icon set", "n": 3, "deep": {}}) else {
            unreachable!()
        };
        let (raw, words) = read(&args);
        assert_eq!((raw.as_str(), words.len()), ("icon set 3", 2));
    }
}
