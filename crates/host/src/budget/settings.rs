//! The `[budget.turn]`, `[budget.session]` and `[budget.day]` tables of the settings file (G-69).
//!
//! Promises: a limit that is absent is none; one that could never let anything happen is named.

use agent_api::{BudgetScope, BudgetUnit};
use serde::{Deserialize, Serialize};

/// What may be spent on models, each time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSettings {
    #[serde(skip_serializing_if = "BudgetLimits::is_empty")]
    pub turn: BudgetLimits,
    #[serde(skip_serializing_if = "BudgetLimits::is_empty")]
    pub session: BudgetLimits,
    #[serde(skip_serializing_if = "BudgetLimits::is_empty")]
    pub day: BudgetLimits,
}

/// The limits of one table.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

impl BudgetLimits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How much of something is allowed, if that is limited.
    pub fn of(&self, unit: BudgetUnit) -> Option<f64> {
        match unit {
            BudgetUnit::Tokens => self.tokens.map(|tokens| tokens as f64),
            BudgetUnit::Usd => self.usd,
            BudgetUnit::Calls => self.calls.map(|calls| calls as f64),
            BudgetUnit::Seconds => self.seconds.map(|seconds| seconds as f64),
        }
    }
}

/// What holds for a turn: the limits of the host, and the one that its session has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct TurnLimits {
    pub host: BudgetSettings,
    /// In dollars.
    pub session_usd: Option<f64>,
}

impl TurnLimits {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How much of something is allowed, if that is limited, and whether the session itself says so. Of two limits the
    /// smaller one holds.
    pub(crate) fn of(&self, scope: BudgetScope, unit: BudgetUnit) -> Option<(f64, bool)> {
        let host = self.host.of(scope).of(unit);
        let own = match (scope, unit) {
            (BudgetScope::Session, BudgetUnit::Usd) => self.session_usd,
            (BudgetScope::Turn | BudgetScope::Session | BudgetScope::Day, _) => None,
        };
        match (host, own) {
            (Some(host), Some(own)) if own < host => Some((own, true)),
            (Some(host), _) => Some((host, false)),
            (None, own) => own.map(|own| (own, true)),
        }
    }

    /// Whether money is limited anywhere.
    pub(crate) fn limits_money(&self) -> bool {
        let mut scopes = BudgetScope::ALL.into_iter();
        scopes.any(|scope| self.of(scope, BudgetUnit::Usd).is_some())
    }
}

impl BudgetSettings {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn of(&self, scope: BudgetScope) -> &BudgetLimits {
        match scope {
            BudgetScope::Turn => &self.turn,
            BudgetScope::Session => &self.session,
            BudgetScope::Day => &self.day,
        }
    }

    /// Names the first limit with which no model could ever be asked.
    pub(crate) fn check(&self) -> Result<(), String> {
        for scope in BudgetScope::ALL {
            for unit in BudgetUnit::ALL {
                let limit = self.of(scope).of(unit);
                if limit.is_some_and(|limit| !limit.is_finite() || limit <= 0.0) {
                    let (scope, unit) = (scope.name(), unit.name());
                    return Err(format!(
                        "budget.{scope}.{unit} must be more than 0; leave it out to set no limit"
                    ));
                }
            }
        }
        Ok(())
    }
}
