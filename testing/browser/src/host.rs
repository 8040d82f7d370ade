//! The real binary behind the page, with a data directory of its own.
//!
//! Promises: it is gone when the test is; what it logged can be read.
//! Must not know: pages.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::binary;

/// A host.
pub struct Host {
    binary: PathBuf,
    home: TempDir,
    /// What follows `serve`.
    arguments: Vec<String>,
    child: Child,
    /// `http://127.0.0.1:PORT`
    pub origin: String,
    pub token: String,
}

impl Host {
    /// Plays the built-in script, or what the arguments name.
    pub fn start(arguments: &[&str]) -> Result<Self> {
        let (binary, home) = (binary::greenroom()?, tempfile::tempdir()?);
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let (child, origin, token) = serve(&binary, home.path(), "127.0.0.1:0", &arguments)?;
        Ok(Self {
            binary,
            home,
            arguments,
            child,
            origin,
            token,
        })
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops it in mid-air, as a machine that sleeps: connections stay open and nobody answers.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id())?;
        Ok(kill_process(
            Pid::from_raw(pid).context("a process")?,
            signal,
        )?)
    }

    /// Starts it again at the same address, with the same data.
    pub fn start_again(&mut self) -> Result<()> {
        let address = self.origin.trim_start_matches("http://").to_owned();
        let (child, _, _) = serve(&self.binary, self.home.path(), &address, &self.arguments)?;
        self.child = child;
        Ok(())
    }

    /// Runs a verb, which must succeed; what it printed.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.try_run(arguments)?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{arguments:?}: {errors}");
        Ok(String::from_utf8(output.stdout)?)
    }

    pub fn try_run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(command(&self.binary, self.home.path())
            .args(arguments)
            .output()?)
    }

    /// Everything it logged.
    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.home.path().join("log"))?)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(
    binary: &Path,
    home: &Path,
    address: &str,
    arguments: &[String],
) -> Result<(Child, String, String)> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(home.join("log"))?;
    let mut child = command(binary, home)
        .args([
            "serve",
            "--listen",
            address,
            "--ready-json",
            "--workspace",
            ".",
        ])
        .args(arguments)
        .env("GREENROOM_LOG", "debug")
        .stderr(log)
        .spawn()?;
    let mut line = String::new();
    let output = child.stdout.as_mut().context("its output is piped")?;
    BufReader::new(output).read_line(&mut line)?;
    let ready: Value = serde_json::from_str(&line)
        .with_context(|| std::fs::read_to_string(home.join("log")).unwrap_or_default())?;
    let url = ready["url"].as_str().context("an address")?;
    let origin = url.trim_end_matches('/').replacen("ws", "http", 1);
    let token = ready["token"].as_str().unwrap_or_default().to_owned();
    Ok((child, origin, token))
}

/// The binary, away from the data and the settings of whoever runs the tests.
fn command(binary: &Path, home: &Path) -> Command {
    let mut command = Command::new(binary);
    let kept = ["PATH", "TMPDIR"].map(|name| (name, std::env::var_os(name)));
    command.env_clear();
    for (name, value) in kept {
        command.envs(value.map(|value| (name, value)));
    }
    command
        .env("HOME", home)
        .env("XDG_DATA_HOME", home)
        // What listens on this machine is nobody's business here.
        .env("GREENROOM_MODEL_PORTS", "")
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
