//! Facts about a database and its nodes for `greenroom doctor`. Changes nothing, and makes no table.
//!
//! Promises: the facts are those that a node would find in a connection of its own, with the same settings of the session.
//! Must not know: what is good and what is bad, how any of it is printed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};

use super::{ADDED, FORMAT, LEASE_SESSION, PostgresSettings, SESSION, SHORT_SESSION, parse_near};
use crate::journal::JournalError;
use crate::mounts::MountEntry;
use crate::task;

/// An examination takes no longer.
const EXAMINED_WITHIN: Duration = Duration::from_secs(10);
/// Spaces that are named whose mount nobody offers.
const SPACES_NAMED_MAX: i64 = 5;

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseFacts {
    /// The server's version as it reports it.
    pub version: String,
    /// Such as 150004.
    pub version_number: i32,
    /// It follows another and takes no writes.
    pub is_standby: bool,
    /// How far the clock of its machine is ahead of the one here, in seconds.
    pub clock_ahead_s: f64,
    /// Settings as they are in a session of a node: name, what it is, what a node asks for.
    pub session: Vec<SessionSetting>,
    /// Whether commits wait for a disk.
    pub has_fsync: bool,
    /// Those that commits wait for; empty: none.
    pub synchronous_standbys: String,
    pub tables: TableFacts,
    /// Of nodes that live, with their names.
    pub mounts: Vec<(String, MountEntry)>,
    pub living_nodes: usize,
    /// Spaces that name a label which no node that lives offers, with the label; a few of them.
    pub unmounted: Vec<(String, String)>,
}

/// One setting of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSetting {
    pub name: &'static str,
    pub value: String,
    pub wanted: &'static str,
}

/// What is there of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableFacts {
    Missing,
    Found {
        format: i32,
        /// The least that a program must know.
        min_format: i32,
        /// The newest that this one knows.
        known_format: i32,
        /// Something that this version adds is not there yet.
        lacks_additions: bool,
        /// Whether the role may read and write rows.
        may_write: bool,
    },
}

/// What nodes ask for in the session for leases, as `SHOW` prints it.
const WANTED: [(&str, &str); 4] = [
    ("synchronous_commit", "on"),
    ("idle_in_transaction_session_timeout", "3s"),
    ("statement_timeout", "3700ms"),
    ("lock_timeout", "1s"),
];

const SERVER: &str = "SELECT current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery(),
     extract(epoch FROM clock_timestamp())::float8, current_setting('fsync') = 'on', current_setting('synchronous_standby_names')";

const MAY_WRITE: &str = "SELECT has_schema_privilege('greenroom', 'USAGE') AND bool_and(has_table_privilege(c.oid, 'SELECT')
         AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'greenroom' AND c.relkind = 'r'";

const MOUNTS: &str =
    "SELECT name, mounts FROM greenroom.node WHERE expires > clock_timestamp() ORDER BY name";

const UNMOUNTED: &str = "SELECT s.name, s.mount FROM greenroom.space s WHERE s.mount IS NOT NULL AND s.removed_at IS NULL
     AND NOT EXISTS (SELECT 1 FROM greenroom.node n, unnest(n.mounts) AS offered
         WHERE n.expires > clock_timestamp() AND split_part(offered, '=', 1) = s.mount) ORDER BY s.name LIMIT $1";

impl DatabaseFacts {
    /// Looks at a database; an error if it cannot be reached.
    pub async fn find(settings: &PostgresSettings) -> Result<Self, JournalError> {
        let unusable = |reason: String| JournalError::Unreadable(reason);
        let mut config = parse_near(&settings.url)?;
        config
            .options(format!("{SESSION} {SHORT_SESSION} {LEASE_SESSION}"))
            .application_name("greenroom-doctor");
        let examined = async {
            let (client, connection) = config.connect(NoTls).await?;
            // It ends with its client.
            task::spawn(async move { drop(connection.await) });
            examine(&client).await
        };
        match timeout(EXAMINED_WITHIN, examined).await {
            Ok(Ok(facts)) => Ok(facts),
            Ok(Err(error)) => Err(unusable(super::connection::describe(&error))),
            Err(_) => {
                Err(unusable(format!("it did not answer within {} s", EXAMINED_WITHIN.as_secs())))
            }
        }
    }
}

async fn examine(client: &Client) -> Result<DatabaseFacts, tokio_postgres::Error> {
    let before = seconds_now();
    let server = client.query_one(SERVER, &[]).await?;
    // The server looked at its clock at some moment between these two.
    let here = f64::midpoint(before, seconds_now());
    let there: f64 = server.try_get(3)?;
    let mut session = Vec::new();
    for (name, wanted) in WANTED {
        let value = client.query_one("SELECT current_setting($1)", &[&name]).await?.try_get(0)?;
        session.push(SessionSetting { name, value, wanted });
    }
    let mut facts = DatabaseFacts {
        version: server.try_get(0)?,
        version_number: server.try_get(1)?,
        is_standby: server.try_get(2)?,
        clock_ahead_s: there - here,
        session,
        has_fsync: server.try_get(4)?,
        synchronous_standbys: server.try_get(5)?,
        tables: examine_tables(client).await?,
        mounts: Vec::new(),
        living_nodes: 0,
        unmounted: Vec::new(),
    };
    let is_readable =
        matches!(facts.tables, TableFacts::Found { lacks_additions: false, may_write: true, .. });
    if is_readable {
        examine_mounts(client, &mut facts).await?;
    }
    Ok(facts)
}

async fn examine_tables(client: &Client) -> Result<TableFacts, tokio_postgres::Error> {
    // By the catalogue: the schema itself may be closed to this role.
    let find = "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE n.nspname = 'greenroom' AND c.relname = 'cluster'";
    if client.query_opt(find, &[]).await?.is_none() {
        return Ok(TableFacts::Missing);
    }
    let may_write = client.query_one(MAY_WRITE, &[]).await?.try_get(0)?;
    let (mut format, mut min_format, mut lacks_additions) = (FORMAT, FORMAT, false);
    if may_write {
        let sql = "SELECT format, min_format FROM greenroom.cluster";
        if let Some(row) = client.query_opt(sql, &[]).await? {
            (format, min_format) = (row.try_get(0)?, row.try_get(1)?);
        }
        for (find, _) in ADDED {
            lacks_additions |= client.query_opt(find, &[]).await?.is_none();
        }
    }
    Ok(TableFacts::Found { format, min_format, known_format: FORMAT, lacks_additions, may_write })
}

async fn examine_mounts(
    client: &Client,
    facts: &mut DatabaseFacts,
) -> Result<(), tokio_postgres::Error> {
    for row in client.query(MOUNTS, &[]).await? {
        let (name, offered): (String, Vec<String>) = (row.try_get(0)?, row.try_get(1)?);
        facts.living_nodes += 1;
        let offered = offered.iter().filter_map(|it| MountEntry::from_column(it));
        facts.mounts.extend(offered.map(|mount| (name.clone(), mount)));
    }
    for row in client.query(UNMOUNTED, &[&SPACES_NAMED_MAX]).await? {
        facts.unmounted.push((row.try_get(0)?, row.try_get(1)?));
    }
    Ok(())
}

fn seconds_now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::PostgresNode;
    use crate::journal::postgres::test_server::{TestServer, run_sql};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_database_is_looked_at_and_left_as_it_is() {
        let Some(server) = TestServer::start() else {
            return; // the line that says so is written
        };
        let settings = server.make_database();
        let empty = DatabaseFacts::find(&settings).await.unwrap();
        assert_eq!(empty.tables, TableFacts::Missing);
        assert!(empty.clock_ahead_s.abs() < 5.0, "the same machine");
        assert!(empty.has_fsync && !empty.is_standby);
        for setting in &empty.session {
            assert_eq!(setting.value, setting.wanted, "{}", setting.name);
        }
        let again = DatabaseFacts::find(&settings).await.unwrap();
        assert_eq!(again.tables, TableFacts::Missing, "nothing was made");

        drop(PostgresNode::connect(&settings).await.unwrap());
        let database = settings.url.rsplit_once("dbname=").unwrap().1;
        let found = |lacks_additions, may_write| TableFacts::Found {
            format: FORMAT,
            min_format: FORMAT,
            known_format: FORMAT,
            lacks_additions,
            may_write,
        };
        run_sql(
            server.socket(),
            database,
            "INSERT INTO greenroom.space (name, mount) VALUES ('team', 'src'), ('other', 'docs'), ('plain', NULL);
             INSERT INTO greenroom.node (name, home, address, fingerprint, format, mounts, expires, steady_since, taken, draining)
                 VALUES ('a', 'h', '', '', 1, '{docs=/srv/docs}', clock_timestamp() + interval '1 hour', clock_timestamp(), 0, false);
             CREATE ROLE stranger LOGIN",
        );
        let facts = DatabaseFacts::find(&settings).await.unwrap();
        assert_eq!(facts.tables, found(false, true));
        assert_eq!(facts.unmounted, [("team".to_owned(), "src".to_owned())]);
        assert_eq!(facts.living_nodes, 1);
        assert_eq!(facts.mounts[0].1.label, "docs");
        let stranger = PostgresSettings {
            url: settings.url.replace("user=greenroom", "user=stranger"),
            ..settings.clone()
        };
        let facts = DatabaseFacts::find(&stranger).await.unwrap();
        assert_eq!(facts.tables, found(false, false));
        run_sql(server.socket(), database, "ALTER TABLE greenroom.space DROP COLUMN mount");
        let facts = DatabaseFacts::find(&settings).await.unwrap();
        assert_eq!(facts.tables, found(true, true), "of an earlier version");
        let away = PostgresSettings::new("host=/nowhere dbname=x".to_owned());
        assert!(DatabaseFacts::find(&away).await.is_err());
    }
}
