//! Calls and places that the tests of rules compare.

mod against_bash;
mod commands;
mod decisions;
mod file;

use std::path::PathBuf;

use super::*;

fn subject(tool: &str, detail: SubjectDetail) -> CallSubject {
    CallSubject::new(tool, detail)
}

fn command(text: &str) -> CallSubject {
    subject("bash", SubjectDetail::Command(text.to_owned()))
}

fn file(tool: &str, path: &str) -> CallSubject {
    let detail = SubjectDetail::Path(FileSubject {
        root: PathBuf::from("/work"),
        relative: PathBuf::from(path),
    });
    subject(tool, detail)
}

fn place() -> RuleContext {
    RuleContext {
        session: "native:/s".to_owned(),
        directories: vec![PathBuf::from("/work"), PathBuf::from("/other")],
    }
}

/// What the rules of a file say about a call: the list, and the rule.
fn says(text: &str, call: &CallSubject) -> String {
    let rules = parse(text).unwrap();
    let rule = rules.decide(call, &place());
    rule.map_or("-".to_owned(), |rule| format!("{} {}", rule.effect.name(), rule.pattern))
}

fn allows_text(pattern: &str, text: &str) -> bool {
    allows(&Pattern::parse(pattern).unwrap(), &command(text))
}
