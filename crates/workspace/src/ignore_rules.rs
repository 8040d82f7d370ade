//! Ignore rules, read from the working directories alone: `.gitignore`, `.ignore` and git's own `info/exclude`.
//!
//! Promises: rules of deeper directories win, as in git; rules of a user's home are not looked for.
//! Must not know: what is listed or searched.

use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::directory::EntryKind;
use crate::glob_bounds::is_bounded;
use crate::{Workspace, WorkspacePath};

/// A larger file is not taken for an ignore file.
const RULES_BYTES_MAX: usize = 256 * 1_024;

/// Where rules are in a directory, the most important first.
const FILES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

/// The rules of a directory and of those above it.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    here: Vec<Gitignore>,
}

impl IgnoreRules {
    /// What applies in a directory, below one where `above` applies.
    pub(crate) fn read_in(
        workspace: &Workspace,
        directory: &WorkspacePath,
        above: Option<Arc<IgnoreRules>>,
    ) -> Option<Arc<IgnoreRules>> {
        let base = workspace.absolute_path(directory);
        let read = |name: &&str| {
            // A file of rules that cannot be read excludes nothing.
            let prefix = workspace.read_prefix(&directory.join(name), RULES_BYTES_MAX);
            let prefix = prefix.ok()?.filter(|prefix| !prefix.is_cut)?;
            let mut builder = GitignoreBuilder::new(&base);
            let text = String::from_utf8_lossy(&prefix.bytes);
            for line in text.lines().filter(|line| is_bounded(line)) {
                // An invalid rule must not disable the others.
                let _ = builder.add_line(None, line.trim_start_matches('\u{feff}'));
            }
            builder.build().ok().filter(|rules| !rules.is_empty())
        };
        let here: Vec<Gitignore> = FILES.iter().filter_map(read).collect();
        if here.is_empty() {
            return above;
        }
        Some(Arc::new(IgnoreRules { above, here }))
    }

    pub(crate) fn ignores(&self, absolute_path: &Path, kind: EntryKind) -> bool {
        let is_directory = kind == EntryKind::Directory;
        let mut level = Some(self);
        while let Some(rules) = level {
            for file in &rules.here {
                match file.matched(absolute_path, is_directory) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            level = rules.above.as_deref();
        }
        false
    }
}
