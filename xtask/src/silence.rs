//! No silent return in the kernel: `let .. else { return; }`, `if .. { return; }` and `.. => return,` hide that something expected was
//! not there. Such a block asserts, tells somebody, or has a comment that says why returning is right.

use anyhow::Result;

use crate::repository::{Repository, pattern};
use crate::source::{Source, closing_brace};

/// Fewer letters than this are no reason.
const REASON_LETTERS: usize = 10;

pub(crate) fn check_silence(repository: &Repository) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for source in repository.sources(|name| name.starts_with("crates/kernel/src/")) {
        wrong.extend(silent_returns(&source)?);
    }
    Ok(wrong)
}

fn silent_returns(source: &Source) -> Result<Vec<String>> {
    let block_start = pattern(r"\belse\s*\{")?;
    let other_start = pattern(r"\b(let|if)\b|=>")?;
    let other_return = pattern(r"(\{\s*return;\s*\}|=>\s*return,)")?;
    let nothing =
        pattern(r"^\{\s*return\s*(\(\)|[A-Za-z_:<>]*\b[Dd]efault(::default)?\(\))?\s*;?\s*\}$")?;
    let statement_start = pattern(r"\b(let|if)\b")?;
    let comments: Vec<&str> = source.comments.lines().collect();
    let has_reason = |line: usize| {
        comments.get(line).is_some_and(|comment| {
            comment.chars().filter(|c| c.is_alphabetic()).count() >= REASON_LETTERS
        })
    };
    let mut wrong = Vec::new();
    for found in block_start.find_iter(&source.code) {
        let open = found.end() - 1;
        let end = closing_brace(&source.code, open);
        if !nothing.is_match(&source.code[open..end]) {
            continue;
        }
        let start = statement_start
            .find_iter(&source.code[..found.start()])
            .last()
            .map_or(found.start(), |keyword| keyword.start());
        let first = source.line_of(start).saturating_sub(1);
        let last = source.line_of(end.saturating_sub(1));
        if !(first..=last).any(has_reason) {
            wrong.push(format!(
                "{}:{}: a silent return: assert, refuse, or say why it is right",
                source.name,
                source.line_of(found.start()) + 1
            ));
        }
    }
    for found in other_return.find_iter(&source.code) {
        let before = source.code[..found.start()].trim_end();
        if before.ends_with("else") {
            continue; // looked at above
        }
        let start = other_start
            .find_iter(before)
            .last()
            .filter(|_| found.as_str().starts_with('{'))
            .map_or(found.start(), |keyword| keyword.start());
        let first = source.line_of(start).saturating_sub(1);
        let last = source.line_of(found.end() - 1);
        if !(first..=last).any(has_reason) {
            wrong.push(format!(
                "{}:{}: a silent return: assert, refuse, or say why it is right",
                source.name,
                source.line_of(found.start()) + 1
            ));
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        silent_returns(&Source::new("a.rs", text)).unwrap().len()
    }

    #[test]
    fn a_return_without_a_word_is_found() {
        assert_eq!(found("let Some(a) = b else { return; };"), 1);
        assert_eq!(found("let Some(a) = b else { return };"), 1);
        assert_eq!(found("let Some(a) = b else {return Default::default()};"), 1);
        assert_eq!(found("let Some(a) = b\n    .c()\nelse {\n    return Facts::default();\n};"), 1);
        assert_eq!(found("if let Some(a) = b { c(); } else { return; }"), 1);
        assert_eq!(found("if a.is_empty() {\n    return;\n}"), 1);
        assert_eq!(found("match a {\n    None => return,\n    Some(b) => b,\n}"), 1);
    }

    #[test]
    fn a_reason_before_beside_or_inside_is_enough() {
        let because = "// the peer left meanwhile: nobody waits";
        assert_eq!(found(&format!("{because}\nlet Some(a) = b else {{ return; }};")), 0);
        assert_eq!(found(&format!("let Some(a) = b else {{ return; }}; {because}")), 0);
        assert_eq!(found(&format!("let Some(a) = b else {{\n    {because}\n    return;\n}};")), 0);
        assert_eq!(found("let Some(a) = b else { return; }; // ok"), 1);
        assert_eq!(found(&format!("if a {{\n    return; {because}\n}}")), 0);
        assert_eq!(found(&format!("match a {{\n    None => return, {because}\n}}")), 0);
        assert_eq!(found("if a { b(); return; }"), 0);
    }

    #[test]
    fn an_assertion_a_value_and_a_test_are_no_silence() {
        assert_eq!(found("let Some(a) = b else { debug_assert!(false); return; };"), 0);
        assert_eq!(found("let Some(a) = b else { return Err(Refusal::Unknown); };"), 0);
        assert_eq!(
            found("#[cfg(test)]\nmod tests { fn a() { let Some(a) = b else { return; }; } }"),
            0
        );
    }
}
