//! Reads of a space: one snapshot each, of a space that is still ours.
//!
//! Promises: a space that another node serves is not read; what a lost connection interrupted is asked again. Who holds it is
//! checked, not under which epoch: no number of a node or of a holder is used twice, and where a node takes its own space anew, the
//! kernel of before may not speak any more (`Tenure`), whatever it reads.
//! Must not know: what is asked.

use std::sync::atomic::Ordering;

use kernel::{Answer, Boot, Query};

use super::connection::{PooledConnection, StatementError};
use super::journal::{SharedJournal, lost_error};
use super::read::SpaceReader;
use super::retry_limit::RetryLimit;
use super::{ANSWER_WAIT, SHORT_ANSWER_WAIT};
use crate::journal::JournalError;

impl SharedJournal {
    pub(super) async fn boot(&self) -> Result<Boot, JournalError> {
        let (mut connection, log_floor, seq) = self.begin_read().await?;
        let mut reader = SpaceReader {
            conn: &mut connection,
            space: self.space,
            log_floor,
            log_days: self.log_days(),
        };
        let boot = reader.boot(seq).await;
        finish_read(&mut connection).await;
        boot.map_err(|error| JournalError::Unreadable(error.0))
    }

    pub(super) async fn read(&self, query: &Query) -> Result<Answer, JournalError> {
        let mut patience = RetryLimit::begin(self.node.patience);
        loop {
            let (mut connection, log_floor, _) = self.begin_read().await?;
            let mut reader = SpaceReader {
                conn: &mut connection,
                space: self.space,
                log_floor,
                log_days: self.log_days(),
            };
            let answer = reader.answer(query).await;
            finish_read(&mut connection).await;
            match answer {
                // A read changes nothing: what a lost connection interrupted is asked again.
                Err(_) if connection.is_lost() && patience.allows_retry() => {}
                answer => return answer.map_err(|error| JournalError::Unreadable(error.0)),
            }
        }
    }

    fn log_days(&self) -> u64 {
        self.counters.log_days.load(Ordering::Relaxed)
    }

    /// A snapshot of the space, if it is still ours in it: with the floor of its log, and its seq.
    async fn begin_read(&self) -> Result<(PooledConnection, i64, i64), JournalError> {
        let mut patience = RetryLimit::begin(self.node.patience);
        let own = "SELECT node, log_floor, seq FROM greenroom.lease WHERE space = $1";
        let unread = |error: StatementError| JournalError::Unreadable(error.words());
        loop {
            let mut connection =
                self.node.readers.get(patience.until()).await.map_err(JournalError::Unreadable)?;
            connection.begin();
            // That takes no time, so it is soon known whether the server is there; the question itself may take long.
            connection.limit_answers(SHORT_ANSWER_WAIT);
            let begun = connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await;
            let rows = match begun {
                Ok(()) => connection.query(own, &[&self.space]).await,
                Err(error) => Err(error),
            };
            let rows = match rows {
                Err(StatementError::Lost(_)) if patience.allows_retry() => continue,
                rows => rows.map_err(unread)?,
            };
            connection.limit_answers(ANSWER_WAIT);
            let damaged =
                |error: tokio_postgres::Error| JournalError::Unreadable(error.to_string());
            let row = rows.first().ok_or_else(lost_error)?;
            let holder: Option<i64> = row.try_get(0).map_err(damaged)?;
            if holder != Some(self.holder) {
                finish_read(&mut connection).await;
                return Err(lost_error());
            }
            let floor = row.try_get(1).map_err(damaged)?;
            return Ok((connection, floor, row.try_get(2).map_err(damaged)?));
        }
    }
}

async fn finish_read(connection: &mut PooledConnection) {
    // A transaction that only read ends like this, whatever became of it; one that cannot be ended is not used again.
    if !connection.is_lost() && connection.run("ROLLBACK").await.is_ok() {
        connection.finish();
    }
}
