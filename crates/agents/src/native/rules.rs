//! The user's rules in a turn: what a call is about, what they say of it, and what is remembered of an answer.
//!
//! Promises: what a person agreed to is stored before the call runs, word for word, or it is said that it was not. Rules that
//! cannot be read are said once a turn, and grant nothing.
//! Must not know: modes, how a call is asked about.

use std::sync::Arc;

use agent_api::{AgentError, AgentEvent, TurnOver};
use serde_json::Value;
use workspace::Workspace;

use super::call_events::ToolContext;
use super::consent::{OfferedRule, RuleDecision, Verdict, verdict};
use crate::permission::{
    ArgumentKind, CallSubject, FileSubject, FileUse, Pattern, PermissionRule, ReadingLimits,
    RuleEffect, RuleScope, RuleSet, RuleStore, RulesError, SubjectDetail, allows, is_protected,
    propose, read_host,
};
use crate::task::run_blocking;
use crate::tool::{Plan, PlanSubject, Tool, ToolEffect};

/// How far an approval goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalScope {
    Call,
    Session,
    Project,
}

/// What rules are compared with, of a call of the agent's own tools.
pub(super) async fn subject_of(
    tool: &dyn Tool,
    input: &Value,
    plan: &Plan,
    workspace: &Workspace,
) -> CallSubject {
    let detail = match &plan.subject {
        PlanSubject::Command(command) => Some(SubjectDetail::Command(command.clone())),
        PlanSubject::Page(url) => read_host(url),
        PlanSubject::File(path) => locate(path.clone(), workspace).await,
        PlanSubject::Input => Some(SubjectDetail::Input(input.clone())),
    };
    CallSubject::new(tool.name(), detail.unwrap_or(SubjectDetail::Unknown))
}

/// The same of a client's tool. It may have any name, and is granted nothing by rules about servers.
pub(super) fn client_subject(tool: &str, input: &str) -> CallSubject {
    CallSubject { is_clients: true, ..server_subject(tool, input) }
}

/// The same of a server's tool: only its name and its very input are known.
pub(super) fn server_subject(tool: &str, input: &str) -> CallSubject {
    // What is not JSON is refused before anybody is asked.
    let input = serde_json::from_str::<Value>(input);
    let detail = input.map_or(SubjectDetail::Unknown, SubjectDetail::Input);
    CallSubject { tool: tool.to_owned(), is_edit: false, is_read: false, is_clients: false, detail }
}

async fn locate(path: String, workspace: &Workspace) -> Option<SubjectDetail> {
    let workspace = workspace.clone();
    let located = run_blocking(move || workspace.locate(&path)).await.ok()?;
    Some(SubjectDetail::Path(FileSubject { root: located.root, relative: located.relative }))
}

/// The rule that may be agreed to with a call. None while rules cannot be read: then none could be stored.
pub(super) async fn offer_rule(
    context: &ToolContext<'_>,
    subject: &CallSubject,
    nature: ToolEffect,
) -> Option<OfferedRule> {
    let store = context.rules.clone()?;
    let pattern = propose(subject).filter(|_| nature != ToolEffect::Reads)?;
    if subject.is_clients && pattern.is_about_server() {
        return None; // it would be a rule about a server
    }
    run_blocking(move || store.load()).await.ok()?;
    // A client's tool may be another one in the next session.
    let is_clients = matches!(subject.detail, SubjectDetail::Input(_));
    Some(OfferedRule { pattern, for_project: !is_clients && !context.place.directories.is_empty() })
}

/// The rule that may be agreed to with a call of a server's tool: all calls of that tool (MC-7).
pub(super) async fn offer_tool_rule(context: &ToolContext<'_>, tool: &str) -> Option<OfferedRule> {
    let store = context.rules.clone()?;
    let pattern = Pattern::parse(tool).ok()?;
    run_blocking(move || store.load()).await.ok()?;
    Some(OfferedRule { pattern, for_project: !context.place.directories.is_empty() })
}

impl ToolContext<'_> {
    /// What is to be done about a call, as things are now: settings may change in mid-turn, and so may rules.
    pub(super) async fn verdict(
        &self,
        nature: ToolEffect,
        subject: &CallSubject,
    ) -> Result<Verdict, TurnOver> {
        let rules = self.ask_rules(subject).await?;
        let is_protected = match &subject.detail {
            SubjectDetail::Path(path) => is_protected(&path.relative),
            // It may be.
            SubjectDetail::Unknown => true,
            SubjectDetail::Command(_) | SubjectDetail::Host(_) | SubjectDetail::Input(_) => false,
        };
        // Most reads need no look at the settings.
        if nature == ToolEffect::Reads && rules == RuleDecision::None {
            return Ok(Verdict::Run);
        }
        Ok(verdict(self.mode().await?, nature, is_protected, &rules))
    }

    async fn ask_rules(&self, subject: &CallSubject) -> Result<RuleDecision, TurnOver> {
        let Some(store) = self.rules.clone() else {
            return Ok(RuleDecision::None); // this host stores none
        };
        let rules = match run_blocking(move || store.load()).await {
            Ok(rules) => rules,
            Err(error) => {
                self.report_broken(&error).await?;
                return Ok(RuleDecision::Unknown);
            }
        };
        let rule = rules.decide(subject, &self.place);
        Ok(match rule.map(|rule| (rule.effect, &rule.pattern)) {
            None => RuleDecision::None,
            Some((RuleEffect::Allow, _)) => RuleDecision::Allow,
            Some((RuleEffect::Ask, _)) => RuleDecision::Ask,
            Some((RuleEffect::Deny, pattern)) => RuleDecision::Deny(pattern.clone()),
        })
    }

    /// What the rules keep from a call that shows files or their names.
    pub(super) async fn reading_limits(
        &self,
        subject: &CallSubject,
    ) -> Result<Option<ReadingLimits>, RulesError> {
        let is_about_files = match ArgumentKind::of_tool(&subject.tool) {
            ArgumentKind::File(FileUse::Shows | FileUse::Names) => true,
            ArgumentKind::File(FileUse::Changes)
            | ArgumentKind::Command
            | ArgumentKind::Page
            | ArgumentKind::Input => false,
        };
        let Some(store) = self.rules.clone().filter(|_| is_about_files) else { return Ok(None) };
        let rules = run_blocking(move || store.load()).await?;
        Ok(rules.reading_limits(subject, &self.place))
    }

    /// Says once a turn that the rules cannot be used.
    async fn report_broken(&self, error: &RulesError) -> Result<(), TurnOver> {
        let mut reported = self.reported_rules.lock().await;
        if std::mem::replace(&mut *reported, true) {
            return Ok(());
        }
        tracing::warn!(
            "the permission rules cannot be read: every call is asked about until they are mended"
        );
        let text = format!(
            "The permission rules cannot be read, so every call is asked about. {error}. `greenroom rules edit` mends it."
        );
        self.events.send(AgentEvent::Notice { text }).await
    }

    /// Stores the rule that was agreed to. `subject` is the call as it runs, which may have been edited: a rule that is not
    /// about that was not meant.
    pub(super) async fn remember(
        &self,
        scope: ApprovalScope,
        offered: Option<&OfferedRule>,
        subject: &CallSubject,
    ) -> Result<(), TurnOver> {
        let Some((scope, pattern)) = self.scope_of(scope, offered, subject) else {
            return Ok(()); // it was approved once
        };
        let problem = if allows(pattern, subject) {
            self.store_rule(scope, pattern.clone()).await.err()
        } else {
            Some(RulesError("the edited call is another one".to_owned()))
        };
        match problem {
            None => Ok(()),
            Some(problem) => {
                let text = format!(
                    "{pattern} was not remembered: {problem}. This call runs, the next one asks."
                );
                self.events.send(AgentEvent::Notice { text }).await
            }
        }
    }

    fn scope_of<'a>(
        &self,
        scope: ApprovalScope,
        offered: Option<&'a OfferedRule>,
        subject: &CallSubject,
    ) -> Option<(RuleScope, &'a Pattern)> {
        let offered = offered?;
        // A rule holds where the call was made: a session may work elsewhere, too, and later.
        let directory = match &subject.detail {
            SubjectDetail::Path(path) => Some(&path.root),
            SubjectDetail::Command(_)
            | SubjectDetail::Host(_)
            | SubjectDetail::Input(_)
            | SubjectDetail::Unknown => self.place.directories.first(),
        };
        let scope = match scope {
            ApprovalScope::Call => return None,
            ApprovalScope::Session => RuleScope::Session {
                session: self.place.session.clone(),
                directory: directory.cloned(),
            },
            ApprovalScope::Project if !offered.for_project => return None, // it was not offered
            ApprovalScope::Project => RuleScope::Project(directory?.clone()),
        };
        Some((scope, &offered.pattern))
    }

    async fn store_rule(&self, scope: RuleScope, pattern: Pattern) -> Result<(), RulesError> {
        let Some(store) = self.rules.clone() else {
            return Err(RulesError("this host stores no rules".to_owned()));
        };
        let rule = PermissionRule { scope, effect: RuleEffect::Allow, pattern };
        run_blocking(move || store.add(&rule)).await
    }
}

/// The rules of a host that has any.
pub(super) type Rules = Option<Arc<RuleStore>>;

/// Forgets what another session of this name was allowed. Blocks.
pub(super) fn forget_session(rules: &RuleStore, session: &str) -> Result<(), AgentError> {
    let Err(error) = rules.remove_session(session) else { return Ok(()) };
    // Rules that cannot be read allow nothing.
    let has_any = |known: Arc<RuleSet>| {
        let mut rules = known.rules().iter();
        rules.any(|rule| rule.is_of_session(session))
    };
    if rules.load().is_ok_and(has_any) {
        Err(AgentError {
            error_type: "rulesNotForgotten".to_owned(),
            message: format!(
                "another session had this name, and what it was allowed cannot be forgotten ({error}); create one with another name"
            ),
            resumable: false,
        })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What rules know of a tool by its name is what it does.
    #[test]
    fn rules_know_what_each_tool_does() {
        let tools = crate::tool::all(&Arc::default(), &Arc::default());
        for tool in tools {
            let kind = ArgumentKind::of_tool(tool.name());
            let expected = match tool.effect() {
                ToolEffect::Edits => matches!(kind, ArgumentKind::File(FileUse::Changes)),
                ToolEffect::Fetches => kind == ArgumentKind::Page,
                ToolEffect::Runs => matches!(kind, ArgumentKind::Command | ArgumentKind::Input),
                ToolEffect::Reads => matches!(
                    kind,
                    ArgumentKind::File(FileUse::Shows | FileUse::Names) | ArgumentKind::Input
                ),
            };
            assert!(expected, "{}: {kind:?}", tool.name());
            let takes_path = tool.parameters()["properties"]["path"].is_object();
            assert_eq!(
                takes_path,
                matches!(kind, ArgumentKind::File(_)),
                "{}: {kind:?}",
                tool.name()
            );
        }
    }
}
