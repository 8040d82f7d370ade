//! `greenroom rules`: lists, adds, removes, checks and edits the permission rules of a host.
//!
//! Promises: what is shown is what a host follows. A host that runs follows a change from its next call on. Other lines and
//! comments of the file stay as they are.
//! Must not know: how a rule is compared with a call.

mod check;
mod list;

pub(crate) use list::describe_rules;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use client::endpoint;
use host::rules::{
    Pattern, PermissionRule, RULES_FILE, RuleEffect, RuleScope, RuleStore, parse, template,
};

use crate::config::edit::{FileToEdit, edit_file};
use crate::exit::Exit;
use crate::output::print;
use crate::start_host::create_data_directory;
use crate::terminal::escape_line;

/// List, add, remove and check what agents may do without asking
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom rules list
  greenroom rules add 'bash(cargo test:*)'           allow it in this directory
  greenroom rules add --deny --always 'bash(rm:*)'
  greenroom rules check bash 'cargo test; rm -rf x'  which rule would decide?
  greenroom rules remove 'bash(cargo test:*)'
  greenroom rules edit                               in $VISUAL or $EDITOR

A rule is the name of a tool, or a tool and what it is about: bash(git status) is one command, bash(cargo test:*) all that begin \
so, edit(src/**) changing files there, read(.env), web_fetch(domain:example.com). deny wins over ask, ask over allow. A running host \
follows changes at once.

Exit codes: 0 done, 1 the rules cannot be read or written, 2 wrong usage.")]
pub(crate) struct RulesOptions {
    #[command(subcommand)]
    verb: RulesVerb,
}

#[derive(Debug, clap::Subcommand)]
enum RulesVerb {
    /// List all rules
    List(list::RuleListOptions),
    /// Add a rule
    Add(ChangeOptions),
    /// Remove a rule
    Remove(ChangeOptions),
    /// Say which rule would decide about a call
    Check(check::CheckOptions),
    /// Edit the file, and check it
    Edit(DataOptions),
}

#[derive(Debug, clap::Args)]
struct DataOptions {
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl DataOptions {
    fn store(&self) -> anyhow::Result<RuleStore> {
        let data = endpoint::data_directory(self.data.as_deref())?;
        Ok(RuleStore::new(&data))
    }

    /// The same, for a rule that is to be written: no host need have run.
    fn store_to_write(&self) -> anyhow::Result<RuleStore> {
        let data = endpoint::data_directory(self.data.as_deref())?;
        create_data_directory(&data)?;
        Ok(RuleStore::new(&data))
    }
}

#[derive(Debug, clap::Args)]
struct ChangeOptions {
    /// The rule, such as 'bash(cargo test:*)'
    rule: String,
    /// A rule that asks, in every mode
    #[arg(long, conflicts_with = "deny")]
    ask: bool,
    /// A rule that denies, in every mode
    #[arg(long)]
    deny: bool,
    /// In all directories
    #[arg(long, conflicts_with_all = ["directory", "session"])]
    always: bool,
    /// In sessions of this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// In this session, by its URI; with --directory only while it works there
    #[arg(long, value_name = "URI")]
    session: Option<String>,
    #[command(flatten)]
    data: DataOptions,
}

impl ChangeOptions {
    fn rule(&self) -> anyhow::Result<PermissionRule> {
        let scope = match (&self.session, self.always) {
            (Some(session), _) => {
                let directory = self.directory.as_deref();
                RuleScope::Session {
                    session: session.clone(),
                    directory: directory.map(|path| real_directory(Some(path))).transpose()?,
                }
            }
            (None, true) => RuleScope::Always,
            (None, false) => RuleScope::Project(real_directory(self.directory.as_deref())?),
        };
        let effect = match (self.ask, self.deny) {
            (true, _) => RuleEffect::Ask,
            (_, true) => RuleEffect::Deny,
            (false, false) => RuleEffect::Allow,
        };
        Ok(PermissionRule { scope, effect, pattern: Pattern::parse(&self.rule)? })
    }
}

pub(crate) fn run(options: RulesOptions) -> anyhow::Result<Exit> {
    match options.verb {
        RulesVerb::List(options) => list::run(&options),
        RulesVerb::Add(options) => add(&options),
        RulesVerb::Remove(options) => remove(&options),
        RulesVerb::Check(options) => check::run(&options),
        RulesVerb::Edit(options) => edit(options.store()?.path()),
    }
}

/// A directory without links, as rules name it.
fn real_directory(directory: Option<&Path>) -> anyhow::Result<PathBuf> {
    let directory = directory.unwrap_or(Path::new("."));
    std::fs::canonicalize(directory)
        .with_context(|| format!("{} cannot be found", directory.display()))
}

fn add(options: &ChangeOptions) -> anyhow::Result<Exit> {
    let rule = match options.rule() {
        Ok(rule) => rule,
        Err(error) => return wrong(&error),
    };
    options.data.store_to_write()?.add(&rule)?;
    print(&format!("{}\n", describe(&rule)))?;
    if rule.effect == RuleEffect::Allow && is_broad(&rule) {
        print(
            "This rule lets agents run anything without asking, because this program runs other programs.\n",
        )?;
    }
    Ok(Exit::Complete)
}

fn remove(options: &ChangeOptions) -> anyhow::Result<Exit> {
    let rule = match options.rule() {
        Ok(rule) => rule,
        Err(error) => return wrong(&error),
    };
    let store = options.data.store()?;
    let known = store.load()?;
    let meant: Vec<&PermissionRule> =
        known.rules().iter().filter(|known| is_meant(known, &rule)).collect();
    if meant.is_empty() {
        bail!("there is no such rule: {}. `greenroom rules list` shows all", describe(&rule));
    }
    for rule in meant {
        store.remove(rule)?;
        print(&format!("Removed. {}\n", describe(rule)))?;
    }
    Ok(Exit::Complete)
}

/// Whoever names a session means its rules in every directory.
fn is_meant(known: &PermissionRule, wanted: &PermissionRule) -> bool {
    let is_in_scope = match (&known.scope, &wanted.scope) {
        (
            RuleScope::Session { session, .. },
            RuleScope::Session { session: wanted, directory: None },
        ) => session == wanted,
        (known, wanted) => known == wanted,
    };
    is_in_scope && known.effect == wanted.effect && known.pattern == wanted.pattern
}

/// The command line asked for something that is no rule.
fn wrong(error: &anyhow::Error) -> anyhow::Result<Exit> {
    eprintln!("greenroom: {}", escape_line(&format!("{error:#}")));
    Ok(Exit::Usage)
}

/// A rule and where it holds, on one line.
fn describe(rule: &PermissionRule) -> String {
    let line = format!("{} {}: {}", rule.effect.name(), rule.pattern, rule.scope);
    escape_line(&line)
}

/// Whether a rule allows everything, by a program that runs others.
fn is_broad(rule: &PermissionRule) -> bool {
    const RUN_OTHERS: &[&str] = &[
        "bash", "command", "doas", "env", "eval", "exec", "find", "node", "npx", "perl", "python",
        "python3", "ruby", "sh", "ssh", "sudo", "xargs", "zsh",
    ];
    let text = rule.pattern.as_str();
    let command = text.strip_prefix("bash(").and_then(|rest| rest.strip_suffix(":*)"));
    text == "bash" || command.is_some_and(|command| RUN_OTHERS.contains(&command))
}

fn edit(path: &Path) -> anyhow::Result<Exit> {
    let find_problem = |copy: &Path| -> anyhow::Result<Option<String>> {
        let text = std::fs::read_to_string(copy)
            .with_context(|| format!("{} cannot be read", copy.display()))?;
        Ok(parse(&text).err().map(|error| format!("{RULES_FILE}: {error}")))
    };
    edit_file(&FileToEdit {
        path,
        template: template(),
        find_problem: &find_problem,
        saved: format!("Saved {}. A running host follows it at once.", path.display()),
        kept: "Saved with its mistakes. Until they are corrected, agents ask before everything.",
    })
}
