//! Whether the server is still the one whose commits clients have heard of (ADR 0114).
//!
//! A standby that took the place of its server, and a backup that was restored, may lack commits that were told to clients; their
//! numbers must not be given a second time. Such a server writes on another timeline, or is another one.
//!
//! Promises: no statement is made in a connection before its server is known; commits that may have been lost are made up for once,
//! whoever notices first: every seq leaps, all leases are free, and nothing that was taken before counts.
//! Must not know: spaces, nodes, how long anything is waited for.

use std::sync::{Mutex, PoisonError};

use tokio_postgres::{Client, Error};

/// What a server that takes another's place may have lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Failover {
    /// Nobody asks: for programs that are no nodes, and leave it to them.
    #[default]
    Unwatched,
    /// Commits may be lost: seqs leap.
    Lossy,
    /// Nothing is lost, as behind a synchronous standby: everything goes on.
    Lossless,
}

/// Which server it is and on which timeline it writes; nothing while it follows another.
const ASK: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL
     ELSE (SELECT system_identifier FROM pg_control_system())::text
         || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END";

/// The same, and what the tables say of it: two servers that took over from the same one can have the same name.
const ASK_BOTH: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN NULL
     ELSE (SELECT system_identifier FROM pg_control_system())::text
         || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
     (SELECT timeline FROM greenroom.cluster)";

const NOTED: &str = "SELECT timeline FROM greenroom.cluster FOR UPDATE";
const NOTE: &str = "UPDATE greenroom.cluster SET timeline = $1";

/// A number that was taken before the leap, and whose row is lost, is not reached by counting on.
const LEAP: &str = "UPDATE greenroom.node SET taken = taken + 1;
     UPDATE greenroom.lease SET node = NULL, epoch = epoch + 4294967296,
         seq = seq + 4294967296, log_floor = seq + 4294967296;
     SELECT setval(s::regclass, nextval(s::regclass) + 1048576) FROM (VALUES (pg_get_serial_sequence('greenroom.node', 'id')),
         (pg_get_serial_sequence('greenroom.space', 'id'))) AS sequences(s)";

/// What is known of the server.
pub(super) struct TimelineWatch {
    failover: Failover,
    /// The one that was made sure of last; none before the tables are there.
    known: Mutex<Option<String>>,
}

/// Why a connection cannot be used.
#[derive(Debug)]
pub(super) enum TimelineError {
    /// It follows another and takes no writes.
    Standby,
    Failed(Error),
}

impl From<Error> for TimelineError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl TimelineWatch {
    pub(super) fn new(failover: Failover) -> Self {
        Self {
            failover,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Makes sure of the server behind a new connection.
    pub(super) async fn check(&self, client: &mut Client) -> Result<(), TimelineError> {
        match self.known() {
            // The tables may not be there yet: whoever makes them begins to watch.
            None => Ok(()),
            Some(known) => {
                let row = client.query_one(ASK_BOTH, &[]).await?;
                let timeline: Option<String> = row.try_get(0)?;
                let timeline = timeline.ok_or(TimelineError::Standby)?;
                let noted: Option<String> = row.try_get(1)?;
                match timeline == known && noted.as_ref() == Some(&timeline) {
                    true => Ok(()),
                    false => self.go_on_with(client, timeline).await,
                }
            }
        }
    }

    /// The tables are there: from now on every connection is looked at.
    pub(super) async fn begin(&self, client: &mut Client) -> Result<(), TimelineError> {
        match self.failover {
            Failover::Unwatched => Ok(()),
            Failover::Lossy | Failover::Lossless => {
                let timeline = read_timeline(client).await?;
                self.go_on_with(client, timeline).await
            }
        }
    }

    async fn go_on_with(&self, client: &mut Client, timeline: String) -> Result<(), TimelineError> {
        let changes = client.transaction().await?;
        // Whoever comes second waits here, and finds it done.
        let noted: Option<String> = changes.query_one(NOTED, &[]).await?.try_get(0)?;
        if noted.as_ref() != Some(&timeline) {
            if noted.is_some() && self.failover == Failover::Lossy {
                changes.batch_execute(LEAP).await?;
                tracing::warn!(
                    "the database is another than before and may lack commits: seqs leap, clients get snapshots"
                );
            } else if noted.is_some() {
                tracing::warn!("the database is another than before; it is said to lack nothing");
            }
            changes.execute(NOTE, &[&timeline]).await?;
        }
        changes.commit().await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(timeline);
        Ok(())
    }
}

async fn read_timeline(client: &Client) -> Result<String, TimelineError> {
    let timeline: Option<String> = client.query_one(ASK, &[]).await?.try_get(0)?;
    timeline.ok_or(TimelineError::Standby)
}
