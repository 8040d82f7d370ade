//! No indexing of a JSON object that may lack the key: `object["x"]` panics then, while `value["x"]` is null. What reaches
//! these objects comes from peers, agents and files, so `get` is used.
//!
//! Finds parameters and `let`s whose type, or whose `as_object`, says that they are objects. Closures and elements of lists
//! have no type to read here; damaged parts are drawn in a test for those.

use std::path::Path;

use anyhow::Result;
use regex::Regex;

use crate::source::{Source, closing_brace, read_sources};

pub(crate) fn check_map_index(root: &Path) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for source in read_sources(root, |name| {
        name.starts_with("crates/") && name.contains("/src/")
    })? {
        wrong.extend(indexed_objects(&source)?);
    }
    Ok(wrong)
}

fn indexed_objects(source: &Source) -> Result<Vec<String>> {
    let function = Regex::new(r"\bfn\s+\w+")?;
    let parameter = Regex::new(
        r"\b(?P<name>[a-z_]\w*)\s*:\s*&?\s*(?:'\w+\s+)?(?:mut\s+)?(?:wire::)?(?:Object|(?:serde_json::)?Map<String,\s*Value>)\s*[,)=;]",
    )?;
    let read = Regex::new(
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
        let text = &source.code[range.clone()];
        let named = parameter
            .captures_iter(text)
            .chain(read.captures_iter(text));
        for name in named.filter_map(|found| found.name("name")) {
            let index = Regex::new(&format!(r"(^|[^.\w]){}\[", name.as_str()))?;
            for indexed in index.find_iter(&text[name.end()..]) {
                let at = range.start + name.end() + indexed.end();
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
