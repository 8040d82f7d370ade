//! What `greenroom --help` shows: the verbs in groups, each with its own first line.
//!
//! Promises: every verb is in exactly one group; what is said of it is what its own help says.
//! Must not know: what the verbs do.

use clap::{Command, CommandFactory};

use crate::Cli;

/// The verbs by what people want, the most usual first.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Talk to agents", &["chat", "send"]),
    ("Other devices", &["open", "pair", "devices"]),
    ("Sessions", &["sessions", "terminals", "watch", "export", "inspect"]),
    ("The host", &["status", "stop", "restart", "serve", "logs", "service", "node"]),
    ("Several teams", &["space", "migrate", "database"]),
    ("Set-up", &["agents", "models", "rules", "config", "doctor", "completions", "man"]),
    ("Messages and prompts", &["compose", "transform"]),
];

/// The command line without groups, for what lists verbs itself.
pub(crate) fn ungrouped_command() -> Command {
    Cli::command()
}

/// The command line.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options of chat:\n{{options}}{{after-help}}\n",
        list_verbs(&command)
    );
    command.help_template(template)
}

fn list_verbs(command: &Command) -> String {
    let name_width = command.get_subcommands().map(|verb| verb.get_name().len()).max().unwrap_or(0);
    let mut text = String::new();
    for (group, names) in GROUPS {
        text.push_str(&format!("{group}:\n"));
        for name in names {
            let verb = command.find_subcommand(name);
            let about =
                verb.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:name_width$}  {about}\n"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    /// A doc comment is no string: what is escaped in it is shown so.
    #[test]
    fn no_help_shows_an_escaped_character() {
        fn check(command: &mut Command) {
            let help = command.render_long_help().to_string();
            assert!(!help.contains("\\\""), "{help}");
            for verb in command.get_subcommands_mut() {
                check(verb);
            }
        }
        check(&mut command());
    }

    #[test]
    fn every_verb_is_in_one_group() {
        let command = ungrouped_command();
        let mut verbs: Vec<&str> = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        verbs.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, verbs);
        assert!(command.get_subcommands().all(|verb| verb.get_about().is_some()));
    }
}
