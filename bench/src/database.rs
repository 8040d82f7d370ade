//! A PostgreSQL of the distribution's package, for rows about spaces in a database: on its socket, with `fsync`.
//!
//! Promises: it ends with the run, however that ends, and with it the directories beside it, which are on the disk it writes to.
//! Must not know: what is measured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use postgres_server::PostgresServer;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::host_api::spaces::{AccountAdmin, NewToken, PostgresSettings, Role};
use crate::measure::Cpu;

const NAME: &str = "bench";
/// A thousand spaces are made in less.
const SPACES_WAIT: Duration = Duration::from_secs(180);

/// A server with one database, both empty at first.
pub(crate) struct Database {
    server: PostgresServer,
    directories: u32,
    spaces: usize,
}

/// A runtime like that of a node, for what a row calls in place.
pub(crate) fn make_runtime() -> Result<Runtime> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.context("no runtime")
}

impl Database {
    /// Starts a server; prints why and returns `None` where PostgreSQL is not installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        PostgresServer::start()?.map(Self::over).transpose()
    }

    /// One that counts statements; see [`Database::statements`].
    pub(crate) fn start_counting() -> Result<Option<Self>> {
        let Some(mut server) = PostgresServer::start()? else { return Ok(None) };
        server.count_statements()?;
        let database = Self::over(server)?;
        database.sql("CREATE EXTENSION pg_stat_statements")?;
        Ok(Some(database))
    }

    fn over(server: PostgresServer) -> Result<Self> {
        server.sql("postgres", &format!("CREATE DATABASE {NAME}"))?;
        Ok(Self { server, directories: 0, spaces: 0 })
    }

    pub(crate) fn url(&self) -> String {
        self.server.url(NAME)
    }

    pub(crate) fn settings(&self) -> PostgresSettings {
        PostgresSettings::new(self.url())
    }

    pub(crate) fn sql(&self, sql: &str) -> Result<String> {
        self.server.sql(NAME, sql)
    }

    /// An empty directory on the disk that the server writes to.
    pub(crate) fn directory(&mut self) -> Result<PathBuf> {
        self.directories += 1;
        let name = format!("beside-{}", self.directories);
        let path = self.server.socket().join(name);
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    /// Names of spaces that no other has.
    pub(crate) fn fresh_names(&mut self, count: usize) -> Vec<String> {
        let first = self.spaces;
        self.spaces += count;
        let numbers = first..self.spaces;
        numbers.map(|number| format!("space-{number}")).collect()
    }

    /// Makes spaces that nobody serves yet; what lets a client into each.
    pub(crate) fn make_spaces(&mut self, count: usize) -> Result<Vec<String>> {
        let names = self.fresh_names(count);
        let settings = self.settings();
        let making = async move {
            let admin = AccountAdmin::connect(&settings).await?;
            let mut tokens = Vec::new();
            for space in names {
                admin.create_space(&space).await?;
                let new_token = NewToken {
                    space,
                    principal: "bench".to_owned(),
                    role: Role::Owner,
                    seconds: None,
                };
                tokens.push(admin.issue_token(&new_token).await?.token.reveal());
            }
            anyhow::Ok(tokens)
        };
        let made = make_runtime()?.block_on(async { timeout(SPACES_WAIT, making).await });
        made.context("the spaces are not made in time")?
    }

    /// How many transactions have written; asking is one itself.
    pub(crate) fn transactions(&self) -> Result<u64> {
        Ok(self.sql("SELECT txid_current()")?.parse()?)
    }

    /// CPU time of the server's processes that run now.
    pub(crate) fn cpu_ns(&self) -> Result<u64> {
        let file = self.server.socket().join("data/postmaster.pid");
        let file = std::fs::read_to_string(file).context("the server does not run")?;
        let first = file.lines().next().context("no process id")?;
        let postmaster: u32 = first.trim().parse()?;
        let mut total = Cpu::of(postmaster)?.total_ns;
        for process in std::fs::read_dir("/proc")? {
            let name = process?.file_name();
            let pid = name.to_str().and_then(|name| name.parse().ok());
            if let Some(pid) = pid.filter(|pid| parent_of(*pid) == Some(postmaster)) {
                // One that has ended meanwhile did nothing that matters here.
                total += Cpu::of(pid).map_or(0, |cpu| cpu.total_ns);
            }
        }
        Ok(total)
    }

    /// How often each statement was run so far, by its number. Only where they are counted.
    pub(crate) fn statements(&self) -> Result<BTreeMap<String, u64>> {
        self.server.statements(NAME)
    }
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let behind_name = stat.rsplit_once(')')?.1;
    behind_name.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_counts_statements_and_its_own_time() {
        let Some(mut database) = Database::start_counting().unwrap() else { return };
        let before = database.statements().unwrap();
        for _ in 0..3 {
            database.sql("SELECT count(*) FROM generate_series(1, 7)").unwrap();
        }
        let after = database.statements().unwrap();
        let fresh = after.iter().filter(|(id, _)| !before.contains_key(*id));
        assert_eq!(fresh.map(|(_, calls)| *calls).collect::<Vec<_>>(), [3]);
        assert!(database.cpu_ns().unwrap() > 0);
        let first = database.transactions().unwrap();
        assert!(database.transactions().unwrap() > first);
        assert_ne!(database.fresh_names(2), database.fresh_names(2));
        assert!(database.directory().unwrap().is_dir());
    }

    #[test]
    fn the_parent_of_a_process_is_found() {
        let parent = rustix::process::getppid()
            .map(|it| it.as_raw_nonzero().get())
            .and_then(|pid| u32::try_from(pid).ok());
        assert_eq!(parent_of(std::process::id()), parent);
    }
}
