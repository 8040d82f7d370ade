//! What turns may spend on models (G-69): an agent asks before each call of a model, and reports its usage.
//!
//! Promises: what a call will use is set aside before it begins, so that nothing is spent twice or forgotten.
//! Must not know: where it is counted, what the limits are.

use std::fmt;

/// The session setting that limits what a session may spend, in dollars. Absent or 0: the session has no limit of its own.
pub const SESSION_BUDGET: &str = "budget";

/// What a call of a model is likely to use at least; what it really used comes with [`crate::AgentEvent::Usage`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CallEstimate {
    pub tokens: u64,
    /// Absent if the model has no prices.
    pub usd: Option<f64>,
}

/// What a call of a model used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CallUsage {
    /// Read and written.
    pub tokens: u64,
    /// Absent if the model has no prices.
    pub usd: Option<f64>,
}

/// How far a call may go ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// Only if no limit is reached.
    Usual,
    /// In any case: the user was asked, and wants this one.
    Last,
}

/// Whether a model may be asked once more.
#[derive(Debug, Clone, PartialEq)]
pub enum CallPermit {
    Granted {
        /// Money is limited, and nobody knows what this model costs: it is not counted.
        unpriced: bool,
    },
    /// At least one.
    Reached(Vec<ReachedLimit>),
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReachedLimit {
    pub scope: BudgetScope,
    pub unit: BudgetUnit,
    /// What the settings allow, each time.
    pub allowance: f64,
    /// What was spent since it was last allowed.
    pub spent: f64,
    /// The session's own setting says so, not the configuration of the host.
    pub is_own: bool,
}

/// What a limit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetScope {
    Turn,
    Session,
    Day,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetUnit {
    Tokens,
    Usd,
    Calls,
    Seconds,
}

impl BudgetScope {
    pub const ALL: [Self; 3] = [Self::Turn, Self::Session, Self::Day];

    /// As in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Session => "session",
            Self::Day => "day",
        }
    }
}

impl BudgetUnit {
    pub const ALL: [Self; 4] = [Self::Tokens, Self::Usd, Self::Calls, Self::Seconds];

    /// As in the settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Usd => "usd",
            Self::Calls => "calls",
            Self::Seconds => "seconds",
        }
    }

    /// So much of it, for people.
    pub fn describe(self, amount: f64) -> String {
        match self {
            Self::Tokens => format!("{amount:.0} tokens"),
            Self::Usd if amount >= 0.01 || amount == 0.0 => format!("${amount:.2}"),
            Self::Usd => format!("${amount:.6}"),
            Self::Calls if amount == 1.0 => "1 model call".to_owned(),
            Self::Calls => format!("{amount:.0} model calls"),
            Self::Seconds => format!("{amount:.0} s of work"),
        }
    }
}

/// For people: what was used, what is allowed, and which setting says so.
impl fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = match self.scope {
            BudgetScope::Turn => "this turn used",
            BudgetScope::Session => "this session used",
            BudgetScope::Day => "all sessions of today used",
        };
        let (spent, allowance) =
            (self.unit.describe(self.spent), self.unit.describe(self.allowance));
        write!(f, "{used} {spent}; the limit is {allowance} ")?;
        if self.is_own {
            write!(f, "(`{SESSION_BUDGET}` of this session)")
        } else {
            write!(f, "(budget.{}.{})", self.scope.name(), self.unit.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_what_was_used_and_which_setting_it_is() {
        let reached = |scope, unit, spent, allowance| {
            ReachedLimit { scope, unit, allowance, spent, is_own: false }.to_string()
        };
        assert_eq!(
            reached(BudgetScope::Turn, BudgetUnit::Calls, 1.0, 1.0),
            "this turn used 1 model call; the limit is 1 model call (budget.turn.calls)"
        );
        assert_eq!(
            reached(BudgetScope::Day, BudgetUnit::Usd, 5.126, 5.0),
            "all sessions of today used $5.13; the limit is $5.00 (budget.day.usd)"
        );
        assert_eq!(
            reached(BudgetScope::Session, BudgetUnit::Usd, 0.00042, 0.0001),
            "this session used $0.000420; the limit is $0.000100 (budget.session.usd)"
        );
    }
}
