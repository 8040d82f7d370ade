//! What was spent, by turn, session and day: a small database beside the journal.
//!
//! Promises: what is written is on the disk when it returns; what is set aside for a call is checked and written in one
//! transaction, so that two calls at once cannot both have the last of it; it does not grow with use.
//! Must not know: models, turns that run, clocks.

use std::path::Path;

use agent_api::{BudgetScope, BudgetUnit, CallKind, ReachedLimit};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use wire::Timestamp;

use super::settings::TurnLimits;

const FILE: &str = "budget.sqlite";

/// `from_..` is what was spent when more was last allowed: limits count from there.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS spent (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    tokens REAL NOT NULL DEFAULT 0,
    usd REAL NOT NULL DEFAULT 0,
    calls REAL NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    from_tokens REAL NOT NULL DEFAULT 0,
    from_usd REAL NOT NULL DEFAULT 0,
    from_calls REAL NOT NULL DEFAULT 0,
    from_seconds REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
";

/// How long sums are kept that nothing was added to: nobody goes on with such a turn, and sessions are seldom so old.
const KEPT_DAYS: [(BudgetScope, i64); 3] =
    [(BudgetScope::Turn, 30), (BudgetScope::Session, 365), (BudgetScope::Day, 30)];
const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// So much of each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Amounts {
    pub tokens: f64,
    pub usd: f64,
    pub calls: f64,
    pub seconds: f64,
}

impl Amounts {
    pub(crate) fn get(&self, unit: BudgetUnit) -> f64 {
        match unit {
            BudgetUnit::Tokens => self.tokens,
            BudgetUnit::Usd => self.usd,
            BudgetUnit::Calls => self.calls,
            BudgetUnit::Seconds => self.seconds,
        }
    }
}

/// A call of a model before it is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewCall {
    /// Seconds that the turn worked since its last call.
    pub worked: f64,
    pub set_aside: Amounts,
    pub kind: CallKind,
}

/// Whose spending it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpendingKeys {
    pub turn: String,
    pub session: String,
    pub day: String,
}

impl SpendingKeys {
    fn key(&self, scope: BudgetScope) -> &str {
        match scope {
            BudgetScope::Turn => &self.turn,
            BudgetScope::Session => &self.session,
            BudgetScope::Day => &self.day,
        }
    }
}

/// The sums.
#[derive(Debug)]
pub(crate) struct Ledger {
    conn: Connection,
    /// When old sums were last removed.
    cleaned: Timestamp,
}

impl Ledger {
    /// Opens the sums of a data directory.
    pub(crate) fn open(dir: &Path, now: Timestamp) -> rusqlite::Result<Self> {
        let path = dir.join(FILE);
        let unusable = |error: std::io::Error| {
            rusqlite::Error::ToSqlConversionFailure(format!("{}: {error}", path.display()).into())
        };
        crate::journal::make_private_file(&path, dir).map_err(unusable)?;
        Self::start(Connection::open(&path)?, now)
    }

    /// Sums that go with the process.
    pub(crate) fn in_memory() -> rusqlite::Result<Self> {
        Self::start(Connection::open_in_memory()?, Timestamp(0))
    }

    fn start(conn: Connection, now: Timestamp) -> rusqlite::Result<Self> {
        conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        conn.execute_batch(SCHEMA)?;
        remove_old(&conn, now)?;
        Ok(Self { conn, cleaned: now })
    }

    /// Counts the time that was worked, and sets something aside for a call if no limit is reached, or in any case for a last
    /// one. Returns the limits that are reached.
    pub(crate) fn begin_call(
        &mut self,
        by: &SpendingKeys,
        limits: &TurnLimits,
        call: NewCall,
        at: Timestamp,
    ) -> rusqlite::Result<Vec<ReachedLimit>> {
        // A host may run for years.
        if at.0.saturating_sub(self.cleaned.0) >= DAY_MS {
            remove_old(&self.conn, at)?;
            self.cleaned = at;
        }
        let tx = self.transaction()?;
        let worked = Amounts { seconds: call.worked, ..Amounts::default() };
        add(&tx, by, worked, at)?;
        let reached = reached_limits(&tx, by, limits)?;
        if reached.is_empty() || call.kind == CallKind::Last {
            add(&tx, by, call.set_aside, at)?;
        }
        tx.commit()?;
        Ok(reached)
    }

    /// Adds to what was spent; less than nothing gives back what was set aside.
    pub(crate) fn add(
        &mut self,
        by: &SpendingKeys,
        amounts: Amounts,
        at: Timestamp,
    ) -> rusqlite::Result<()> {
        let tx = self.transaction()?;
        add(&tx, by, amounts, at)?;
        tx.commit()
    }

    /// Allows the same once more of what had reached its limit when the user was asked, and still has.
    pub(crate) fn extend(
        &mut self,
        by: &SpendingKeys,
        limits: &TurnLimits,
        shown: &[ReachedLimit],
    ) -> rusqlite::Result<()> {
        let tx = self.transaction()?;
        let was_shown = |reached: &ReachedLimit| {
            let mut shown = shown.iter();
            shown.any(|shown| (shown.scope, shown.unit) == (reached.scope, reached.unit))
        };
        let reached = reached_limits(&tx, by, limits)?;
        for reached in reached.into_iter().filter(was_shown) {
            let unit = reached.unit.name();
            // The names of units are ours.
            tx.prepare_cached(&format!(
                "UPDATE spent SET from_{unit} = {unit} WHERE scope = ?1 AND key = ?2"
            ))?
            .execute(params![reached.scope.name(), by.key(reached.scope)])?;
        }
        tx.commit()
    }

    fn transaction(&mut self) -> rusqlite::Result<Transaction<'_>> {
        self.conn.transaction_with_behavior(TransactionBehavior::Immediate)
    }
}

/// Removes the sums that nothing was added to for long.
fn remove_old(conn: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    for (scope, days) in KEPT_DAYS {
        let before = now.0.saturating_sub(days * DAY_MS);
        conn.execute(
            "DELETE FROM spent WHERE scope = ?1 AND at < ?2",
            params![scope.name(), before],
        )?;
    }
    Ok(())
}

fn add(
    tx: &Transaction<'_>,
    by: &SpendingKeys,
    add: Amounts,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO spent (scope, key, at, tokens, usd, calls, seconds)
             VALUES (?1, ?2, ?3, max(?4, 0), max(?5, 0), max(?6, 0), max(?7, 0))
         ON CONFLICT (scope, key) DO UPDATE SET at = ?3,
             tokens = max(tokens + ?4, 0), usd = max(usd + ?5, 0),
             calls = max(calls + ?6, 0), seconds = max(seconds + ?7, 0)",
    )?;
    for scope in BudgetScope::ALL {
        let Amounts { tokens, usd, calls, seconds } = add;
        let key = by.key(scope);
        statement.execute(params![scope.name(), key, at.0, tokens, usd, calls, seconds])?;
    }
    Ok(())
}

fn reached_limits(
    tx: &Transaction<'_>,
    by: &SpendingKeys,
    limits: &TurnLimits,
) -> rusqlite::Result<Vec<ReachedLimit>> {
    let mut statement = tx.prepare_cached(
        "SELECT tokens - from_tokens, usd - from_usd, calls - from_calls, seconds - from_seconds
         FROM spent WHERE scope = ?1 AND key = ?2",
    )?;
    let mut all = Vec::new();
    for scope in BudgetScope::ALL {
        let spent = statement
            .query_row(params![scope.name(), by.key(scope)], |row| {
                Ok(Amounts {
                    tokens: row.get(0)?,
                    usd: row.get(1)?,
                    calls: row.get(2)?,
                    seconds: row.get(3)?,
                })
            })
            .optional()?
            .unwrap_or_default();
        for unit in BudgetUnit::ALL {
            let spent = spent.get(unit);
            if let Some((allowance, is_own)) = limits.of(scope, unit)
                && spent >= allowance
            {
                all.push(ReachedLimit { scope, unit, allowance, spent, is_own });
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
