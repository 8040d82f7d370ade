//! The processes of a measurement: the host, the bare server, those who watch. Each dies with the value that holds it.
//!
//! Promises: only loopback; data directories lie beside the build, on the disk the build is on.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::measure::now_ns;

/// How long a process may take to print a line.
const LINE_TIMEOUT: Duration = Duration::from_secs(60);

/// A child process with a line protocol.
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    log: PathBuf,
}

impl Process {
    /// `log` gets what it writes to standard error.
    pub(crate) fn start(program: &Path, arguments: &[String], log: PathBuf) -> Result<Self> {
        let errors = std::fs::File::create(&log)?;
        let mut child = Command::new(program)
            .args(arguments)
            .env("GREENROOM_LOG", "warn")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("no standard output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, stdin, lines, log })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line it says, as JSON.
    pub(crate) fn line(&mut self) -> Result<Value> {
        match self.lines.recv_timeout(LINE_TIMEOUT) {
            Ok(line) => serde_json::from_str(&line).with_context(|| format!("not JSON: {line}")),
            Err(_) => {
                let words = std::fs::read_to_string(&self.log).unwrap_or_default();
                bail!("a process of the measurement printed nothing: {}", words.trim())
            }
        }
    }

    pub(crate) fn send_line(&mut self, line: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("its standard input is closed")?;
        writeln!(stdin, "{line}").context("a process of the measurement has ended")
    }

    pub(crate) fn ask(&mut self, line: &str) -> Result<Value> {
        self.send_line(line)?;
        self.line()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gone already is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that is ready: the host or the bare one.
pub(crate) struct Server {
    process: Process,
    /// `127.0.0.1:PORT`
    pub address: String,
    /// The host's data directory.
    pub data: Option<PathBuf>,
    /// From its start to its readiness.
    pub ready_after_ns: u64,
}

impl Server {
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        data: Option<PathBuf>,
        log: PathBuf,
    ) -> Result<Self> {
        let began = now_ns();
        let mut process = Process::start(program, arguments, log)?;
        let ready = process.line().context("a server did not become ready")?;
        let ready_after_ns = now_ns() - began;
        let url = ready["url"].as_str().context("no url in the ready line")?;
        let address = url.trim_start_matches("ws://").trim_end_matches('/').to_owned();
        Ok(Self { process, address, data, ready_after_ns })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Asks it to end and waits until it has; dropping it kills it instead.
    pub(crate) fn stop(mut self) -> Result<()> {
        let pid =
            i32::try_from(self.pid()).ok().and_then(Pid::from_raw).context("no process id")?;
        kill_process(pid, Signal::TERM)?;
        let status = self.process.child.wait()?;
        if !status.success() {
            bail!("a server ended with {status}");
        }
        Ok(())
    }
}
