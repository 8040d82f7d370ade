//! The spaces that a node has for as long as it runs, those of its own settings: taken when it starts, also from another node that took
//! them over while it was away.
//!
//! Promises: whoever waits for such a space is told why it is not to be had, and within a bounded time.
//! Must not know: how leases are kept.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::ClusterNode;
use super::lease_table::SpaceId;
use super::node_driver::DriverInput;
use super::node_machine::{NodeInput, SpaceFinding};
use super::node_spaces::HeldJournal;
use crate::journal::{JournalError, SpaceFacts};

/// How long a node that starts waits for its own spaces, beside the time for turns that another runs in them: longer than it takes
/// to judge a node that is gone.
const HOLD_PATIENCE: Duration = Duration::from_secs(20);
const HOLD_AGAIN: Duration = Duration::from_millis(200);
/// An order is void after a minute.
const CLAIM_AGAIN: Duration = Duration::from_secs(10);
const CLAIMS_REFUSED_MAX: u32 = 3;

impl ClusterNode {
    /// Takes a space for as long as the node runs, making it if there is none of this name. Another node that took it over while
    /// this one was away gives it back.
    pub(crate) async fn hold(&self, name: &str) -> Result<HeldJournal, JournalError> {
        let patience = HOLD_PATIENCE + self.turns_limit();
        self.hold_within(name, patience).await
    }

    async fn find_or_make(&self, name: &str) -> Result<Option<SpaceFacts>, JournalError> {
        let database = &self.shared().database;
        database.make_space(name).await?;
        database.find_space(name).await
    }

    pub(super) async fn hold_within(
        &self,
        name: &str,
        patience: Duration,
    ) -> Result<HeldJournal, JournalError> {
        let database = &self.shared().database;
        let until = Instant::now() + patience;
        let missing = || JournalError::Unreadable(format!("the space `{name}` was removed"));
        let found = timeout_at(until, self.find_or_make(name))
            .await
            .unwrap_or_else(|_| Err(not_found_out(name)))?;
        let space = found.ok_or_else(missing)?.id;
        let (mut claimed_at, mut refusals): (Option<Instant>, _) = (None, 0);
        loop {
            let ((holder, held), (waiter, finding)) = (oneshot::channel(), oneshot::channel());
            let input = DriverInput::Hold { space, holder, waiter };
            let found = async {
                self.shared().tell(input).await;
                match finding.await {
                    Ok(SpaceFinding::Here) => (Ok(SpaceFinding::Here), held.await.ok()),
                    finding => (finding, None),
                }
            };
            // Taking it and reading what its kernel begins with have that long as well.
            let Ok(found) = timeout_at(until, found).await else { return Err(not_found_out(name)) };
            let holder = match found {
                (Ok(SpaceFinding::Here), Some(held)) => {
                    self.note_held(space).await;
                    return Ok(held);
                }
                (Ok(SpaceFinding::Here), None) => {
                    return Err(JournalError::Lost(format!("the space `{name}` was lost")));
                }
                (Ok(SpaceFinding::Missing), _) => return Err(missing()),
                (Ok(SpaceFinding::At(node)), _) => Some(node.name),
                (Ok(SpaceFinding::Unavailable), _) => None,
                (Err(_), _) => return Err(not_to_be_had(name, None)),
            };
            if holder.is_some() && claimed_at.is_none_or(|at| at.elapsed() >= CLAIM_AGAIN) {
                let claimed = timeout_at(until, database.claim(space, self.shared().id)).await;
                if claimed.unwrap_or_else(|_| Err(not_found_out(name)))? {
                    claimed_at = Some(Instant::now())
                } else {
                    refusals += 1
                }
                // It is the other's own, or was given back in this very moment; that does not happen every time.
                if refusals >= CLAIMS_REFUSED_MAX {
                    return Err(not_to_be_had(name, holder));
                }
            }
            if Instant::now() >= until {
                return Err(not_to_be_had(name, holder));
            }
            tokio::time::sleep(HOLD_AGAIN).await;
        }
    }

    async fn note_held(&self, space: SpaceId) {
        let (database, node) = (&self.shared().database, self.shared().id);
        let noted = async {
            database.note_held(space, node).await?;
            database.end_order(space, node).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(node, space, %error, "operators cannot see that a space stays on this node");
        }
    }

    /// A space that the node holds has ended here: it can be held again.
    pub(crate) async fn let_go(&self, name: &str) -> Result<(), JournalError> {
        self.shared().handles.lock().remove(name);
        if let Some(SpaceFacts { id, .. }) = self.shared().database.find_space(name).await? {
            let input = DriverInput::Machine(NodeInput::Ended(id));
            self.shared().tell(input).await;
        }
        Ok(())
    }
}

fn not_to_be_had(name: &str, holder: Option<String>) -> JournalError {
    JournalError::Locked(match holder {
        Some(holder) => format!(
            "the node {holder} serves the space `{name}` and does not give it back; if it is of that node's own settings, give \
             this one a [cluster] table with a name of its own, and its [[spaces]] other names"
        ),
        None => {
            format!("the space `{name}` is held by a node that is not alive and cannot be taken")
        }
    })
}

fn not_found_out(name: &str) -> JournalError {
    JournalError::Locked(format!(
        "it was not found out in time who serves the space `{name}`: the database is slow or away"
    ))
}
