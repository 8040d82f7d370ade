//! Rules that are cited by code (`H-078`, `G-47`) are defined in `docs/rules`, once each.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::repository::{Repository, pattern};

/// Families of codes. A capital letter and a number of any other family is not a rule (`UTF-8`).
const CODE: &str = r"\b([A-Z]+)-([0-9]{2,3}[a-z]?)\b";
const FAMILIES: &[&str] = &["AG", "C", "CU", "D", "G", "H", "MC", "TR"];

/// Where the rules are.
const RULES: &str = "docs/rules/";

/// Citations of documents that are not in the repository. Written in two pieces so that this file does not find itself.
const UNKNOWN_DOCUMENTS: &[(&str, &str)] = &[
    ("host-", "rules"),
    ("(comp", "ositor.md"),
    ("of comp", "ositor.md"),
    ("as comp", "ositor.md"),
    ("hou", "se 2"),
    ("hou", "se, "),
    ("Hou", "se, "),
    ("Hou", "se: "),
    ("seed ", "00"),
];

/// Every code that is cited and not defined, or defined twice.
pub(crate) fn check_rules(repository: &Repository) -> Result<Vec<String>> {
    let (rules, others) = read_texts(repository);
    undefined_codes(&rules, &others)
}

/// Every citation of a document that nobody can open.
pub(crate) fn check_citations(repository: &Repository) -> Result<Vec<String>> {
    let (_, others) = read_texts(repository);
    Ok(others.iter().flat_map(|(name, text)| unknown_documents(name, text)).collect())
}

type Texts = Vec<(String, String)>;

fn read_texts(repository: &Repository) -> (Texts, Texts) {
    let mut rules = Vec::new();
    let mut others = Vec::new();
    for (name, text) in repository.texts() {
        let file = (name.to_owned(), text.to_owned());
        if name.starts_with(RULES) {
            rules.push(file);
        } else if name.ends_with(".rs") || name.ends_with(".md") || name.ends_with(".toml") {
            others.push(file);
        }
    }
    (rules, others)
}

fn undefined_codes(rules: &Texts, others: &Texts) -> Result<Vec<String>> {
    let definition = pattern(r"^- \*\*([A-Z]+-[0-9]{2,3}[a-z]?)\*\*: \S")?;
    let code = pattern(CODE)?;
    let mut wrong = Vec::new();
    let mut defined: BTreeMap<String, String> = BTreeMap::new();
    for (name, text) in rules {
        for (number, line) in text.lines().enumerate() {
            let Some(found) = definition.captures(line) else { continue };
            let place = format!("{name}:{}", number + 1);
            if let Some(first) = defined.insert(found[1].to_owned(), place.clone()) {
                wrong.push(format!("{place}: {} is defined at {first} too", &found[1]));
            }
        }
    }
    for (name, text) in rules.iter().chain(others) {
        for (number, line) in text.lines().enumerate() {
            for found in code.captures_iter(line) {
                if FAMILIES.contains(&&found[1]) && !defined.contains_key(&found[0]) {
                    wrong.push(format!(
                        "{name}:{}: {} is not defined in {RULES}",
                        number + 1,
                        &found[0]
                    ));
                }
            }
        }
    }
    Ok(wrong)
}

fn unknown_documents(name: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (first, second) in UNKNOWN_DOCUMENTS {
            let wanted = format!("{first}{second}");
            if line.contains(&wanted) {
                wrong.push(format!(
                    "{name}:{}: `{wanted}` refers to a document that is not here: cite {RULES} or an ADR",
                    number + 1
                ));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Texts {
        vec![("a.md".to_owned(), text.to_owned())]
    }

    #[test]
    fn a_code_that_is_cited_must_be_defined() {
        let code = format!("G-{}", "98");
        let rules = texts("- **G-01**: The first.\n");
        let others = texts(&format!("// as G-01 says, in UTF-16 ({code})"));
        assert_eq!(
            undefined_codes(&rules, &others).unwrap(),
            [format!("a.md:1: {code} is not defined in docs/rules/")]
        );
    }

    #[test]
    fn a_code_is_defined_once_and_in_words() {
        let twice = texts("- **G-01**: The first.\n- **G-01**: The first again.\n");
        assert_eq!(undefined_codes(&twice, &Vec::new()).unwrap().len(), 1);
        let empty = texts("- **G-01**: \n");
        assert_eq!(undefined_codes(&empty, &texts("G-01")).unwrap().len(), 2);
    }

    #[test]
    fn a_document_that_is_not_here_is_not_cited() {
        let cited = format!("//! as {}-rules section 10 says", "host");
        assert_eq!(unknown_documents("a.rs", &cited).len(), 1);
        assert!(unknown_documents("a.rs", "//! as docs/rules/protocol.md says").is_empty());
    }
}
