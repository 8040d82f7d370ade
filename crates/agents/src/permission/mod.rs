//! Permission rules: what agents may do without asking, what they must ask about, and what they may not do at all (G-63).
//!
//! Promises: a rule never allows more than its words say. Rules come from one file of the host and from nowhere else: no file
//! of a workspace grants anything. A file that cannot be read grants nothing.
//! Must not know: models, turns, channels, permission modes.

mod file;
mod options;
mod pattern;
mod proposal;
mod protected;
mod rule_set;
mod shell;
mod store;
mod subject;
#[cfg(test)]
mod tests;

pub use file::{RULES_FILE, RulesError, add_rule, parse, remove_rule, remove_session, template};
pub use pattern::{Pattern, PatternError};
pub(crate) use proposal::allows;
pub use proposal::propose;
pub use protected::is_protected;
pub use rule_set::{PermissionRule, ReadingLimits, RuleContext, RuleEffect, RuleScope, RuleSet};
pub use store::RuleStore;
pub use subject::{ArgumentKind, CallSubject, FileSubject, FileUse, SubjectDetail, read_host};
