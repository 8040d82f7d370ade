//! Budgets of turns, sessions and days (G-69): whether a model may be asked once more, and what was spent on them.
//!
//! Promises: what is spent is on the disk before anybody sees it, and before a call begins what it will use at least; work for
//! which people or other turns are waited for costs no time. Without a limit nothing is counted.
//! Must not know: what a model is, what people are asked.

mod ledger;
mod settings;
mod work_clock;

use std::path::PathBuf;
use std::sync::Arc;

use agent_api::{
    CallEstimate, CallKind, CallPermit, CallUsage, ReachedLimit, SESSION_BUDGET, StoreError,
};
use kernel::TurnRun;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use wire::published::state::UsageInfo;
use wire::{Object, Timestamp};

use crate::clock::Clock;
use crate::config::{Config, JournalChoice};
use crate::task;
use ledger::{Amounts, Ledger, NewCall, SpendingKeys};
use settings::TurnLimits;
use work_clock::WorkClock;

pub use settings::{BudgetLimits, BudgetSettings};

/// The limits of the host, and what was spent.
pub(crate) struct Budget {
    limits: BudgetSettings,
    place: LedgerStorage,
    /// Opened when something is limited first.
    ledger: Mutex<Option<Box<Ledger>>>,
    clock: Clock,
}

/// Where the sums are.
enum LedgerStorage {
    Directory(PathBuf),
    Memory,
}

impl Budget {
    /// The budget of a configuration. Where that sets a limit, sums that cannot be read are an error.
    pub(crate) fn open(config: &Config, clock: Clock) -> Result<Arc<Self>, StoreError> {
        let budget = Self {
            limits: config.budget,
            place: match config.journal {
                JournalChoice::Sqlite | JournalChoice::Postgres => {
                    LedgerStorage::Directory(config.data.clone())
                }
                JournalChoice::Memory => LedgerStorage::Memory,
            },
            ledger: Mutex::default(),
            clock,
        };
        if !config.budget.is_empty() {
            let opened = budget.with_ledger(|_| Ok(()));
            opened.map_err(|error| StoreError(error.to_string()))?;
        }
        Ok(Arc::new(budget))
    }

    /// Does something with the sums. Blocks.
    fn with_ledger<T>(
        &self,
        work: impl FnOnce(&mut Ledger) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut ledger = self.ledger.lock();
        let open = match ledger.take() {
            Some(open) => open,
            None => Box::new(match &self.place {
                LedgerStorage::Directory(data) => Ledger::open(data, self.clock.now())?,
                LedgerStorage::Memory => Ledger::in_memory()?,
            }),
        };
        work(ledger.insert(open))
    }
}

/// What one run of a turn spends.
pub(crate) struct TurnBudget {
    budget: Arc<Budget>,
    turn: String,
    session: String,
    meter: Mutex<Meter>,
}

#[derive(Debug)]
struct Meter {
    clock: WorkClock,
    /// What is set aside for the call that is under way, and the day it counts to.
    reserved: Option<(CallEstimate, String)>,
    /// The limits that the user was last told of, and whose spending they are about.
    shown: Option<(Vec<ReachedLimit>, SpendingKeys)>,
    /// The sums that the run last reported.
    reported: ReportedSums,
    /// What the session may spend by its own setting, in dollars.
    session_usd: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct ReportedSums {
    tokens: u64,
    usd: f64,
}

impl ReportedSums {
    /// The sums of a turn in a `UsageInfo` (G-45).
    fn of_turn(usage: &Value) -> Option<Self> {
        let turn = usage["_meta"].get("turn")?;
        Some(Self {
            tokens: tokens_of(turn),
            usd: usage["_meta"]["cost"]["amount"].as_f64().unwrap_or(0.0),
        })
    }
}

fn tokens_of(usage: &Value) -> u64 {
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    count("inputTokens").saturating_add(count("outputTokens"))
}

impl TurnBudget {
    pub(crate) fn new(budget: &Arc<Budget>, turn: &TurnRun) -> Self {
        let (chat, turn_id) = &turn.budget_turn;
        let reported = turn.usage.as_ref().and_then(ReportedSums::of_turn);
        Self {
            budget: Arc::clone(budget),
            turn: format!("{}/{turn_id}", chat.0),
            session: turn.session_id.0.to_string(),
            meter: Mutex::new(Meter {
                clock: WorkClock::start(Instant::now()),
                reserved: None,
                shown: None,
                reported: reported.unwrap_or_default(),
                session_usd: read_session_limit(&turn.config),
            }),
        }
    }

    /// The session's settings are these now.
    pub(crate) fn read_settings(&self, settings: &Object) {
        self.meter.lock().session_usd = read_session_limit(settings);
    }

    fn limits(&self) -> TurnLimits {
        TurnLimits { host: self.budget.limits, session_usd: self.meter.lock().session_usd }
    }

    fn spent_by(&self, day: String) -> SpendingKeys {
        SpendingKeys { turn: self.turn.clone(), session: self.session.clone(), day }
    }

    fn spent_today(&self) -> SpendingKeys {
        self.spent_by(day_of(self.budget.clock.now()))
    }

    /// Nobody works on the turn, or somebody else does who counts it: people are asked, workers work.
    pub(crate) fn pause_work(&self) {
        self.meter.lock().clock.pause(Instant::now());
    }

    pub(crate) fn resume_work(&self) {
        self.meter.lock().clock.resume(Instant::now());
    }

    /// Whether a model may be asked now. If it may, what that will use is spent.
    pub(crate) async fn begin_call(
        &self,
        estimate: CallEstimate,
        kind: CallKind,
    ) -> Result<CallPermit, StoreError> {
        let limits = self.limits();
        let by = self.spent_today();
        let worked = self.meter.lock().clock.take(Instant::now());
        if limits.is_empty() {
            return Ok(CallPermit::Granted { unpriced: false });
        }
        let set_aside = Amounts {
            tokens: estimate.tokens as f64,
            usd: estimate.usd.unwrap_or(0.0),
            calls: 1.0,
            seconds: 0.0,
        };
        let call = NewCall { worked: worked.as_secs_f64(), set_aside, kind };
        let asked = by.clone();
        let begun =
            self.write(move |ledger, limits, now| ledger.begin_call(&by, limits, call, now));
        let reached = begun.await?;
        if !reached.is_empty() && kind == CallKind::Usual {
            self.meter.lock().shown = Some((reached.clone(), asked));
            return Ok(CallPermit::Reached(reached));
        }
        self.meter.lock().reserved = Some((estimate, asked.day));
        Ok(CallPermit::Granted { unpriced: estimate.usd.is_none() && limits.limits_money() })
    }

    /// The call that is under way failed: it counts as a call, and used nothing.
    pub(crate) async fn release_call(&self) -> Result<(), StoreError> {
        let reserved = self.meter.lock().reserved.take();
        let Some((estimate, day)) = reserved else {
            return Ok(()); // what it used was reported
        };
        let by = self.spent_by(day);
        let back = Amounts {
            tokens: -(estimate.tokens as f64),
            usd: -estimate.usd.unwrap_or(0.0),
            ..Amounts::default()
        };
        self.write(move |ledger, _, now| ledger.add(&by, back, now)).await
    }

    /// Allows the same once more of what had reached its limit when the user was asked: no other limit, and no other day.
    pub(crate) async fn extend(&self) -> Result<(), StoreError> {
        let Some((shown, by)) = self.meter.lock().shown.take() else {
            return Ok(()); // nobody was asked, so nobody allowed anything
        };
        self.write(move |ledger, limits, _| ledger.extend(&by, limits, &shown)).await
    }

    /// A call used this: it takes the place of what was set aside.
    pub(crate) async fn settle_call(&self, used: CallUsage) -> Result<(), StoreError> {
        let used = ReportedSums { tokens: used.tokens, usd: used.usd.unwrap_or(0.0) };
        self.replace_reserved(used).await
    }

    /// The agent says what it used: that takes the place of what was set aside.
    pub(crate) async fn record_usage(&self, usage: &UsageInfo) -> Result<(), StoreError> {
        let used = {
            let mut meter = self.meter.lock();
            let usage = wire::action::to_value(usage);
            match ReportedSums::of_turn(&usage) {
                Some(sums) => {
                    let before = std::mem::replace(&mut meter.reported, sums);
                    ReportedSums {
                        tokens: sums.tokens.saturating_sub(before.tokens),
                        usd: (sums.usd - before.usd).max(0.0),
                    }
                }
                // An agent that reports no sums reports its last call.
                None => ReportedSums {
                    tokens: tokens_of(&usage),
                    usd: usage["_meta"]["cost"]["amount"].as_f64().unwrap_or(0.0),
                },
            }
        };
        self.replace_reserved(used).await
    }

    async fn replace_reserved(&self, used: ReportedSums) -> Result<(), StoreError> {
        let (by, used) = {
            let mut meter = self.meter.lock();
            let reserved = meter.reserved.take();
            let (estimate, day) = reserved.unwrap_or_else(|| {
                let today = day_of(self.budget.clock.now());
                (CallEstimate::default(), today)
            });
            let used = Amounts {
                tokens: used.tokens as f64 - estimate.tokens as f64,
                usd: used.usd - estimate.usd.unwrap_or(0.0),
                calls: 0.0,
                seconds: meter.clock.take(Instant::now()).as_secs_f64(),
            };
            (self.spent_by(day), used)
        };
        if self.limits().is_empty() {
            return Ok(()); // nobody wants to know
        }
        self.write(move |ledger, _, now| ledger.add(&by, used, now)).await
    }

    /// Does what waits for a disk on a thread that may.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Ledger, &TurnLimits, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (budget, now) = (Arc::clone(&self.budget), self.budget.clock.now());
        let limits = self.limits();
        let done =
            task::spawn_blocking(move || budget.with_ledger(|ledger| work(ledger, &limits, now)));
        match done.await {
            Ok(done) => done.map_err(|error| StoreError(error.to_string())),
            Err(died) => Err(StoreError(died.to_string())),
        }
    }
}

/// The rest of the time that was worked is counted when the run ends, however it does.
impl Drop for TurnBudget {
    fn drop(&mut self) {
        if self.limits().is_empty() {
            return; // nobody wants to know
        }
        let worked = self.meter.lock().clock.take(Instant::now());
        let (budget, by) = (Arc::clone(&self.budget), self.spent_today());
        let write = move || {
            let amounts = Amounts { seconds: worked.as_secs_f64(), ..Amounts::default() };
            let now = budget.clock.now();
            let added = budget.with_ledger(|ledger| ledger.add(&by, amounts, now));
            if let Err(error) = added {
                tracing::warn!(%error, "the time that a turn took is not counted to its budget");
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(write)),
            Err(_) => write(), // the runtime is gone: nobody is kept waiting
        }
    }
}

/// The limit that a session has of its own.
fn read_session_limit(settings: &Object) -> Option<f64> {
    let limit = settings.get(SESSION_BUDGET).and_then(Value::as_f64);
    limit.filter(|limit| limit.is_finite() && *limit > 0.0)
}

/// The day of a moment, where the host is.
fn day_of(now: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(now.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let zone = jiff::tz::TimeZone::system();
    moment.to_zoned(zone).date().to_string()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
