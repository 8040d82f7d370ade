//! A changeset that is watched for as long as something is done with it.
//!
//! Promises: what is read of it was computed after it was asked for. It is not watched any longer than it is used.
//! Must not know: what is done with it.

use std::time::Duration;

use serde_json::{Value, json};
use wire::ChannelUri;
use wire::state::ChangesetState;

use crate::Live;

use super::changes::{ChangesError, ChangesList};
use super::changesets::{ChangesetOffer, ListedTurn};

/// How often the state that is held here is looked at while the host computes a changeset or takes an action, and how many times.
const LOOK_TIME: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 600;

/// A changeset that is watched while something is done with it, and is computed.
pub(super) struct WatchedChangeset {
    live: Live,
    changeset: ChannelUri,
    of: ChangesetOffer,
    turn: Option<ListedTurn>,
}

impl WatchedChangeset {
    /// Watches it and waits until it is computed.
    pub(super) async fn open(
        live: &Live,
        changeset: ChannelUri,
        of: ChangesetOffer,
        turn: Option<ListedTurn>,
    ) -> Result<Self, ChangesError> {
        let params = json!({"channel": changeset.as_str()});
        // Whoever subscribes first has it computed, and may get what was known before. What comes to the second is newer than the
        // question; the answer to the first is not used, so it need not be taken in order.
        live.request("subscribe", params).await?;
        live.subscribe(&changeset).await?;
        let watched = Self { live: live.clone(), changeset, of, turn };
        match watched.wait_until_computed().await {
            Ok(()) => Ok(watched),
            Err(error) => {
                watched.close().await;
                Err(error)
            }
        }
    }

    async fn wait_until_computed(&self) -> Result<(), ChangesError> {
        let mut ticks = tokio::time::interval(LOOK_TIME);
        for _ in 0..LOOKS_MAX {
            ticks.tick().await;
            let status = self.read(|state| (state.status.clone(), state.error.clone()))?;
            match (status.0.as_str(), status.1) {
                ("ready", _) => return Ok(()),
                ("error", error) => {
                    let error = error.unwrap_or_default();
                    let why = error["message"].as_str().unwrap_or("no reason was given");
                    return Err(ChangesError::Unknown(why.to_owned()));
                }
                _ => {} // it is being computed
            }
        }
        Err(ChangesError::Unknown("the host is still looking; try again later".to_owned()))
    }

    fn read<T>(&self, look: impl FnOnce(&ChangesetState) -> T) -> Result<T, ChangesError> {
        let found = self.live.read(|replica| {
            let state = replica.plain(self.changeset.as_str());
            state.and_then(|state| state.changeset()).map(look)
        });
        found.ok_or_else(|| ChangesError::Unknown("they are gone".to_owned()))
    }

    /// The files as they are now.
    pub(super) fn list(&self) -> Result<ChangesList, ChangesError> {
        self.read(|state| {
            ChangesList::from_state(
                self.of.clone(),
                self.turn.clone(),
                self.changeset.clone(),
                state,
            )
        })
    }

    /// Sends an action, and waits until the host answered it.
    pub(super) async fn dispatch(&self, action: Value) -> Result<(), ChangesError> {
        let sent = self.live.dispatch(&self.changeset, action)?;
        let mut ticks = tokio::time::interval(LOOK_TIME);
        for _ in 0..LOOKS_MAX {
            ticks.tick().await;
            let is_pending = self
                .live
                .read(|replica| replica.pending().any(|pending| pending.client_seq == sent));
            if !is_pending {
                return Ok(());
            }
        }
        Err(ChangesError::NotAnswered)
    }

    pub(super) async fn close(self) {
        self.live.unsubscribe(&self.changeset).await;
    }
}
