//! Whether the server still has the commits that clients were sent (ADR 0114).
//!
//! A standby that took the place of its server, and a backup that was restored, may lack commits that were told to clients; their
//! numbers must not be given a second time. Such a server writes on another timeline, or is another one.
//!
//! Promises: no statement is made in a connection before its server is known; commits that may have been lost are made up for once,
//! whoever notices first: every seq leaps, all leases are free, and nothing that was taken before counts. That takes as long as it
//! takes: whoever wants a connection meanwhile is told so, and ends nothing by giving up.
//! Must not know: spaces, nodes, how long anything else is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_postgres::{Client, Error};

use super::leap::leap;
use crate::task;

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

/// No limit of the session ends it in the middle: it would begin from its first row again, and again. What a statement may take is
/// still bounded, and a process that stopped in the middle holds others up for a minute at most.
const OWN_LIMITS: &str = "SET LOCAL statement_timeout = '10min'; SET LOCAL lock_timeout = '10min';
     SET LOCAL idle_in_transaction_session_timeout = '1min'";
const NOTED: &str = "SELECT timeline FROM greenroom.cluster FOR UPDATE";
const NOTE: &str = "UPDATE greenroom.cluster SET timeline = $1";

/// What is known of the server.
pub(super) struct TimelineWatch {
    failover: Failover,
    /// The one that was made sure of last; none before the tables are there.
    known: Mutex<Option<String>>,
    /// Another server is being made sure of, in a connection of its own.
    is_changing: AtomicBool,
}

/// Why a connection cannot be used.
#[derive(Debug)]
pub(super) enum TimelineError {
    /// It follows another and takes no writes.
    Standby,
    /// It is another than before, and what it may lack is being made up for.
    Changing,
    Failed(Error),
}

impl From<Error> for TimelineError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// It may be tried again from now on.
struct ClearChangingOnDrop<'a>(&'a TimelineWatch);

impl Drop for ClearChangingOnDrop<'_> {
    fn drop(&mut self) {
        self.0.is_changing.store(false, Ordering::Release);
    }
}

impl TimelineWatch {
    pub(super) fn new(failover: Failover) -> Self {
        Self { failover, known: Mutex::default(), is_changing: AtomicBool::new(false) }
    }

    fn known(&self) -> Option<String> {
        self.known.lock().clone()
    }

    /// Makes sure of the server behind a new connection, which comes back if it can be used.
    pub(super) async fn check(self: &Arc<Self>, client: Client) -> Result<Client, TimelineError> {
        let Some(known) = self.known() else {
            // The tables may not be there yet: watching begins when they are made.
            return Ok(client);
        };
        let row = client.query_one(ASK_BOTH, &[]).await?;
        let timeline: Option<String> = row.try_get(0)?;
        let timeline = timeline.ok_or(TimelineError::Standby)?;
        let noted: Option<String> = row.try_get(1)?;
        if timeline == known && noted.as_ref() == Some(&timeline) {
            return Ok(client);
        }
        self.change_in_background(client, timeline);
        Err(TimelineError::Changing)
    }

    /// Whoever wanted the connection has a few seconds for it; this has as long as it needs, and happens once at a time.
    fn change_in_background(self: &Arc<Self>, mut client: Client, timeline: String) {
        if self.is_changing.swap(true, Ordering::AcqRel) {
            return; // another connection is at it
        }
        let watch = Arc::clone(self);
        task::spawn(async move {
            let _ended = ClearChangingOnDrop(&watch);
            if let Err(TimelineError::Failed(error)) =
                watch.continue_on_timeline(&mut client, timeline).await
            {
                tracing::warn!(%error, "the database was replaced, and the change could not be handled; it is tried again");
            }
        });
    }

    /// The tables are there: from now on every connection is looked at.
    pub(super) async fn begin(&self, client: &mut Client) -> Result<(), TimelineError> {
        match self.failover {
            Failover::Unwatched => Ok(()),
            Failover::Lossy | Failover::Lossless => {
                let timeline: Option<String> = client.query_one(ASK, &[]).await?.try_get(0)?;
                let timeline = timeline.ok_or(TimelineError::Standby)?;
                self.continue_on_timeline(client, timeline).await
            }
        }
    }

    async fn continue_on_timeline(
        &self,
        client: &mut Client,
        timeline: String,
    ) -> Result<(), TimelineError> {
        let began = Instant::now();
        let changes = client.transaction().await?;
        changes.batch_execute(OWN_LIMITS).await?;
        // Whoever comes second waits here, and finds it done.
        let noted: Option<String> = changes.query_one(NOTED, &[]).await?.try_get(0)?;
        let is_new = noted.as_ref() != Some(&timeline);
        if is_new {
            if noted.is_some() && self.failover == Failover::Lossy {
                tracing::warn!(
                    "the database was replaced and may lack commits: sequence numbers are raised, clients get snapshots"
                );
                leap(&changes).await?;
            } else if noted.is_some() {
                tracing::warn!(
                    "the database was replaced; an operator has stated that no commit is missing"
                );
            }
            changes.execute(NOTE, &[&timeline]).await?;
        }
        changes.commit().await?;
        if is_new && noted.is_some() {
            let took = whole_ms(began.elapsed());
            tracing::info!(took_ms = took, "the database is recognised again");
        }
        let mut known = self.known.lock();
        *known = Some(timeline);
        Ok(())
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
