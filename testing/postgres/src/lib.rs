//! A real PostgreSQL server for tests: from the distribution's package, in a temporary directory, on a socket, with `fsync`.
//!
//! Promises: it ends with the value that stands for it, and also if the process that started it is killed: a guard waits for that.
//! Must not know: what is stored in it.

mod guard;
mod statements;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail, ensure};

use crate::guard::ServerGuard;
pub use crate::statements::StatementCounts;

const USER: &str = "greenroom";

/// A server that runs as long as this value.
pub struct PostgresServer {
    // Before the directory: it ends the server.
    _guard: ServerGuard,
    directory: tempfile::TempDir,
    programs: PathBuf,
    /// Settings beside those that every server has.
    settings: Vec<String>,
}

/// The directory of the newest installed version.
fn find_programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|programs| programs.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop()
}

impl PostgresServer {
    /// Starts a server; prints why and returns `None` where PostgreSQL is neither installed nor
    /// required by `GREENROOM_REQUIRE_POSTGRES`.
    pub fn start() -> Result<Option<Self>> {
        let Some(programs) = find_programs() else {
            let is_required = std::env::var_os("GREENROOM_REQUIRE_POSTGRES").is_some();
            ensure!(!is_required, "PostgreSQL is required and not installed");
            eprintln!("skipped: PostgreSQL is not installed (apt install postgresql)");
            return Ok(None);
        };
        let server = Self::in_directory(programs)?;
        let mut make = server.command("initdb");
        make.arg("-D").arg(server.data());
        // What a new server begins with need not outlive a power cut; what it is told later does.
        make.arg("--no-sync");
        make.args(["-A", "trust", "-U", USER, "--no-locale", "-E", "UTF8"]);
        run(&mut make)?;
        server.control(&["start"])?;
        Ok(Some(server))
    }

    /// A second server that follows this one: everything that is committed here is sent there. It answers questions and takes no
    /// writes until it is promoted.
    pub fn start_standby(&self) -> Result<Self> {
        let standby = Self::in_directory(self.programs.clone())?;
        let mut copy = self.command("pg_basebackup");
        copy.arg("-D").arg(standby.data());
        copy.arg("-h").arg(self.socket());
        copy.args(["-U", USER, "-R", "-X", "stream", "-c", "fast"]);
        run(&mut copy)?;
        standby.control(&["start"])?;
        Ok(standby)
    }

    /// The standby takes writes from now on, whatever the server does that it followed.
    pub fn promote(&self) -> Result<()> {
        self.control(&["promote"])
    }

    fn in_directory(programs: PathBuf) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("greenroom-pg").tempdir()?;
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(directory.path()))?;
        }
        let mut end = as_server_user(&programs.join("pg_ctl"));
        end.arg("-D").arg(directory.path().join("data"));
        end.args(["stop", "-m", "immediate", "-w"]);
        Ok(Self {
            _guard: ServerGuard::start(&end, directory.path())?,
            directory,
            programs,
            settings: Vec::new(),
        })
    }

    /// Where its socket is.
    pub fn socket(&self) -> &Path {
        self.directory.path()
    }

    /// What it writes about itself.
    pub fn log(&self) -> PathBuf {
        self.socket().join("log")
    }

    fn data(&self) -> PathBuf {
        self.socket().join("data")
    }

    /// How one of its databases is reached.
    pub fn url(&self, database: &str) -> String {
        let socket = self.socket().display();
        format!("host={socket} user={USER} dbname={database}")
    }

    /// Makes a database with a name that no other has, and says how it is reached.
    pub fn make_database(&self) -> Result<String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("d{}_{number}", std::process::id());
        self.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(self.url(&name))
    }

    fn command(&self, program: &str) -> Command {
        as_server_user(&self.programs.join(program))
    }

    fn control(&self, what: &[&str]) -> Result<()> {
        let socket = self.socket().display();
        let mut options = format!("-c listen_addresses='' -c max_connections=200 -k {socket}");
        for setting in &self.settings {
            options += &format!(" -c {setting}");
        }
        let mut control = self.command("pg_ctl");
        control.arg("-D").arg(self.data()).arg("-l").arg(self.log());
        control.args(["-o", &options, "-w"]).args(what);
        run(&mut control).map(drop)
    }

    /// `fast`, or `immediate`, which is a crash.
    pub fn restart(&self, mode: &str) -> Result<()> {
        self.control(&["restart", "-m", mode])
    }

    /// The same with a setting, from now on.
    pub fn restart_with(&mut self, setting: &str) -> Result<()> {
        self.settings.push(setting.to_owned());
        self.restart("fast")
    }

    /// It crashes and stays away.
    pub fn stop(&self) -> Result<()> {
        self.control(&["stop", "-m", "immediate"])
    }

    pub fn start_again(&self) -> Result<()> {
        self.control(&["start"])
    }

    /// Ends every connection of nodes, as a network does that drops them.
    pub fn end_backends(&self, database: &str) -> Result<()> {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'greenroom'";
        self.sql(database, end).map(drop)
    }

    /// What a statement returns.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String> {
        query(self.socket(), database, sql)
    }
}

/// Runs a statement through the socket of a server, and returns what it does.
pub fn query(socket: &Path, database: &str, sql: &str) -> Result<String> {
    let mut psql = Command::new("psql");
    psql.arg("-h").arg(socket).args(["-U", USER, "-d", database]);
    let output = run(psql.args(["-qtAX", "-v", "ON_ERROR_STOP=1", "-c", sql]))?;
    Ok(output.trim().to_owned())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program of the server, which refuses to run as root.
fn as_server_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(program);
    command
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))
    }
}
