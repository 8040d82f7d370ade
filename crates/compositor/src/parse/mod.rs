//! What the user typed: a command at the beginning (C-045), mentions anywhere (C-066), prose otherwise.

mod mention;

pub(crate) use mention::{Kinds, TextSpan, quote_value, spans};

/// What a text begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start<'a> {
    /// A command's id with its slash; its arguments begin after it.
    Command(&'a str),
    /// A backslash that takes away what the slash after it means.
    Escaped,
    Prose,
}

/// Reads the beginning of a whole message: only there does a slash mean anything.
pub(crate) fn start(text: &str) -> Start<'_> {
    if text.starts_with("\\/") {
        return Start::Escaped;
    }
    let Some(after) = text.strip_prefix('/') else { return Start::Prose };
    let name = command_name(after);
    let beyond = &after[name.len()..];
    if name.is_empty() || !(beyond.is_empty() || beyond.starts_with(char::is_whitespace)) {
        return Start::Prose;
    }
    Start::Command(&text[..1 + name.len()])
}

fn command_name(text: &str) -> &str {
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return "";
    }
    let belongs = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    &text[..end]
}

/// The command that a whole message begins with, with its slash.
pub fn command_in(text: &str) -> Option<&str> {
    match start(text) {
        Start::Command(command) => Some(command),
        Start::Escaped | Start::Prose => None,
    }
}

/// Whether a command can have this name.
pub fn is_command_name(name: &str) -> bool {
    !name.is_empty() && command_name(name) == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_045_a_command_is_at_the_very_beginning_and_ends_in_a_blank() {
        for (text, expected) in [
            ("/compact", Start::Command("/compact")),
            ("/compact now", Start::Command("/compact")),
            ("/a\nb", Start::Command("/a")),
            ("/mcp:x:y.z_1-2 a", Start::Command("/mcp:x:y.z_1-2")),
            ("/0", Start::Command("/0")),
            ("/a\u{a0}b", Start::Command("/a")),
            (" /compact", Start::Prose),
            ("please run /compact later", Start::Prose),
            ("/", Start::Prose),
            ("/ a", Start::Prose),
            ("//a", Start::Prose),
            ("/etc/passwd", Start::Prose),
            ("/-a", Start::Prose),
            ("/a,", Start::Prose),
            ("/aé", Start::Prose),
            ("\\/compact", Start::Escaped),
            ("\\/", Start::Escaped),
            ("\\\\/a", Start::Prose),
            ("", Start::Prose),
        ] {
            assert_eq!(start(text), expected, "{text:?}");
        }
    }
}
