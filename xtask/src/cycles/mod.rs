//! Files of the kernel depend on each other without cycles: whoever reads one need not read them all.
//!
//! A file depends on another if it names it in a path (`crate::turn::Turn`), or if it calls what only that one defines.
//! Names that several files define, or that the standard library and the crates below use too, say nothing.

mod calls;
mod paths;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::repository::Repository;
use crate::source::Source;

/// The sources that must be free of cycles.
const KERNEL: &str = "crates/kernel/src/";

/// Crates the kernel calls into: a method of theirs is not one of the kernel's.
const BELOW: &[&str] = &["crates/wire/src/", "crates/compositor/src/", "crates/agent-api/src/"];

/// How many reasons of one edge are shown.
const REASONS_SHOWN: usize = 3;

/// From file to file, with what shows it.
type Graph = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

pub(crate) fn check_cycles(repository: &Repository) -> Result<Vec<String>> {
    let kernel = repository.sources(|name| name.starts_with(KERNEL));
    let below = repository.sources(|name| BELOW.iter().any(|dir| name.starts_with(dir)));
    find_cycles(&kernel, KERNEL, &below)
}

fn find_cycles(sources: &[Source], dir: &str, below: &[Source]) -> Result<Vec<String>> {
    let mut graph = Graph::new();
    for source in sources {
        graph.entry(source.name.clone()).or_default();
    }
    let by_path = paths::dependencies(sources, dir)?;
    let by_call = calls::dependencies(sources, below)?;
    for (from, to, reason) in by_path.into_iter().chain(by_call) {
        if from != to {
            let edges = graph.entry(from).or_default();
            edges.entry(to).or_default().insert(reason);
        }
    }
    Ok(components(&graph).iter().map(|component| describe(component, &graph, dir)).collect())
}

fn describe(component: &BTreeSet<String>, graph: &Graph, dir: &str) -> String {
    let short = |name: &str| name.strip_prefix(dir).unwrap_or(name).to_owned();
    let mut lines = vec![format!("{} files depend on each other:", component.len())];
    for from in component {
        for (to, reasons) in graph.get(from).into_iter().flatten() {
            if component.contains(to) {
                let shown: Vec<&str> =
                    reasons.iter().take(REASONS_SHOWN).map(String::as_str).collect();
                let more = match reasons.len().saturating_sub(REASONS_SHOWN) {
                    0 => String::new(),
                    more => format!(", {more} more"),
                };
                lines.push(format!(
                    "    {} -> {}: {}{more}",
                    short(from),
                    short(to),
                    shown.join(", ")
                ));
            }
        }
    }
    lines.join("\n")
}

/// Strongly connected components of more than one file: whoever can be reached from a file and reaches it again.
fn components(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|file| (file, reachable(graph, file))).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (file, others) in &reached {
        if seen.contains(*file) {
            continue;
        }
        let component: BTreeSet<String> = others
            .iter()
            .filter(|other| reached.get(*other).is_some_and(|back| back.contains(*file)))
            .map(|other| (*other).clone())
            .collect();
        seen.extend(component.iter().cloned());
        if component.len() > 1 {
            found.push(component);
        }
    }
    found
}

fn reachable<'a>(graph: &'a Graph, from: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        for to in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to) {
                waiting.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(name, text)| Source::new(name, text)).collect();
        let below = [Source::new("wire.rs", "pub fn apply(&mut self) {}")];
        find_cycles(&sources, "", &below).unwrap()
    }

    #[test]
    fn a_cycle_by_paths_is_found_with_its_edges() {
        let cycle = found(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "use crate::b::{B, other};\npub struct A;"),
            ("b.rs", "pub struct B(super::a::A);\npub fn other() {}"),
            ("c.rs", "use crate::a::A;"),
        ]);
        assert_eq!(
            cycle,
            [
                "2 files depend on each other:\n    a.rs -> b.rs: `crate::b::B`, `crate::b::other`\n    b.rs -> a.rs: `super::a::A`"
            ]
        );
    }

    #[test]
    fn a_cycle_by_calls_is_found() {
        let cycle = found(&[
            ("a.rs", "impl Kernel { pub(crate) fn start_turn(&mut self) { self.end_turn(); } }"),
            (
                "b.rs",
                "impl Kernel { pub(crate) fn end_turn<F: Fn(u8) -> u8>(&mut self) { self.start_turn(); } }",
            ),
        ]);
        assert_eq!(cycle.len(), 1);
        assert!(cycle[0].contains("a.rs -> b.rs: `.end_turn()`"), "{}", cycle[0]);
    }

    #[test]
    fn a_bare_call_counts_if_all_of_a_module_is_imported() {
        let defines = ("a.rs", "use crate::b::B;\npub fn derive() {}\npub struct A;");
        let calls = |text| found(&[defines, ("b.rs", text)]);
        assert_eq!(calls("#[derive(Debug)]\npub struct B;"), Vec::<String>::new());
        assert_eq!(calls("pub struct B; fn f(derive: fn()) { derive(); }"), Vec::<String>::new());
        assert_eq!(calls("use super::*;\npub struct B; fn f() { derive(); }").len(), 1);
    }

    #[test]
    fn names_that_others_have_too_say_nothing() {
        let files = [
            (
                "a.rs",
                "impl A { pub fn push(&mut self) {} pub fn apply(&mut self) {} pub fn twice(&self) {} }",
            ),
            (
                "b.rs",
                "use crate::a::A; impl B { pub fn f(&self) { self.0.push(1); } pub fn twice(&self) {} }",
            ),
            ("c.rs", "impl C { fn g(&self) { self.f(); } }"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
        let calling = [files[0], ("b.rs", "fn f() { x.push(1); x.apply(); x.twice(); }"), files[2]];
        assert_eq!(found(&calling), Vec::<String>::new());
    }

    #[test]
    fn a_reexport_is_followed_to_the_file_that_defines() {
        let cycle = found(&[
            ("lib.rs", "mod parts;\nmod user;\npub use parts::*;"),
            ("parts/mod.rs", "mod one;\npub use one::One;"),
            ("parts/one.rs", "use crate::user::User;\npub struct One;"),
            ("user.rs", "use crate::One;\npub struct User;"),
        ]);
        assert_eq!(cycle.len(), 1);
        assert!(cycle[0].starts_with("2 files"), "{}", cycle[0]);
        assert!(cycle[0].contains("user.rs -> parts/one.rs"), "{}", cycle[0]);
    }

    #[test]
    fn a_module_inside_a_file_belongs_to_the_file() {
        let parent = ("a/mod.rs", "mod b;\nuse self::b::B;\npub struct A;");
        let child = |text| found(&[parent, ("a/b.rs", text)]);
        assert_eq!(
            child("pub struct B;\nmod inner { use super::B; fn f(b: super::B) {} }"),
            Vec::<String>::new()
        );
        assert_eq!(child("pub struct B;\nmod inner { use super::super::A; }").len(), 1);
    }

    #[test]
    fn tests_depend_on_what_they_like() {
        let files = [
            ("a.rs", "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a::A;\npub struct B;"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
