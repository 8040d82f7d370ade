//! `rules.toml` of a data directory.
//!
//! Promises: what was recorded is on the disk when that is said. All functions block.
//! Must not know: what rules mean.

use std::path::Path;
use std::sync::Arc;

use super::file::{self, RULES_FILE, RulesError};
use super::rule_set::{PermissionRule, RuleSet};
use crate::data_file::DataFile;

/// The rules of a host.
#[derive(Debug)]
pub struct RuleStore(DataFile<RuleSet>);

impl RuleStore {
    /// The rules in a data directory, whether there are any or not.
    pub fn new(data: &Path) -> Self {
        let parse = |text: &str| file::parse(text).map_err(|RulesError(reason)| reason);
        Self(DataFile::new(data, RULES_FILE, parse))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The rules as they are now. An error says what is wrong with the file, and then nothing is granted.
    pub fn load(&self) -> Result<Arc<RuleSet>, RulesError> {
        self.0.load().map_err(RulesError)
    }

    /// Records a rule; it is on the disk afterwards.
    pub fn add(&self, rule: &PermissionRule) -> Result<(), RulesError> {
        self.change(|text| file::add_rule(text, rule).map(Some)).map(drop)
    }

    /// Whether there was such a rule.
    pub fn remove(&self, rule: &PermissionRule) -> Result<bool, RulesError> {
        self.change(|text| file::remove_rule(text, rule))
    }

    /// Forgets the rules of a session that is gone: another one may come to have its name. Whether it had any.
    pub fn remove_session(&self, session: &str) -> Result<bool, RulesError> {
        self.change(|text| file::remove_session(text, session))
    }

    /// Whether anything was to be changed.
    fn change(
        &self,
        change: impl FnOnce(&str) -> Result<Option<String>, RulesError>,
    ) -> Result<bool, RulesError> {
        let change = |text: &str| change(text).map_err(|RulesError(reason)| reason);
        self.0.change(change).map_err(RulesError)
    }
}
