//! The state of the kernel is divided among owners, and each keeps its fields to itself: no field of theirs is visible
//! outside of its module.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::repository::{Repository, pattern};
use crate::source::{Source, closing_brace};

/// The structs that own state of the kernel.
pub(crate) const OWNERS: &[&str] = &[
    "ActiveClients",
    "Channel",
    "Channels",
    "ChannelWatchers",
    "Chat",
    "Enablement",
    "Inbox",
    "Kernel",
    "Log",
    "Peer",
    "Peers",
    "PlainChannel",
    "Queries",
    "Recovery",
    "RememberedClients",
    "ReplayCache",
    "Requests",
    "Run",
    "Runs",
    "Session",
    "Step",
    "Tail",
    "Upkeep",
    "Watchers",
];

/// What the kernel holds besides: settings, and what the host says of itself. Neither is undone.
const CONSTANT: &[&str] = &["HostFacts", "Limits"];

pub(crate) fn check_owners(repository: &Repository) -> Result<Vec<String>> {
    let sources = repository.sources(|name| name.starts_with("crates/kernel/src/"));
    let mut wrong = visible_fields(&sources, OWNERS)?;
    wrong.extend(unlisted_owners(&sources, OWNERS)?);
    Ok(wrong)
}

/// Structs of the kernel's own that `Kernel` holds and that are not listed: their fields would not be checked.
fn unlisted_owners(sources: &[Source], owners: &[&str]) -> Result<Vec<String>> {
    let kernel = pattern(r"\bstruct\s+Kernel\s*\{")?;
    let name = pattern(r"\b[A-Z]\w*\b")?;
    let definition = pattern(r"\bstruct\s+(\w+)")?;
    let defined: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| definition.captures_iter(&source.code))
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect();
    let mut wrong = Vec::new();
    for source in sources {
        let Some(found) = kernel.find(&source.code) else { continue };
        let end = closing_brace(&source.code, found.end() - 1);
        for held in name.find_iter(&source.code[found.end()..end]) {
            let held = held.as_str();
            let is_ours = defined.contains(held);
            if is_ours && !owners.contains(&held) && !CONSTANT.contains(&held) {
                wrong.push(format!("`Kernel` holds `{held}`, which is not listed as an owner"));
            }
        }
    }
    Ok(wrong)
}

fn visible_fields(sources: &[Source], owners: &[&str]) -> Result<Vec<String>> {
    let start = pattern(r"\bstruct\s+(\w+)\b[^;{(]*[{(]")?;
    let mut wrong = Vec::new();
    let mut defined = BTreeSet::new();
    for source in sources {
        for found in start.captures_iter(&source.code) {
            let Some(owner) = owners.iter().find(|owner| **owner == &found[1]) else {
                continue; // not an owner
            };
            defined.insert(*owner);
            let end = found.get(0).map_or(0, |whole| whole.end());
            wrong.extend(fields_of(source, owner, end - 1)?);
        }
    }
    let missing = owners.iter().filter(|owner| !defined.contains(*owner));
    wrong.extend(missing.map(|owner| format!("`{owner}` is listed as an owner and not defined")));
    Ok(wrong)
}

fn fields_of(source: &Source, owner: &str, open: usize) -> Result<Vec<String>> {
    let visible = pattern(r"\bpub\b\s*(\([^)]*\))?\s*(\w+\s*:)?")?;
    let is_tuple = source.code[open..].starts_with('(');
    let end = if is_tuple {
        source.code[open..].find(';').map_or(source.code.len(), |at| open + at)
    } else {
        closing_brace(&source.code, open)
    };
    Ok(visible
        .find_iter(&source.code[open..end])
        .map(|field| {
            format!(
                "{}:{}: `{owner}` shows a field: `{}`",
                source.name,
                source.line_of(open + field.start()) + 1,
                field.as_str().trim_end_matches(':').trim()
            )
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        visible_fields(&[Source::new("a.rs", text)], &["Kernel"]).unwrap()
    }

    #[test]
    fn a_visible_field_is_found() {
        let text = "pub struct Kernel {\n    a: u8,\n    pub(crate) b: u8,\n    pub c: u8,\n    pub(super) d: u8,\n}";
        assert_eq!(
            found(text),
            [
                "a.rs:3: `Kernel` shows a field: `pub(crate) b`",
                "a.rs:4: `Kernel` shows a field: `pub c`",
                "a.rs:5: `Kernel` shows a field: `pub(super) d`",
            ]
        );
        assert_eq!(found("pub struct Kernel(pub u8);").len(), 1);
    }

    #[test]
    fn private_fields_and_other_structs_are_fine() {
        assert_eq!(
            found("pub struct Kernel<'a> { a: &'a u8 }\npub struct KernelInput { pub a: u8 }"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_the_kernel_holds_is_listed() {
        let held = |owners: &[&str]| {
            let text = "struct Kernel { limits: Limits, log: Log, at: Timestamp }\nstruct Log;\nstruct Limits;";
            unlisted_owners(&[Source::new("a.rs", text)], owners).unwrap()
        };
        assert_eq!(held(&["Log"]), Vec::<String>::new());
        assert_eq!(held(&[]), ["`Kernel` holds `Log`, which is not listed as an owner"]);
    }

    #[test]
    fn an_owner_must_exist() {
        assert_eq!(found("struct Other;").len(), 1);
    }
}
