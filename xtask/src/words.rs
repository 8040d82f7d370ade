//! Names say what things are, in the words of the field: no people or furniture for machinery, and no function that is called by
//! what became of its argument (`told`, `kept`) in place of what it does.

use anyhow::Result;

use crate::repository::{Repository, pattern};
use crate::source::Source;

/// Names of types that mean something else in plain English.
const TYPES: &[&str] = &[
    "Answered",
    "Asked",
    "Blame",
    "Chore",
    "Desk",
    "Door",
    "Duty",
    "Ear",
    "Errand",
    "Fate",
    "Folded",
    "Icebox",
    "Kept",
    "Learned",
    "Looked",
    "Memo",
    "Nature",
    "Patience",
    "Place",
    "Planned",
    "Reach",
    "Reached",
    "Recalled",
    "Remembered",
    "Restored",
    "Returned",
    "Room",
    "Routed",
    "Saw",
    "Shelf",
    "Shelves",
    "Speech",
    "Standing",
    "Stepped",
    "Taken",
    "Teller",
    "Told",
    "Trip",
    "Waited",
    "Waiting",
    "WayBack",
    "Wish",
];

/// Names of functions that hide the verb.
const FUNCTIONS: &[&str] = &[
    "answered",
    "asked",
    "farewell",
    "heard",
    "kept",
    "meant",
    "said",
    "settled",
    "shown",
    "staged",
    "thaw",
    "told",
    "unasked",
    "understand",
];

/// Names that are still there, by file. A line goes with each rename; nothing is added.
const ALLOWED: &[(&str, &str)] = &[];

pub(crate) fn check_words(repository: &Repository) -> Result<Vec<String>> {
    let sources = repository.sources(|name| name.contains("/src/"));
    private_names(&sources, ALLOWED)
}

fn private_names(sources: &[Source], allowed: &[(&str, &str)]) -> Result<Vec<String>> {
    let name =
        |kinds: &str, names: &[&str]| pattern(&format!(r"\b(?:{kinds})\s+({})\b", names.join("|")));
    let patterns = [name("struct|enum|trait|type", TYPES)?, name("fn", FUNCTIONS)?];
    let mut wrong = Vec::new();
    for source in sources {
        for found in patterns.iter().flat_map(|name| name.captures_iter(&source.code)) {
            if !allowed.contains(&(source.name.as_str(), &found[1])) {
                wrong.push(format!(
                    "{}:{}: `{}` says little to a stranger: docs/glossary.md has the words",
                    source.name,
                    source.line_of(found.get(0).map_or(0, |whole| whole.start())) + 1,
                    &found[1]
                ));
            }
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, allowed: &[(&str, &str)]) -> usize {
        private_names(&[Source::new("a.rs", text)], allowed).unwrap().len()
    }

    #[test]
    fn names_of_a_private_language_are_found() {
        for text in ["pub struct Desk;", "enum Room { A }", "pub(crate) fn told(a: u8) {}"] {
            assert_eq!(found(text, &[]), 1, "{text}");
        }
        assert_eq!(found("struct Desk;", &[("a.rs", "Desk")]), 0);
    }

    #[test]
    fn other_names_variables_and_tests_are_fine() {
        for text in [
            "struct ChatRoomList;",
            "fn untold() { let told = 1; }",
            "#[cfg(test)]\nmod tests { fn shown() {} }",
        ] {
            assert_eq!(found(text, &[]), 0, "{text}");
        }
    }
}
