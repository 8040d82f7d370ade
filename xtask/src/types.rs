//! One name for one concept: no type name is defined twice in the crates, apart from a list that only shrinks.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::repository::{Repository, pattern};
use crate::source::Source;

/// Names that are still defined several times, one a line with their number. A line goes, or its number falls, with every
/// rename; nothing is added.
const ALLOWED: &str = include_str!("../duplicate_types.txt");

pub(crate) fn check_types(repository: &Repository) -> Result<Vec<String>> {
    let sources = repository.sources(|name| name.starts_with("crates/") && name.contains("/src/"));
    duplicate_types(&sources, &read_allowed(ALLOWED)?)
}

fn read_allowed(list: &str) -> Result<BTreeMap<String, usize>> {
    list.lines()
        .map(|line| {
            let (name, count) = line.split_once(' ').context("a line is `Name 2`")?;
            Ok((name.to_owned(), count.parse()?))
        })
        .collect()
}

fn duplicate_types(sources: &[Source], allowed: &BTreeMap<String, usize>) -> Result<Vec<String>> {
    // An alias inside an `impl` or a trait is indented and belongs to it; one at the margin is a name of its own.
    let definition = pattern(
        r"(?m)^(?:\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|union|trait)|(?:pub(?:\([^)]*\))?\s+)?type)\s+(\w+)",
    )?;
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        for found in definition.captures_iter(&source.code) {
            let place = format!(
                "{}:{}",
                source.name,
                source.line_of(found.get(1).map_or(0, |name| name.start())) + 1
            );
            places.entry(found[1].to_owned()).or_default().push(place);
        }
    }
    let mut wrong = Vec::new();
    for (name, places) in &places {
        let allowed = allowed.get(name).copied().unwrap_or(1);
        if places.len() > allowed {
            wrong.push(format!(
                "`{name}` is defined {} times: {}",
                places.len(),
                places.join(", ")
            ));
        }
    }
    for (name, count) in allowed {
        let now = places.get(name).map_or(0, Vec::len);
        if now < *count {
            wrong.push(format!(
                "duplicate_types.txt: `{name} {count}` is now {now}: lower it, or remove it below 2"
            ));
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(first: &str, second: &str, allowed: &str) -> usize {
        let sources = [Source::new("a.rs", first), Source::new("b.rs", second)];
        duplicate_types(&sources, &read_allowed(allowed).unwrap()).unwrap().len()
    }

    #[test]
    fn a_name_is_defined_once() {
        assert_eq!(found("pub struct Place;", "enum Place {}", ""), 1);
        assert_eq!(found("pub(crate) type Place = u8;", "trait Place {}", ""), 1);
        assert_eq!(found("struct Place;", "struct Placed;", ""), 0);
        assert_eq!(found("impl A { \n    type Item = u8;\n}", "struct Item;", ""), 0);
    }

    #[test]
    fn the_list_of_exceptions_only_shrinks() {
        assert_eq!(found("struct Place;", "struct Place;", "Place 2\n"), 0);
        assert_eq!(found("struct Place;", "struct Other;", "Place 2\n"), 1);
        assert_eq!(found("struct Place;", "struct Place;", "Place 3\n"), 1);
    }
}
