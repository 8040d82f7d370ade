//! A real PostgreSQL server for the tests of this crate.
//!
//! Where it is not installed the tests that need it say so and pass; with `GREENROOM_REQUIRE_POSTGRES=1` they fail.

use std::path::Path;

use postgres_server::PostgresServer;

use super::PostgresSettings;

/// A server that runs as long as this value.
pub(crate) struct TestServer(PostgresServer);

impl TestServer {
    /// Starts a server; prints why and returns `None` where PostgreSQL is not installed.
    pub(crate) fn start() -> Option<Self> {
        PostgresServer::start().unwrap().map(Self)
    }

    /// One that follows this one.
    pub(crate) fn start_standby(&self) -> Self {
        Self(self.0.start_standby().unwrap())
    }

    pub(crate) fn promote(&self) {
        self.0.promote().unwrap();
    }

    pub(crate) fn restart(&self, mode: &str) {
        self.0.restart(mode).unwrap();
    }

    pub(crate) fn stop(&self) {
        self.0.stop().unwrap();
    }

    pub(crate) fn start_again(&self) {
        self.0.start_again().unwrap();
    }

    /// Settings for a database of its own.
    pub(crate) fn make_database(&self) -> PostgresSettings {
        PostgresSettings {
            // A restart is noticed by nobody, also on a machine that does much else.
            journal_patience_ms: 60_000,
            ..PostgresSettings::new(self.0.make_database().unwrap())
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        self.0.socket()
    }
}

/// Runs a statement through the socket of a server.
pub(crate) fn run_sql(socket: &Path, database: &str, sql: &str) {
    query_sql(socket, database, sql);
}

/// The same, with what it returns.
pub(crate) fn query_sql(socket: &Path, database: &str, sql: &str) -> String {
    postgres_server::query(socket, database, sql).unwrap()
}
