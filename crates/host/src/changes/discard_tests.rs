//! Discarding: what is not in the index any more, and what fails in the middle.

use std::fs;
use std::process::Command;

use super::*;
use crate::full_disk_fixture::FullDiskFixture;

fn git(room: &FullDiskFixture, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(&room.root).args(args);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn commit_all(room: &FullDiskFixture) {
    git(room, &["init", "--quiet", "--initial-branch=main"]);
    git(room, &["config", "user.name", "Test"]);
    git(room, &["config", "user.email", "test@example.com"]);
    git(room, &["add", "--all"]);
    git(room, &["commit", "--quiet", "-m", "first"]);
}

fn open(room: &FullDiskFixture) -> Repository {
    let never = Cancellation::default();
    Repository::find(&room.root, room.bodies.confinement(), &never).unwrap().unwrap()
}

fn plan<'a>(
    room: &'a FullDiskFixture,
    repository: &'a Repository,
    paths: Option<Vec<PathBuf>>,
) -> DiscardPlan<'a> {
    let paths = paths.as_deref();
    DiscardPlan::make(&room.workspace, repository, &room.bodies, paths, false).unwrap()
}

fn discard(
    room: &FullDiskFixture,
    repository: &Repository,
    paths: Option<Vec<PathBuf>>,
) -> Result<String, RpcError> {
    plan(room, repository, paths).carry_out()
}

/// Changes of every kind: staged and changed again, removed, new and staged and changed again, new.
fn change_everything(room: &FullDiskFixture) {
    let write = |name: &str, text: &str| fs::write(room.root.join(name), text).unwrap();
    write("a", "a staged");
    write("new", "new staged");
    git(room, &["add", "a", "new"]);
    write("a", "a changed again");
    write("new", "new changed again");
    fs::remove_file(room.root.join("m")).unwrap();
    write("u1", "u1");
    write("u2", "u2");
}

/// Where git stands, and what the files hold.
fn look(room: &FullDiskFixture) -> (String, String, Vec<Option<String>>) {
    let names = ["a", "m", "z", "new", "u1", "u2"];
    let contents = names.map(|name| fs::read_to_string(room.root.join(name)).ok());
    (git(room, &["status", "--porcelain"]), git(room, &["ls-files", "--stage"]), contents.to_vec())
}

/// After the others were taken back, taken out of the index and removed, one was changed by somebody.
#[test]
fn a_discard_that_fails_in_the_middle_is_undone() {
    let room = FullDiskFixture::anywhere();
    commit_all(&room);
    change_everything(&room);
    let repository = open(&room);
    let mut before = look(&room);
    let planned = plan(&room, &repository, None);
    fs::write(room.root.join("u2"), "somebody's").unwrap();
    before.2[5] = Some("somebody's".to_owned());
    // Later than all that can be seen before it begins.
    let failed = planned.discard().unwrap_err();
    let refused = planned.bring_back(&failed);
    let message = &refused.message;
    assert!(message.starts_with("nothing was done: "), "{message}");
    assert_eq!(look(&room), before);
    // With nobody in the way, all of it goes.
    discard(&room, &repository, None).unwrap();
    assert_eq!(git(&room, &["status", "--porcelain"]), "");
    assert!(!room.root.join("new").exists() && !room.root.join("u2").exists());
    assert_eq!(fs::read(room.root.join("m")).unwrap(), b"m now");
}

#[test]
fn what_somebody_changed_since_it_was_kept_is_left_alone() {
    let room = FullDiskFixture::anywhere();
    commit_all(&room);
    change_everything(&room);
    let repository = open(&room);
    let mut before = look(&room);
    let planned = plan(&room, &repository, None);
    fs::write(room.root.join("a"), "somebody's").unwrap();
    before.2[0] = Some("somebody's".to_owned());
    let refused = planned.carry_out().unwrap_err();
    assert_eq!(refused.message, "nothing was done: a was changed meanwhile");
    assert_eq!(look(&room), before);
}

#[test]
fn a_file_in_the_place_of_a_directory_is_not_removed() {
    let room = FullDiskFixture::anywhere();
    fs::create_dir(room.root.join("d")).unwrap();
    fs::write(room.root.join("d/f"), "committed").unwrap();
    commit_all(&room);
    fs::remove_dir_all(room.root.join("d")).unwrap();
    fs::write(room.root.join("d"), "somebody's").unwrap();
    let repository = open(&room);
    for paths in [None, Some(vec![PathBuf::from("d/f")])] {
        let paths = paths.as_deref();
        let made = DiscardPlan::make(&room.workspace, &repository, &room.bodies, paths, false);
        let refused = made.err().unwrap();
        let message = &refused.message;
        assert!(message.contains("where its directory was"), "{message}");
        let left = fs::read_to_string(room.root.join("d")).unwrap();
        assert_eq!(left, "somebody's");
    }
}

#[test]
fn a_discard_while_git_is_at_work_does_nothing() {
    let room = FullDiskFixture::anywhere();
    commit_all(&room);
    change_everything(&room);
    let before = look(&room);
    let repository = open(&room);
    fs::write(room.root.join(".git/index.lock"), "").unwrap();
    let refused = discard(&room, &repository, None).unwrap_err();
    fs::remove_file(room.root.join(".git/index.lock")).unwrap();
    let message = &refused.message;
    assert!(message.starts_with("nothing was done: "), "{message}");
    assert_eq!(look(&room), before);
}

#[test]
fn what_was_only_taken_out_of_the_index_is_discarded_with_its_changes() {
    let room = FullDiskFixture::anywhere();
    commit_all(&room);
    git(&room, &["rm", "--quiet", "--cached", "a", "m"]);
    fs::write(room.root.join("a"), "changed since").unwrap();
    let repository = open(&room);
    let paths = Some(vec![PathBuf::from("a")]);
    discard(&room, &repository, paths).unwrap();
    assert_eq!(fs::read(room.root.join("a")).unwrap(), b"a now");
    assert_eq!(git(&room, &["status", "--porcelain"]), "D  m\n?? m\n");
    discard(&room, &repository, None).unwrap();
    room_is_clean(&room);
    // What was discarded is kept for a while.
    let kept = room.bodies.store();
    let digest = crate::blobs::digest_of(b"changed since");
    assert!(store::read_content(&*kept, digest).is_some());
}

fn room_is_clean(room: &FullDiskFixture) {
    assert_eq!(git(room, &["status", "--porcelain"]), "");
    for name in ["a", "m", "z"] {
        let text = fs::read_to_string(room.root.join(name)).unwrap();
        assert_eq!(text, format!("{name} now"));
    }
}
