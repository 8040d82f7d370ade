//! A real repository in a temporary directory, and the user's own git to prepare it with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use workspace::{Cancellation, Confinement, Repository};

pub(crate) struct TestRepository {
    pub(crate) directory: tempfile::TempDir,
}

impl TestRepository {
    /// With a commit of `files`.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Self { directory };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.git(&["config", "user.name", "Test"]);
        repository.git(&["config", "user.email", "test@example.com"]);
        for (name, content) in files {
            repository.write(name, content);
        }
        repository.git(&["add", "--all"]);
        repository.git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
        repository
    }

    pub(crate) fn path(&self) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_in(&self.path(), args)
    }

    #[allow(dead_code, reason = "only one of the tests that share it opens it")]
    pub(crate) fn open(&self) -> Repository {
        let found = Repository::find(&self.path(), &Confinement::none(), &Cancellation::default());
        found.unwrap().unwrap()
    }
}

/// Runs the user's git, which must succeed.
pub(crate) fn git_in(directory: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    let command = command.current_dir(directory).args(args);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
