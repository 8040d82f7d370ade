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

pub(crate) fn check_phases(repository: &Repository) -> Result<Vec<String>> {
    mixed_phases(
        &repository.sources(|name| name.starts_with(KERNEL)),
        CALLERS,
    )
}

fn mixed_phases(sources: &[Source], callers: &[(&str, &str)]) -> Result<Vec<String>> {
    let function = pattern(r"\bfn\s+(\w+)\s*(?:<[^(]*>)?\(([^)]*)\)\s*->\s*([^{;]*)")?;
    let pauses = pattern(r"\b(Pause|Stop|StopAction|Unread|Load)\b")?;
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
    fn what_changes_cannot_pause() {
        let mixed = "fn set(step: &mut Step, a: u8) -> Result<(), Pause> {}";
        assert_eq!(found(mixed, &[]), 1);
        assert_eq!(found(mixed, &[("a.rs", "set")]), 0);
        assert_eq!(
            found("fn set(\n    step: &mut Step,\n) -> Load<u8> {}", &[]),
            1
        );
        for fine in [
            "fn gather(kernel: &Kernel) -> Result<u8, Pause> {}",
            "fn apply(step: &mut Step, facts: u8) {}",
            "fn apply(step: &mut Step) -> Result<u8, RpcError> {}",
        ] {
            assert_eq!(found(fine, &[]), 0, "{fine}");
        }
    }
}
