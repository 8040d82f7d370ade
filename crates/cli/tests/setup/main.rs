//! Starting, stopping and setting up, with the real binary: verbs that change what runs on this machine, and what they must
//! never touch.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "../running/mod.rs"]
mod running;
#[path = "../terminal/mod.rs"]
mod terminal;

mod config;
mod doctor;
mod logs;
mod pages;
mod restart;
mod service;
mod stop;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use running::{data_directory, greenroom, text};

/// A home with a data directory in it. Whoever serves it is gone when the test is.
pub struct Home(pub TempDir);

impl Home {
    pub fn create() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn data(&self) -> PathBuf {
        data_directory(self.path())
    }

    /// The binary, with this as its home.
    pub fn greenroom(&self) -> Command {
        let mut command = greenroom(self.path());
        command.env("HOME", self.path()).env_remove("XDG_CONFIG_HOME");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.greenroom().args(arguments).output().unwrap())
    }

    /// Runs a verb that reads `input`.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.greenroom();
        let mut child = command.args(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // A verb that ends early does not read all of it.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
        Ran::of(child.wait_with_output().unwrap())
    }

    /// A host in the background.
    pub fn start_background(&self) {
        let started = self.run(&["restart"]);
        assert_eq!(started.code, Some(0), "{started:?}");
        assert!(started.out.contains("started a host in the background"), "{started:?}");
    }

    pub fn status(&self) -> Value {
        let status = self.run(&["status", "--json"]);
        serde_json::from_str(&status.out).unwrap()
    }

    pub fn settings(&self, toml: &str) {
        fs::create_dir_all(self.data()).unwrap();
        fs::write(self.data().join("greenroom.toml"), toml).unwrap();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.greenroom().args(["stop", "--force"]).output();
    }
}

/// How a verb went.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// A process that has nothing to do with us.
pub struct Bystander(std::process::Child);

impl Bystander {
    pub fn start() -> Self {
        Self(Command::new("sleep").arg("1000").spawn().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
