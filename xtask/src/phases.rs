//! A handler of the kernel that may have to wait is two functions: `gather` reads, and may pause; `apply` changes, and cannot.
//! So no function both has a step to change and may return a pause, but for those that call the two.

use anyhow::Result;

use crate::repository::{Repository, pattern};
use crate::source::Source;

const KERNEL: &str = "crates/kernel/src/";

/// Those that call `gather` and `apply`: the file and the function.
const CALLERS: &[(&str, &str)] = &[
    ("calls/mod.rs", "handle"),
    ("inbox.rs", "handle_call"),
    ("inbox.rs", "handle_dispatch"),
    ("inbox.rs", "handle_unsubscribe"),
];

/// Where the types of [`PAUSES`] are.
const PAUSE_FILE: &str = "crates/kernel/src/pause.rs";

/// What a function returns that may pause.
const PAUSES: &[&str] = &["Pause", "ActionStop", "RequestStop", "NotLoaded", "Load"];

pub(crate) fn check_phases(repository: &Repository) -> Result<Vec<String>> {
    let sources = repository.sources(|name| name.starts_with(KERNEL));
    let mut wrong = mixed_phases(&sources, CALLERS)?;
    wrong.extend(missing_types(&sources)?);
    Ok(wrong)
}

/// Types that are looked for and are not there any more: whoever renames one has the check look for the new name.
fn missing_types(sources: &[Source]) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    let file = sources.iter().find(|source| source.name == PAUSE_FILE);
    for name in PAUSES {
        let declared = pattern(&format!(r"\b(enum|struct|type)\s+{name}\b"))?;
        if !file.is_some_and(|file| declared.is_match(&file.code)) {
            missing.push(format!(
                "{PAUSE_FILE}: there is no `{name}` any more: name what may pause now in xtask/src/phases.rs"
            ));
        }
    }
    Ok(missing)
}

fn mixed_phases(sources: &[Source], callers: &[(&str, &str)]) -> Result<Vec<String>> {
    let function = pattern(r"\bfn\s+(\w+)\s*(?:<[^(]*>)?\(([^)]*)\)\s*->\s*([^{;]*)")?;
    let pauses = pattern(&format!(r"\b({})\b", PAUSES.join("|")))?;
    let mut wrong = Vec::new();
    for source in sources {
        for found in function.captures_iter(&source.code) {
            let file = source.name.trim_start_matches(KERNEL);
            let is_mixed = found[2].contains("&mut Step") && pauses.is_match(&found[3]);
            if is_mixed && !callers.contains(&(file, &found[1])) {
                wrong.push(format!(
                    "{}:{}: `{}` may change and may pause: make a `gather` and an `apply` of it",
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

    fn found(text: &str, callers: &[(&str, &str)]) -> usize {
        let sources = [Source::new("crates/kernel/src/a.rs", text)];
        mixed_phases(&sources, callers).unwrap().len()
    }

    #[test]
    fn a_type_that_was_renamed_is_missed() {
        let missing = |text: &str| missing_types(&[Source::new(PAUSE_FILE, text)]).unwrap();
        let all = "pub(crate) enum Pause {} enum NotLoaded {} type Load<T> = T; enum ActionStop {}";
        assert_eq!(missing(&format!("{all} enum RequestStop {{}}")).len(), 0);
        let left = missing(&format!("{all} enum StopRequest {{}}"));
        assert!(left.len() == 1 && left[0].contains("`RequestStop`"), "{left:?}");
        assert_eq!(missing_types(&[]).unwrap().len(), PAUSES.len());
    }

    #[test]
    fn what_changes_cannot_pause() {
        let mixed = "fn set(step: &mut Step, a: u8) -> Result<(), Pause> {}";
        assert_eq!(found(mixed, &[]), 1);
        assert_eq!(found(mixed, &[("a.rs", "set")]), 0);
        assert_eq!(found("fn set(\n    step: &mut Step,\n) -> Load<u8> {}", &[]), 1);
        for pause in PAUSES {
            let mixed = format!("fn set(step: &mut Step) -> Result<(), {pause}> {{}}");
            assert_eq!(found(&mixed, &[]), 1, "{pause}");
        }
        for fine in [
            "fn gather(kernel: &Kernel) -> Result<u8, Pause> {}",
            "fn apply(step: &mut Step, facts: u8) {}",
            "fn apply(step: &mut Step) -> Result<u8, RpcError> {}",
        ] {
            assert_eq!(found(fine, &[]), 0, "{fine}");
        }
    }
}
