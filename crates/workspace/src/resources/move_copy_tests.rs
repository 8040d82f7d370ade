//! A move to another disk, with writes between its parts.

use std::fs;
use std::path::PathBuf;

use super::super::resolved_resource::LastName;
use super::super::{ResourceAccess, ResourceFiles};
use super::*;
use crate::Confinement;

struct MoveFixture {
    _directory: tempfile::TempDir,
    root: PathBuf,
    files: ResourceFiles,
}

fn fixture() -> MoveFixture {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("from/deep")).unwrap();
    fs::write(root.join("from/deep/a"), "one").unwrap();
    fs::write(root.join("from/b"), "two").unwrap();
    let confinement = Confinement::within(std::slice::from_ref(&root)).unwrap();
    MoveFixture { _directory: directory, files: ResourceFiles::new(confinement), root }
}

impl MoveFixture {
    fn resource(&self, name: &str) -> ResolvedResource {
        let uri = format!("file://{}", self.root.join(name).display());
        let access = ResourceAccess::Write;
        self.files.locate(&uri, LastName::Itself, access, &[]).unwrap()
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root.join(name)).ok()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn what_nobody_touched_is_moved() {
    let f = fixture();
    fs::create_dir(f.root.join("to")).unwrap();
    fs::write(f.root.join("to/old"), "old").unwrap();
    let (from, to) = (f.resource("from"), f.resource("to"));
    MovedCopy::put(&from, &to, Existing::Replaced).unwrap().remove_source().unwrap();
    assert_eq!(f.names(), ["to"]);
    assert_eq!(f.text("to/deep/a").as_deref(), Some("one"));
    assert_eq!(f.text("to/old"), None);
}

#[test]
fn what_is_written_meanwhile_is_not_lost() {
    type Meddling = fn(&PathBuf);
    let meddlings: [Meddling; 5] = [
        |root| fs::write(root.join("from/deep/a"), "longer than before").unwrap(),
        // The same length, within the tick of a clock.
        |root| fs::write(root.join("from/deep/a"), "ONE").unwrap(),
        |root| fs::write(root.join("from/deep/new"), "new").unwrap(),
        |root| fs::remove_file(root.join("from/b")).unwrap(),
        |root| {
            fs::write(root.join("beside"), "two").unwrap();
            fs::rename(root.join("beside"), root.join("from/b")).unwrap();
        },
    ];
    for (number, meddle) in meddlings.into_iter().enumerate() {
        for replaces in [false, true] {
            let f = fixture();
            if replaces {
                fs::write(f.root.join("to"), "old").unwrap();
            }
            let (from, to) = (f.resource("from"), f.resource("to"));
            let copy = MovedCopy::put(&from, &to, Existing::Replaced).unwrap();
            meddle(&f.root);
            let before = ["from/deep/a", "from/b", "from/deep/new"].map(|name| f.text(name));
            let refused = copy.remove_source().unwrap_err();
            let is_changed = matches!(refused, ResourceError::Changed { .. });
            assert!(is_changed, "{number}: {refused}");
            let after = ["from/deep/a", "from/b", "from/deep/new"].map(|name| f.text(name));
            assert_eq!(after, before, "{number}");
            let (names, old): (&[&str], _) =
                if replaces { (&["from", "to"], Some("old")) } else { (&["from"], None) };
            assert_eq!(f.names(), names, "{number}: nothing else is left");
            assert_eq!(f.text("to").as_deref(), old, "{number}");
        }
    }
}

#[test]
fn a_source_that_is_gone_takes_the_move_back() {
    let f = fixture();
    let (from, to) = (f.resource("from/b"), f.resource("to"));
    let copy = MovedCopy::put(&from, &to, Existing::AnError).unwrap();
    fs::remove_file(f.root.join("from/b")).unwrap();
    let refused = copy.remove_source().unwrap_err();
    assert!(matches!(refused, ResourceError::NotFound { .. }), "{refused}");
    assert_eq!(f.names(), ["from"]);
}

/// What others wrote to the destination is theirs, whatever becomes of the move.
#[test]
fn what_others_write_to_the_destination_is_not_removed() {
    for replaces in [false, true] {
        for source_changes in [false, true] {
            let f = fixture();
            if replaces {
                fs::write(f.root.join("to"), "old").unwrap();
            }
            let (from, to) = (f.resource("from"), f.resource("to"));
            let copy = MovedCopy::put(&from, &to, Existing::Replaced).unwrap();
            fs::write(f.root.join("to/theirs"), "theirs").unwrap();
            if source_changes {
                fs::write(f.root.join("from/deep/new"), "new").unwrap();
            }
            let refused = copy.remove_source().unwrap_err();
            assert_eq!(f.text("to/theirs").as_deref(), Some("theirs"), "{refused}");
            assert_eq!(f.text("from/deep/a").as_deref(), Some("one"));
            match (replaces, &refused) {
                (false, ResourceError::DestinationChanged { .. }) => {
                    assert_eq!(f.names(), ["from", "to"]);
                }
                (true, ResourceError::ReplacedAside { aside, .. }) => {
                    assert_eq!(f.text(aside).as_deref(), Some("old"));
                }
                (_, other) => panic!("{other}"),
            }
        }
    }
}

/// A file of another in place of the copy is not taken for it.
#[test]
fn a_destination_that_is_another_file_by_now_stays() {
    let f = fixture();
    let (from, to) = (f.resource("from/b"), f.resource("to"));
    let copy = MovedCopy::put(&from, &to, Existing::AnError).unwrap();
    fs::write(f.root.join("beside"), "two").unwrap();
    fs::rename(f.root.join("beside"), f.root.join("to")).unwrap();
    fs::write(f.root.join("from/b"), "changed").unwrap();
    let refused = copy.remove_source().unwrap_err();
    assert!(matches!(refused, ResourceError::DestinationChanged { .. }), "{refused}");
    assert_eq!(f.text("to").as_deref(), Some("two"));
    assert_eq!(f.text("from/b").as_deref(), Some("changed"));
}

#[test]
fn a_source_that_cannot_be_removed_is_put_back_or_named() {
    // Nothing of it is gone: nothing was moved.
    let f = fixture();
    fs::write(f.root.join("to"), "old").unwrap();
    let (from, to) = (f.resource("from"), f.resource("to"));
    let copy = MovedCopy::put(&from, &to, Existing::Replaced).unwrap();
    let refused = copy.remove_source_by(|_, _| Err(TreeError::System(Errno::ACCESS)));
    assert!(refused.is_err());
    assert_eq!(f.names(), ["from", "to"]);
    assert_eq!(f.text("from/deep/a").as_deref(), Some("one"));
    assert_eq!(f.text("to").as_deref(), Some("old"));

    // A part of it is gone: the copy is the whole, and stays.
    let copy = MovedCopy::put(&from, &to, Existing::Replaced).unwrap();
    let root = f.root.clone();
    let refused = copy.remove_source_by(|_, aside| {
        fs::remove_file(root.join(aside).join("b")).unwrap();
        Err(TreeError::System(Errno::ACCESS))
    });
    let Err(ResourceError::NotRemoved { aside, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(f.names().len(), 2);
    assert_eq!(f.text(&format!("{aside}/deep/a")).as_deref(), Some("one"));
    assert_eq!(f.text("to/b").as_deref(), Some("two"));
    assert_eq!(f.text("to/deep/a").as_deref(), Some("one"));
}
