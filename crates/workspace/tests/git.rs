//! Git as a child process: what a hostile repository can do (nothing), what is read, what users have it do.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

mod repository;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use repository::{TestRepository, git_in};
use workspace::{Cancellation, Confinement, GitError, Repository, WorktreeEnd};

fn never() -> Cancellation {
    Cancellation::default()
}

/// A script that leaves a file behind when it is run.
fn trap(repository: &TestRepository, marks: &Path, name: &str) -> String {
    let script = repository.at(&format!(".git/trap-{name}"));
    let mark = marks.join(name);
    fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}

/// Everything that a repository can configure to be run, and that git's own commands would run.
fn set_traps(repository: &TestRepository, marks: &Path) {
    let set = |name: &str, trap_name: &str| {
        let script = trap(repository, marks, trap_name);
        repository.git(&["config", name, &script]);
    };
    set("core.fsmonitor", "fsmonitor");
    set("core.pager", "pager");
    set("core.editor", "editor");
    set("core.sshCommand", "ssh");
    set("core.askPass", "askpass");
    set("credential.helper", "credential");
    set("diff.external", "external");
    set("diff.evil.textconv", "textconv");
    set("diff.evil.command", "command");
    set("filter.evil.clean", "clean");
    set("filter.evil.smudge", "smudge");
    set("filter.evil.process", "process");
    set("merge.evil.driver", "driver");
    set("gpg.program", "gpg");
    let alias = trap(repository, marks, "alias");
    repository.git(&["config", "alias.status", &format!("!{alias}")]);
    repository.git(&["config", "alias.st", &format!("!{alias}")]);
    repository.git(&["config", "commit.gpgSign", "true"]);
    let included = trap(repository, marks, "included");
    let file = format!(
        "[core]\n\tfsmonitor = {included}\n[filter \"other\"]\n\tclean = {included}\n\tsmudge = {included}\n"
    );
    fs::write(repository.at(".git/evil.config"), file).unwrap();
    repository.git(&["config", "include.path", "evil.config"]);
    for hook in [
        "post-checkout",
        "post-index-change",
        "pre-commit",
        "post-commit",
        "post-merge",
        "reference-transaction",
        "fsmonitor-watchman",
    ] {
        let script = trap(repository, marks, hook);
        let place = repository.at(&format!(".git/hooks/{hook}"));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::rename(script, place).unwrap();
    }
}

#[test]
fn a_hostile_repository_runs_nothing() {
    let marks = tempfile::tempdir().unwrap();
    let hostile =
        TestRepository::new(&[("plain", "one\n"), ("a.evil", "one\n"), ("b.other", "one\n")]);
    hostile
        .write(".gitattributes", "*.evil filter=evil diff=evil merge=evil\n*.other filter=other\n");
    hostile.git(&["add", ".gitattributes"]);
    hostile.git(&["commit", "--quiet", "-m", "attributes"]);
    hostile.git(&["branch", "base"]);
    set_traps(&hostile, marks.path());
    for name in ["plain", "a.evil", "b.other", "new"] {
        hostile.write(name, "two\n");
    }
    let repository = hostile.open();
    let status = repository.status(&never()).unwrap();
    let changed: Vec<&Path> = status.entries.iter().map(|entry| entry.path.as_path()).collect();
    assert_eq!(changed, ["a.evil", "b.other", "plain", "new"].map(Path::new));
    repository.changed_between("base", "HEAD", &never()).unwrap();
    let entries: Vec<&workspace::GitEntry> = status.entries.iter().collect();
    let mut contents = Vec::new();
    let read = repository.read_committed(&entries, &never(), |path, content| {
        contents.push((path.to_owned(), content));
    });
    read.unwrap();
    // What goes through a filter cannot be had without running it.
    contents.sort();
    assert_eq!(
        contents,
        [
            (PathBuf::from("a.evil"), None),
            (PathBuf::from("b.other"), None),
            (PathBuf::from("plain"), Some(b"one\n".to_vec())),
        ]
    );
    repository.stage(Some(&[PathBuf::from("plain")]), &never()).unwrap();
    let refused = repository.stage(None, &never());
    assert!(matches!(refused, Err(GitError::Filtered { .. })), "{refused:?}");
    repository.take_back(&[PathBuf::from("plain")], &never()).unwrap();
    assert_eq!(fs::read(hostile.at("plain")).unwrap(), b"one\n");
    repository.branches("", &never()).unwrap();
    let made = repository.add_worktree("w", Some("base"), None, &never()).unwrap();
    assert_eq!(Repository::remove_worktree(&made, &never()), Ok(WorktreeEnd::Removed));
    let ran: Vec<_> =
        fs::read_dir(marks.path()).unwrap().map(|mark| mark.unwrap().file_name()).collect();
    assert!(ran.is_empty(), "was run: {ran:?}");

    // The user's own git would have run some of it: the traps work.
    let mut command = std::process::Command::new("git");
    command.current_dir(hostile.path()).args(["status", "--short"]);
    command.output().unwrap();
    assert!(fs::read_dir(marks.path()).unwrap().count() > 0);
}

#[test]
fn settings_cannot_lead_elsewhere() {
    let other = TestRepository::new(&[("secret", "s\n")]);
    let hostile = TestRepository::new(&[("a", "a\n")]);
    hostile.git(&["config", "core.worktree", &other.path().display().to_string()]);
    let found = Repository::find(&hostile.path(), &Confinement::none(), &never()).unwrap();
    assert!(found.is_none(), "{found:?}");
    // Data that lies where the session may not work is not used.
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join(".git"), format!("gitdir: {}\n", other.at(".git").display()))
        .unwrap();
    let confinement = Confinement::within(&[work.path().to_owned()]).unwrap();
    let found = Repository::find(work.path(), &confinement, &never()).unwrap();
    assert!(found.is_none(), "{found:?}");
    // Nor is a repository around the roots.
    let inner = other.at("inner");
    fs::create_dir(&inner).unwrap();
    let confinement = Confinement::within(std::slice::from_ref(&inner)).unwrap();
    assert!(Repository::find(&inner, &confinement, &never()).unwrap().is_none());
    let around = Repository::find(&inner, &Confinement::none(), &never()).unwrap().unwrap();
    assert_eq!(around.top(), other.path());
}

#[test]
fn a_status_tells_what_differs() {
    let test = TestRepository::new(&[
        ("a", "a\n"),
        ("gone", "g\n"),
        ("mode", "m\n"),
        ("link", "l\n"),
        ("dir/b", "b\n"),
    ]);
    test.write("a", "A\n");
    fs::remove_file(test.at("gone")).unwrap();
    fs::set_permissions(test.at("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(test.at("link")).unwrap();
    symlink("/etc/passwd", test.at("link")).unwrap();
    test.write("dir/odd \n name", "x\n");
    test.git(&["add", "a"]);
    let status = test.open().status(&never()).unwrap();
    assert_eq!(status.branch.as_deref(), Some("main"));
    assert_eq!(status.head, Some(test.git(&["rev-parse", "HEAD"])));
    let facts: Vec<(String, bool, u32)> = status
        .entries
        .iter()
        .map(|entry| (entry.path.display().to_string(), entry.is_staged, entry.mode))
        .collect();
    let expected = [
        ("a", true, 0o100644),
        ("gone", false, 0),
        ("link", false, 0o120000),
        ("mode", false, 0o100755),
        ("dir/odd \n name", false, 0o100644),
    ];
    assert_eq!(facts, expected.map(|(path, staged, mode)| (path.to_owned(), staged, mode)));
    // Only the part that the session works in.
    let inner = Repository::find(&test.at("dir"), &Confinement::none(), &never())
        .unwrap()
        .unwrap()
        .status(&never())
        .unwrap();
    assert_eq!(inner.entries.len(), 1);
}

#[test]
fn a_submodule_is_one_entry_and_is_not_looked_into() {
    let marks = tempfile::tempdir().unwrap();
    let inner = TestRepository::new(&[("x", "x\n")]);
    let outer = TestRepository::new(&[("a", "a\n")]);
    let url = inner.path().display().to_string();
    outer.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
    outer.git(&["commit", "--quiet", "-m", "submodule"]);
    // Settings for one call do not reach a git that looks into a submodule: nobody may look into it.
    let script = trap(&outer, marks.path(), "submodule");
    git_in(&outer.at("sub"), &["config", "core.fsmonitor", &script]);
    fs::write(outer.at("sub/x"), "changed\n").unwrap();
    assert!(outer.open().status(&never()).unwrap().entries.is_empty());
    git_in(
        &outer.at("sub"),
        &[
            "-c",
            "core.fsmonitor=false",
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@e",
            "commit",
            "--quiet",
            "-am",
            "more",
        ],
    );
    let status = outer.open().status(&never()).unwrap();
    assert_eq!(status.entries.len(), 1);
    assert!(status.entries[0].is_submodule());
    assert_eq!(fs::read_dir(marks.path()).unwrap().count(), 0);
}

#[test]
fn a_commit_runs_hooks_and_says_what_they_said() {
    let test = TestRepository::new(&[("a", "a\n"), ("b", "b\n")]);
    let hook = test.at(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\necho checked >&2\nexit $(cat .git/verdict)\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    test.write(".git/verdict", "1");
    test.write("a", "A\n");
    let repository = test.open();
    let refused = repository.commit("Change a\n\nWhy.", &never());
    assert_eq!(refused, Err(GitError::Failed("checked".to_owned())));
    test.write(".git/verdict", "0");
    let report = repository.commit("Change a\n\nWhy.", &never()).unwrap();
    assert_eq!(
        (report.commit, report.said.as_str()),
        (test.git(&["rev-parse", "HEAD"]), "checked")
    );
    assert_eq!(test.git(&["log", "-1", "--format=%B"]), "Change a\n\nWhy.");
    let nothing = repository.commit("m", &never());
    assert!(matches!(nothing, Err(GitError::Refused(_))));
    // What is staged is all that is committed then.
    test.write("a", "staged\n");
    test.write("b", "not staged\n");
    repository.stage(Some(&[PathBuf::from("a")]), &never()).unwrap();
    repository.commit("Only a", &never()).unwrap();
    assert_eq!(test.git(&["status", "--short"]), "M b");
}

#[test]
fn nothing_is_begun_while_something_is_unfinished() {
    let test = TestRepository::new(&[("a", "a\n")]);
    test.git(&["checkout", "--quiet", "-b", "side"]);
    test.write("a", "side\n");
    test.git(&["commit", "--quiet", "-am", "side"]);
    test.git(&["checkout", "--quiet", "main"]);
    test.write("a", "main\n");
    test.git(&["commit", "--quiet", "-am", "main"]);
    let mut rebase = std::process::Command::new("git");
    rebase.current_dir(test.path()).args(["rebase", "side"]);
    assert!(!rebase.output().unwrap().status.success());
    let repository = test.open();
    assert_eq!(repository.unfinished(), Some("rebase"));
    let unfinished = GitError::Unfinished { operation: "rebase" };
    assert_eq!(repository.commit("m", &never()), Err(unfinished.clone()));
    assert_eq!(repository.stage(None, &never()), Err(unfinished.clone()));
    assert_eq!(repository.take_back(&[PathBuf::from("a")], &never()), Err(unfinished));
    let status = repository.status(&never()).unwrap();
    assert!(status.entries[0].is_conflict);
    test.git(&["rebase", "--abort"]);

    fs::write(test.at(".git/index.lock"), "").unwrap();
    test.write("a", "more\n");
    assert_eq!(test.open().stage(None, &never()), Err(GitError::Locked));
}

#[test]
fn a_git_that_hangs_is_ended_with_what_it_started() {
    let test = TestRepository::new(&[("a", "a\n")]);
    let pid = test.at("pid");
    let hook = test.at(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\necho $$ > {}\nexec tail -f /dev/null\n", pid.display()))
        .unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    test.write("a", "A\n");
    let repository = test.open();
    let cancellation = Cancellation::default();
    let waiting = {
        let cancellation = cancellation.clone();
        std::thread::spawn(move || repository.commit("m", &cancellation))
    };
    let number = loop {
        match fs::read_to_string(&pid) {
            Ok(number) if number.ends_with('\n') => break number.trim().to_owned(),
            _ => std::thread::yield_now(),
        }
    };
    cancellation.cancel();
    assert_eq!(waiting.join().unwrap(), Err(GitError::Cancelled));
    let process = PathBuf::from(format!("/proc/{number}/cmdline"));
    while fs::read(&process).is_ok_and(|line| !line.is_empty()) {
        std::thread::yield_now();
    }
    assert!(!test.at(".git/index.lock").exists(), "it cleaned up");
}

#[test]
fn a_worktree_is_made_merged_back_and_removed() {
    let test = TestRepository::new(&[("a", "a\n"), ("dir/b", "b\n")]);
    let inner = Repository::find(&test.at("dir"), &Confinement::none(), &never()).unwrap().unwrap();
    let made = inner.add_worktree("fix", None, None, &never()).unwrap();
    assert_eq!(made.top, test.at(".greenroom/worktrees/fix"));
    assert_eq!(made.directory, made.top.join("dir"));
    assert_eq!((made.branch.as_str(), made.base.as_str()), ("greenroom/fix", "main"));
    assert!(test.open().status(&never()).unwrap().entries.is_empty(), "it is excluded");
    fs::write(made.top.join("a"), "worktree\n").unwrap();
    let kept = Repository::remove_worktree(&made, &never()).unwrap();
    assert!(matches!(kept, WorktreeEnd::Kept(why) if why.contains("1 files are not committed")));
    let worktree = Repository::find(&made.top, &Confinement::none(), &never()).unwrap().unwrap();
    worktree.commit("In the worktree", &never()).unwrap();
    let kept = Repository::remove_worktree(&made, &never()).unwrap();
    assert!(matches!(kept, WorktreeEnd::Kept(why) if why.contains("has commits")));

    // What is in the way there stops it, and nothing moves.
    test.write("a", "uncommitted\n");
    let before = test.git(&["rev-parse", "main"]);
    let refused = worktree.merge_into("main", &never());
    assert!(matches!(refused, Err(GitError::Refused(_))), "{refused:?}");
    assert_eq!(test.git(&["rev-parse", "main"]), before);
    test.git(&["checkout", "--quiet", "--", "a"]);
    let merged = worktree.merge_into("main", &never()).unwrap();
    assert_eq!(merged.commit, test.git(&["rev-parse", "main"]));
    assert_eq!(fs::read(test.at("a")).unwrap(), b"worktree\n");
    assert_eq!(Repository::remove_worktree(&made, &never()), Ok(WorktreeEnd::Removed));
    assert!(!made.top.exists());
    assert_eq!(test.git(&["branch", "--list", "greenroom/*"]), "");
}

#[test]
fn a_conflict_leaves_both_branches_as_they_were() {
    let test = TestRepository::new(&[("a", "a\n")]);
    let made = test.open().add_worktree("c", None, None, &never()).unwrap();
    fs::write(made.top.join("a"), "worktree\n").unwrap();
    let worktree = Repository::find(&made.top, &Confinement::none(), &never()).unwrap().unwrap();
    worktree.commit("theirs", &never()).unwrap();
    test.write("a", "ours\n");
    test.git(&["commit", "--quiet", "-am", "ours"]);
    let before = test.git(&["for-each-ref"]);
    let conflict = GitError::Conflict { paths: vec!["a".to_owned()] };
    assert_eq!(worktree.merge_into("main", &never()), Err(conflict));
    assert_eq!(test.git(&["for-each-ref"]), before);
    assert_eq!(test.git(&["status", "--short"]), "");
    // Both changed something else: a merge is made without touching the worktree.
    fs::write(made.top.join("a"), "a\n").unwrap();
    fs::write(made.top.join("n"), "n\n").unwrap();
    worktree.commit("back, and something new", &never()).unwrap();
    let merged = worktree.merge_into("main", &never()).unwrap();
    assert_eq!(merged.commit, test.git(&["rev-parse", "main"]));
    assert_eq!(fs::read(test.at("a")).unwrap(), b"ours\n");
    assert_eq!(fs::read(test.at("n")).unwrap(), b"n\n");
}

#[test]
fn line_ends_are_as_in_the_working_tree() {
    let test = TestRepository::new(&[
        (".gitattributes", "*.txt text eol=crlf\n"),
        ("a.txt", "one\r\ntwo\r\n"),
    ]);
    test.write("a.txt", "changed\r\n");
    let repository = test.open();
    let status = repository.status(&never()).unwrap();
    let entries: Vec<&workspace::GitEntry> = status.entries.iter().collect();
    let mut contents = Vec::new();
    let read = repository.read_committed(&entries, &never(), |_, content| contents.push(content));
    read.unwrap();
    assert_eq!(contents, [Some(b"one\r\ntwo\r\n".to_vec())]);
}
