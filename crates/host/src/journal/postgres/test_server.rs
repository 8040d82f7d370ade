//! A real PostgreSQL server for tests: from the distribution's package, in a temporary directory, on a socket, with `fsync`.
//!
//! Where it is not installed the tests that need it say so and pass; with `GREENROOM_REQUIRE_POSTGRES=1` they fail.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::PostgresSettings;

/// A server that runs as long as this value.
pub(crate) struct TestServer {
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

impl TestServer {
    /// Starts one; `None`, with words, where there is no PostgreSQL.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = find_programs() else {
            let required = std::env::var_os("GREENROOM_REQUIRE_POSTGRES").is_some();
            assert!(!required, "PostgreSQL is required and not installed");
            eprintln!("skipped: PostgreSQL is not installed (apt install postgresql)");
            return None;
        };
        let directory = tempfile::Builder::new()
            .prefix("greenroom-pg")
            .tempdir()
            .unwrap();
        let server = Self {
            directory,
            programs,
        };
        let path = server.directory.path();
        // It refuses to run as root.
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(path));
        }
        run(server
            .command("initdb")
            .arg("-D")
            .arg(path.join("data"))
            .args([
                "-A",
                "trust",
                "-U",
                "greenroom",
                "--no-locale",
                "-E",
                "UTF8",
            ]));
        server.control(&["start"]);
        Some(server)
    }

    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        command.arg(program);
        command
    }

    fn control(&self, what: &[&str]) {
        let path = self.directory.path();
        let options = format!(
            "-c listen_addresses='' -c max_connections=200 -k {}",
            path.display()
        );
        run(self
            .command("pg_ctl")
            .arg("-D")
            .arg(path.join("data"))
            .arg("-l")
            .arg(path.join("log"))
            .args(["-o", &options, "-w"])
            .args(what));
    }

    pub(crate) fn restart(&self, mode: &str) {
        self.control(&["restart", "-m", mode]);
    }

    pub(crate) fn stop(&self) {
        self.control(&["stop", "-m", "immediate"]);
    }

    pub(crate) fn start_again(&self) {
        self.control(&["start"]);
    }

    /// Settings for a database of its own.
    pub(crate) fn make_database(&self) -> PostgresSettings {
        static LAST: Mutex<u32> = Mutex::new(0);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        let name = format!("d{}_{}", std::process::id(), *last);
        run_sql(
            self.socket(),
            "postgres",
            &format!("CREATE DATABASE {name}"),
        );
        PostgresSettings {
            url: format!(
                "host={} user=greenroom dbname={name}",
                self.socket().display()
            ),
            // A restart is noticed by nobody, also on a machine that does much else.
            journal_patience_ms: 60_000,
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        self.directory.path()
    }
}

/// Runs a statement through the socket of a server.
pub(crate) fn run_sql(socket: &Path, database: &str, sql: &str) {
    query_sql(socket, database, sql);
}

/// The same, with what it returns.
pub(crate) fn query_sql(socket: &Path, database: &str, sql: &str) -> String {
    let output = run(Command::new("psql")
        .arg("-h")
        .arg(socket)
        .args(["-U", "greenroom", "-d", database])
        .args(["-qtAX", "-v", "ON_ERROR_STOP=1", "-c", sql]));
    output.trim().to_owned()
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let path = self.directory.path().join("data");
        let stopped = self
            .command("pg_ctl")
            .arg("-D")
            .arg(path)
            .args(["stop", "-m", "immediate", "-w"])
            .output();
        assert!(stopped.is_ok() || std::thread::panicking());
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
