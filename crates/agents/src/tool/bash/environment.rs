//! The environment of commands: what every program needs, and what the operator adds by name.
//!
//! Promises: a variable is passed on because its name is allowed, never because it looks harmless (G-51): passwords, keys
//! and addresses with passwords in them have all kinds of names.
//! Must not know: where the names come from.

use std::ffi::{OsStr, OsString};

/// Names that every command gets.
const ALLOWED: [&str; 9] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "TERM"];

/// Beginnings of such names.
const ALLOWED_BEGINNINGS: [&str; 2] = ["LC_", "XDG_"];

/// There is no user at a terminal to answer or to turn a page.
const OVERRIDES: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// The environment of a command: the host's variables that are allowed, these added ones among them.
pub(crate) fn command_environment(added: &[String]) -> Vec<(OsString, OsString)> {
    let mut variables = select_allowed(std::env::vars_os(), added);
    variables.extend(OVERRIDES.map(|(name, value)| (name.into(), value.into())));
    variables
}

/// The environment of a command that the user gave: the user's own (G-51), without these secrets and what turns pages.
pub(super) fn user_environment(secrets: &[String]) -> Vec<(OsString, OsString)> {
    let is_key = |name: &str| crate::native::is_key_variable(name);
    let mut variables = terminals::shell_environment(std::env::vars_os(), secrets, &is_key);
    let pagers = OVERRIDES.iter().filter(|(name, _)| name.ends_with("PAGER"));
    variables.extend(pagers.map(|(name, value)| (name.into(), value.into())));
    variables
}

fn select_allowed(
    variables: impl Iterator<Item = (OsString, OsString)>,
    added: &[String],
) -> Vec<(OsString, OsString)> {
    variables
        .filter(|(name, _)| is_allowed(name) || added.iter().any(|added| name == OsStr::new(added)))
        .collect()
}

/// Whether every command gets a variable of this name.
pub(crate) fn is_allowed_variable(name: &str) -> bool {
    is_allowed(OsStr::new(name))
}

fn is_allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false; // none of the allowed names
    };
    let mut beginnings = ALLOWED_BEGINNINGS.iter();
    ALLOWED.contains(&name) || beginnings.any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_names_are_passed_on() {
        let names = [
            "PATH",
            "OPENAI_API_KEY",
            "HOME",
            "MYSQL_PWD",
            "DATABASE_URL",
            "https_proxy",
            "GREENROOM_DATA",
            "GREENROOM_TOKEN",
            "SSH_AUTH_SOCK",
            "LANG",
            "LC_ALL",
            "LANGUAGE_KEY",
            "XDG_RUNTIME_DIR",
            "path",
            "LD_PRELOAD",
            "CARGO_HOME",
        ];
        let variables = || names.map(|name| (name.into(), "x".into())).into_iter();
        let names_of = |variables: Vec<(OsString, OsString)>| -> Vec<String> {
            let names = variables.into_iter().map(|(name, _)| name);
            names.map(|name| name.into_string().unwrap()).collect()
        };
        assert_eq!(
            names_of(select_allowed(variables(), &[])),
            ["PATH", "HOME", "LANG", "LC_ALL", "XDG_RUNTIME_DIR"]
        );
        let added = ["SSH_AUTH_SOCK".to_owned(), "CARGO".to_owned()];
        assert_eq!(
            names_of(select_allowed(variables(), &added)),
            ["PATH", "HOME", "SSH_AUTH_SOCK", "LANG", "LC_ALL", "XDG_RUNTIME_DIR"]
        );
    }
}
