//! Rules as people read them: by where they hold, each with what it does.

use std::path::{Path, PathBuf};

use host::rules::{PermissionRule, RuleContext, RuleScope};
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
    let rules = options.data.store()?.load()?;
    let listed: Vec<&PermissionRule> = match &options.directory {
        None => rules.rules().iter().collect(),
        Some(directory) => rules.in_force(&RuleContext {
            session: String::new(),
            directories: vec![real_directory(Some(directory))?],
        }),
    };
    if options.json {
        let listed = listed.iter().map(|rule| to_json(rule));
        print_json(&Value::Array(listed.collect()))?;
    } else if listed.is_empty() {
        print(
            "There are no rules: the session's mode decides what is asked. `greenroom rules add 'bash(cargo test:*)'` adds one.\n",
        )?;
    } else {
        for line in describe_rules(&listed) {
            print(&format!("{line}\n"))?;
        }
    }
    Ok(Exit::Complete)
}

/// The rules as lines, safe to print: where they hold, and below what they are.
pub(crate) fn describe_rules(listed: &[&PermissionRule]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut scope: Option<&RuleScope> = None;
    for rule in listed {
        if scope != Some(&rule.scope) {
            scope = Some(&rule.scope);
            lines.push(escape_line(&rule.scope.to_string()));
        }
        let line = format!("  {:5}  {}", rule.effect.name(), rule.pattern);
        lines.push(escape_line(&line));
    }
    lines
}

fn to_json(rule: &PermissionRule) -> Value {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (session, directory) = match &rule.scope {
        RuleScope::Session { session, directory } => {
            (Some(session.clone()), directory.as_deref().map(text))
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
