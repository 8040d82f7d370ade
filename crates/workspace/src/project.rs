//! What a prompt needs to know of a project: its directories, the state of git, and the instructions it has for agents.
//!
//! Promises: nothing outside the given roots is read, every file is bounded, nothing is run. What cannot be read is left
//! out: a turn does not fail because of it.
//! Must not know: prompts.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::{Confinement, GitState, Workspace, WorkspacePath};

/// Files that projects keep for agents, in the order they count within a directory.
const INSTRUCTION_FILES: &[&str] = &["AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"];

/// What counts of one file; one byte more is read, so that whoever shows it can tell that there is more.
pub const INSTRUCTION_BYTES_MAX: usize = 16 * 1_024;

/// Directories searched on the way up.
const LEVELS_MAX: usize = 16;

/// Instruction files read in all.
const FILES_MAX: usize = 8;

/// A file of the project that is meant for agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// As a model may name it.
    pub path: String,
    pub text: String,
}

/// The facts of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectContext {
    /// Paths of the working directories, the default one first.
    pub directories: Vec<String>,
    pub git: Option<GitState>,
    /// Nearest first.
    pub instructions: Vec<InstructionFile>,
}

/// Reads what concerns a session's working directories, and the directories above them as far as the roots allow.
#[derive(Debug, Clone, Default)]
pub struct ProjectReader {
    confinement: Confinement,
}

impl ProjectReader {
    /// One that reads no directory that may not be worked in, and goes no further up than the roots.
    pub fn with_confinement(confinement: Confinement) -> Self {
        Self { confinement }
    }

    /// Working directories are `file:` URIs, the default one first.
    pub fn read(&self, working_directories: &[String]) -> ProjectContext {
        let uris = working_directories.iter();
        let paths: Vec<PathBuf> = uris.filter_map(|uri| path_of(uri)).collect();
        let directories = paths.iter().map(|path| path.display().to_string());
        let mut context =
            ProjectContext { directories: directories.collect(), ..ProjectContext::default() };
        let levels = paths.first().map(|first| self.levels(first));
        for level in levels.into_iter().flatten() {
            let Ok(workspace) = Workspace::open(&[uri_of(&level)], &self.confinement) else {
                // Not readable from here on up: what lies nearer was read.
                break;
            };
            let Some(root) = workspace.root_paths().next() else {
                debug_assert!(false, "one directory was opened");
                break;
            };
            let is_first = paths.first() == Some(&level);
            let prefix = if is_first { Path::new("") } else { &level };
            let files = &mut context.instructions;
            read_instructions(&workspace, &root, prefix, files);
            if context.git.is_none() {
                context.git = GitState::read_in(&workspace, &root);
            }
        }
        for other in paths.iter().skip(1) {
            // One that cannot be opened has no say; the turn itself says what is wrong with it.
            if let Ok(workspace) = Workspace::open(&[uri_of(other)], &self.confinement)
                && let Some(root) = workspace.root_paths().next()
            {
                read_instructions(&workspace, &root, other, &mut context.instructions);
            }
        }
        context
    }

    /// The directory and those really above it, up to the root it lies in; only itself if it lies in none.
    fn levels(&self, directory: &Path) -> Vec<PathBuf> {
        let mut levels = vec![directory.to_owned()];
        let Ok(real) = std::fs::canonicalize(directory) else {
            return levels; // it is not there: nor is anything above it that would count
        };
        if let Some(root) = self.confinement.root_of(&real) {
            let above = real
                .ancestors()
                .take(LEVELS_MAX)
                .skip(1)
                .take_while(|level| level.starts_with(root));
            levels.extend(above.map(Path::to_owned));
        }
        levels
    }
}

fn path_of(uri: &str) -> Option<PathBuf> {
    let path = wire::file_uri::path_of(uri)?;
    Some(PathBuf::from(OsString::from_vec(path)))
}

fn uri_of(path: &Path) -> String {
    wire::file_uri::uri_of(path.as_os_str().as_bytes())
}

fn read_instructions(
    workspace: &Workspace,
    root: &WorkspacePath,
    prefix: &Path,
    files: &mut Vec<InstructionFile>,
) {
    for name in INSTRUCTION_FILES {
        if files.len() >= FILES_MAX {
            break;
        }
        let beginning = workspace.read_prefix(&root.join(name), INSTRUCTION_BYTES_MAX + 1);
        let Ok(Some(read)) = beginning else {
            // Most directories have none; a turn does not fail because one cannot be read.
            continue;
        };
        let text = String::from_utf8_lossy(&read.bytes).into_owned();
        // One may be a link to the other, or a copy.
        let is_known = files.iter().any(|file| file.text == text);
        if text.trim().is_empty() || is_known {
            continue;
        }
        let path = prefix.join(name).display().to_string();
        files.push(InstructionFile { path, text });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::GitHead;

    fn instructions(context: &ProjectContext) -> Vec<(&str, &str)> {
        context.instructions.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect()
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
        let context = ProjectReader::with_confinement(
            Confinement::within(std::slice::from_ref(&root)).unwrap(),
        )
        .read(&[uri_of(&work)]);
        let near = root.join("project/CLAUDE.md").display().to_string();
        let far = root.join("AGENTS.md").display().to_string();
        assert_eq!(
            instructions(&context),
            [("AGENTS.md", "here"), (near.as_str(), "near"), (far.as_str(), "far")]
        );
        let alone = ProjectReader::default().read(&[uri_of(&work)]);
        assert_eq!(instructions(&alone), [("AGENTS.md", "here")]);
    }

    #[test]
    fn a_link_out_of_the_directory_leads_nowhere() {
        let outside = tempfile::tempdir().unwrap();
        let work = outside.path().join("work");
        fs::create_dir(&work).unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../secret", work.join("AGENTS.md")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), work.join("CLAUDE.md")).unwrap();
        let reader = ProjectReader::with_confinement(
            Confinement::within(&[outside.path().to_owned()]).unwrap(),
        );
        let context = reader.read(&[uri_of(&work)]);
        assert!(instructions(&context).is_empty(), "{context:?}");
    }

    #[test]
    fn git_is_read_without_running_it() {
        let work = tempfile::tempdir().unwrap();
        let git = work.path().join(".git");
        fs::create_dir(&git).unwrap();
        let read = || ProjectReader::default().read(&[uri_of(work.path())]).git;
        fs::write(git.join("HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        let branch = GitState { head: GitHead::Branch("feature/x".to_owned()), operation: None };
        assert_eq!(read(), Some(branch));
        fs::write(git.join("HEAD"), format!("{}\n", "ab".repeat(20))).unwrap();
        fs::write(git.join("MERGE_HEAD"), "x").unwrap();
        let merging = GitState {
            head: GitHead::Detached("abababababab".to_owned()),
            operation: Some("merge"),
        };
        assert_eq!(read(), Some(merging));
        fs::write(git.join("HEAD"), "nonsense").unwrap();
        assert_eq!(read(), None);
    }

    #[test]
    fn missing_files_are_left_out() {
        let reader = ProjectReader::default();
        let context = reader.read(&["file:///no/such/place".to_owned()]);
        assert_eq!(context.directories, ["/no/such/place"]);
        assert!(context.instructions.is_empty() && context.git.is_none());
        assert_eq!(reader.read(&[]), ProjectContext::default());
    }
}
