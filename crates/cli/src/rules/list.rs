//! Rules as people read them: by where they hold, each with what it does.

use std::path::{Path, PathBuf};

use host::rules::{CallPlace, PermissionRule, RuleScope, RuleSet};
use serde_json::{Value, json};

use super::{DataOptions, real_directory};
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::terminal::escape_line;

#[derive(Debug, clap::Args)]
pub(super) struct RuleListOptions {
    /// Only rules that hold in this directory
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataOptions,
}

pub(super) fn run(options: &RuleListOptions) -> anyhow::Result<Exit> {
    let store = options.data.store()?;
    let rules = store.load()?;
    let listed: Vec<&PermissionRule> = match &options.directory {
        None => rules.rules().iter().collect(),
        Some(directory) => rules.in_force(&CallPlace {
            session: String::new(),
            directories: vec![real_directory(Some(directory))?],
        }),
    };
    if options.json {
        let listed = listed.iter().map(|rule| to_json(rule, &rules));
        print_json(&Value::Array(listed.collect()))?;
    } else if listed.is_empty() {
        print(
            "There are no rules: the session's mode decides what is asked. `greenroom rules add 'bash(cargo test:*)'` adds one.\n",
        )?;
    } else {
        for line in describe_rules(&listed, &rules) {
            print(&format!("{line}\n"))?;
        }
    }
    Ok(Exit::Complete)
}

/// The rules as lines, safe to print: where they hold, and below what they are.
pub(crate) fn describe_rules(listed: &[&PermissionRule], rules: &RuleSet) -> Vec<String> {
    let mut lines = Vec::new();
    let mut scope: Option<&RuleScope> = None;
    for rule in listed {
        if scope != Some(&rule.scope) {
            scope = Some(&rule.scope);
            lines.push(escape_line(&describe_scope(&rule.scope, rules)));
        }
        let line = format!("  {:5}  {}", rule.effect.name(), rule.pattern);
        lines.push(escape_line(&line));
    }
    lines
}

fn describe_scope(scope: &RuleScope, rules: &RuleSet) -> String {
    match scope {
        RuleScope::Session(session) => match rules.session_directory(session) {
            Some(directory) => format!("{scope} in {directory}"),
            None => scope.to_string(),
        },
        RuleScope::Project(_) | RuleScope::Always => scope.to_string(),
    }
}

fn to_json(rule: &PermissionRule, rules: &RuleSet) -> Value {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (session, directory) = match &rule.scope {
        RuleScope::Session(session) => {
            let directory = rules.session_directory(session);
            (Some(session.clone()), directory.map(str::to_owned))
        }
        RuleScope::Project(directory) => (None, Some(text(directory))),
        RuleScope::Always => (None, None),
    };
    json!({
        "rule": rule.pattern.as_str(),
        "list": rule.effect.name(),
        "scope": rule.scope.name(),
        "session": session,
        "directory": directory,
    })
}
