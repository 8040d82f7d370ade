//! What lies in a directory that makes agents run commands: configuration of MCP servers, hooks and plugins.
//!
//! Promises: files are looked for, never opened. Bounded: a directory with more than a few hundred of them is told by a digest.
//! Must not know: which agent reads what.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Files whose mere presence lets an agent run something (TR-1).
const FILES: [&str; 5] =
    [".mcp.json", ".vscode/mcp.json", ".github/mcp.json", "opencode.json", "opencode.jsonc"];

/// Directories of which every file counts.
const DIRECTORIES: [&str; 11] = [
    ".codex",
    ".opencode",
    ".qwen",
    ".gemini",
    ".goose",
    ".copilot",
    ".claude/hooks",
    ".claude/plugins",
    ".claude-plugin",
    ".github/hooks",
    ".agents/plugins",
];

/// A directory with files of such names: `settings.json`, `settings.local.json`.
const SETTINGS_DIRECTORY: &str = ".claude";
const SETTINGS_BEGINNING: &str = "settings";
const SETTINGS_ENDING: &str = ".json";

/// How deep such a directory is looked at; what is deeper is told by its directory.
const DEPTH_MAX: usize = 4;

/// Packages that something else installs; only a file beside them can make them run.
const NOT_LOOKED_INTO: &str = "node_modules";

/// Entries of directories that are looked at.
const ENTRIES_MAX: usize = 4_096;

/// Files that are named; the others are told by a digest of their names.
const NAMED_MAX: usize = 256;

/// Directories from that of the session up to that of its repository.
const LEVELS_MAX: usize = 32;

/// The files that can run commands, each by its [shown](shown_path) absolute path, in the order of the names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandFiles {
    pub files: Vec<String>,
}

impl CommandFiles {
    /// Looks at a directory, and at those above it up to the root of its repository: agents read those too. Blocks.
    pub fn of(directory: &Path) -> Self {
        let mut search = CommandFileSearch { found: BTreeSet::new(), entries_left: ENTRIES_MAX };
        for level in levels(directory) {
            search.look_at(level);
        }
        let is_whole = search.entries_left > 0;
        let mut files: Vec<String> = search.found.iter().map(|file| printable_path(file)).collect();
        if files.len() > NAMED_MAX {
            let others = files.split_off(NAMED_MAX - 1);
            let mut digest = Sha256::new();
            for file in &others {
                digest.update(file.as_bytes());
                digest.update([0]);
            }
            let digest = digest.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
                // Writing to a text cannot fail.
                let _ = write!(text, "{byte:02x}");
                text
            });
            files.push(format!("{} more files ({digest})", others.len()));
        }
        if !is_whole {
            files.push(format!("more than {ENTRIES_MAX} files"));
        }
        Self { files }
    }

    /// What is here that somebody who knew these files did not know.
    pub fn not_among(&self, known: &BTreeSet<&str>) -> Vec<String> {
        let fresh = self.files.iter().filter(|file| !known.contains(file.as_str()));
        fresh.cloned().collect()
    }
}

/// The directory, and those above it that belong to the same repository.
fn levels(directory: &Path) -> Vec<&Path> {
    let levels: Vec<&Path> = directory.ancestors().take(LEVELS_MAX).collect();
    let root = levels.iter().position(|level| fs::symlink_metadata(level.join(".git")).is_ok());
    let count = root.map_or(1, |root| root + 1);
    levels.into_iter().take(count).collect()
}

struct CommandFileSearch {
    found: BTreeSet<PathBuf>,
    entries_left: usize,
}

impl CommandFileSearch {
    fn look_at(&mut self, level: &Path) {
        for file in FILES {
            let file = level.join(file);
            // A link that leads nowhere now may lead somewhere when the agent looks.
            if fs::symlink_metadata(&file).is_ok() {
                self.found.insert(file);
            }
        }
        for directory in DIRECTORIES {
            self.list(&level.join(directory), DEPTH_MAX, &|_| true);
        }
        let is_settings =
            |name: &str| name.starts_with(SETTINGS_BEGINNING) && name.ends_with(SETTINGS_ENDING);
        self.list(&level.join(SETTINGS_DIRECTORY), 1, &is_settings);
    }

    /// All files in a directory whose names count, down to a depth.
    fn list(&mut self, directory: &Path, depth: usize, counts: &dyn Fn(&str) -> bool) {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(_) if fs::symlink_metadata(directory).is_ok() => {
                // It is there and cannot be read, or is no directory: an agent may still make something of it.
                self.found.insert(directory.to_owned());
                return;
            }
            Err(_) => return, // not there
        };
        for entry in entries.flatten() {
            if self.entries_left == 0 {
                return; // what was found says that it is not all
            }
            self.entries_left -= 1;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if !counts(&name) {
                continue;
            }
            if path.is_dir() && name != NOT_LOOKED_INTO && depth > 1 {
                self.list(&path, depth - 1, counts)
            } else {
                self.found.insert(path);
            }
        }
    }
}

/// A path as people read it: on one line, without anything that hides or changes what it says, and different for different paths.
pub fn printable_path(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '\\' => shown.push_str("\\\\"),
                '`' => shown.push_str("\\u{60}"),
                // Combining marks, characters that turn the direction of a text, and the like.
                _ if !char.is_ascii() => shown.extend(char.escape_debug()),
                _ if char.is_ascii_control() => shown.extend(char.escape_default()),
                _ => shown.push(char),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a text cannot fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}
