//! Worktrees of hostile and of unusual repositories.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

mod repository;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use repository::{TestRepository, git_in};
use workspace::{Cancellation, Confinement, GitError, Repository, WorktreeEnd};

fn never() -> Cancellation {
    Cancellation::default()
}

#[test]
fn a_filter_that_only_the_worktree_has_is_not_run() {
    for condition in ["gitdir:**/worktrees/**", "onbranch:greenroom/**"] {
        let marks = tempfile::tempdir().unwrap();
        let mark = marks.path().join("ran");
        let test = TestRepository::new(&[("a.evil", "one\n")]);
        test.write(".gitattributes", "*.evil filter=evil\n");
        test.git(&["add", ".gitattributes"]);
        test.git(&["commit", "--quiet", "-m", "attributes"]);
        let script = test.at(".git/trap");
        fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", mark.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let script = script.display();
        let settings = format!("[filter \"evil\"]\n\tsmudge = {script}\n\tclean = {script}\n");
        fs::write(test.at(".git/evil.config"), settings).unwrap();
        let path = test.at(".git/evil.config").display().to_string();
        test.git(&["config", &format!("includeIf.{condition}.path"), &path]);
        let repository = test.open();
        let made = repository.add_worktree("w", None, None, &never()).unwrap();
        fs::write(made.top.join("a.evil"), "two\n").unwrap();
        let inside = Repository::find(&made.top, &Confinement::none(), &never()).unwrap().unwrap();
        assert_eq!(inside.status(&never()).unwrap().entries.len(), 1);
        let kept = Repository::remove_worktree(&made, &never()).unwrap();
        assert!(matches!(kept, WorktreeEnd::Kept(_)));
        assert!(!mark.exists(), "{condition}");
        // The user's own git runs it there: the trap works.
        git_in(&made.top, &["add", "a.evil"]);
        assert!(mark.exists(), "{condition}");
    }
}

#[test]
fn a_worktree_with_a_detached_head_is_kept() {
    let test = TestRepository::new(&[("a", "a\n")]);
    let made = test.open().add_worktree("fix", None, None, &never()).unwrap();
    git_in(&made.top, &["checkout", "--quiet", "--detach"]);
    let why = Repository::why_worktree_is_kept(&made, &never()).unwrap().unwrap();
    assert!(why.contains("no branch is checked out in it"), "{why}");
    let kept = Repository::remove_worktree(&made, &never());
    assert_eq!(kept, Ok(WorktreeEnd::Kept(why)));
    assert!(made.top.join("a").exists());
    git_in(&made.top, &["checkout", "--quiet", "greenroom/fix"]);
    assert_eq!(Repository::why_worktree_is_kept(&made, &never()), Ok(None));
    assert_eq!(Repository::remove_worktree(&made, &never()), Ok(WorktreeEnd::Removed));
}

#[test]
fn a_worktree_in_the_middle_of_a_rebase_is_kept() {
    let test = TestRepository::new(&[("a", "a\n")]);
    let made = test.open().add_worktree("fix", None, None, &never()).unwrap();
    test.write("a", "main\n");
    test.git(&["commit", "--quiet", "--all", "-m", "main"]);
    fs::write(made.top.join("a"), "fix\n").unwrap();
    git_in(&made.top, &["commit", "--quiet", "--all", "-m", "fix"]);
    let mut rebase = std::process::Command::new("git");
    rebase.current_dir(&made.top).args(["rebase", "main"]);
    assert!(!rebase.output().unwrap().status.success());
    let why = Repository::why_worktree_is_kept(&made, &never()).unwrap();
    assert!(why.unwrap().contains("in the middle of a rebase"));
    let kept = Repository::remove_worktree(&made, &never()).unwrap();
    assert!(matches!(kept, WorktreeEnd::Kept(_)));
    assert!(made.top.exists());
}

#[test]
fn a_directory_for_worktrees_that_is_a_link_is_refused() {
    for link in [".greenroom", ".greenroom/worktrees"] {
        let elsewhere = tempfile::tempdir().unwrap();
        let test = TestRepository::new(&[("a", "a\n")]);
        let link = test.at(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(elsewhere.path(), &link).unwrap();
        let refused = test.open().add_worktree("w", None, None, &never());
        assert!(matches!(refused, Err(GitError::Refused(_))), "{refused:?}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
        assert_eq!(test.git(&["branch", "--list", "greenroom/*"]), "");
    }
}

#[test]
fn worktrees_may_lie_in_a_directory_of_their_own() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let test = TestRepository::new(&[("a", "a\n")]);
    let name = test.path().file_name().unwrap().to_owned();
    let repository = test.open();
    let made = repository.add_worktree("w", None, Some(&place), &never()).unwrap();
    assert_eq!(made.top, place.join(&name).join("w"));
    assert!(made.top.join("a").exists());
    assert!(!test.at(".greenroom").exists());
    let again = repository.add_worktree("w", None, Some(&place), &never());
    assert!(again.unwrap_err().to_string().contains("already exists"));
    assert_eq!(Repository::remove_worktree(&made, &never()), Ok(WorktreeEnd::Removed));
    // Where sessions may not work, none is made.
    let confined = Confinement::within(&[test.path()]).unwrap();
    let confined = Repository::find(&test.path(), &confined, &never()).unwrap();
    let outside = confined.unwrap().add_worktree("x", None, Some(&place), &never());
    assert!(outside.is_err());
    assert!(!place.join(&name).join("x").exists());
    assert_eq!(test.git(&["branch", "--list", "greenroom/*"]), "");
}

#[test]
fn a_link_in_the_directory_of_all_worktrees_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let test = TestRepository::new(&[("a", "a\n")]);
    let name = test.path().file_name().unwrap().to_owned();
    symlink(elsewhere.path(), place.join(name)).unwrap();
    let refused = test.open().add_worktree("w", None, Some(&place), &never()).unwrap_err();
    assert!(refused.to_string().contains("symbolic link"), "{refused}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    assert_eq!(test.git(&["branch", "--list", "greenroom/*"]), "");
}

/// The directory that is worked in is one of the repository: what a branch has there may be a link.
#[test]
fn a_link_that_a_branch_has_for_the_working_directory_is_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    let test = TestRepository::new(&[("sub/deep/a", "a\n")]);
    test.git(&["checkout", "--quiet", "-b", "evil"]);
    fs::remove_dir_all(test.at("sub")).unwrap();
    symlink(elsewhere.path(), test.at("sub")).unwrap();
    test.git(&["add", "--all"]);
    test.git(&["commit", "--quiet", "-m", "a link"]);
    test.git(&["checkout", "--quiet", "main"]);
    let inside =
        Repository::find(&test.at("sub/deep"), &Confinement::none(), &never()).unwrap().unwrap();
    let refused = inside.add_worktree("w", Some("evil"), None, &never()).unwrap_err();
    assert!(refused.to_string().contains("symbolic link"), "{refused}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    assert!(!test.at(".greenroom/worktrees/w").exists(), "it is undone");
    assert_eq!(test.git(&["branch", "--list", "greenroom/*"]), "");
    let made = inside.add_worktree("w", Some("main"), None, &never());
    assert!(made.unwrap().directory.join("a").exists());
}

#[test]
fn what_is_no_name_of_a_branch_is_refused_as_a_base() {
    let test = TestRepository::new(&[("a", "a\n")]);
    test.git(&["tag", "v1"]);
    let repository = test.open();
    for base in [
        "-f",
        "--orphan=x",
        "--upload-pack=touch x",
        "../main",
        "a/../main",
        "main..main",
        "main^",
        "main~1",
        "main:a",
        "@{-1}",
        "@",
        "HEAD",
        "v1",
        "refs/heads/main",
        "main\nx",
        "/main",
        "main/",
        "a//b",
        "x.lock",
        " ",
        "",
    ] {
        let refused = repository.add_worktree("w", Some(base), None, &never());
        assert!(matches!(refused, Err(GitError::Refused(_))), "{base:?}: {refused:?}");
    }
    assert!(!test.at(".greenroom").exists());
    assert_eq!(test.git(&["branch", "--list", "greenroom/*"]), "");
    let commit = test.git(&["rev-parse", "HEAD"]).trim().to_owned();
    for (name, base) in [("by-name", "main"), ("by-commit", commit.as_str())] {
        let made = repository.add_worktree(name, Some(base), None, &never());
        assert_eq!(made.unwrap().base, base);
    }
}
