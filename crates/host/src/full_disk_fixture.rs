//! Tests of full disks: a process that may only write small files, which fails where a full disk does, at the write.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::Limits;
use wire::Digest;
use workspace::{Confinement, Workspace};

use crate::blobs::MemoryBlobs;
use crate::clock::Clock;
use crate::effects::Bodies;

/// Larger than what the process may write.
const LARGE_BYTES: usize = 256 * 1_024;

/// What a test prints that was run with little room.
const LIMITED: &str = "no large file can be written";

/// Runs another test of this executable where no file can be larger than 64 KiB: writing more fails as on a full disk.
pub(crate) fn run_with_little_room(test: &str) {
    let own = std::env::current_exe().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\""])
        .arg(own)
        .args(["--exact", test, "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{problems}");
    assert!(said.contains(LIMITED), "{said}");
}

/// Three small files and one that is too large to be written in between.
pub(crate) struct FullDiskFixture {
    _directory: tempfile::TempDir,
    pub root: PathBuf,
    pub workspace: Workspace,
    pub bodies: Bodies,
}

impl FullDiskFixture {
    /// `None` where large files can be written.
    pub(crate) fn new() -> Option<Self> {
        let room = Self::anywhere();
        let probe = room.root.join("probe");
        let is_limited = fs::write(&probe, vec![0; LARGE_BYTES]).is_err();
        fs::remove_file(probe).unwrap();
        if is_limited {
            println!("{LIMITED}");
        }
        is_limited.then_some(room)
    }

    /// The same, whatever can be written.
    pub(crate) fn anywhere() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["a", "m", "z"] {
            fs::write(root.join(name), format!("{name} now")).unwrap();
        }
        let confinement = Confinement::within(std::slice::from_ref(&root)).unwrap();
        let blobs = Arc::new(MemoryBlobs::default());
        let bodies = Bodies::new(blobs, Clock::start(), &Limits::default())
            .with_confinement(confinement.clone());
        let uri = format!("file://{}", root.display());
        let workspace = Workspace::open(&[uri], &confinement).unwrap();
        Self { _directory: directory, root, workspace, bodies }
    }

    pub(crate) fn uri(&self, name: &str) -> String {
        format!("file://{}", self.root.join(name).display())
    }

    pub(crate) fn keep(&self, bytes: &[u8]) -> Digest {
        self.bodies.store().put(bytes, self.bodies.now()).unwrap()
    }

    /// What each file was before, by name: one was not there, one was large.
    pub(crate) fn wanted(&self) -> Vec<(&'static str, Option<Digest>)> {
        let (small, large) = (self.keep(b"a before"), self.keep(&vec![b'x'; LARGE_BYTES]));
        let again = self.keep(b"z before");
        vec![("a", Some(small)), ("b", Some(again)), ("m", Some(large)), ("z", Some(again))]
    }

    /// Nothing is changed, and nothing is left over.
    pub(crate) fn check_untouched(&self) {
        let read = |name: &Path| fs::read_to_string(name).unwrap();
        for name in ["a", "m", "z"] {
            assert_eq!(read(&self.root.join(name)), format!("{name} now"));
        }
        let names = fs::read_dir(&self.root).unwrap();
        assert_eq!(names.count(), 3);
    }
}
