//! The environment of a shell that a person opened: the host's own, without what belongs to the host alone (G-51).

use std::ffi::OsString;

/// Beginnings of names that belong to the host.
const OWN: &str = "GREENROOM_";

/// What programs are told about the terminal they run in.
const TERMINAL: [(&str, &str); 3] =
    [("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("TERM_PROGRAM", "greenroom")];

/// Variables that describe another terminal: that of whoever started the host.
const OF_ANOTHER: [&str; 6] = ["COLUMNS", "LINES", "TERMCAP", "TMUX", "TMUX_PANE", "STY"];

/// The environment of such a shell, without these secrets. `is_key` says of other names whether they hold a model's key.
pub fn shell_environment(
    variables: impl Iterator<Item = (OsString, OsString)>,
    secrets: &[String],
    is_key: &dyn Fn(&str) -> bool,
) -> Vec<(OsString, OsString)> {
    let is_secret = |name: &str| secrets.iter().any(|secret| secret == name) || is_key(name);
    let mut kept: Vec<(OsString, OsString)> = variables
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            !name.starts_with(OWN) && !OF_ANOTHER.contains(&name.as_ref()) && !is_secret(&name)
        })
        .filter(|(name, _)| TERMINAL.iter().all(|(own, _)| name != *own))
        .collect();
    kept.extend(TERMINAL.map(|(name, value)| (name.into(), value.into())));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_all_but_what_is_the_hosts() {
        let names =
            ["PATH", "GREENROOM_TOKEN", "MY_KEY", "VENDOR_KEY", "SSH_AUTH_SOCK", "TERM", "TMUX"];
        let variables = names.map(|name| (name.into(), "old".into()));
        let secrets = ["MY_KEY".to_owned()];
        let is_key = |name: &str| name == "VENDOR_KEY";
        let kept = shell_environment(variables.into_iter(), &secrets, &is_key);
        let names: Vec<String> = kept
            .iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
            .collect();
        assert_eq!(
            names,
            [
                "PATH=old",
                "SSH_AUTH_SOCK=old",
                "TERM=xterm-256color",
                "COLORTERM=truecolor",
                "TERM_PROGRAM=greenroom"
            ]
        );
    }
}
