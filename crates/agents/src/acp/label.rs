//! Texts of agents that are shown as labels (TR-8).
//!
//! Promises: one line, bounded, without anything that a terminal would obey.

/// A label of at most so many characters.
pub(super) fn label(text: &str, chars_max: usize) -> String {
    let one_line = text.trim().chars().map(|c| match c {
        '\n' | '\r' | '\t' => ' ',
        c => c,
    });
    let mut readable = one_line.filter(|c| !is_unshowable(*c));
    let mut label: String = readable.by_ref().take(chars_max).collect();
    if readable.next().is_some() {
        label.push('…');
    }
    label
}

/// Control characters, and those that turn the direction of the text around them.
fn is_unshowable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_one_short_line() {
        assert_eq!(label(" a\nb\u{1b}[31m\u{202e}c ", 100), "a b[31mc");
        assert_eq!(label("äöü", 2), "äö…");
        assert_eq!(label("äöü", 3), "äöü");
    }
}
