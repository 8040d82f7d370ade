//! Looks up what may be meant by what somebody is typing, where waiting for a disk harms nobody.

use std::sync::Arc;

use kernel::{Complete, Completed, ErrandFailed, Input, Ticket};
use tokio::sync::Semaphore;

use super::{Effects, send};
use crate::complete::{Completer, completions};

/// Looks at a time; the others wait their turn.
const LOOKS_MAX: usize = 4;

/// Who looks, and how many at a time.
#[derive(Debug, Clone)]
pub(crate) struct Completions {
    completer: Completer,
    room: Arc<Semaphore>,
}

impl Completions {
    pub fn new(completer: Completer) -> Self {
        Self {
            completer,
            room: Arc::new(Semaphore::new(LOOKS_MAX)),
        }
    }

    async fn of(&self, complete: Complete) -> Result<Completed, ErrandFailed> {
        let failed = || ErrandFailed("completions cannot be looked up now".to_owned());
        let room = Arc::clone(&self.room).acquire_owned().await;
        let _room = room.map_err(|_| failed())?;
        let completer = self.completer.clone();
        let looked = tokio::task::spawn_blocking(move || completions(&completer, complete));
        looked.await.map_err(|error| {
            tracing::error!(%error, "a look for completions failed");
            failed()
        })
    }
}

impl Effects {
    pub fn complete(&self, ticket: Ticket, complete: Complete) {
        let (completions, arrivals) = (self.completions.clone(), self.arrivals.clone());
        tokio::spawn(async move {
            let completed = completions.of(complete).await;
            send(&arrivals, Input::Completed { ticket, completed }).await;
        });
    }
}
