//! No indexing of a JSON object that may lack the key: `object["x"]` panics then, while `value["x"]` is null. What reaches
//! these objects comes from peers, agents and files, so `get` is used.
//!
//! Finds parameters and `let`s whose type, or whose `as_object`, says that they are objects. Closures and elements of lists
//! have no type to read here; damaged parts are drawn in a test for those.

use std::ops::Range;

use anyhow::Result;

use crate::repository::{Repository, pattern};
use crate::source::{Source, closing_brace};

pub(crate) fn check_map_index(repository: &Repository) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for source in repository.sources(|name| name.starts_with("crates/") && name.contains("/src/")) {
        wrong.extend(indexed_objects(&source)?);
    }
    Ok(wrong)
}

fn indexed_objects(source: &Source) -> Result<Vec<String>> {
    let function = pattern(r"\bfn\s+\w+")?;
    let parameter = pattern(
        r"\b(?P<name>[a-z_]\w*)\s*:\s*&?\s*(?:'\w+\s+)?(?:mut\s+)?(?:wire::)?(?:Object|(?:serde_json::)?Map<String,\s*Value>)\s*[,)=;]",
    )?;
    let read = pattern(
        r"\blet\s+(?:Some\()?(?P<name>[a-z_]\w*)\)?\s*=[^;{]*\.as_object(?:_mut)?\(\)(?:\?|\s*else)",
    )?;
    let mut wrong = Vec::new();
    for found in function.find_iter(&source.code) {
        let Some(open) = source.code[found.end()..].find(['{', ';']) else {
            continue; // the end of the file
        };
        let open = found.end() + open;
        if !source.code[open..].starts_with('{') {
            continue; // a function without a body
        }
        let range = found.start()..closing_brace(&source.code, open);
        // Few functions index anything by a key: only those are worth a closer look.
        if !has_key_index(source, &range) {
            continue;
        }
        let text = &source.code[range.clone()];
        let named = parameter.captures_iter(text).chain(read.captures_iter(text));
        for name in named.filter_map(|found| found.name("name")) {
            for indexed in indices_of(name.as_str(), &text[name.end()..]) {
                let at = range.start + name.end() + indexed;
                // The inside of strings is in a view of its own.
                let is_key = source.literals.as_bytes().get(at) == Some(&b'"');
                if !is_key {
                    continue;
                }
                wrong.push(format!(
                    "{}:{}: `{}[\"..\"]` panics if the key is missing: use get",
                    source.name,
                    source.line_of(at) + 1,
                    name.as_str()
                ));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    Ok(wrong)
}

/// Whether anything is indexed by a string. The inside of strings is in a view of its own.
fn has_key_index(source: &Source, range: &Range<usize>) -> bool {
    let literals = source.literals.as_bytes();
    let mut brackets = source.code[range.clone()].match_indices('[');
    brackets.any(|(at, _)| literals.get(range.start + at + 1) == Some(&b'"'))
}

/// Where, behind the bracket, a variable is indexed; a field or a part of another name is not meant.
fn indices_of(name: &str, code: &str) -> Vec<usize> {
    let indexed = format!("{name}[");
    let found = code.match_indices(&indexed).filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        before.is_none_or(|before| before != '.' && before != '_' && !before.is_alphanumeric())
    });
    found.map(|(at, _)| at + indexed.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        let found = indexed_objects(&Source::new("a.rs", text)).unwrap();
        found.len()
    }

    #[test]
    fn an_object_that_is_indexed_is_found() {
        for text in [
            "fn a(part: &Object) -> &Value { &part[\"kind\"] }",
            "fn a(part: &wire::Object, b: u8) { match part[\"kind\"] { _ => {} } }",
            "fn a<'a>(part: &'a Map<String, Value>) { f(part[\"kind\"].as_str()) }",
            "fn a(mut part: Object) {\n    part[\"kind\"] = b;\n}",
            "fn a(v: &Value) { let Some(part) = v.as_object() else { return }; g(&part[\"k\"]) }",
            "fn a(v: &Value) -> Option<B> { let part = v.as_object()?; g(&part[\"k\"]) }",
        ] {
            assert_eq!(found(text), 1, "{text}");
        }
    }

    #[test]
    fn values_fields_and_other_functions_are_not() {
        for text in [
            "fn a(part: &Value) -> &Value { &part[\"kind\"] }",
            "fn a(part: &Object) -> Option<&Value> { part.get(\"kind\") }",
            "fn a(part: &Object) { self.part[\"kind\"] } ",
            "fn a(part: &Object) {} fn b(part: &Value) { part[\"kind\"] }",
            "fn a(part: &Object);",
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
    }
}
