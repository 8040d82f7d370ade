//! Where an agent works, as people read it: the path with `~` for the home directory, and the branch that git has checked
//! out there.
//!
//! Promises: no process is started; no more than a few small files are read. What cannot be read is not shown.

use std::path::{Path, PathBuf};

/// A file of git that names something is not larger than this.
const NAME_BYTES_MAX: u64 = 4_096;
/// Directories above that are looked at for a repository.
const PARENTS_MAX: usize = 64;
/// What is shown of a commit that has no branch.
const COMMIT_CHARS: usize = 8;

/// A path with `~` for the home directory.
pub(crate) fn shorten_home(path: &Path, home: Option<&Path>) -> String {
    let home = home.filter(|home| home.components().count() > 1);
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// The branch that is checked out in a directory, or the commit if there is none.
pub(crate) fn branch_in(directory: &Path) -> Option<String> {
    let head = directory
        .ancestors()
        .take(PARENTS_MAX)
        .find_map(|parent| head_file(&parent.join(".git")))?;
    let head = read_name(&head)?;
    match head.strip_prefix("ref:") {
        Some(reference) => {
            let reference = reference.trim();
            let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            Some(branch.to_owned()).filter(|branch| !branch.is_empty())
        }
        None => {
            let is_commit =
                head.len() >= COMMIT_CHARS && head.chars().all(|c| c.is_ascii_hexdigit());
            is_commit.then(|| head.chars().take(COMMIT_CHARS).collect())
        }
    }
}

/// The file that says what is checked out: in the repository, or where a worktree's `.git` file points to.
fn head_file(git: &Path) -> Option<PathBuf> {
    let kind = std::fs::metadata(git).ok()?;
    if kind.is_dir() {
        return Some(git.join("HEAD"));
    }
    let pointer = read_name(git)?;
    let target = Path::new(pointer.strip_prefix("gitdir:")?.trim());
    Some(git.parent()?.join(target).join("HEAD"))
}

fn read_name(file: &Path) -> Option<String> {
    let kind = std::fs::metadata(file).ok()?;
    if !kind.is_file() || kind.len() > NAME_BYTES_MAX {
        return None;
    }
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn the_home_directory_is_a_tilde() {
        let short = |path: &str| shorten_home(Path::new(path), Some(Path::new("/home/ann")));
        assert_eq!(short("/home/ann"), "~");
        assert_eq!(short("/home/ann/src/x"), "~/src/x");
        assert_eq!(short("/home/anna"), "/home/anna");
        assert_eq!(shorten_home(Path::new("/srv"), Some(Path::new("/"))), "/srv");
        assert_eq!(shorten_home(Path::new("/srv"), None), "/srv");
    }

    #[test]
    fn the_branch_is_found_from_below_and_in_worktrees() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(branch_in(root), None);
        write(root, ".git/HEAD", "ref: refs/heads/feature/x\n");
        write(root, "deep/er/file", "");
        assert_eq!(branch_in(&root.join("deep/er")).as_deref(), Some("feature/x"));
        write(root, ".git/worktrees/w/HEAD", "ref: refs/heads/w\n");
        write(root, "w/.git", "gitdir: ../.git/worktrees/w\n");
        assert_eq!(branch_in(&root.join("w")).as_deref(), Some("w"));
        write(root, ".git/HEAD", "0123456789abcdef0123456789abcdef01234567\n");
        assert_eq!(branch_in(root).as_deref(), Some("01234567"));
    }

    #[test]
    fn what_is_no_repository_has_no_branch() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for head in ["", "ref:", "nonsense", &"x".repeat(5_000)] {
            write(root, ".git/HEAD", head);
            assert_eq!(branch_in(root), None, "{head:.20}");
        }
        write(root, "w/.git", "no pointer");
        assert_eq!(branch_in(&root.join("w")), None);
    }
}
