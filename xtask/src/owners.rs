//! The state of the kernel is divided among owners, and each keeps its fields to itself: no field of theirs is visible
//! outside of its module.

use std::path::Path;

use anyhow::Result;
use regex::Regex;

use crate::source::{Source, closing_brace, read_sources};

/// The structs that own state of the kernel.
pub(crate) const OWNERS: &[&str] = &[
    "ActiveClients",
    "Channel",
    "Channels",
    "Chat",
    "Inbox",
    "Kernel",
    "Log",
    "Peer",
    "Peers",
    "Queries",
    "Recovery",
    "ReplayCache",
    "Requests",
    "Run",
    "Runs",
    "Session",
    "Step",
    "Upkeep",
];

/// What the kernel holds besides and never changes.
const CONSTANT: &[&str] = &["HostFacts", "Limits"];

pub(crate) fn check_owners(root: &Path) -> Result<Vec<String>> {
    let sources = read_sources(root, |name| name.starts_with("crates/kernel/src/"))?;
    let mut wrong = visible_fields(&sources, OWNERS)?;
    wrong.extend(unlisted_owners(&sources, OWNERS)?);
    Ok(wrong)
}

/// Structs of the kernel's own that `Kernel` holds and that are not listed: their fields would not be checked.
fn unlisted_owners(sources: &[Source], owners: &[&str]) -> Result<Vec<String>> {
    let kernel = Regex::new(r"\bstruct\s+Kernel\s*\{")?;
    let name = Regex::new(r"\b[A-Z]\w*\b")?;
    let mut wrong = Vec::new();
    for source in sources {
        let Some(found) = kernel.find(&source.code) else {
            continue;
        };
        let end = closing_brace(&source.code, found.end() - 1);
        for held in name.find_iter(&source.code[found.end()..end]) {
            let held = held.as_str();
            let definition = Regex::new(&format!(r"\bstruct\s+{held}\b"))?;
            let is_ours = sources.iter().any(|other| definition.is_match(&other.code));
            if is_ours && !owners.contains(&held) && !CONSTANT.contains(&held) {
                wrong.push(format!(
                    "`Kernel` holds `{held}`, which is not listed as an owner"
                ));
            }
        }
    }
    Ok(wrong)
}

fn visible_fields(sources: &[Source], owners: &[&str]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for owner in owners {
        let start = Regex::new(&format!(r"\bstruct\s+{owner}\b[^;{{(]*[{{(]"))?;
        let mut is_defined = false;
        for source in sources {
            for found in start.find_iter(&source.code) {
                is_defined = true;
                wrong.extend(fields_of(source, owner, found.end() - 1)?);
            }
        }
        if !is_defined {
            wrong.push(format!("`{owner}` is listed as an owner and not defined"));
        }
    }
    Ok(wrong)
}

fn fields_of(source: &Source, owner: &str, open: usize) -> Result<Vec<String>> {
    let visible = Regex::new(r"\bpub\b\s*(\([^)]*\))?\s*(\w+\s*:)?")?;
    let is_tuple = source.code[open..].starts_with('(');
    let end = match is_tuple {
        true => source.code[open..]
            .find(';')
            .map_or(source.code.len(), |at| open + at),
        false => closing_brace(&source.code, open),
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
        assert_eq!(
            held(&[]),
            ["`Kernel` holds `Log`, which is not listed as an owner"]
        );
    }

    #[test]
    fn an_owner_must_exist() {
        assert_eq!(found("struct Other;").len(), 1);
    }
}
