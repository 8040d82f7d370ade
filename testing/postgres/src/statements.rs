//! How often statements are run, as the server counts them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use crate::PostgresServer;

/// How often each kind of statement was run, by its number.
pub type StatementCounts = BTreeMap<String, u64>;

impl PostgresServer {
    /// From now on it counts statements, in a database that has the extension; see [`Self::statements`].
    pub fn count_statements(&mut self) -> Result<()> {
        self.restart_with("shared_preload_libraries=pg_stat_statements")
    }

    /// How often each was run in a database so far. Only where they are counted.
    pub fn statements(&self, database: &str) -> Result<StatementCounts> {
        let sql = "SELECT s.queryid || ' ' || sum(s.calls) FROM pg_stat_statements s
             JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()
             WHERE s.query NOT LIKE '%pg_stat_statements%' GROUP BY s.queryid";
        let lines = self.sql(database, sql)?;
        let read = |line: &str| -> Result<(String, u64)> {
            let (id, calls) = line.split_once(' ').context("no count of a statement")?;
            Ok((id.to_owned(), calls.parse()?))
        };
        lines.lines().map(read).collect()
    }
}
