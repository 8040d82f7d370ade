//! Removing content that nothing in a space refers to, while nobody writes in it.
//!
//! Promises: no reference comes between the question and the removal while the lease is locked; a removal asks once more itself,
//! so that a lock that was lost meanwhile costs nothing that is referred to.
//! Must not know: where content lies.

use std::time::Duration;

use tokio::time::timeout;
use wire::Digest;

use super::connection::{PooledConnection, StatementError, TURN_WAIT};
use super::journal::{SharedJournal, lost_error};
use crate::cluster::LeaseStep;
use crate::journal::{JournalError, RemoveContent};
use crate::task::{self, TaskAnswer};

/// Whether nothing in the space `$1` refers to the digest in a column.
macro_rules! nothing_refers_to {
    ($digest:literal) => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM greenroom.reference WHERE space = $1 AND reference.digest = ",
            $digest,
            ") AND NOT EXISTS (SELECT 1 FROM greenroom.part_reference WHERE space = $1 AND part_reference.digest = ",
            $digest,
            ") AND NOT EXISTS (SELECT 1 FROM greenroom.sent_piece WHERE space = $1 AND content_type <> '' AND sent_piece.digest = ",
            $digest,
            ")"
        )
    };
}
pub(super) use nothing_refers_to;

/// Digests of some that nothing refers to.
const UNREFERENCED: &str = concat!(
    "SELECT asked.digest FROM unnest($2::bytea[]) AS asked(digest) WHERE ",
    nothing_refers_to!("asked.digest")
);

/// A lease that somebody else has locked is not waited for longer than by those who take one.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '1s'";
/// A transaction that does nothing is ended by the server after three seconds.
const KEPT_OPEN_EVERY: Duration = Duration::from_secs(1);

impl SharedJournal {
    pub(super) async fn collect(
        &self,
        digests: Vec<Digest>,
        remove: RemoveContent,
    ) -> Result<(), JournalError> {
        let unwritten = |error: StatementError| JournalError::Unwritable(error.words());
        let busy = || JournalError::Unwritable("content of others is being removed".to_owned());
        let turn = timeout(TURN_WAIT, self.node.collecting.acquire()).await;
        let _turn = turn.map_err(|_| busy())?.map_err(|_| busy())?;
        // Not the one for leases: a removal may take long, and others are to be taken and found meanwhile.
        let mut connection = self.node.read_connection().await?;
        let mut lease = self.lease.lock().await;
        self.check_usable(&mut lease).await?;
        let LeaseStep::Write { epoch, .. } = lease.next() else { return Err(lost_error()) };
        connection.begin();
        connection.run(BEGIN).await.map_err(unwritten)?;
        // Locked, so that nobody writes in this space, wherever it is.
        let own = "SELECT 1 FROM greenroom.lease WHERE space = $1 AND node = $2 AND epoch = $3 FOR UPDATE";
        let own = connection.query(own, &[&self.space, &self.holder, &epoch]).await;
        if own.map_err(unwritten)?.is_empty() {
            return Err(self.lose(&mut lease));
        }
        let names: Vec<&[u8]> = digests.iter().map(|digest| &digest.as_bytes()[..]).collect();
        let rows =
            connection.query(UNREFERENCED, &[&self.space, &names]).await.map_err(unwritten)?;
        let found: Vec<Digest> = rows
            .iter()
            .filter_map(|row| row.try_get::<_, Vec<u8>>(0).ok())
            .filter_map(|bytes| Some(Digest::new(bytes.try_into().ok()?)))
            .collect();
        // In the order in which they were asked for.
        let unreferenced: Vec<Digest> =
            digests.into_iter().filter(move |digest| found.contains(digest)).collect();
        let removing = task::spawn_blocking(move || remove(&unreferenced));
        let removed = keep_open(&mut connection, removing).await;
        removed.map_err(|died| JournalError::Unwritable(died.to_string()))?;
        connection.run("COMMIT").await.map_err(unwritten)?;
        connection.finish();
        Ok(())
    }
}

/// Waits for something while a transaction stays open. If it ends all the same, whoever removes content finds out by itself:
/// a body that is referred to by then is not removed.
async fn keep_open<T: 'static>(
    connection: &mut PooledConnection,
    mut work: TaskAnswer<T>,
) -> Result<T, tokio::task::JoinError> {
    loop {
        match timeout(KEPT_OPEN_EVERY, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                if let Err(error) = connection.run("SELECT 1").await {
                    tracing::debug!(error = %error.words(), "a transaction ended while content was removed");
                    return work.await;
                }
            }
        }
    }
}
