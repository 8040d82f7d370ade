//! Tests of what a look reads and what it knows from an earlier one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use wire::Digest;

use super::*;

/// A working directory, and what was read of it.
struct Tree {
    workspace: Workspace,
    read: BTreeMap<Digest, Vec<u8>>,
}

impl Tree {
    fn new(directory: &Path) -> Self {
        let uri = format!("file://{}", directory.display());
        Self {
            workspace: Workspace::open(&[uri], &Confinement::none()).unwrap(),
            read: BTreeMap::new(),
        }
    }

    fn look(&mut self, earlier: Option<&TreeSnapshot>) -> TreeSnapshot {
        let mut keep = |digest: &Digest, content: &[u8]| {
            self.read.insert(*digest, content.to_vec());
            Ok(())
        };
        let never = Cancellation::default();
        let none = Confinement::none();
        self.workspace.look_at_tree(&none, &mut keep, earlier, &never)
    }

    /// What was read since this was called last.
    fn take_read(&mut self) -> Vec<String> {
        let read = std::mem::take(&mut self.read);
        let text = |content: Vec<u8>| String::from_utf8(content).unwrap();
        let mut texts: Vec<String> = read.into_values().map(text).collect();
        texts.sort();
        texts
    }
}

#[test]
fn what_nobody_touched_is_not_read_again() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |path: &str| scratch.path().join(path);
    for directory in ["a", "b"] {
        fs::create_dir(at(directory)).unwrap();
    }
    for path in ["same", "longer", "rewritten", "a/twin", "b/twin"] {
        fs::write(at(path), format!("first: {path}")).unwrap();
    }
    symlink("same", at("link")).unwrap();
    let mut tree = Tree::new(scratch.path());
    let mut before = tree.look(None);
    assert_eq!(tree.take_read().len(), 6);
    // They were changed a moment before: one of them may have changed again without another time of change.
    tree.look(Some(&before));
    assert_eq!(tree.take_read().len(), 6, "nothing has settled");
    // As if that look had begun later.
    before.begun.seconds += 60;
    let again = tree.look(Some(&before));
    assert_eq!(tree.take_read(), [""; 0], "everything is known");
    let contents = |look: &TreeSnapshot| look.contents().collect::<Vec<_>>();
    assert_eq!(contents(&again), contents(&before));

    fs::write(at("longer"), "first: longer, and more").unwrap();
    fs::write(at("rewritten"), "other: rewritten").unwrap();
    // Files of the same size that were made at about the same moment change places.
    fs::rename(at("a"), at("aside")).unwrap();
    fs::rename(at("b"), at("a")).unwrap();
    fs::rename(at("aside"), at("b")).unwrap();
    let after = tree.look(Some(&before));
    assert_eq!(
        tree.take_read(),
        ["first: a/twin", "first: b/twin", "first: longer, and more", "other: rewritten"]
    );
    let mut keep = |_: &Digest, _: &[u8]| Ok(());
    let never = Cancellation::default();
    let compared = tree.workspace.compare_looks(&before, &after, &mut keep, &never);
    let prefix = format!("file://{}/", scratch.path().display());
    let changed: Vec<&str> =
        compared.changes.iter().map(|change| change.uri.strip_prefix(&prefix).unwrap()).collect();
    assert_eq!(changed, ["a/twin", "b/twin", "longer", "rewritten"]);
}
