//! What a prompt needs to know of the world, gathered before it is rendered.
//!
//! Promises: nothing outside the host's roots is read, every file is bounded, nothing is run. What cannot be read is left
//! out: a turn does not fail for it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::custom_instructions::FILE_BYTES_MAX;
use super::git::UNFINISHED;
use super::{EnvironmentContext, Git, GitHead, InstructionFile};
use crate::tool::Workspace;

/// Files that projects keep for agents, in the order they count within a directory.
const INSTRUCTIONS: &[&str] = &["AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"];

/// Directories looked into on the way up.
const LEVELS_MAX: usize = 16;
/// Instructions read in all.
const FILES_MAX: usize = 8;
/// What `.git/HEAD` may take.
const HEAD_BYTES_MAX: usize = 1_024;

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    pub environment: EnvironmentContext,
    pub instructions: Vec<InstructionFile>,
}

/// Looks around a session's working directories, and above them as far as the roots reach.
#[derive(Debug, Clone, Default)]
pub struct Gatherer {
    roots: Vec<PathBuf>,
}

impl Gatherer {
    /// One that looks no further up than these directories.
    pub fn within(roots: Vec<PathBuf>) -> Self {
        Self { roots }
    }

    /// Gathers where waiting for the disk harms nobody.
    pub async fn gather(&self, working_directories: &[String]) -> Facts {
        let (gatherer, directories) = (self.clone(), working_directories.to_vec());
        let gathered = tokio::task::spawn_blocking(move || gatherer.look(&directories));
        match gathered.await {
            Ok(facts) => facts,
            Err(died) => std::panic::resume_unwind(died.into_panic()),
        }
    }

    fn look(&self, working_directories: &[String]) -> Facts {
        let paths = working_directories.iter();
        let paths: Vec<PathBuf> = paths.filter_map(|uri| path_of(uri)).collect();
        let mut facts = Facts {
            environment: EnvironmentContext {
                directories: paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect(),
                os: std::env::consts::OS.to_owned(),
                date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
                git: None,
            },
            instructions: Vec::new(),
        };
        let Some(first) = paths.first() else {
            return facts;
        };
        for level in self.levels(first) {
            let Ok(open) = Workspace::open(&[uri_of(&level)]) else {
                break;
            };
            take_instructions(&open, &level, first, &mut facts.instructions);
            if facts.environment.git.is_none() {
                facts.environment.git = git(&open);
            }
        }
        facts
    }

    /// The directory and those above it, up to the root it lies in; only itself if it lies in none.
    fn levels(&self, directory: &Path) -> Vec<PathBuf> {
        let roots = self.roots.iter();
        let root = roots
            .filter(|root| directory.starts_with(root))
            .min_by_key(|root| root.as_os_str().len());
        let levels = directory.ancestors().take(LEVELS_MAX);
        match root {
            Some(root) => levels
                .take_while(|level| level.starts_with(root))
                .map(Path::to_owned)
                .collect(),
            None => vec![directory.to_owned()],
        }
    }
}

fn path_of(uri: &str) -> Option<PathBuf> {
    let path = wire::file_uri::path_of(uri)?;
    Some(PathBuf::from(OsString::from_vec(path)))
}

fn uri_of(path: &Path) -> String {
    wire::file_uri::uri_of(path.as_os_str().as_bytes())
}

fn take_instructions(
    open: &Workspace,
    level: &Path,
    from: &Path,
    found: &mut Vec<InstructionFile>,
) {
    for name in INSTRUCTIONS {
        if found.len() >= FILES_MAX {
            return;
        }
        // One byte more than is told, so that it is told where more was there.
        let Some(bytes) = open.glance(Path::new(name), FILE_BYTES_MAX + 1) else {
            continue;
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // One may be a link to the other, or a copy.
        let known = found.iter().any(|file| file.text == text);
        if text.trim().is_empty() || known {
            continue;
        }
        let path = match level == from {
            true => PathBuf::from(name),
            false => level.join(name),
        };
        let path = path.display().to_string();
        found.push(InstructionFile { path, text });
    }
}

fn git(open: &Workspace) -> Option<Git> {
    let head = open.glance(Path::new(".git/HEAD"), HEAD_BYTES_MAX)?;
    let head = GitHead::read(std::str::from_utf8(&head).ok()?)?;
    let is_there = |name: &str| open.glance(&Path::new(".git").join(name), 1).is_some();
    let mut unfinished = UNFINISHED.iter();
    let under_way = unfinished.find(|(name, _)| is_there(name));
    Some(Git {
        head,
        under_way: under_way.map(|(_, what)| *what),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn uri(path: &Path) -> String {
        uri_of(path)
    }

    fn told(facts: &Facts) -> Vec<(&str, &str)> {
        let files = facts.instructions.iter();
        files
            .map(|file| (file.path.as_str(), file.text.as_str()))
            .collect()
    }

    #[test]
    fn instructions_come_nearest_first_and_never_from_above_the_roots() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("root");
        let work = root.join("project/deep");
        fs::create_dir_all(&work).unwrap();
        fs::write(outside.path().join("AGENTS.md"), "not for you").unwrap();
        fs::write(root.join("AGENTS.md"), "far").unwrap();
        fs::write(root.join("project/CLAUDE.md"), "near").unwrap();
        fs::write(work.join("AGENTS.md"), "here").unwrap();
        fs::write(work.join("CLAUDE.md"), "here").unwrap();
        let facts = Gatherer::within(vec![root.clone()]).look(&[uri(&work)]);
        let near = root.join("project/CLAUDE.md").display().to_string();
        let far = root.join("AGENTS.md").display().to_string();
        assert_eq!(
            told(&facts),
            [
                ("AGENTS.md", "here"),
                (near.as_str(), "near"),
                (far.as_str(), "far")
            ]
        );
        let alone = Gatherer::default().look(&[uri(&work)]);
        assert_eq!(told(&alone), [("AGENTS.md", "here")]);
    }

    #[test]
    fn a_link_out_of_the_directory_leads_nowhere() {
        let outside = tempfile::tempdir().unwrap();
        let work = outside.path().join("work");
        fs::create_dir(&work).unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../secret", work.join("AGENTS.md")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), work.join("CLAUDE.md")).unwrap();
        let facts = Gatherer::within(vec![outside.path().to_owned()]).look(&[uri(&work)]);
        assert!(told(&facts).is_empty(), "{facts:?}");
    }

    #[test]
    fn git_is_read_without_running_it() {
        let work = tempfile::tempdir().unwrap();
        let git = work.path().join(".git");
        fs::create_dir(&git).unwrap();
        let look = || {
            Gatherer::default()
                .look(&[uri(work.path())])
                .environment
                .git
        };
        fs::write(git.join("HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        let branch = GitHead::Branch("feature/x".to_owned());
        assert_eq!(
            look(),
            Some(Git {
                head: branch,
                under_way: None
            })
        );
        fs::write(git.join("HEAD"), format!("{}\n", "ab".repeat(20))).unwrap();
        fs::write(git.join("MERGE_HEAD"), "x").unwrap();
        let head = GitHead::Detached("abababababab".to_owned());
        assert_eq!(
            look(),
            Some(Git {
                head,
                under_way: Some("merge")
            })
        );
        fs::write(git.join("HEAD"), "nonsense").unwrap();
        assert_eq!(look(), None);
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let facts = Gatherer::default().look(&["file:///no/such/place".to_owned()]);
        assert_eq!(facts.environment.directories, ["/no/such/place"]);
        assert!(facts.instructions.is_empty() && facts.environment.git.is_none());
        assert!(
            Gatherer::default()
                .look(&[])
                .environment
                .directories
                .is_empty()
        );
    }
}
