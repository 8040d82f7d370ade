//! JSON with comments and commas before a closing bracket, as editors write it.
//!
//! Promises: what is in strings stays as it is, and everything where it is.

/// The same without comments, as plain JSON.
pub(super) fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                plain.push(c);
                plain.extend(chars.next());
            }
            '"' => {
                in_string = !in_string;
                plain.push(c);
            }
            '/' if !in_string && chars.peek() == Some(&'/') => {
                plain.push(' ');
                while let Some(c) = chars.next_if(|c| *c != '\n') {
                    push_blank(&mut plain, c);
                }
            }
            '/' if !in_string && chars.peek() == Some(&'*') => {
                chars.next();
                plain.push_str("  ");
                let mut last = ' ';
                for c in chars.by_ref() {
                    match c {
                        '\n' => plain.push(c),
                        _ => push_blank(&mut plain, c),
                    }
                    if (last, c) == ('*', '/') {
                        break;
                    }
                    last = c;
                }
            }
            ']' | '}' if !in_string => {
                drop_comma(&mut plain);
                plain.push(c);
            }
            _ => plain.push(c),
        }
    }
    plain
}

/// As wide as a character is in UTF-16, by which clients count.
fn push_blank(plain: &mut String, c: char) {
    plain.extend(std::iter::repeat_n(' ', c.len_utf16()));
}

/// Takes a comma out that nothing follows.
fn drop_comma(plain: &mut String) {
    let end = plain.trim_end().len();
    if plain[..end].ends_with(',') {
        plain.replace_range(end - 1..end, " ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_strings_stay() {
        let text = "{ // one\n \"a\": \"// no, /* no */ \\\" ,]\", /* two\n lines */\n \"b\": [1, 2, ],\n}\n";
        let plain = without_comments(text);
        assert_eq!(plain.lines().count(), text.lines().count());
        let value: serde_json::Value = serde_json::from_str(&plain).unwrap();
        let expected = serde_json::json!({"a": "// no, /* no */ \" ,]", "b": [1, 2]});
        assert_eq!(value, expected);
    }
}
