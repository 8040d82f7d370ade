//! Two looks at a working directory, with real files and a real repository, and what changed between them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

mod repository;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use repository::TestRepository;
use wire::Digest;
use workspace::{Cancellation, Confinement, LINK, TreeChanges, TreeSnapshot, Workspace};

/// A working directory, and what was kept of it.
struct Tree {
    workspace: Workspace,
    kept: BTreeMap<Digest, Vec<u8>>,
}

impl Tree {
    fn new(directory: &Path) -> Self {
        let uri = format!("file://{}", directory.display());
        Self {
            workspace: Workspace::open(&[uri], &Confinement::none()).unwrap(),
            kept: BTreeMap::new(),
        }
    }

    fn look(&mut self) -> TreeSnapshot {
        let kept = &mut self.kept;
        let mut keep = |digest: &Digest, content: &[u8]| {
            kept.insert(*digest, content.to_vec());
            Ok(())
        };
        let never = Cancellation::default();
        self.workspace.look_at_tree(&Confinement::none(), &mut keep, None, &never)
    }

    fn compare(&mut self, before: &TreeSnapshot, after: &TreeSnapshot) -> TreeChanges {
        let kept = &mut self.kept;
        let mut keep = |digest: &Digest, content: &[u8]| {
            kept.insert(*digest, content.to_vec());
            Ok(())
        };
        let never = Cancellation::default();
        self.workspace.compare_looks(before, after, &mut keep, &never)
    }

    /// What differs from the last commit, or from where a branch began, by a look that was taken.
    fn since_commit(&mut self, look: &TreeSnapshot, base: Option<&str>) -> TreeChanges {
        let kept = &mut self.kept;
        let mut keep = |digest: &Digest, content: &[u8]| {
            kept.insert(*digest, content.to_vec());
            Ok(())
        };
        let never = Cancellation::default();
        let found = self.workspace.changed_since_commit(look, base, &mut keep, &never);
        found.unwrap()
    }

    /// Path, content before, content after.
    fn changes(
        &self,
        changes: &TreeChanges,
        directory: &Path,
    ) -> Vec<(String, Option<String>, Option<String>)> {
        let text = |side: &Option<workspace::FileSide>| {
            side.map(|side| match side.digest {
                Some(digest) => String::from_utf8_lossy(&self.kept[&digest]).into_owned(),
                None => "?".to_owned(),
            })
        };
        let prefix = format!("file://{}/", directory.display());
        changes
            .changes
            .iter()
            .map(|change| {
                let path = change.uri.strip_prefix(&prefix).unwrap().to_owned();
                (path, text(&change.before), text(&change.after))
            })
            .collect()
    }
}

fn row(
    path: &str,
    before: Option<&str>,
    after: Option<&str>,
) -> (String, Option<String>, Option<String>) {
    (path.to_owned(), before.map(str::to_owned), after.map(str::to_owned))
}

#[test]
fn what_a_command_did_in_a_repository_is_found() {
    let test = TestRepository::new(&[
        ("clean", "c\n"),
        ("dirty", "d\n"),
        ("gone", "g\n"),
        ("mode", "m\n"),
        ("moved", "long enough\n"),
        ("same", "s\n"),
        (".gitignore", "*.o\n"),
    ]);
    test.write("dirty", "of the user\n");
    test.write("untracked", "u\n");
    test.write("untouched", "x\n");
    let mut tree = Tree::new(&test.path());
    let before = tree.look();
    test.write("clean", "C\n");
    test.write("dirty", "of the command\n");
    test.write("untracked", "U\n");
    test.write("new/deep/file", "n\n");
    test.write("build.o", "ignored");
    fs::remove_file(test.at("gone")).unwrap();
    fs::rename(test.at("moved"), test.at("there")).unwrap();
    fs::set_permissions(test.at("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", test.at("link")).unwrap();
    let after = tree.look();
    let changes = tree.compare(&before, &after);
    assert_eq!(changes.problems, Vec::<String>::new());
    assert_eq!(
        tree.changes(&changes, &test.path()),
        [
            row("clean", Some("c\n"), Some("C\n")),
            row("dirty", Some("of the user\n"), Some("of the command\n")),
            row("gone", Some("g\n"), None),
            row("link", None, Some("/etc/passwd")),
            row("mode", Some("m\n"), Some("m\n")),
            row("moved", Some("long enough\n"), None),
            row("new/deep/file", None, Some("n\n")),
            row("there", None, Some("long enough\n")),
            row("untracked", Some("u\n"), Some("U\n")),
        ]
    );
    let at = |path: &str| {
        let uri = format!("file://{}", test.at(path).display());
        changes.changes.iter().find(|change| change.uri == uri).unwrap()
    };
    assert_eq!(at("link").after.unwrap().mode, LINK);
    assert_eq!(at("new/deep/file").new_directories, 2);
    let modes = (at("mode").before.unwrap().mode & 0o111, at("mode").after.unwrap().mode);
    assert_eq!(modes, (0, 0o755));
    // The link's target was never read.
    let secret = fs::read("/etc/passwd").unwrap();
    assert!(!tree.kept.values().any(|content| *content == secret));
}

#[test]
fn commits_of_a_command_hide_nothing() {
    let test = TestRepository::new(&[("a", "a\n"), ("b", "b\n"), ("c", "c\n")]);
    test.write("b", "of the user\n");
    let mut tree = Tree::new(&test.path());
    let before = tree.look();
    test.write("a", "A\n");
    test.write("n", "n\n");
    test.git(&["add", "--all"]);
    test.git(&["commit", "--quiet", "-m", "by a command"]);
    test.write("c", "C\n");
    let after = tree.look();
    let changes = tree.compare(&before, &after);
    // What the user had changed is committed now, and the same.
    assert_eq!(
        tree.changes(&changes, &test.path()),
        [
            row("a", Some("a\n"), Some("A\n")),
            row("c", Some("c\n"), Some("C\n")),
            row("n", None, Some("n\n")),
        ]
    );
}

#[test]
fn a_directory_without_git_is_compared_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(directory.path()).unwrap();
    fs::write(path.join("a"), "a").unwrap();
    fs::write(path.join("gone"), "g").unwrap();
    fs::write(path.join("same"), "s").unwrap();
    let mut tree = Tree::new(&path);
    let before = tree.look();
    fs::write(path.join("a"), "A").unwrap();
    fs::write(path.join("new"), "n").unwrap();
    fs::remove_file(path.join("gone")).unwrap();
    fs::write(path.join("same"), "s").unwrap();
    let after = tree.look();
    let changes = tree.compare(&before, &after);
    assert_eq!(
        tree.changes(&changes, &path),
        [row("a", Some("a"), Some("A")), row("gone", Some("g"), None), row("new", None, Some("n")),]
    );
    for number in 0..5_001 {
        fs::write(path.join(format!("f{number}")), "").unwrap();
    }
    let large = tree.look();
    let unseen: Vec<&str> = large.unseen().collect();
    assert!(unseen[0].contains("more than 5000 files"), "{unseen:?}");
    assert!(large.is_blind() && large.failures().next().is_none());
    let changes = tree.compare(&after, &large);
    assert!(changes.changes.is_empty());
}

#[test]
fn a_large_file_is_there_without_content() {
    let test = TestRepository::new(&[("a", "a\n")]);
    let mut tree = Tree::new(&test.path());
    let before = tree.look();
    let large = fs::File::create(test.at("large")).unwrap();
    large.set_len(9 << 20).unwrap();
    let after = tree.look();
    let changes = tree.compare(&before, &after);
    assert_eq!(tree.changes(&changes, &test.path()), [row("large", None, Some("?"))]);
    assert_eq!(changes.changes[0].after.unwrap().bytes, 9 << 20);
    // One that is not touched is not taken for changed; one that is, is.
    let later = tree.look();
    assert!(tree.compare(&after, &later).changes.is_empty());
    large.set_len(10 << 20).unwrap();
    let last = tree.look();
    assert_eq!(tree.compare(&later, &last).changes.len(), 1);
}

/// One look serves the comparison with the last commit and the one with the branch's beginning.
#[test]
fn a_look_is_compared_with_commits() {
    let test = TestRepository::new(&[
        ("committed", "1\n"),
        ("back", "1\n"),
        ("both", "1\n"),
        ("open", "1\n"),
        ("untracked", "1\n"),
    ]);
    test.git(&["checkout", "--quiet", "-b", "side"]);
    for name in ["committed", "back", "both"] {
        test.write(name, "2\n");
    }
    test.write("added", "2\n");
    test.git(&["rm", "--quiet", "untracked"]);
    test.git(&["add", "--all"]);
    test.git(&["commit", "--quiet", "-m", "side"]);
    // The other branch goes on: that is not this one's.
    test.git(&["checkout", "--quiet", "main"]);
    test.write("elsewhere", "3\n");
    test.git(&["add", "elsewhere"]);
    test.git(&["commit", "--quiet", "-m", "main"]);
    test.git(&["checkout", "--quiet", "side"]);
    test.write("back", "1\n");
    for name in ["both", "open", "untracked", "new"] {
        test.write(name, "3\n");
    }
    let path = test.path();
    let mut tree = Tree::new(&path);
    let look = tree.look();
    // What happens after a look is none of it.
    test.write("open", "later\n");
    test.write("later", "later\n");
    let since_commit = tree.since_commit(&look, None);
    assert_eq!(
        tree.changes(&since_commit, &path),
        [
            row("back", Some("2\n"), Some("1\n")),
            row("both", Some("2\n"), Some("3\n")),
            row("new", None, Some("3\n")),
            row("open", Some("1\n"), Some("3\n")),
            row("untracked", None, Some("3\n")),
        ]
    );
    let since_base = tree.since_commit(&look, Some("main"));
    assert_eq!(
        tree.changes(&since_base, &path),
        [
            row("added", None, Some("2\n")),
            row("both", Some("1\n"), Some("3\n")),
            row("committed", Some("1\n"), Some("2\n")),
            row("new", None, Some("3\n")),
            row("open", Some("1\n"), Some("3\n")),
            row("untracked", Some("1\n"), Some("3\n")),
        ]
    );
}
