//! What no file of the page may contain: ways to make HTML or code out of text, and addresses of elsewhere.
//!
//! The browser refuses them too (Content-Security-Policy, Trusted Types); here they are found before anybody opens the page.

use anyhow::Result;

use crate::repository::{Repository, pattern};

const APP: &str = "crates/web/app/";

/// Patterns and why they are refused.
const REFUSED: &[(&str, &str)] = &[
    (r"\binnerHTML\b", "makes HTML out of text"),
    (r"\bouterHTML\b", "makes HTML out of text"),
    (r"\binsertAdjacentHTML\b", "makes HTML out of text"),
    (r"\bdocument\s*\.\s*write", "makes HTML out of text"),
    (r"\bsrcdoc\b", "makes HTML out of text"),
    (r"\beval\s*\(", "makes code out of text"),
    (r"\bnew\s+Function\b", "makes code out of text"),
    (r"\bhttps?://", "an address of elsewhere"),
];

/// Names of XML vocabularies look like addresses, and nothing is fetched from them.
const VOCABULARY: &str = "http://www.w3.org/2000/svg";

pub(crate) fn check_page_source(repository: &Repository) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (name, text) in repository.texts() {
        if name.starts_with(APP) {
            wrong.extend(find_refused(name, text)?);
        }
    }
    Ok(wrong)
}

fn find_refused(name: &str, text: &str) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (refused, why) in REFUSED {
        let refused = pattern(refused)?;
        for (number, line) in text.lines().enumerate() {
            let line = line.replace(VOCABULARY, "");
            if let Some(found) = refused.find(&line) {
                let found = found.as_str();
                wrong.push(format!("{name}:{}: `{found}` {why}", number + 1));
            }
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_html_or_code_or_leads_elsewhere_is_found() {
        let found = |line: &str| find_refused("a.js", line).unwrap();
        for line in [
            "element.innerHTML = text",
            "a.outerHTML",
            "a.insertAdjacentHTML('beforeend', text)",
            "document.write(text)",
            "frame.srcdoc = text",
            "eval (text)",
            "new Function('a', text)",
            "fetch('https://example.com/')",
            "url(http://example.com/x.png)",
        ] {
            assert_eq!(found(line).len(), 1, "{line}");
        }
        for line in [
            "evaluate(text)",
            "url.protocol === 'https:'",
            "document.createElementNS('http://www.w3.org/2000/svg', 'path')",
            "fetch('/api/me')",
        ] {
            assert!(found(line).is_empty(), "{line}");
        }
    }
}
