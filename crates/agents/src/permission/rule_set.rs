//! All rules of a host, and what they say about a call.
//!
//! Promises: what is denied by any rule is denied; what is to be asked is asked; only then is anything allowed. A command is
//! allowed only if each simple command in it is.
//! Must not know: files, permission modes, who asks.

use std::fmt;
use std::path::{Path, PathBuf};

use super::pattern::Pattern;
use super::shell;
use super::subject::{CallSubject, FileSubject, SubjectDetail};

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
    /// In one session, by its name; only while it works in a directory, if that is named.
    Session {
        session: String,
        directory: Option<PathBuf>,
    },
    /// In sessions that work in this directory, without links.
    Project(PathBuf),
    Always,
}

impl RuleScope {
    /// The name of its table.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Session { .. } => "session",
            Self::Project(_) => "project",
            Self::Always => "always",
        }
    }
}

impl fmt::Display for RuleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session { session, directory: None } => write!(f, "session {session}"),
            Self::Session { session, directory: Some(directory) } => {
                write!(f, "session {session} in {}", directory.display())
            }
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
pub struct RuleContext {
    pub session: String,
    /// Without links, the default one first.
    pub directories: Vec<PathBuf>,
}

/// All rules, in the order of their file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleSet {
    rules: Vec<PermissionRule>,
}

impl RuleSet {
    pub(super) fn new(rules: Vec<PermissionRule>) -> Self {
        Self { rules }
    }

    pub fn rules(&self) -> &[PermissionRule] {
        &self.rules
    }

    /// The rules that hold in a place.
    pub fn in_force<'a>(&'a self, place: &RuleContext) -> Vec<&'a PermissionRule> {
        let holds = |rule: &&PermissionRule| match &rule.scope {
            RuleScope::Always => true,
            RuleScope::Session { session, directory } => {
                let is_there = |directory: &PathBuf| place.directories.contains(directory);
                *session == place.session && directory.as_ref().is_none_or(is_there)
            }
            RuleScope::Project(directory) => place.directories.contains(directory),
        };
        self.rules.iter().filter(holds).collect()
    }

    /// What a call that is made may not show of the files that it looks at; none if it may show all of them. A rule that asks
    /// is kept by showing nothing of its files, unless it is about the call itself: that was approved.
    pub fn reading_limits(&self, call: &CallSubject, place: &RuleContext) -> Option<ReadingLimits> {
        let rules = self.in_force(place).into_iter();
        let limits = rules.filter(|rule| match rule.effect {
            RuleEffect::Deny => true,
            RuleEffect::Ask => !rule.touches(call),
            RuleEffect::Allow => false,
        });
        let of_reads = limits.filter(|rule| rule.pattern.is_about_reading(&call.tool));
        let rules: Vec<PermissionRule> = of_reads.cloned().collect();
        (!rules.is_empty()).then(|| ReadingLimits { tool: call.tool.clone(), rules })
    }

    /// The rule that decides about a call, if any does. Of a command that several rules allow together, the first of them.
    pub fn decide<'a>(
        &'a self,
        call: &CallSubject,
        place: &RuleContext,
    ) -> Option<&'a PermissionRule> {
        let mut rules = self.in_force(place);
        rules.retain(|rule| is_applicable(rule, call, place));
        let touching = |effect: RuleEffect| {
            let mut rules = rules.iter().copied();
            rules.find(|rule| rule.effect == effect && rule.touches(call))
        };
        let allowing = || rules.iter().copied().filter(|rule| rule.effect == RuleEffect::Allow);
        let together = || {
            let SubjectDetail::Command(command) = &call.detail else { return None };
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

/// What the user's rules keep from a call that looks at many files.
#[derive(Debug, Clone)]
pub struct ReadingLimits {
    tool: String,
    rules: Vec<PermissionRule>,
}

impl ReadingLimits {
    /// Whether a file is not to be shown.
    pub fn hides(&self, file: FileSubject) -> bool {
        let reading = CallSubject {
            tool: self.tool.clone(),
            is_edit: false,
            is_read: true,
            is_clients: false,
            detail: SubjectDetail::Path(file),
        };
        self.rules.iter().any(|rule| rule.touches(&reading))
    }
}

/// A rule of a directory is about what is done there: commands run in the first one of a session, files lie in theirs. What is
/// allowed to a server is not allowed to a client that calls its tool the same.
fn is_applicable(rule: &PermissionRule, call: &CallSubject, place: &RuleContext) -> bool {
    if call.is_clients && rule.effect == RuleEffect::Allow && rule.pattern.is_about_server() {
        return false;
    }
    match (rule.directory(), &call.detail) {
        (None, _) | (Some(_), SubjectDetail::Path(_) | SubjectDetail::Unknown) => true,
        (
            Some(directory),
            SubjectDetail::Command(_) | SubjectDetail::Host(_) | SubjectDetail::Input(_),
        ) => place.directories.first().map(PathBuf::as_path) == Some(directory),
    }
}

impl PermissionRule {
    /// Whether it holds in this session alone.
    pub(crate) fn is_of_session(&self, session: &str) -> bool {
        match &self.scope {
            RuleScope::Session { session: own, .. } => own == session,
            RuleScope::Project(_) | RuleScope::Always => false,
        }
    }

    fn directory(&self) -> Option<&Path> {
        match &self.scope {
            RuleScope::Project(directory) => Some(directory),
            RuleScope::Session { directory, .. } => directory.as_deref(),
            RuleScope::Always => None,
        }
    }

    pub(crate) fn touches(&self, call: &CallSubject) -> bool {
        self.pattern.touches(call, self.directory())
    }

    pub(super) fn covers(&self, call: &CallSubject) -> bool {
        self.pattern.covers(call, self.directory())
    }
}
