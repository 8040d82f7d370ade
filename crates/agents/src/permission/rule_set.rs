//! All rules of a host, and what they say about a call.
//!
//! Promises: what is denied by any rule is denied; what is to be asked is asked; only then is anything allowed. A command is
//! allowed only if each simple command in it is.
//! Must not know: files, permission modes, who asks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::pattern::Pattern;
use super::shell;
use super::subject::{CallSubject, SubjectDetail};

/// What a rule does about the calls it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleEffect {
    Deny,
    Ask,
    Allow,
}

impl RuleEffect {
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// The name of its list.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Where a rule holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleScope {
    /// In one session, by its name.
    Session(String),
    /// In sessions that work in this directory, without links.
    Project(PathBuf),
    Always,
}

impl RuleScope {
    /// The name of its table.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Session(_) => "session",
            Self::Project(_) => "project",
            Self::Always => "always",
        }
    }
}

impl fmt::Display for RuleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(session) => write!(f, "session {session}"),
            Self::Project(directory) => write!(f, "project {}", directory.display()),
            Self::Always => f.write_str("always"),
        }
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    pub scope: RuleScope,
    pub effect: RuleEffect,
    pub pattern: Pattern,
}

/// Where a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlace {
    pub session: String,
    /// Without links, the default one first.
    pub directories: Vec<PathBuf>,
}

/// All rules, in the order of their file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleSet {
    rules: Vec<PermissionRule>,
    /// The directory that a session's table names, for people.
    session_directories: BTreeMap<String, String>,
}

impl RuleSet {
    pub(super) fn new(
        rules: Vec<PermissionRule>,
        session_directories: BTreeMap<String, String>,
    ) -> Self {
        Self {
            rules,
            session_directories,
        }
    }

    pub fn rules(&self) -> &[PermissionRule] {
        &self.rules
    }

    /// The directory that a session worked in when its first rule was written.
    pub fn session_directory(&self, session: &str) -> Option<&str> {
        self.session_directories.get(session).map(String::as_str)
    }

    /// The rules that hold in a place.
    pub fn in_force<'a>(&'a self, place: &CallPlace) -> Vec<&'a PermissionRule> {
        let holds = |rule: &&PermissionRule| match &rule.scope {
            RuleScope::Always => true,
            RuleScope::Session(session) => *session == place.session,
            RuleScope::Project(directory) => place.directories.contains(directory),
        };
        self.rules.iter().filter(holds).collect()
    }

    /// The rule that decides about a call, if any does. Of a command that several rules allow together, the first of them.
    pub fn decide<'a>(
        &'a self,
        call: &CallSubject,
        place: &CallPlace,
    ) -> Option<&'a PermissionRule> {
        let mut rules = self.in_force(place);
        rules.retain(|rule| is_applicable(rule, call, place));
        let touching = |effect: RuleEffect| {
            let mut rules = rules.iter().copied();
            rules.find(|rule| rule.effect == effect && rule.touches(call))
        };
        let allowing = || {
            let rules = rules.iter().copied();
            rules.filter(|rule| rule.effect == RuleEffect::Allow)
        };
        let together = || {
            let SubjectDetail::Command(command) = &call.detail else {
                return None;
            };
            let mut first = None;
            for command in shell::split(command)? {
                let rule = allowing().find(|rule| rule.pattern.covers_command(&command))?;
                first = first.or(Some(rule));
            }
            first
        };
        touching(RuleEffect::Deny)
            .or_else(|| touching(RuleEffect::Ask))
            .or_else(|| allowing().find(|rule| rule.covers(call)))
            .or_else(together)
    }
}

/// A rule of a project is about what is done in its directory: commands run in the first one, files lie in theirs.
fn is_applicable(rule: &PermissionRule, call: &CallSubject, place: &CallPlace) -> bool {
    match (&rule.scope, &call.detail) {
        (RuleScope::Session(_) | RuleScope::Always, _) | (_, SubjectDetail::Path(_)) => true,
        (RuleScope::Project(directory), _) => place.directories.first() == Some(directory),
    }
}

impl PermissionRule {
    fn directory(&self) -> Option<&Path> {
        match &self.scope {
            RuleScope::Project(directory) => Some(directory),
            RuleScope::Session(_) | RuleScope::Always => None,
        }
    }

    fn touches(&self, call: &CallSubject) -> bool {
        self.pattern.touches(call, self.directory())
    }

    pub(super) fn covers(&self, call: &CallSubject) -> bool {
        self.pattern.covers(call, self.directory())
    }
}
