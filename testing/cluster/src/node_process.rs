//! One node: the real executable in a process of its own, which can be killed, stopped and started again.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::peer_proxy::PeerProxy;

/// Every turn streams for a while, so that there is always one to interrupt.
fn script(every_ms: u64) -> Value {
    json!({"scenes": [{"steps": [{"stream": {"chunks": 60, "size": 24, "every_ms": every_ms}}]}]})
}

/// How often a node is started before it counts as broken. Each waits for its database for `journal_patience_ms`.
const STARTS_MAX: usize = 5;

/// A process that dies with the test.
pub(crate) struct NodeProcess {
    pub(crate) name: String,
    binary: PathBuf,
    /// What the other nodes reach it through.
    pub(crate) proxy: PeerProxy,
    directory: PathBuf,
    child: Option<Child>,
    pub(crate) url: String,
}

/// What a node takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeUse {
    /// Of its own: not the program's pages, which all nodes share.
    pub memory_bytes: u64,
    pub threads: u64,
    /// Those of them that are kernels.
    pub kernel_threads: usize,
}

/// The executable beside the test's own; cargo builds it with the package `cli`.
pub(crate) fn find_binary() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("GREENROOM_BIN") {
        return Ok(PathBuf::from(named));
    }
    let own = std::env::current_exe()?;
    let mut directories = own.ancestors().skip(1).take(2);
    let binary = directories.find_map(|it| Some(it.join("greenroom")).filter(|it| it.exists()));
    binary.context("greenroom is not built; run `cargo build -p cli`, or set GREENROOM_BIN")
}

impl NodeProcess {
    /// Writes the settings of a node and starts it.
    pub(crate) async fn start(
        root: &Path,
        name: &str,
        binary: &Path,
        database: &str,
        every_ms: u64,
    ) -> Result<Self> {
        let proxy = PeerProxy::start().await?;
        let directory = root.join(name);
        std::fs::create_dir_all(directory.join("data"))?;
        // Sessions work in the same place wherever their space is served.
        std::fs::create_dir_all(root.join("files"))?;
        std::fs::write(directory.join("script.json"), script(every_ms).to_string())?;
        let settings = format!(
            "journal = \"postgres\"\npostgres = {}\nscript = \"script.json\"\nagents_auto = false\n\
             [limits]\ndrain_turns_s = 5\nspace_idle_s = 3600\n[cluster]\nname = \"{name}\"\naddress = \"{}\"\n\
             listen = \"{}\"\n",
            json!(database),
            proxy.address,
            proxy.target
        );
        std::fs::write(directory.join("greenroom.toml"), settings)?;
        let mut node = Self {
            name: name.to_owned(),
            binary: binary.to_owned(),
            proxy,
            directory,
            child: None,
            url: String::new(),
        };
        node.start_again()?;
        Ok(node)
    }

    /// On the same data directory, at another address. A node whose database is just being started ends with an error, and is
    /// started again, as whoever watches over a service does.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        let mut tries_left = STARTS_MAX;
        loop {
            tries_left -= 1;
            match self.start_once() {
                Err(_) if tries_left > 0 => {
                    println!("{} did not start, and is started once more", self.name);
                }
                started => return started,
            }
        }
    }

    fn start_once(&mut self) -> Result<()> {
        let log =
            std::fs::File::options().clone().create(true).append(true).open(self.log_path())?;
        // It ends with whoever started it, however that ends.
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(&self.binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-json"])
            .args(["--workspace", "../files", "--data", "data", "--config", "greenroom.toml"])
            .current_dir(&self.directory)
            .env("GREENROOM_LOG", "info,host::cluster=debug")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let output = child.stdout.take().context("standard output is piped")?;
        self.child = Some(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line)
            .with_context(|| format!("{} did not start: {}", self.name, self.log_end()))?;
        let url = ready["url"].as_str().context("a url")?;
        self.url = url.to_owned();
        Ok(())
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// The last lines of its log.
    pub(crate) fn log_end(&self) -> String {
        let log = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.child.as_ref().context("the node runs")?;
        kill_process(Pid::from_child(child), signal)?;
        Ok(())
    }

    /// What it takes at the moment.
    pub(crate) fn measure(&self) -> Result<NodeUse> {
        let child = self.child.as_ref().context("the node runs")?;
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        let status = std::fs::read_to_string(process.join("status"))?;
        let number = |key: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let value = line.and_then(|line| line.split_whitespace().next());
            Ok(value.with_context(|| format!("no {key}"))?.parse()?)
        };
        let mut kernel_threads = 0;
        for thread in std::fs::read_dir(process.join("task"))? {
            // One that has ended meanwhile has no name.
            let name = std::fs::read_to_string(thread?.path().join("comm"));
            kernel_threads += usize::from(name.is_ok_and(|name| name.trim() == "kernel"));
        }
        Ok(NodeUse {
            memory_bytes: number("RssAnon:")? * 1024,
            threads: number("Threads:")?,
            kernel_threads,
        })
    }

    /// No warning, no last word.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let mut child = self.child.take().context("the node runs")?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    pub(crate) fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    pub(crate) fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Drains and ends.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.begin_stop()?;
        self.finish_stop()
    }

    pub(crate) fn begin_stop(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    pub(crate) fn finish_stop(&mut self) -> Result<()> {
        let mut child = self.child.take().context("the node runs")?;
        let status = child.wait()?;
        ensure!(status.success(), "{} ended with {status}: {}", self.name, self.log_end());
        Ok(())
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended.
            let _ended = child.kill();
            let _ended = child.wait();
        }
    }
}
