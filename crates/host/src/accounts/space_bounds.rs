//! What a space takes on the node that serves it, held against its limits.
//!
//! Promises: nothing is asked of the database while nobody does anything in the space; limits that an operator changes count
//! within half a minute; a database that does not answer lifts no limit and sets none. What is refused is refused with words.
//! Must not know: HTTP, turns, messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::AccountError;
use super::space_limits::{OF_SPACE, SpaceLimits};
use crate::journal::{PostgresNode, SpaceCounters};

/// For how long the limits of a space are believed.
const BELIEVED_FOR: Duration = Duration::from_secs(30);
/// How often it is measured what a space has stored, while turns begin in it.
const MEASURED_EVERY: Duration = Duration::from_secs(60);
/// How many seconds' worth of messages may come at once.
const BURST_S: f64 = 2.0;

const STORED: &str = "SELECT (SELECT coalesce(sum(size), 0)::bigint FROM greenroom.blob b WHERE b.space = s.id)
         + (SELECT coalesce(sum(size), 0)::bigint FROM greenroom.turn t WHERE t.space = s.id)
         + (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM greenroom.head h WHERE h.space = s.id)
         + (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM greenroom.action a WHERE a.space = s.id)
     FROM greenroom.space s WHERE s.name = $1";

/// What is known of a space at the moment.
struct KnownSpace {
    limits: SpaceLimits,
    read_at: Option<Instant>,
    stored_bytes: u64,
    measured_at: Option<Instant>,
    /// Messages that may come at once, and when that was reckoned.
    inputs: f64,
    reckoned_at: Instant,
}

/// A space that is served here, and what it takes.
pub(crate) struct SpaceBounds {
    node: Arc<PostgresNode>,
    /// Its name in the database.
    space: String,
    defaults: SpaceLimits,
    known: Mutex<KnownSpace>,
    counters: Arc<SpaceCounters>,
    /// A database that takes longer for a batch has enough to do.
    slow: Option<Duration>,
    /// The label that the space names and this node does not offer: no turn runs here.
    missing_mount: Option<String>,
}

/// Why a turn does not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnRefusal {
    pub error_type: &'static str,
    pub message: String,
}

fn over_limit(message: String) -> TurnRefusal {
    TurnRefusal { error_type: "spaceLimit", message }
}

/// What the journal of a space goes by.
fn set_of_journal(counters: &SpaceCounters, limits: SpaceLimits) {
    counters.rate.set(limits.record_bytes_per_s);
    counters.log_days.store(limits.log_days, Ordering::Relaxed);
}

/// One of what there may be so many of; free again when dropped.
pub(crate) struct BoundedSlot(Arc<AtomicU64>);

impl Drop for BoundedSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn take(count: &Arc<AtomicU64>, most: u64) -> Option<BoundedSlot> {
    let before = count.fetch_add(1, Ordering::AcqRel);
    let slot = BoundedSlot(Arc::clone(count));
    (most == 0 || before < most).then_some(slot)
}

impl SpaceBounds {
    pub(crate) fn new(
        node: Arc<PostgresNode>,
        space: String,
        defaults: SpaceLimits,
        counters: Arc<SpaceCounters>,
    ) -> Self {
        set_of_journal(&counters, defaults);
        let known = KnownSpace {
            limits: defaults,
            read_at: None,
            stored_bytes: 0,
            measured_at: None,
            inputs: f64::INFINITY,
            reckoned_at: Instant::now(),
        };
        Self {
            node,
            space,
            defaults,
            known: Mutex::new(known),
            counters,
            slow: None,
            missing_mount: None,
        }
    }

    /// The same, where no turn begins while the database takes longer for a batch; 0 is any time.
    pub(crate) fn with_append_slow_ms(mut self, slow_ms: u64) -> Self {
        self.slow = (slow_ms > 0).then_some(Duration::from_millis(slow_ms));
        self
    }

    /// The same on a node that does not offer the mount that the space names.
    pub(crate) fn without_mount(mut self, label: Option<String>) -> Self {
        self.missing_mount = label;
        self
    }

    /// The limits that count, read again if that was some time ago.
    async fn limits(&self) -> SpaceLimits {
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_none_or(|at| now >= at + BELIEVED_FOR);
        {
            let mut known = self.known.lock();
            if !is_due(known.read_at) {
                return known.limits;
            }
            // Whoever comes meanwhile goes by what is known; a database that is away is asked again later.
            known.read_at = Some(now);
        }
        match self.read_limits().await {
            Ok(limits) => {
                set_of_journal(&self.counters, limits);
                self.known.lock().limits = limits;
            }
            Err(error) => {
                tracing::warn!(%error, "the limits of a space cannot be read; those known before count");
            }
        }
        self.known.lock().limits
    }

    async fn read_limits(&self) -> Result<SpaceLimits, AccountError> {
        let mut connection = self.node.read_connection().await?;
        let rows = connection.query(OF_SPACE, &[&self.space]).await?;
        self.defaults.with_overrides(&rows)
    }

    /// What its channels may take in memory; 0 is any number.
    pub(crate) async fn loaded_bytes(&self) -> u64 {
        self.limits().await.loaded_bytes
    }

    /// A place for one more client, or why there is none.
    pub(crate) async fn connect(&self) -> Result<BoundedSlot, String> {
        let most = self.limits().await.connections;
        take(&self.counters.connections, most).ok_or_else(|| {
            format!(
                "the space has {most} connections, as many as it may (connections); close one, or have the operator allow more"
            )
        })
    }

    /// A place for one more turn, or why there is none.
    pub(crate) async fn begin_turn(&self) -> Result<BoundedSlot, TurnRefusal> {
        self.check_mount()?;
        self.check_pace()?;
        let most = self.limits().await.turns;
        let slot = take(&self.counters.turns, most).ok_or_else(|| {
            over_limit(format!(
                "{most} turns run in the space, as many as may at once (turns); go on when one has ended"
            ))
        })?;
        self.check_stored().await.map_err(over_limit)?;
        Ok(slot)
    }

    fn check_mount(&self) -> Result<(), TurnRefusal> {
        match &self.missing_mount {
            None => Ok(()),
            Some(label) => Err(TurnRefusal {
                error_type: "workspace_unavailable",
                message: format!(
                    "the space works in the mount `{label}`, and no node that offers it is there: its sessions can be read, and \
                     turns go on when one is"
                ),
            }),
        }
    }

    /// Turns that run would be the first to suffer if more were begun on a database that is slow already.
    fn check_pace(&self) -> Result<(), TurnRefusal> {
        let took = self.counters.append_time();
        match self.slow {
            Some(slow) if took > slow => Err(TurnRefusal {
                error_type: "databaseSlow",
                message: format!(
                    "the database takes {:.1} s to record something of this space, more than {:.1} s (append_slow_ms); go on in a while",
                    took.as_secs_f64(),
                    slow.as_secs_f64()
                ),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether more may be stored, or why not.
    pub(crate) async fn check_stored(&self) -> Result<(), String> {
        let most = self.limits().await.stored_bytes;
        if most == 0 {
            return Ok(());
        }
        let stored = self.measure_stored().await;
        if stored < most {
            Ok(())
        } else {
            Err(format!(
                "the space has stored {stored} bytes and may store {most} (stored_bytes); delete sessions, or have the operator allow more"
            ))
        }
    }

    async fn measure_stored(&self) -> u64 {
        let now = Instant::now();
        {
            let mut known = self.known.lock();
            let is_fresh = |at: Instant| now < at + MEASURED_EVERY;
            if known.measured_at.is_some_and(is_fresh) {
                return known.stored_bytes;
            }
            known.measured_at = Some(now);
        }
        match self.read_stored().await {
            Ok(stored) => self.known.lock().stored_bytes = stored,
            Err(error) => {
                tracing::warn!(%error, "what a space has stored cannot be measured");
            }
        }
        self.known.lock().stored_bytes
    }

    async fn read_stored(&self) -> Result<u64, AccountError> {
        let mut connection = self.node.read_connection().await?;
        let rows = connection.query(STORED, &[&self.space]).await?;
        let stored: Option<i64> = rows.first().map(|row| row.try_get(0)).transpose()?;
        Ok(stored.map_or(0, |bytes| u64::try_from(bytes).unwrap_or(0)))
    }

    /// How long the next message of a client has to wait; it is counted.
    pub(crate) fn delay_of_input(&self) -> Duration {
        let mut known = self.known.lock();
        if known.limits.inputs_per_s == 0 {
            return Duration::ZERO;
        }
        #[expect(clippy::cast_precision_loss, reason = "rates are small")]
        let rate = known.limits.inputs_per_s as f64;
        let now = Instant::now();
        let since = now.duration_since(known.reckoned_at).as_secs_f64();
        known.inputs = (known.inputs + since * rate).min(rate * BURST_S) - 1.0;
        known.reckoned_at = now;
        if known.inputs < 0.0 {
            Duration::try_from_secs_f64(-known.inputs / rate).unwrap_or(Duration::ZERO)
        } else {
            Duration::ZERO
        }
    }
}
