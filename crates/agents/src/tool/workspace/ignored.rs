//! Ignore rules, read from the working directories alone: `.gitignore`, `.ignore` and git's own `info/exclude`.
//!
//! Promises: rules of deeper directories win, as in git; rules of a user's home are not looked for.
//! Must not know: what is listed or searched.

use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{Kind, Place, Workspace};

/// Ignore files larger than this are no ignore files.
const RULES_BYTES_MAX: u64 = 256 * 1_024;

/// Where rules stand in a directory, the most important first.
const FILES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

/// The rules of a directory and of those above it.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    here: Vec<Gitignore>,
}

impl Rules {
    /// What holds in a directory whose upper ones have `above`.
    pub(super) fn in_directory(
        workspace: &Workspace,
        directory: &Place,
        above: Option<Arc<Rules>>,
    ) -> Option<Arc<Rules>> {
        let root = workspace.absolute(directory);
        let read = |name: &&str| {
            let bytes = workspace.read_small(directory, Path::new(name), RULES_BYTES_MAX)?;
            let mut builder = GitignoreBuilder::new(&root);
            for line in String::from_utf8_lossy(&bytes).lines() {
                // A rule that is none must not take the others with it.
                let _ = builder.add_line(None, line.trim_start_matches('\u{feff}'));
            }
            builder.build().ok().filter(|rules| !rules.is_empty())
        };
        let here: Vec<Gitignore> = FILES.iter().filter_map(read).collect();
        if here.is_empty() {
            return above;
        }
        Some(Arc::new(Rules { above, here }))
    }

    pub(super) fn ignore(&self, path: &Path, kind: Kind) -> bool {
        let is_directory = kind == Kind::Directory;
        let mut rules = Some(self);
        while let Some(these) = rules {
            for rules in &these.here {
                match rules.matched(path, is_directory) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            rules = these.above.as_deref();
        }
        false
    }
}
