//! A PostgreSQL server of the distribution's package, in a temporary directory, on a socket, with `fsync`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// A server that runs as long as this value.
pub(crate) struct PostgresServer {
    directory: tempfile::TempDir,
    programs: PathBuf,
}

/// The directory of the newest installed version.
fn find_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut versions: Vec<PathBuf> = versions
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|programs| programs.join("initdb").exists())
        .collect();
    versions.sort();
    versions.pop()
}

impl PostgresServer {
    /// Starts one; `None` where PostgreSQL is not installed and not required.
    pub(crate) fn start() -> Result<Option<Self>> {
        let Some(programs) = find_programs() else {
            let is_required = std::env::var_os("GREENROOM_REQUIRE_POSTGRES").is_some();
            ensure!(!is_required, "PostgreSQL is required and not installed");
            return Ok(None);
        };
        let directory = tempfile::Builder::new().prefix("greenroom-pg").tempdir()?;
        let server = Self {
            directory,
            programs,
        };
        // It refuses to run as root.
        if rustix::process::geteuid().is_root() {
            run(Command::new("chown").arg("postgres").arg(server.socket()))?;
        }
        let mut make = server.command("initdb");
        make.arg("-D").arg(server.data());
        make.args([
            "-A",
            "trust",
            "-U",
            "greenroom",
            "--no-locale",
            "-E",
            "UTF8",
        ]);
        run(&mut make)?;
        server.control(&["start"])?;
        server.sql("postgres", "CREATE DATABASE greenroom")?;
        Ok(Some(server))
    }

    pub(crate) fn socket(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> PathBuf {
        self.socket().join("data")
    }

    /// How nodes reach it.
    pub(crate) fn url(&self) -> String {
        let socket = self.socket().display();
        format!("host={socket} user=greenroom dbname=greenroom")
    }

    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        if !rustix::process::geteuid().is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        command.arg(program);
        command
    }

    fn control(&self, what: &[&str]) -> Result<()> {
        let socket = self.socket().display();
        let options = format!("-c listen_addresses='' -c max_connections=200 -k {socket}");
        let mut control = self.command("pg_ctl");
        control.arg("-D").arg(self.data());
        control.arg("-l").arg(self.socket().join("log"));
        control.args(["-o", &options, "-w"]).args(what);
        run(&mut control)
    }

    /// `fast` or `immediate`, which is a crash.
    pub(crate) fn restart(&self, mode: &str) -> Result<()> {
        self.control(&["restart", "-m", mode])
    }

    /// Ends every connection of nodes, as a network does that drops them.
    pub(crate) fn end_backends(&self) -> Result<()> {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'greenroom'";
        self.sql("greenroom", end)
    }

    fn sql(&self, database: &str, sql: &str) -> Result<()> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.arg("-h").arg(self.socket());
        psql.args(["-U", "greenroom", "-d", database]);
        run(psql.args(["-qtAX", "-v", "ON_ERROR_STOP=1", "-c", sql]))
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // It is only for tests: nothing is lost if it has died already.
        let _stopped = self.control(&["stop", "-m", "immediate"]);
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))
}
