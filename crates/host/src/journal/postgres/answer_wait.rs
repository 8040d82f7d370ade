//! How an answer is waited for in a connection.
//!
//! Promises: nobody waits for ever, nor any longer where no answer is believed to come.
//! Must not know: what is asked.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_postgres::Error;

use super::connection::StatementError;
use super::connection_trust::ConnectionTrust;

/// Every answer is waited for so long, also in a connection that is given up meanwhile: the server may have been slow for a moment.
const ANSWER_WAIT_MIN: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct AnswerWait {
    pub(super) limit: Duration,
    /// That of the connection.
    pub(super) generation: u64,
    pub(super) trust: Arc<ConnectionTrust>,
}

impl AnswerWait {
    pub(super) async fn wait_for<T>(
        &self,
        answer: impl Future<Output = T>,
    ) -> Result<T, StatementError> {
        let mut answer = pin!(answer);
        let least = self.limit.min(ANSWER_WAIT_MIN);
        if let Ok(answer) = timeout(least, &mut answer).await {
            return Ok(answer);
        }
        tokio::select! {
            biased;
            answer = &mut answer => Ok(answer),
            () = self.trust.wait_until_given_up(self.generation) => Err(no_answer()),
            () = sleep(self.limit.saturating_sub(least)) => {
                self.trust.note_silence(self.generation);
                Err(no_answer())
            }
        }
    }

    /// The same for an answer that may be an error.
    pub(super) async fn await_answer<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StatementError> {
        Ok(self.wait_for(answer).await??)
    }
}

fn no_answer() -> StatementError {
    StatementError::Lost("the database did not answer in time".to_owned())
}
