//! Whether a text of a file may enter a session's state as it is (TR-8): a name or a value that is too long, or that holds
//! what a terminal obeys or what turns the direction of text, may not. A shortened one would be another name.

/// A name of a child, a plugin or a model.
const NAME_BYTES_MAX: usize = 128;

/// An entry of a list: a tool, a pattern of files.
const ITEM_BYTES_MAX: usize = 256;

const ITEMS_MAX: usize = 128;

/// A value that is only shown.
const HINT_BYTES_MAX: usize = 1_024;

pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && is_showable(text)
}

/// Whether a value that is only shown can be.
pub(super) fn is_hint(text: &str) -> bool {
    text.len() <= HINT_BYTES_MAX && is_showable(text)
}

/// The entries of a list, or what is wrong with them.
pub(super) fn check_items(key: &str, items: &[String]) -> Result<(), String> {
    if items.len() > ITEMS_MAX {
        return Err(format!("its `{key}` has more than {ITEMS_MAX} entries"));
    }
    if items.iter().any(|item| item.len() > ITEM_BYTES_MAX) {
        return Err(format!("an entry of its `{key}` is longer than {ITEM_BYTES_MAX} bytes"));
    }
    if items.iter().all(|item| is_showable(item)) {
        Ok(())
    } else {
        Err(format!("an entry of its `{key}` cannot be shown"))
    }
}

fn is_showable(text: &str) -> bool {
    !text.chars().any(is_unshowable)
}

/// Control characters, ends of lines, and what turns the direction of the text around it.
pub(super) fn is_unshowable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tr_008_a_name_is_short_and_holds_nothing_that_is_obeyed() {
        assert!(
            is_name("Helper One") && is_name("PreToolUse (settings.local.json)") && is_name("日本")
        );
        assert!(is_name(&"x".repeat(128)) && !is_name(&"x".repeat(129)));
        for name in ["", "a\nb", "a\u{1b}[2J", "a\u{9b}", "a\u{202e}b", "a\u{2066}b", "a\u{2028}b"]
        {
            assert!(!is_name(name), "{name:?}");
        }
    }

    #[test]
    fn a_list_is_bounded_in_number_and_length() {
        let items = |count: usize, length: usize| vec!["x".repeat(length); count];
        assert_eq!(check_items("tools", &items(128, 256)), Ok(()));
        for (items, reason) in [
            (items(129, 1), "more than 128"),
            (items(1, 257), "longer than 256"),
            (vec!["a\tb".to_owned()], "cannot be shown"),
        ] {
            let refused = check_items("tools", &items).unwrap_err();
            assert!(refused.contains(reason) && refused.contains("`tools`"), "{refused}");
        }
    }
}
