//! The journal in PostgreSQL: one value for each space, all spaces of a node over a few connections (ADR 0092).
//!
//! Promises: a batch is written under the space's lease or not at all; a batch whose answer was lost is found to be written or is
//! written again, before anybody hears of it; a lease that was lost is lost for good. No state of a database session carries
//! meaning: a restart of the server below the patience is noticed by nobody.
//! Must not know: what the bytes it stores mean.

mod answer_wait;
mod append_pace;
mod awaited_outcome;
mod batch_size;
mod blobs;
mod byte_rate;
mod collect;
pub(crate) mod connection;
mod connection_trust;
mod examination;
mod inspection;
mod journal;
mod leap;
mod leases;
#[cfg(test)]
mod load_tests;
mod log_days;
mod mounts;
mod object_rows;
mod orders;
mod read;
mod reads;
mod records;
mod retry_limit;
mod roles;
#[cfg(test)]
mod silence_tests;
mod space_loads;
mod sweep;
#[cfg(test)]
pub(crate) mod test_server;
#[cfg(test)]
mod tests;
mod timeline;
mod writer;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kernel::Boot;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use self::batch_size::is_housekeeping;
pub use self::blobs::PgBlobs;
use self::connection::{ConnectionPool, PooledConnection, StatementError};
use self::connection_trust::ConnectionTrust;
pub use self::examination::{DatabaseFacts, SessionSetting, TableFacts};
pub use self::journal::PostgresJournal;
pub use self::leases::NodeRegistration;
pub(crate) use self::leases::SpaceFacts;
pub(crate) use self::object_rows::BURY_SPACE;
pub use self::orders::ListedNode;
pub(crate) use self::orders::{MoveOrder, NodeOrders};
use self::space_loads::{JournalCounters, JournalCounts};
pub(crate) use self::space_loads::{SpaceActivity, SpaceCounters};
pub use self::timeline::Failover;
use self::timeline::TimelineWatch;
use self::writer::{MERGED_BYTES_MAX, QueuedWrite, write_batches};
use super::JournalError;
use crate::accounts::make_account_tables;
use crate::blobs::ObjectBodies;
use crate::task;

/// The newest format of the tables that this program knows.
const FORMAT: i32 = 1;
const SCHEMA: &str = include_str!("schema.sql");

/// Eight connections in all, however many spaces.
const WRITERS: usize = 2;
const READERS: usize = 3;
/// Batches that wait for a writer: one of each space at most; a sender that finds no room waits.
const WRITES_QUEUED_MAX: usize = 1_024;

/// A transaction that a stopped process leaves open is ended; no statement of ours takes as long.
const SESSION: &str = "-c idle_in_transaction_session_timeout=3000 -c statement_timeout=30000 -c synchronous_commit=on";
/// Who takes a lease waits for a lock for a second, and ends its holder then.
const LEASE_SESSION: &str = "-c lock_timeout=1000";
/// What is waited for no longer than [`SHORT_ANSWER_WAIT`] is ended by the server just before: no session works on for nobody
/// while another takes its place.
const SHORT_SESSION: &str = "-c statement_timeout=3700";
/// The same for [`LARGE_ANSWER_WAIT`].
const LARGE_SESSION: &str = "-c statement_timeout=9700";
/// The same for [`BEAT_ANSWER_WAIT`].
const BEAT_SESSION: &str = "-c statement_timeout=1800";
/// Longer than the server lets a statement run, so that it is the server that ends one, if it lives.
const ANSWER_WAIT: Duration = Duration::from_secs(35);
/// For batches, and questions about leases: kernels wait for them. A database that takes longer answers no heartbeats either. What
/// was written all the same is found by its number.
pub(super) const SHORT_ANSWER_WAIT: Duration = Duration::from_secs(4);
/// For batches too large to share a statement, and for housekeeping, which may remove thousands of rows.
const LARGE_ANSWER_WAIT: Duration = Duration::from_secs(10);
/// A heartbeat that takes longer is of no use any more.
const BEAT_ANSWER_WAIT: Duration = Duration::from_secs(2);

/// Where the journals of a node are.
#[derive(Debug, Clone)]
pub struct PostgresSettings {
    /// `postgres://..`, or `host=/run/postgresql dbname=..`.
    pub url: String,
    /// For how long a lost connection is nobody's business.
    pub journal_patience_ms: u64,
    /// Whether a server that took another's place may have lost commits.
    pub failover: Failover,
}

impl PostgresSettings {
    /// As they are where nothing else is said.
    pub fn new(url: String) -> Self {
        Self { url, journal_patience_ms: 2_000, failover: Failover::default() }
    }
}

/// The connections of a node to its database.
pub struct PostgresNode {
    writers: Vec<mpsc::Sender<QueuedWrite>>,
    large: mpsc::Sender<QueuedWrite>,
    readers: ConnectionPool,
    leases: ConnectionPool,
    /// Who removes content holds a connection for as long as that takes, and removing needs another: one at a time.
    collecting: Semaphore,
    /// Of its own: whatever is waited for elsewhere, a node must not seem to be gone.
    heartbeats: ConnectionPool,
    /// What heartbeats say about the other connections.
    trust: Arc<ConnectionTrust>,
    patience: Duration,
    runtime: Handle,
    counters: Arc<JournalCounters>,
    address_secret: Vec<u8>,
    /// Where large bodies lie, if not in the database.
    objects: OnceLock<Arc<ObjectBodies>>,
}

impl PostgresNode {
    /// Connects, and makes the tables if there are none.
    pub async fn connect(settings: &PostgresSettings) -> Result<Arc<Self>, JournalError> {
        let mut config = parse_near(&settings.url)?;
        config.options(SESSION).application_name("greenroom");
        let with_options = |options: &str| {
            let mut config = config.clone();
            config.options(format!("{SESSION} {options}"));
            config
        };
        let short = with_options(SHORT_SESSION);
        let of_leases = with_options(&format!("{SHORT_SESSION} {LEASE_SESSION}"));
        let patience = Duration::from_millis(settings.journal_patience_ms);
        let counters = Arc::new(JournalCounters::default());
        let watch = Arc::new(TimelineWatch::new(settings.failover));
        let (trust, of_beats) = (Arc::default(), Arc::default());
        let writer = |config: &Config, answer_wait: Duration| {
            let (sender, queue) = mpsc::channel(WRITES_QUEUED_MAX);
            let pool = ConnectionPool::new(config.clone(), 1, answer_wait, &watch, &trust);
            task::spawn(write_batches(pool, queue, patience, Arc::clone(&counters)));
            sender
        };
        let mut node = Self {
            writers: (0..WRITERS).map(|_| writer(&short, SHORT_ANSWER_WAIT)).collect(),
            large: writer(&with_options(LARGE_SESSION), LARGE_ANSWER_WAIT),
            readers: ConnectionPool::new(config.clone(), READERS, ANSWER_WAIT, &watch, &trust),
            leases: ConnectionPool::new(of_leases, 1, SHORT_ANSWER_WAIT, &watch, &trust),
            collecting: Semaphore::new(1),
            heartbeats: ConnectionPool::new(
                with_options(BEAT_SESSION),
                1,
                BEAT_ANSWER_WAIT,
                &watch,
                &of_beats,
            ),
            trust: Arc::clone(&trust),
            patience,
            runtime: Handle::current(),
            counters,
            address_secret: Vec::new(),
            objects: OnceLock::new(),
        };
        let mut connection = node.table_connection().await?;
        migrate(&mut connection).await?;
        let begun = connection.begin_watch(&watch).await;
        begun.map_err(|error| JournalError::Unwritable(error.words()))?;
        let secret = read_address_secret(&mut connection).await?;
        drop(connection);
        node.address_secret = secret;
        Ok(Arc::new(node))
    }

    /// Makes what tables are missing, and gives their rows to the role of nodes: for whoever owns the tables.
    pub async fn prepare(settings: &PostgresSettings) -> Result<(), JournalError> {
        let node = Self::connect(settings).await?;
        let mut connection = node.table_connection().await?;
        make_account_tables(&mut connection).await?;
        roles::grant_rows(&mut connection).await.map_err(|error| roles::explain_refusal(&error))
    }

    /// Takes a space that no node serves, making it if there is none of this name, and reads what its kernel begins with: for
    /// programs that are no nodes. Whoever had it before can write nothing from now on, and any node may take it from them.
    pub async fn open_space(
        self: &Arc<Self>,
        name: &str,
    ) -> Result<(PostgresJournal, Boot), JournalError> {
        PostgresJournal::open(Arc::clone(self), name).await
    }

    /// What addresses of content of a space are signed with, on every node.
    pub(crate) fn address_secret(&self, space: &str) -> String {
        let secret: String = self.address_secret.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{secret} {space}")
    }

    /// Large bodies lie in this store from now on; it is said once, before any space is served.
    pub(crate) fn set_objects(&self, objects: Arc<ObjectBodies>) {
        let is_first = self.objects.set(objects).is_ok();
        debug_assert!(is_first, "a node has one store");
    }

    /// What was written and how.
    pub(crate) fn counts(&self) -> JournalCounts {
        self.counters.read()
    }

    /// The spaces that wrote most lately, at most so many.
    pub(crate) fn busiest_spaces(&self, count_max: usize) -> Vec<SpaceActivity> {
        self.counters.loads.busiest(count_max)
    }

    /// What every space does that is loaded.
    pub(crate) fn space_activities(&self) -> Vec<SpaceActivity> {
        self.counters.loads.read()
    }

    fn until(&self) -> Instant {
        Instant::now() + self.patience
    }

    pub(crate) async fn lease_connection(&self) -> Result<PooledConnection, JournalError> {
        self.leases.get(self.until()).await.map_err(JournalError::Unwritable)
    }

    /// For what an operator asks for: it may look at all rows of all spaces, or remove many, which takes longer than a session for
    /// leases allows.
    pub(crate) async fn operator_connection(&self) -> Result<PooledConnection, JournalError> {
        self.table_connection().await
    }

    /// A connection for questions that may take long.
    pub(crate) async fn read_connection(&self) -> Result<PooledConnection, JournalError> {
        self.readers.get(self.until()).await.map_err(JournalError::Unreadable)
    }

    /// For whoever makes tables: another may be doing so, and is waited for as long as that takes.
    pub(crate) async fn table_connection(&self) -> Result<PooledConnection, JournalError> {
        self.readers.get(self.until()).await.map_err(JournalError::Unwritable)
    }

    /// The writer that a batch of so many bytes goes to: small ones of a space always to the same, large ones and housekeeping to one
    /// of their own, where they keep no small ones waiting. A space has one batch under way at a time.
    fn writer_of(
        &self,
        space: i64,
        batch: &kernel::Batch,
        bytes: usize,
    ) -> &mpsc::Sender<QueuedWrite> {
        if bytes > MERGED_BYTES_MAX || is_housekeeping(batch) {
            return &self.large;
        }
        let index = usize::try_from(space.unsigned_abs()).unwrap_or(0) % WRITERS;
        self.writers.get(index).unwrap_or(&self.large)
    }
}

/// What is wrong with the address of a database, without asking there.
pub(crate) fn check_database_address(url: &str) -> Result<(), String> {
    read_near(url).map(drop)
}

fn parse_near(url: &str) -> Result<Config, JournalError> {
    read_near(url).map_err(|reason| JournalError::Unreadable(format!("PostgreSQL: {reason}")))
}

/// The address of a database on this machine.
fn read_near(url: &str) -> Result<Config, String> {
    let config: Config = url.parse().map_err(|error: tokio_postgres::Error| error.to_string())?;
    match config.get_hosts().iter().find_map(far_name) {
        None => Ok(config),
        Some(name) => Err(format!(
            "{name:?} is another machine: it is reached through a tunnel that ends on this one, not in the clear"
        )),
    }
}

/// The name of a machine that is not this one: somebody may listen on the way.
fn far_name(host: &Host) -> Option<&str> {
    match host {
        Host::Unix(_) => None,
        Host::Tcp(name) => {
            let address = name.parse::<IpAddr>();
            let is_near = name == "localhost" || address.is_ok_and(|it| it.is_loopback());
            (!is_near).then_some(name)
        }
    }
}

/// What later versions added to tables of the same format: older ones do not miss it. Except `object`: a node from before it
/// does not find the objects that others put.
const ADDED: [(&str, &str); 8] = [
    (
        "SELECT 1 FROM information_schema.columns
         WHERE table_schema = 'greenroom' AND table_name = 'node' AND column_name = 'held'",
        "ALTER TABLE greenroom.node ADD COLUMN IF NOT EXISTS held bigint[] NOT NULL DEFAULT '{}'",
    ),
    (
        "SELECT 1 FROM information_schema.columns
         WHERE table_schema = 'greenroom' AND table_name = 'node' AND column_name = 'busiest'",
        "ALTER TABLE greenroom.node ADD COLUMN IF NOT EXISTS busiest jsonb NOT NULL DEFAULT '[]'",
    ),
    (
        "SELECT 1 FROM information_schema.columns
         WHERE table_schema = 'greenroom' AND table_name = 'cluster' AND column_name = 'address_secret'",
        "ALTER TABLE greenroom.cluster ADD COLUMN IF NOT EXISTS address_secret bytea",
    ),
    (
        "SELECT 1 FROM information_schema.columns
         WHERE table_schema = 'greenroom' AND table_name = 'cluster' AND column_name = 'timeline'",
        "ALTER TABLE greenroom.cluster ADD COLUMN IF NOT EXISTS timeline text",
    ),
    (
        "SELECT 1 FROM information_schema.columns
         WHERE table_schema = 'greenroom' AND table_name = 'blob' AND column_name = 'object'",
        "ALTER TABLE greenroom.blob ADD COLUMN IF NOT EXISTS object text NOT NULL DEFAULT ''",
    ),
    (
        "SELECT 1 FROM information_schema.columns
         WHERE table_schema = 'greenroom' AND table_name = 'blob_grave' AND column_name = 'object'",
        "ALTER TABLE greenroom.blob_grave ADD COLUMN IF NOT EXISTS object text NOT NULL DEFAULT '',
             DROP CONSTRAINT blob_grave_pkey, ADD PRIMARY KEY (space, digest, object)",
    ),
    (
        "SELECT 1 FROM information_schema.columns
         WHERE table_schema = 'greenroom' AND table_name = 'space' AND column_name = 'mount'",
        "ALTER TABLE greenroom.space ADD COLUMN IF NOT EXISTS mount text",
    ),
    (
        "SELECT 1 FROM information_schema.tables WHERE table_schema = 'greenroom' AND table_name = 'log_day'",
        "CREATE TABLE IF NOT EXISTS greenroom.log_day (space bigint, day int, first_seq bigint NOT NULL, PRIMARY KEY (space, day))",
    ),
];

async fn add_what_is_new(connection: &mut PooledConnection) -> Result<(), JournalError> {
    let unusable = |error: StatementError| JournalError::Unwritable(error.words());
    for (find, add) in ADDED {
        let found = connection.query(find, &[]).await.map_err(unusable)?;
        if found.is_empty() {
            connection.run(add).await.map_err(|error| roles::explain_refusal(&error))?;
        }
    }
    Ok(())
}

/// What all nodes sign addresses of content with; made by the first.
async fn read_address_secret(connection: &mut PooledConnection) -> Result<Vec<u8>, JournalError> {
    let unusable = |error: StatementError| JournalError::Unwritable(error.words());
    let mut fresh = vec![0_u8; 32];
    getrandom::fill(&mut fresh).map_err(|error| {
        JournalError::Unwritable(format!("the system gives no random bytes: {error}"))
    })?;
    let read = "SELECT address_secret FROM greenroom.cluster WHERE address_secret IS NOT NULL";
    let make = "UPDATE greenroom.cluster SET address_secret = $1 WHERE address_secret IS NULL";
    let mut rows = connection.query(read, &[]).await.map_err(unusable)?;
    if rows.is_empty() {
        connection.query(make, &[&fresh]).await.map_err(unusable)?;
        rows = connection.query(read, &[]).await.map_err(unusable)?;
    }
    let row = rows
        .first()
        .ok_or_else(|| JournalError::Format("the database has no format".to_owned()))?;
    row.try_get(0).map_err(|error| JournalError::Unreadable(error.to_string()))
}

async fn migrate(connection: &mut PooledConnection) -> Result<(), JournalError> {
    let unusable = |error: StatementError| JournalError::Unwritable(error.words());
    let find = "SELECT to_regclass('greenroom.cluster') IS NOT NULL";
    let exists = async |connection: &mut PooledConnection| -> Result<bool, JournalError> {
        let rows = connection.query(find, &[]).await.map_err(unusable)?;
        let found = rows.first().map(|row| row.try_get(0)).transpose();
        Ok(found.map_err(|error| JournalError::Unreadable(error.to_string()))?.unwrap_or(false))
    };
    if !exists(connection).await? {
        let created = connection.run(&format!("BEGIN;\n{SCHEMA}\nCOMMIT")).await;
        if let Err(error) = created {
            // Leave the transaction that failed; another node may have been faster.
            connection.run("ROLLBACK").await.map_err(unusable)?;
            if !exists(connection).await? {
                return Err(roles::explain_refusal(&error));
            }
        } else {
            roles::grant_rows(connection).await.map_err(unusable)?;
        }
    }
    add_what_is_new(connection).await?;
    let sql = "SELECT format, min_format FROM greenroom.cluster";
    let rows = connection.query(sql, &[]).await.map_err(unusable)?;
    let min_format: i32 = match rows.first() {
        Some(row) => row.try_get(1).map_err(|error| JournalError::Unreadable(error.to_string()))?,
        None => return Err(JournalError::Format("the database has no format".to_owned())),
    };
    if min_format <= FORMAT {
        Ok(())
    } else {
        Err(JournalError::Format(format!(
            "the database needs format {min_format}, this greenroom knows formats up to {FORMAT}; run a later version"
        )))
    }
}
