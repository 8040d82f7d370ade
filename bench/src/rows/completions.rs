//! What an answer to `completions` costs over 100,000 paths in memory, from the text to the items, against one pass of the
//! bare matcher over the same paths.

use std::hint::black_box;
use std::sync::OnceLock;

use anyhow::{Result, ensure};
use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::{median_of, values};
use crate::harness::Harness;
use crate::host_api::completion::{
    Confinement, Discovered, PathKind, Paths, UserDirectories, discover, items_from_memory,
};
use crate::measure::{now_ns, spread};
use crate::table::Figure;

const PATHS: usize = 100_000;

/// A word, a path, letters of both, one that many fit, and one that none does.
const QUERIES: [&str; 5] = ["config", "src/net/read", "snrd", "e", "zzyzx"];

const AREAS: [&str; 10] = [
    "src",
    "crates/host/src",
    "crates/kernel/src",
    "packages/web/components",
    "docs",
    "tests/fixtures",
    "vendor/library/include",
    "tools",
    "apps/mobile/src/screens",
    "config",
];
const NAMES: [&str; 10] = [
    "reader.rs",
    "writer.rs",
    "config.toml",
    "index.tsx",
    "README.md",
    "session_test.go",
    "model.py",
    "net/read_frame.rs",
    "styles.module.css",
    "schema.json",
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    Completion,
    Matcher,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Subject::Completion, Subject::Matcher], measure)?;
    let cost = |cost: &f64| *cost;
    let figure = Figure::at_most(
        "a completion over 100,000 paths, against a bare matcher's pass",
        "ms",
        median_of(&results, Subject::Completion, cost),
        median_of(&results, Subject::Matcher, cost),
        3.0,
    );
    Ok(vec![figure.note(format!(
        "rounds: completion {}, matcher {}; mean of {} queries",
        spread(&values(&results, Subject::Completion, cost)),
        spread(&values(&results, Subject::Matcher, cost)),
        QUERIES.len(),
    ))])
}

fn measure(harness: &mut Harness, subject: Subject) -> Result<f64> {
    let times = if harness.quick { 2 } else { 10 };
    let (names, paths, discovered) = subjects();
    let start = now_ns();
    for _ in 0..times {
        for query in QUERIES {
            match subject {
                Subject::Completion => {
                    let text = format!("look at @{query}");
                    let items = items_from_memory(&text, text.len() as u64, discovered, paths)?;
                    ensure!(items.is_empty() == (query == "zzyzx"), "{query}: {}", items.len());
                    black_box(items);
                }
                Subject::Matcher => {
                    black_box(bare_pass(names, query));
                }
            }
        }
    }
    let spent = now_ns() - start;
    Ok(spent as f64 / 1_000_000.0 / (times * QUERIES.len()) as f64)
}

fn bare_pass(names: &[String], query: &str) -> u64 {
    let (case, normal) = (CaseMatching::Smart, Normalization::Smart);
    let atom = Atom::new(query, case, normal, AtomKind::Fuzzy, false);
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let mut chars = Vec::new();
    let scores = names.iter().filter_map(|name| {
        let name = Utf32Str::new(name, &mut chars);
        atom.score(name, &mut matcher)
    });
    scores.map(u64::from).sum()
}

/// The same paths for both, made once.
fn subjects() -> &'static (Vec<String>, Paths, Discovered) {
    static SUBJECTS: OnceLock<(Vec<String>, Paths, Discovered)> = OnceLock::new();
    SUBJECTS.get_or_init(|| {
        let name = |at: usize| {
            let (area, name) = (AREAS[at % AREAS.len()], NAMES[at / AREAS.len() % NAMES.len()]);
            format!("{area}/part{}/{name}", at / (AREAS.len() * NAMES.len()))
        };
        let names: Vec<String> = (0..PATHS).map(name).collect();
        let mut paths = Paths::new(vec!["/project".to_owned()]);
        for name in &names {
            assert!(paths.push(0, name, PathKind::File), "all fit");
        }
        (names, paths, discover(&[], &UserDirectories::default(), &[], &Confinement::none()))
    })
}
