//! `greenroom rules check`: which rule would decide about a call.

use std::path::PathBuf;

use host::rules::{RuleContext, SubjectDetail, is_protected, read_call};
use serde_json::json;

use super::{DataOptions, describe, real_directory, wrong};
use crate::exit::Exit;
use crate::output::{print, print_json};

#[derive(Debug, clap::Args)]
pub(super) struct CheckOptions {
    /// The tool, such as bash or edit
    tool: String,
    /// What it is to do: a command, a path, a URL, or JSON
    input: String,
    /// In a session of this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// In this session, by its URI
    #[arg(long, value_name = "URI")]
    session: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataOptions,
}

pub(super) fn run(options: &CheckOptions) -> anyhow::Result<Exit> {
    let directory = real_directory(options.directory.as_deref())?;
    let call = match read_call(&options.tool, &options.input, &directory) {
        Ok(call) => call,
        Err(problem) => return wrong(&anyhow::Error::msg(problem)),
    };
    let place = RuleContext {
        session: options.session.clone().unwrap_or_default(),
        directories: vec![directory],
    };
    let rules = options.data.store()?.load()?;
    let rule = rules.decide(&call, &place);
    let is_protected = match &call.detail {
        SubjectDetail::Path(path) => call.is_edit && is_protected(&path.relative),
        _ => false,
    };
    if options.json {
        print_json(&json!({
            "decision": rule.map(|rule| rule.effect.name()),
            "rule": rule.map(|rule| rule.pattern.as_str()),
            "scope": rule.map(|rule| rule.scope.name()),
            "protected": is_protected,
        }))?;
        return Ok(Exit::Complete);
    }
    let line = match (rule, is_protected) {
        (Some(rule), _) => describe(rule),
        (None, false) => "No rule matches: the mode of the session decides.".to_owned(),
        (None, true) => {
            "No rule matches: the user is asked, even where edits are accepted, because this file controls tools or agents."
                .to_owned()
        }
    };
    print(&format!("{line}\n"))?;
    Ok(Exit::Complete)
}
