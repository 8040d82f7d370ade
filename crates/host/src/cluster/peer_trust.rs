//! Which certificates belong to nodes that live, as far as this node knows.
//!
//! Promises: a node that is gone is refused after `TRUSTED_FOR` at the latest; a stranger costs the database four questions a
//! second at most, however often it comes; while the database is away, nodes that were known are trusted a little longer.
//! Must not know: TLS, how the database is asked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::NodeFingerprint;
use super::space_directory::SpaceDirectory;

/// As long as nobody needs to be asked again about a node that is known: a heartbeat.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// As long as a node lives without a heartbeat.
const TRUSTED_FOR: Duration = Duration::from_secs(6);
/// Between two questions about strangers.
const ASKED_EVERY: Duration = Duration::from_millis(250);

/// What the database last answered.
pub(super) struct PeerTrust {
    directory: Arc<dyn SpaceDirectory>,
    heard: Mutex<LivingPeersAnswer>,
}

#[derive(Default)]
struct LivingPeersAnswer {
    living: BTreeSet<NodeFingerprint>,
    heard_at: Option<Instant>,
    asked_at: Option<Instant>,
}

impl LivingPeersAnswer {
    fn knows(&self, fingerprint: NodeFingerprint, within: Duration) -> bool {
        let is_recent = self.heard_at.is_some_and(|at| at.elapsed() < within);
        is_recent && self.living.contains(&fingerprint)
    }
}

impl PeerTrust {
    pub(super) fn new(directory: Arc<dyn SpaceDirectory>) -> Self {
        Self { directory, heard: Mutex::default() }
    }

    /// Whether the one with this certificate is a node that lives.
    pub(super) async fn is_living(&self, fingerprint: NodeFingerprint) -> bool {
        // Held while the database is asked: others wait for the same answer.
        let mut heard = self.heard.lock().await;
        if heard.knows(fingerprint, FRESH_FOR) {
            return true;
        }
        let was_asked = heard.asked_at.is_some_and(|at| at.elapsed() < ASKED_EVERY);
        if !was_asked {
            heard.asked_at = Some(Instant::now());
            match self.directory.living_nodes().await {
                Ok(living) => {
                    heard.living = living.into_iter().collect();
                    heard.heard_at = Some(Instant::now());
                }
                Err(error) => tracing::debug!(%error, "which nodes live cannot be read now"),
            }
        }
        heard.knows(fingerprint, TRUSTED_FOR)
    }
}
