//! What a module of the kernel promises is asserted where it is changed: every file that changes state has an assertion, or is
//! listed here with the reason why it has nothing to assert.

use anyhow::Result;

use crate::repository::{Repository, pattern};
use crate::source::Source;

const KERNEL: &str = "crates/kernel/src/";

/// Requests of clients: they check, and what they change is asserted by the functions of the features that they call.
const REQUESTS: &str = "crates/kernel/src/calls/";

/// Files without an assertion, and why. A file that has one, or that is gone, must leave this list.
const NOTHING_TO_ASSERT: &[(&str, &str)] = &[
    ("bodies/result.rs", "works on its argument alone; tests hold it to its bounds"),
    ("customization/survey.rs", "asks the host, changes nothing"),
    ("kernel.rs", "`Step::finish` asserts what a step must hold"),
    ("sessions/news.rs", "what an agent says is checked, not assumed"),
    ("submission.rs", "a message before it is recorded"),
    ("telemetry.rs", "has no state"),
];

pub(crate) fn check_assertions(repository: &Repository) -> Result<Vec<String>> {
    let sources =
        repository.sources(|name| name.starts_with(KERNEL) && !name.starts_with(REQUESTS));
    missing_assertions(&sources, NOTHING_TO_ASSERT)
}

fn missing_assertions(sources: &[Source], allowed: &[(&str, &str)]) -> Result<Vec<String>> {
    let changes = pattern(r"&mut (self|Step)\b")?;
    let asserts = pattern(r"\b((debug_)?assert(_eq|_ne)?|unreachable)!")?;
    let short = |source: &Source| source.name.trim_start_matches(KERNEL).to_owned();
    let mut without: Vec<String> = Vec::new();
    for source in sources {
        if changes.is_match(&source.code) && !asserts.is_match(&source.code) {
            without.push(short(source));
        }
    }
    let unlisted = without.iter().filter(|file| !allowed.iter().any(|(name, _)| name == file));
    let wrong = unlisted.map(|file| {
        format!("{KERNEL}{file}: changes state and asserts nothing: what does it promise?")
    });
    let outdated = allowed
        .iter()
        .filter(|(name, _)| !without.iter().any(|file| file == name))
        .map(|(name, _)| format!("assertions.rs: `{name}` need not be listed any more"));
    Ok(wrong.chain(outdated).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, allowed: &[(&str, &str)]) -> usize {
        let sources = [Source::new("crates/kernel/src/a.rs", text)];
        missing_assertions(&sources, allowed).unwrap().len()
    }

    #[test]
    fn what_changes_state_asserts_something() {
        assert_eq!(found("fn a(&mut self) {}", &[]), 1);
        assert_eq!(found("fn a(step: &mut Step) {}", &[]), 1);
        assert_eq!(found("fn a(&mut self) { assert!(b); }", &[]), 0);
        assert_eq!(found("fn a(&mut self) { debug_assert_eq!(b, c); }", &[]), 0);
        assert_eq!(found("fn a(&self) {}", &[]), 0);
        let only_a_test = "fn a(&mut self) {}\n#[cfg(test)]\nmod tests { fn b() { assert!(c); } }";
        assert_eq!(found(only_a_test, &[]), 1);
    }

    #[test]
    fn the_list_holds_what_is_there_and_nothing_else() {
        assert_eq!(found("fn a(&mut self) {}", &[("a.rs", "why")]), 0);
        let asserts = "fn a(&mut self) { assert!(b); }";
        assert_eq!(found(asserts, &[("a.rs", "why")]), 1);
    }
}
