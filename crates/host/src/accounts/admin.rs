//! What an operator does with spaces and tokens, straight in the database: no node has to run.
//!
//! Promises: a token is shown once, when it is made; a name that is taken, or that nothing has, is an error with words; whatever
//! takes a right away is counted in the same transaction, so that no node misses it.
//! Must not know: how any of it is printed.

use std::collections::HashMap;
use std::sync::Arc;

use kernel::Role;
use tokio_postgres::Row;

use super::tables::make_tables;
use super::token::AccountToken;
use super::{AccountError, role_of_stored, stored_role};
use crate::cluster::SpaceRate;
use crate::journal::postgres::connection::PooledConnection;
use crate::journal::{PostgresNode, PostgresSettings};
use crate::space_entry::is_space_name;

const PRINCIPAL_CHARS_MAX: usize = 128;

/// Whoever shows it gets the role in the space, or a greater one that its principal has been given there as a member.
const MAKE_TOKEN: &str = "WITH who AS (
         INSERT INTO greenroom.principal (name) VALUES ($2)
             ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id),
     joined AS (
         INSERT INTO greenroom.member (space, principal, role) SELECT $1, who.id, $3 FROM who
             ON CONFLICT (space, principal) DO UPDATE SET role = greatest(member.role, excluded.role) RETURNING principal)
     INSERT INTO greenroom.token (id, hash, space, principal, role, made_at, expires)
         SELECT $4, $5, $1, joined.principal, $3, clock_timestamp(),
             clock_timestamp() + make_interval(secs => $6::float8) FROM joined
         RETURNING extract(epoch FROM expires)::bigint";

const REVOKE: &str = "WITH gone AS (
         UPDATE greenroom.token SET revoked_at = clock_timestamp() WHERE id = $1 AND revoked_at IS NULL RETURNING id),
     counted AS (UPDATE greenroom.account_change SET counter = counter + 1 WHERE EXISTS (SELECT 1 FROM gone))
     SELECT s.name, p.name FROM greenroom.token t
         JOIN greenroom.space s ON s.id = t.space JOIN greenroom.principal p ON p.id = t.principal WHERE t.id = $1";

const LIST: &str =
    "SELECT s.id, s.name, s.removed_at IS NOT NULL, coalesce(l.seq, 0), l.node IS NOT NULL,
         (SELECT count(*) FROM greenroom.member m WHERE m.space = s.id),
         (SELECT count(*) FROM greenroom.token t WHERE t.space = s.id AND t.revoked_at IS NULL
             AND (t.expires IS NULL OR t.expires > clock_timestamp()))
     FROM greenroom.space s LEFT JOIN greenroom.lease l ON l.space = s.id ORDER BY s.name";

const TOKENS: &str =
    "SELECT t.id, p.name, least(t.role, m.role), extract(epoch FROM t.made_at)::bigint,
         extract(epoch FROM t.expires)::bigint, t.revoked_at IS NOT NULL,
         coalesce(t.expires <= clock_timestamp(), false)
     FROM greenroom.token t JOIN greenroom.principal p ON p.id = t.principal
     JOIN greenroom.member m ON m.space = t.space AND m.principal = t.principal
     WHERE t.space = $1 ORDER BY t.made_at, t.id";

/// Everything that grows with use; what is small beside it is left out.
const LOAD: &str = "SELECT s.name, s.id, coalesce(l.seq, 0),
         (SELECT count(*) FROM greenroom.summary x WHERE x.space = s.id),
         (SELECT count(*) FROM greenroom.action x WHERE x.space = s.id),
         (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM greenroom.action x WHERE x.space = s.id)
             + (SELECT coalesce(sum(size), 0)::bigint FROM greenroom.turn x WHERE x.space = s.id)
             + (SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM greenroom.head x WHERE x.space = s.id),
         (SELECT coalesce(sum(size), 0)::bigint FROM greenroom.blob x WHERE x.space = s.id)
     FROM greenroom.space s LEFT JOIN greenroom.lease l ON l.space = s.id WHERE s.removed_at IS NULL";

/// A token that is to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub space: String,
    /// Whom it is for.
    pub principal: String,
    pub role: Role,
    /// For how long it counts; without end if absent.
    pub seconds: Option<u64>,
}

/// A token that was just made.
#[derive(Debug)]
pub struct IssuedToken {
    pub token: AccountToken,
    /// When it ends, in seconds since 1970.
    pub expires: Option<i64>,
}

/// A space as it is listed.
#[derive(Debug, PartialEq, Eq)]
pub struct ListedSpace {
    pub id: i64,
    pub name: String,
    /// Its removal was begun and not finished.
    pub is_removed: bool,
    pub seq: i64,
    /// Somebody holds its lease.
    pub is_held: bool,
    pub members: i64,
    /// Those that count.
    pub tokens: i64,
}

/// A token as it is listed: never with its secret, which nobody has.
#[derive(Debug, PartialEq, Eq)]
pub struct ListedToken {
    pub id: String,
    pub principal: String,
    pub role: Role,
    pub made: i64,
    pub expires: Option<i64>,
    pub is_revoked: bool,
    pub has_expired: bool,
}

/// What living nodes report of the spaces they serve.
const RATES: &str =
    "SELECT name, busiest::text FROM greenroom.node WHERE expires > clock_timestamp()";

/// What a space takes, and what it does at the moment.
#[derive(Debug, PartialEq)]
pub struct SpaceLoad {
    pub name: String,
    /// The node that serves it and what it does there, if it does anything.
    pub activity: Option<(String, SpaceRate)>,
    pub seq: i64,
    pub sessions: i64,
    pub actions: i64,
    pub journal_bytes: i64,
    pub content_bytes: i64,
}

/// A database, for an operator.
pub struct AccountAdmin {
    pub(super) node: Arc<PostgresNode>,
}

impl AccountAdmin {
    /// Connects, and makes the tables if there are none.
    pub async fn connect(settings: &PostgresSettings) -> Result<Self, AccountError> {
        Self::over(PostgresNode::connect(settings).await?).await
    }

    pub(crate) async fn over(node: Arc<PostgresNode>) -> Result<Self, AccountError> {
        let admin = Self { node };
        make_tables(&mut admin.node.table_connection().await?).await?;
        Ok(admin)
    }

    pub(super) async fn connection(&self) -> Result<PooledConnection, AccountError> {
        Ok(self.node.operator_connection().await?)
    }

    pub async fn create_space(&self, name: &str) -> Result<(), AccountError> {
        if !is_space_name(name) {
            return Err(AccountError::BadSpaceName(name.to_owned()));
        }
        let sql = "WITH made AS (INSERT INTO greenroom.space (name) VALUES ($1) ON CONFLICT (name) DO NOTHING RETURNING id)
             INSERT INTO greenroom.lease (space, epoch, batch, seq, log_floor)
                 SELECT id, 0, 0, 0, 0 FROM made RETURNING space";
        let rows = self.connection().await?.query(sql, &[&name]).await?;
        if rows.is_empty() { Err(AccountError::NameTaken(name.to_owned())) } else { Ok(()) }
    }

    pub async fn list_spaces(&self) -> Result<Vec<ListedSpace>, AccountError> {
        self.connection().await?.query(LIST, &[]).await?.iter().map(read_space).collect()
    }

    pub async fn list_tokens(&self, space: &str) -> Result<Vec<ListedToken>, AccountError> {
        let space = self.find_space(space).await?;
        self.connection().await?.query(TOKENS, &[&space]).await?.iter().map(read_token).collect()
    }

    pub async fn issue_token(&self, new_token: &NewToken) -> Result<IssuedToken, AccountError> {
        let who = new_token.principal.trim();
        let is_visible = !who.chars().any(char::is_control);
        if who.is_empty() || who.chars().count() > PRINCIPAL_CHARS_MAX || !is_visible {
            return Err(AccountError::BadPrincipal(new_token.principal.clone()));
        }
        let space = self.find_space(&new_token.space).await?;
        let token = AccountToken::make()?;
        #[expect(clippy::cast_precision_loss, reason = "seconds of a lifetime")]
        let seconds = new_token.seconds.map(|seconds| seconds as f64);
        let (role, digest) = (stored_role(new_token.role), token.digest());
        let mut connection = self.connection().await?;
        let rows = connection
            .query(MAKE_TOKEN, &[&space, &who, &role, &token.id(), &digest, &seconds])
            .await?;
        let expires = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
        Ok(IssuedToken { token, expires })
    }

    /// A token counts no more; its space and whom it was for. One that is revoked already stays so.
    pub async fn revoke(&self, id: &str) -> Result<(String, String), AccountError> {
        let rows = self.connection().await?.query(REVOKE, &[&id]).await?;
        match rows.first() {
            Some(row) => Ok((row.try_get(0)?, row.try_get(1)?)),
            None => Err(AccountError::UnknownToken(id.to_owned())),
        }
    }

    /// What each space takes and does, the largest first.
    pub async fn loads(&self) -> Result<Vec<SpaceLoad>, AccountError> {
        let mut connection = self.connection().await?;
        let rates = read_rates(&connection.query(RATES, &[]).await?)?;
        let rows = connection.query(LOAD, &[]).await?;
        let mut loads: Vec<SpaceLoad> =
            rows.iter().map(|row| read_load(row, &rates)).collect::<Result<_, AccountError>>()?;
        loads.sort_by(|a, b| {
            let bytes = |load: &SpaceLoad| load.journal_bytes + load.content_bytes;
            bytes(b).cmp(&bytes(a)).then_with(|| a.name.cmp(&b.name))
        });
        Ok(loads)
    }

    /// The number of a space that is there.
    pub(super) async fn find_space(&self, name: &str) -> Result<i64, AccountError> {
        let sql = "SELECT id FROM greenroom.space WHERE name = $1 AND removed_at IS NULL";
        let rows = self.connection().await?.query(sql, &[&name]).await?;
        match rows.first() {
            Some(row) => Ok(row.try_get(0)?),
            None => Err(AccountError::UnknownSpace(name.to_owned())),
        }
    }
}

fn read_space(row: &Row) -> Result<ListedSpace, AccountError> {
    Ok(ListedSpace {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        is_removed: row.try_get(2)?,
        seq: row.try_get(3)?,
        is_held: row.try_get(4)?,
        members: row.try_get(5)?,
        tokens: row.try_get(6)?,
    })
}

fn read_token(row: &Row) -> Result<ListedToken, AccountError> {
    Ok(ListedToken {
        id: row.try_get(0)?,
        principal: row.try_get(1)?,
        role: role_of_stored(row.try_get(2)?),
        made: row.try_get(3)?,
        expires: row.try_get(4)?,
        is_revoked: row.try_get(5)?,
        has_expired: row.try_get(6)?,
    })
}

type SpaceRates = HashMap<i64, (String, SpaceRate)>;

fn read_rates(rows: &[Row]) -> Result<SpaceRates, AccountError> {
    let mut rates = SpaceRates::new();
    for row in rows {
        let (node, busiest): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let busiest = serde_json::from_str::<Vec<SpaceRate>>(&busiest);
        let damaged = |error: serde_json::Error| AccountError::Database(error.to_string());
        for rate in busiest.map_err(damaged)? {
            rates.insert(rate.space, (node.clone(), rate));
        }
    }
    Ok(rates)
}

fn read_load(row: &Row, rates: &SpaceRates) -> Result<SpaceLoad, AccountError> {
    let id: i64 = row.try_get(1)?;
    Ok(SpaceLoad {
        name: row.try_get(0)?,
        activity: rates.get(&id).cloned(),
        seq: row.try_get(2)?,
        sessions: row.try_get(3)?,
        actions: row.try_get(4)?,
        journal_bytes: row.try_get(5)?,
        content_bytes: row.try_get(6)?,
    })
}
