//! Names of models: which of them mean the same one.
//!
//! Promises: a name that is not certainly another's is nobody's: a newer model is never taken for an older one.

/// Words that may follow the name of a model without making it another.
const SUFFIXES: &[&str] = &["latest", "preview", "exp", "stable"];

/// Whether a server's name for a model is a known name: as it is, with a version behind it, or with the path or region of
/// somebody who passes it on before it.
pub(super) fn means(name: &str, known: &str) -> bool {
    let (name, known) = (plain(name), plain(known));
    match name.strip_prefix(known.as_str()) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('-').is_some_and(is_version),
        None => false,
    }
}

/// `us.anthropic.claude-opus-4-5-20251101-v1:0`, `anthropic/claude-opus-4.5` and `models/..` are spelt like
/// `claude-opus-4-5`.
fn plain(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = match name.split_once("anthropic.") {
        Some((_, name)) => name,
        None => name,
    };
    name.to_ascii_lowercase().replace(['.', ':', '@'], "-")
}

/// `20251101-v1-0`, `2025-08-07`, `preview-09-2025`, `latest`, `001`.
fn is_version(rest: &str) -> bool {
    let is_digits = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let is_revision = |word: &str| word.strip_prefix('v').is_some_and(is_digits);
    let mut words = rest.split('-');
    // A single digit is the number of another model.
    let begins = words.next().is_some_and(|word| {
        SUFFIXES.contains(&word) || is_revision(word) || (is_digits(word) && word.len() >= 3)
    });
    begins && words.all(|word| SUFFIXES.contains(&word) || is_revision(word) || is_digits(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_resellers_change_nothing() {
        for name in [
            "claude-opus-4-5",
            "claude-opus-4-5-20251101",
            "claude-opus-4-5@20251101",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "anthropic/claude-opus-4.5",
            "Claude-Opus-4-5-latest",
        ] {
            assert!(means(name, "claude-opus-4-5"), "{name}");
        }
        assert!(means("gpt-5-2025-08-07", "gpt-5"));
        assert!(means("models/gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"));
        assert!(means("gemini-2.0-flash-001", "gemini-2.0-flash"));
    }

    #[test]
    fn another_model_is_another_model() {
        for (name, known) in [
            ("claude-opus-4-9", "claude-opus-4"),
            ("gpt-5-mini", "gpt-5"),
            ("gpt-5.5", "gpt-5"),
            ("gpt-55", "gpt-5"),
            ("gpt-4o-mini", "gpt-4o"),
            ("openai/gpt-4o:free", "gpt-4o"),
            ("my-gpt-5", "gpt-5"),
            ("", "gpt-5"),
        ] {
            assert!(!means(name, known), "{name} is not {known}");
        }
    }
}
