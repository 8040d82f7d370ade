//! The real binary behind the page, with a data directory of its own.
//!
//! Promises: it is gone when the test is; what it logged can be read.
//! Must not know: pages.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
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
        let address = format!("127.0.0.1:{}", free_port()?);
        let (child, origin, token) = serve(&binary, home.path(), &address, &arguments)?;
        Ok(Self { binary, home, arguments, child, origin, token })
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
        self.signal(Signal::STOP)?;
        // Until the one thread that takes the signal has run, the others go on and answer.
        let stopped = waitpid(Some(self.pid()?), WaitOptions::UNTRACED)?;
        let is_stopped = stopped.is_some_and(|(_, status)| status.stopped());
        ensure!(is_stopped, "the host ended instead: {stopped:?}");
        Ok(())
    }

    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    fn pid(&self) -> Result<Pid> {
        Pid::from_raw(i32::try_from(self.child.id())?).context("a process")
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
        Ok(command(&self.binary, self.home.path()).args(arguments).output()?)
    }

    /// Starts a verb whose input and outputs are pipes; whoever starts it ends it.
    pub fn spawn(&self, arguments: &[&str]) -> Result<Child> {
        let mut command = command(&self.binary, self.home.path());
        Ok(command.args(arguments).stdin(Stdio::piped()).spawn()?)
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

/// A port for a host that may be started again. Those that the system hands out would be somebody else's by then.
fn free_port() -> Result<u16> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 10_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Tests of other processes begin elsewhere.
    let begin = u16::try_from(std::process::id() % u32::from(COUNT))?;
    for _ in 0..COUNT {
        let next = TAKEN.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (begin + next % COUNT) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port from {FIRST} on is free")
}

fn serve(
    binary: &Path,
    home: &Path,
    address: &str,
    arguments: &[String],
) -> Result<(Child, String, String)> {
    let log = File::options().create(true).append(true).open(home.join("log"))?;
    let mut child = command(binary, home)
        .args(["serve", "--listen", address, "--ready-json", "--workspace", "."])
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
