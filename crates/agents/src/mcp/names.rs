//! The names under which models are offered the tools of servers (MC-6).
//!
//! Promises: a name is one that model servers take, and means one tool; the same servers give the same names.
//! Must not know: what tools do.

use std::collections::HashSet;
use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The longest name that all model servers take.
const NAME_BYTES_MAX: usize = 64;

/// Hexadecimal digits that distinguish names that had to be cut, or that would be another's.
const DIGEST_DIGITS: usize = 6;

/// A name for each server and tool, in their order: the first of two alike keeps the plain one.
pub fn model_names<'a>(tools: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut names = Vec::new();
    for (server, tool) in tools {
        let plain = format!("mcp__{}__{}", replace(server), replace(tool));
        let name = if plain.len() <= NAME_BYTES_MAX && !taken.contains(&plain) {
            plain
        } else {
            with_digest(&plain, server, tool)
        };
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// A name of a server or a prompt as it is typed in a command.
pub fn typed_name(name: &str) -> String {
    replace(name)
}

/// Each run of characters that servers of models do not take becomes one `_`.
fn replace(name: &str) -> String {
    let mut replaced = String::with_capacity(name.len());
    let mut in_run = false;
    for c in name.chars() {
        let is_taken = c.is_ascii_alphanumeric() || c == '_' || c == '-';
        match (is_taken, in_run) {
            (true, _) => replaced.push(c),
            (false, false) => replaced.push('_'),
            (false, true) => {}
        }
        in_run = !is_taken;
    }
    replaced
}

fn with_digest(plain: &str, server: &str, tool: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(server);
    digest.update([0]);
    digest.update(tool);
    // The name is ASCII by now.
    let mut name = plain.to_owned();
    name.truncate(NAME_BYTES_MAX - DIGEST_DIGITS - 1);
    name.push('_');
    for byte in digest.finalize().iter().take(DIGEST_DIGITS / 2) {
        let _ = write!(name, "{byte:02x}"); // writing to a string does not fail
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_servers_take_and_stay_different() {
        let long = "n".repeat(100);
        let longer = "n".repeat(101);
        let tools = [
            ("files", "read"),
            ("my files!", "größe.lesen"),
            ("a__b", "c"),
            ("a", "b__c"),
            ("s", &long),
            ("s", &longer),
            ("x y", "t"),
            ("x.y", "t"),
        ];
        let names = model_names(tools);
        assert_eq!(names[0], "mcp__files__read");
        assert_eq!(names[1], "mcp__my_files___gr_e_lesen");
        assert_eq!(names[2], "mcp__a__b__c");
        assert!(names[3].starts_with("mcp__a__b__c_"), "{}", names[3]);
        assert_eq!(names[6], "mcp__x_y__t");
        let different: HashSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        for name in &names {
            let is_taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(name.len() <= NAME_BYTES_MAX && name.chars().all(is_taken));
        }
        assert_eq!(names, model_names(tools), "the same servers, the same names");
    }
}
