//! Which space, principal and role a token stands for, as a node asks it of the database.
//!
//! Promises: what is remembered is forgotten after 30 s, and at once when the database says that a right was taken away; then
//! the connections of what counts no more end. One question is asked of the database at a time, so that strangers with made-up
//! tokens do not keep leases from being renewed. A node without connections of accounts asks nothing.
//! Must not know: HTTP, what a role allows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kernel::Role;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_postgres::Row;
use tokio_util::sync::CancellationToken;

use super::tables::make_tables;
use super::token::AccountToken;
use super::{AccountError, role_of_stored};
use crate::journal::PostgresNode;
use crate::journal::postgres::connection::TURN_WAIT;
use crate::page::ContentAddresses;
use crate::task;

/// For how long a token that counted is believed without asking.
const BELIEVED_FOR: Duration = Duration::from_secs(30);
/// How soon it is noticed that a right was taken away.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);
/// Tokens that are remembered; one more is asked for each time.
const REMEMBERED_MAX: usize = 10_000;
/// Requests that wait for the database to say whose their token is.
const WAITING_MAX: usize = 256;

const SIGNED_FOR: &str = "token-";

const FIND: &str = "SELECT t.hash, t.space, s.name, t.principal, p.name, least(t.role, m.role),
         extract(epoch FROM t.expires - clock_timestamp())::float8
     FROM greenroom.token t
     JOIN greenroom.space s ON s.id = t.space
     JOIN greenroom.principal p ON p.id = t.principal
     JOIN greenroom.member m ON m.space = t.space AND m.principal = t.principal
     WHERE t.id = $1 AND t.revoked_at IS NULL AND s.removed_at IS NULL
         AND (t.expires IS NULL OR t.expires > clock_timestamp())";

const STILL_COUNT: &str = "SELECT t.id, least(t.role, m.role)
     FROM greenroom.token t
     JOIN greenroom.space s ON s.id = t.space
     JOIN greenroom.member m ON m.space = t.space AND m.principal = t.principal
     WHERE t.id = ANY($1) AND t.revoked_at IS NULL AND s.removed_at IS NULL
         AND (t.expires IS NULL OR t.expires > clock_timestamp())";

const SPACES_OF: &str =
    "SELECT s.name, m.role FROM greenroom.member m JOIN greenroom.space s ON s.id = m.space
     WHERE m.principal = $1 AND s.removed_at IS NULL ORDER BY s.name";

/// Somebody who showed a token that counts.
#[derive(Debug)]
pub(crate) struct GrantedToken {
    /// The id of the token; no secret.
    pub(crate) id: String,
    /// What requests of it are counted by, and addresses are signed for. No id of a device looks like it.
    pub(crate) name: String,
    /// The number of the space in the database, and its name.
    pub(crate) space: i64,
    pub(crate) space_name: String,
    pub(crate) principal: i64,
    /// Client ids and tokens that are brought are the principal's, whatever token was shown.
    pub(crate) principal_name: String,
    pub(crate) role: Role,
    expires: Option<Instant>,
    /// Cancelled when it counts no more.
    pub(crate) revoked: CancellationToken,
}

impl GrantedToken {
    /// One that another node checked, and watches: it ends the connection when the token counts no more.
    pub(crate) fn relayed(
        id: &str,
        space_name: String,
        principal_name: String,
        role: Role,
    ) -> Self {
        Self {
            id: id.to_owned(),
            name: format!("{SIGNED_FOR}{id}"),
            space: 0,
            space_name,
            principal: 0,
            principal_name,
            role,
            expires: None,
            revoked: CancellationToken::new(),
        }
    }

    fn has_expired(&self) -> bool {
        let now = Instant::now();
        self.expires.is_some_and(|expires| expires <= now)
    }

    fn is_same_grant(&self, other: &Self) -> bool {
        self.role == other.role && self.space == other.space && self.principal == other.principal
    }
}

/// A space that a principal is a member of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    pub(crate) space: String,
    pub(crate) role: Role,
}

/// Why a token opens nothing.
#[derive(Debug)]
pub(crate) enum TokenRefusal {
    /// It is unknown, wrong, expired or revoked: which, is for nobody to learn.
    Wrong,
    /// Nobody can be asked.
    Unavailable(AccountError),
    /// Too many ask at once.
    Busy,
}

struct CachedToken {
    digest: Vec<u8>,
    granted: Arc<GrantedToken>,
    until: Instant,
}

#[derive(Default)]
struct AccountCache {
    tokens: HashMap<String, CachedToken>,
    /// All that somebody still stands on, remembered or not.
    live: HashMap<String, Weak<GrantedToken>>,
}

impl AccountCache {
    /// Keeps one value for each token, so that all of its connections end together.
    fn remember(&mut self, digest: Vec<u8>, granted: GrantedToken) -> Arc<GrantedToken> {
        let known = self.live.get(&granted.id).and_then(Weak::upgrade);
        let granted = match known {
            Some(known) if known.is_same_grant(&granted) && !known.revoked.is_cancelled() => known,
            Some(other) => {
                other.revoked.cancel();
                Arc::new(granted)
            }
            None => Arc::new(granted),
        };
        let id = granted.id.clone();
        self.live.insert(id.clone(), Arc::downgrade(&granted));
        if self.tokens.len() < REMEMBERED_MAX {
            let until = Instant::now() + BELIEVED_FOR;
            let remembered = CachedToken { digest, granted: Arc::clone(&granted), until };
            self.tokens.insert(id, remembered);
        }
        granted
    }

    fn forget_old(&mut self) {
        let now = Instant::now();
        self.tokens.retain(|_, remembered| remembered.until > now);
        self.live.retain(|_, granted| granted.strong_count() > 0);
    }

    fn live(&self) -> Vec<Arc<GrantedToken>> {
        self.live.values().filter_map(Weak::upgrade).collect()
    }
}

/// The accounts of the database of a node.
pub(crate) struct Accounts {
    node: Arc<PostgresNode>,
    cache: Mutex<AccountCache>,
    /// The last number that the database gave to what takes rights away.
    counter: AtomicI64,
    asking: Semaphore,
    waiting: Semaphore,
}

impl Accounts {
    /// Makes the tables if there are none, and watches for what is taken away until it is dropped.
    pub(crate) async fn open(node: &Arc<PostgresNode>) -> Result<Arc<Self>, AccountError> {
        let mut connection = node.table_connection().await?;
        make_tables(&mut connection).await?;
        drop(connection);
        let accounts = Self {
            node: Arc::clone(node),
            cache: Mutex::default(),
            counter: AtomicI64::new(0),
            asking: Semaphore::new(1),
            waiting: Semaphore::new(WAITING_MAX),
        };
        accounts.counter.store(accounts.read_counter().await?, Ordering::Relaxed);
        let accounts = Arc::new(accounts);
        task::spawn(watch(Arc::downgrade(&accounts)));
        Ok(accounts)
    }

    /// Whom a token stands for.
    pub(crate) async fn check(
        &self,
        token: &AccountToken,
    ) -> Result<Arc<GrantedToken>, TokenRefusal> {
        if let Some(found) = self.recall(token) {
            return found;
        }
        let _place = self.waiting.try_acquire().map_err(|_| TokenRefusal::Busy)?;
        let _turn = self.wait_for_turn().await.map_err(TokenRefusal::Unavailable)?;
        // Somebody before may have asked the same.
        if let Some(found) = self.recall(token) {
            return found;
        }
        let before = self.counter.load(Ordering::Acquire);
        let found = self.find(token.id()).await;
        let (digest, granted) =
            found.map_err(TokenRefusal::Unavailable)?.ok_or(TokenRefusal::Wrong)?;
        if !token.matches(&digest) {
            return Err(TokenRefusal::Wrong);
        }
        let mut cache = self.cache.lock();
        if self.counter.load(Ordering::Acquire) != before {
            // A right was taken away meanwhile, perhaps this one: it is asked again next time.
            return Err(TokenRefusal::Busy);
        }
        Ok(cache.remember(digest, granted))
    }

    /// One asks at a time, and each within bounds.
    async fn wait_for_turn(&self) -> Result<SemaphorePermit<'_>, AccountError> {
        let busy = || AccountError::Database("too many ask for tokens at once".to_owned());
        timeout(TURN_WAIT, self.asking.acquire()).await.map_err(|_| busy())?.map_err(|_| busy())
    }

    fn recall(&self, token: &AccountToken) -> Option<Result<Arc<GrantedToken>, TokenRefusal>> {
        let cache = self.cache.lock();
        let remembered = cache.tokens.get(token.id())?;
        if remembered.until <= Instant::now() {
            return None;
        }
        let is_granted = token.matches(&remembered.digest) && !remembered.granted.has_expired();
        Some(if is_granted {
            Ok(Arc::clone(&remembered.granted))
        } else {
            Err(TokenRefusal::Wrong)
        })
    }

    async fn find(&self, id: &str) -> Result<Option<(Vec<u8>, GrantedToken)>, AccountError> {
        let mut connection = self.node.lease_connection().await?;
        connection.query(FIND, &[&id]).await?.first().map(|row| read_grant(id, row)).transpose()
    }

    /// The id of the token that something was signed for, if it was for one.
    pub(crate) fn signed_token_id(name: &str) -> Option<&str> {
        name.strip_prefix(SIGNED_FOR)
    }

    /// Whether the token of this id still counts, for what was signed for it.
    pub(crate) async fn still_counts(&self, id: &str) -> Result<bool, AccountError> {
        if let Some(remembered) = self.cache.lock().tokens.get(id)
            && remembered.until > Instant::now()
        {
            return Ok(!remembered.granted.has_expired());
        }
        let _turn = self.wait_for_turn().await?;
        Ok(self.find(id).await?.is_some())
    }

    /// The space of the token of this id; `None`: it counts no more. It is remembered as one that was shown is: whoever shows it
    /// is still asked for its secret.
    pub(crate) async fn space_of(&self, id: &str) -> Result<Option<String>, AccountError> {
        let recalled = |cache: &AccountCache| {
            let remembered = cache.tokens.get(id)?;
            let counts = remembered.until > Instant::now() && !remembered.granted.has_expired();
            counts.then(|| remembered.granted.space_name.clone())
        };
        if let Some(space) = recalled(&self.cache.lock()) {
            return Ok(Some(space));
        }
        let _turn = self.wait_for_turn().await?;
        // Somebody before may have asked the same.
        if let Some(space) = recalled(&self.cache.lock()) {
            return Ok(Some(space));
        }
        let before = self.counter.load(Ordering::Acquire);
        let Some((digest, granted)) = self.find(id).await? else { return Ok(None) };
        let space = granted.space_name.clone();
        let mut cache = self.cache.lock();
        if self.counter.load(Ordering::Acquire) == before {
            cache.remember(digest, granted);
        }
        Ok(Some(space))
    }

    /// What signs and checks addresses of content of a space, on every node.
    pub(crate) fn addresses_of(&self, space: &str) -> ContentAddresses {
        ContentAddresses::of_secret(&self.node.address_secret(space))
    }

    /// The spaces that somebody is a member of.
    pub(crate) async fn spaces_of(&self, principal: i64) -> Result<Vec<Membership>, AccountError> {
        let mut connection = self.node.lease_connection().await?;
        let rows = connection.query(SPACES_OF, &[&principal]).await?;
        let spaces = rows.iter().map(|row| {
            Ok(Membership { space: row.try_get(0)?, role: role_of_stored(row.try_get(1)?) })
        });
        spaces.collect()
    }

    async fn read_counter(&self) -> Result<i64, AccountError> {
        let mut connection = self.node.lease_connection().await?;
        let sql = "SELECT counter FROM greenroom.account_change";
        let rows = connection.query(sql, &[]).await?;
        let counter = rows.first().map(|row| row.try_get(0)).transpose()?;
        Ok(counter.unwrap_or(0))
    }

    /// The database says how often rights were taken away: if that is more than before, nothing is believed any more.
    pub(crate) async fn note_counter(&self, counter: i64) -> Result<(), AccountError> {
        let live = {
            let mut cache = self.cache.lock();
            if self.counter.load(Ordering::Acquire) == counter {
                return Ok(());
            }
            cache.tokens.clear();
            cache.live()
        };
        let ids: Vec<&str> = live.iter().map(|granted| granted.id.as_str()).collect();
        let mut connection = self.node.lease_connection().await?;
        let rows = connection.query(STILL_COUNT, &[&ids]).await?;
        drop(connection);
        let mut counting = HashMap::new();
        for row in &rows {
            counting.insert(row.try_get::<_, String>(0)?, role_of_stored(row.try_get(1)?));
        }
        for granted in live {
            if counting.get(&granted.id) != Some(&granted.role) {
                granted.revoked.cancel();
            }
        }
        // Only now: if the database went away before, it is looked again. What was remembered meanwhile goes too.
        let mut cache = self.cache.lock();
        cache.tokens.clear();
        self.counter.store(counter, Ordering::Release);
        Ok(())
    }

    async fn look(&self) -> Result<(), AccountError> {
        let live = {
            let mut cache = self.cache.lock();
            cache.forget_old();
            cache.live()
        };
        for granted in live.iter().filter(|granted| granted.has_expired()) {
            granted.revoked.cancel();
        }
        if live.is_empty() {
            // nobody stands on anything that could have been taken away
            Ok(())
        } else {
            self.note_counter(self.read_counter().await?).await
        }
    }
}

fn read_grant(id: &str, row: &Row) -> Result<(Vec<u8>, GrantedToken), AccountError> {
    let seconds_left: Option<f64> = row.try_get(6)?;
    let left = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO);
    let expires = seconds_left.and_then(|seconds| Instant::now().checked_add(left(seconds)));
    let principal_name: String = row.try_get(4)?;
    let granted = GrantedToken {
        id: id.to_owned(),
        name: format!("{SIGNED_FOR}{id}"),
        space: row.try_get(1)?,
        space_name: row.try_get(2)?,
        principal: row.try_get(3)?,
        principal_name,
        role: role_of_stored(row.try_get(5)?),
        expires,
        revoked: CancellationToken::new(),
    };
    Ok((row.try_get(0)?, granted))
}

async fn watch(accounts: Weak<Accounts>) {
    let mut due = interval(NOTICED_WITHIN);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_blind = false;
    loop {
        due.tick().await;
        let Some(accounts) = accounts.upgrade() else {
            return; // the node is gone
        };
        match accounts.look().await {
            Ok(()) => is_blind = false,
            Err(error) if !is_blind => {
                is_blind = true;
                tracing::warn!(%error, "it is not known whether tokens were revoked; it is tried again");
            }
            Err(_) => {} // said already
        }
    }
}
