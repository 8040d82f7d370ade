//! The environment of commands: the host's own, without its secrets.
//!
//! Promises: no variable that is called a key, a token or a password reaches a command, nor any of the host's own
//! settings, nor any that configuration names as the source of a key.
//! Must not know: where keys come from.

use std::ffi::{OsStr, OsString};

/// Words in the name of a variable that holds a secret.
const SECRET_WORDS: [&str; 14] = [
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "PAT",
];

/// Endings of such names without a word of its own: `PGPASSWORD`.
const SECRET_ENDS: [&str; 5] = ["APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"];

/// There is no user at a terminal to answer or to turn a page.
const OVERRIDES: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// The environment of a command.
pub(super) fn command_environment(hidden: &[String]) -> Vec<(OsString, OsString)> {
    let mut variables = filter_secrets(std::env::vars_os(), hidden);
    variables.extend(OVERRIDES.map(|(name, value)| (name.into(), value.into())));
    variables
}

fn filter_secrets(
    variables: impl Iterator<Item = (OsString, OsString)>,
    hidden: &[String],
) -> Vec<(OsString, OsString)> {
    let is_hidden = |name: &OsStr| hidden.iter().any(|hidden| name == OsStr::new(hidden));
    variables
        .filter(|(name, _)| !is_hidden(name) && !is_secret(&name.to_string_lossy()))
        .collect()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.starts_with("GREENROOM_")
        || name.split('_').any(|word| SECRET_WORDS.contains(&word))
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_behind() {
        let names = [
            "PATH",
            "OPENAI_API_KEY",
            "HOME",
            "GITHUB_TOKEN",
            "Aws_Secret_Access_Key",
            "PGPASSWORD",
            "GREENROOM_DATA",
            "MY_MODEL",
            "SSH_AUTH_SOCK",
            "KEYTIMEOUT",
            "LANG",
        ];
        let variables = names.map(|name| (name.into(), "x".into())).into_iter();
        let passed = filter_secrets(variables, &["MY_MODEL".to_owned()]);
        let passed: Vec<_> = passed.into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            passed,
            ["PATH", "HOME", "SSH_AUTH_SOCK", "KEYTIMEOUT", "LANG"]
        );
    }
}
