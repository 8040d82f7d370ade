//! A settings file for people: every setting with what it does and its default, as a comment.
//!
//! Promises: as it is, the file changes nothing; with all comments taken away it is a file that loads. A setting without words
//! fails a test.
//! Must not know: what the settings are, and what they are used for.

use std::fmt::Write as _;

use crate::config_settings::{SettingForm, Settings};
use crate::limits::ServerLimits;
use crate::settings_tables::Setting;

const HEAD: &str = "\
# Settings of the greenroom host. Every setting is here with its default, as a comment: take the `#` away to change one.
# `greenroom config check` finds mistakes. A running host reads this file when it is restarted: `greenroom restart`.
# Earlier count: `resource_grants` at once, unless clients can change this file; models, when `greenroom models` changes them; the
# files of tls_cert and tls_key, when they change.
";

/// The keys of a `[budget.turn]`, `[budget.session]` or `[budget.day]` table.
const BUDGET_SETTINGS: &[(&str, &str)] =
    &[("tokens", "500000"), ("usd", "2.5"), ("calls", "100"), ("seconds", "1800")];

/// The file.
pub fn settings_template() -> String {
    let defaults = toml::Table::try_from(Settings::default()).unwrap_or_default();
    let mut text = HEAD.to_owned();
    for help in Settings::HELP {
        text.push('\n');
        write_words(&mut text, help.lines);
        match help.form {
            SettingForm::Default => {
                write_setting(&mut text, help.key, &default_of(&defaults, help.key))
            }
            SettingForm::Example(example) => write_setting(&mut text, help.key, example),
            SettingForm::Entries(keys) => write_keys(&mut text, &format!("[[{}]]", help.key), keys),
            SettingForm::Keys(keys) => write_keys(&mut text, &format!("[{}]", help.key), keys),
            SettingForm::Table => write_table(&mut text, help.key, &defaults),
        }
    }
    text
}

/// A table with examples of its keys, all of it as comments.
fn write_keys(text: &mut String, header: &str, keys: &[Setting]) {
    // Writing into a string does not fail.
    let _ = writeln!(text, "#\n#{header}");
    for (key, words, example) in keys {
        let _ = writeln!(text, "## {words}");
        write_setting(text, key, example.unwrap_or_default());
    }
}

/// The tables whose keys are in no list here.
fn write_table(text: &mut String, table: &str, defaults: &toml::Table) {
    if table == "budget" {
        for scope in ["turn", "session", "day"] {
            // Writing into a string does not fail.
            let _ = writeln!(text, "\n[{table}.{scope}]");
            for (key, example) in BUDGET_SETTINGS {
                write_setting(text, key, example);
            }
        }
        return;
    }
    let _ = writeln!(text, "[{table}]");
    let none = toml::Table::new();
    let defaults = defaults.get(table).and_then(toml::Value::as_table);
    for (key, words) in ServerLimits::HELP.iter().chain(kernel::Limits::HELP) {
        text.push('\n');
        write_words(text, words);
        write_setting(text, key, &default_of(defaults.unwrap_or(&none), key));
    }
}

fn default_of(defaults: &toml::Table, key: &str) -> String {
    defaults.get(key).map(ToString::to_string).unwrap_or_default()
}

/// What a setting does, as comments.
fn write_words(text: &mut String, words: &[&str]) {
    for line in words {
        let _ = writeln!(text, "# {}", without_rules(line.trim()));
    }
}

/// A setting, as a comment.
fn write_setting(text: &mut String, key: &str, value: &str) {
    let _ = writeln!(text, "#{key} = {value}");
}

/// Numbers of rules are for who reads the source.
fn without_rules(line: &str) -> String {
    match line.rfind(" (") {
        Some(at) if line.get(at + 2..).is_some_and(is_rule) => {
            let end = line.get(at..).and_then(|rest| rest.find(')'));
            let rest = end.and_then(|end| line.get(at + end + 1..));
            format!("{}{}", line.get(..at).unwrap_or_default(), rest.unwrap_or_default())
        }
        _ => line.to_owned(),
    }
}

fn is_rule(text: &str) -> bool {
    ["G-", "H-", "C-", "AG-", "TR-", "CU-"].iter().any(|prefix| text.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use agents::acp::AgentEntry;

    use super::*;
    use crate::blobs::BlobSettings;
    use crate::config::{ClusterSettings, Config};
    use crate::config_checks::parse_settings;

    /// The keys that a table takes, as its own error names them.
    fn keys_of(text: &str) -> Vec<String> {
        let error = toml::from_str::<Settings>(text).err().unwrap();
        let (_, list) = error.message().split_once("expected").unwrap();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn every_setting_is_in_the_file() {
        let template = settings_template();
        let keys = keys_of("no_such_key = 1\n");
        let helped: Vec<_> = Settings::HELP.iter().map(|help| help.key).collect();
        assert_eq!(keys, helped);
        for help in Settings::HELP {
            assert!(!help.lines.concat().trim().is_empty(), "{} has no words", help.key);
            let line = match help.form {
                SettingForm::Default | SettingForm::Example(_) => format!("\n#{} = ", help.key),
                SettingForm::Entries(_) => format!("\n#[[{}]]\n", help.key),
                SettingForm::Keys(_) => format!("\n#[{}]\n", help.key),
                SettingForm::Table => format!("\n[{}", help.key),
            };
            assert!(template.contains(&line), "{} is missing", help.key);
        }
        for header in [
            "[[models]]",
            "[[agents]]",
            "[[mcp]]",
            "[[spaces]]",
            "[[mounts]]",
            "[cluster]",
            "[blobs]",
        ] {
            let (_, part) = template.split_once(&format!("\n#{header}\n")).unwrap();
            let part = format!("\n{}", part.split("\n\n").next().unwrap());
            for key in keys_of(&format!("{header}\nno_such_key = 1\n")) {
                let line = format!("\n#{key} = ");
                assert!(part.contains(&line), "{key} of {header} is missing");
            }
        }
        for table in keys_of("[budget]\nno_such_key = 1\n") {
            assert!(template.contains(&format!("\n[budget.{table}]")), "{table}");
            for key in keys_of(&format!("[budget.{table}]\nno_such_key = 1\n")) {
                assert!(template.contains(&format!("\n#{key} = ")), "{key}");
            }
        }
        for key in crate::limits::LimitsTable::keys() {
            assert!(template.contains(&format!("\n#{key} = ")), "{key} is missing");
        }
        for rule in ["(G-", "(H-", "(AG-", "(TR-", "(CU-"] {
            assert!(!template.contains(rule), "{rule} is for who reads the source");
        }
    }

    #[test]
    fn the_file_changes_nothing_as_it_is_and_loads_without_its_comments() {
        let template = settings_template();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("greenroom.toml");
        std::fs::write(&path, &template).unwrap();
        let mut config = Config::default_for(PathBuf::new());
        config.load_toml(&path).unwrap();
        assert_eq!(config.to_toml(), Config::default().to_toml());

        let all: Settings = toml::from_str(&uncomment(&template)).unwrap();
        assert_eq!(all.limits, Config::default().limits);
        assert_eq!(all.listen, Config::default().listen);
        assert_eq!(all.models.len(), 1);
        assert_eq!(all.spaces.len(), 1);
        assert_eq!(all.mounts.len(), 1);
        let blobs = all.blobs.unwrap();
        assert_eq!(blobs, BlobSettings::at(&blobs.store), "these are defaults");
        let failover = ClusterSettings::default().failover;
        assert_eq!(all.cluster.unwrap().failover, failover);
        let agents = AgentEntry::resolve_all(&all.agents).unwrap();
        assert_eq!(agents[0].id, "claude");
        assert_eq!(all.budget.day.seconds, Some(1_800));
    }

    /// The file with everything that it shows.
    fn uncomment(template: &str) -> String {
        let lines = template.lines().map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with([' ', '#']) => format!("{rest}\n"),
            _ => format!("{line}\n"),
        });
        lines.collect()
    }

    /// Some examples exclude others: each list is what is left out of the file so that a host starts with the rest.
    const EXCLUDED: [(&str, &[&str]); 3] = [
        (
            "sqlite",
            &[
                "postgres",
                "cluster",
                "blobs",
                "mounts",
                "spaces",
                "models.key_file",
                "models.key_command",
                "mcp.url",
                "mcp.oauth",
            ],
        ),
        (
            "sqlite",
            &[
                "postgres",
                "cluster",
                "blobs",
                "mounts",
                "worktree_dir",
                "models.key_env",
                "models.key_command",
                "mcp.url",
                "mcp.oauth",
            ],
        ),
        (
            "postgres",
            &["worktree_dir", "models.key_env", "models.key_file", "mcp.command", "mcp.transport"],
        ),
    ];

    /// The names of all settings, those in tables with the name of the table before them.
    fn names_of(file: &toml::Table) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (key, value) in file {
            match value.as_array().and_then(|entries| entries.first()?.as_table()) {
                Some(entry) => names.extend(entry.keys().map(|inner| format!("{key}.{inner}"))),
                None => drop(names.insert(key.clone())),
            }
        }
        names
    }

    #[test]
    fn a_host_takes_every_example() {
        let all: toml::Table = toml::from_str(&uncomment(&settings_template())).unwrap();
        let mut accepted = BTreeSet::new();
        for (journal, excluded) in EXCLUDED {
            let mut file = all.clone();
            file.insert("journal".to_owned(), journal.into());
            for name in excluded {
                let removed = match name.split_once('.') {
                    None => file.remove(*name),
                    Some((table, key)) => file[table][0].as_table_mut().unwrap().remove(key),
                };
                assert!(removed.is_some(), "{name} is not in the file");
            }
            let text = toml::to_string(&file).unwrap();
            if let Err(problem) = parse_settings(&text) {
                panic!("{problem}\n{text}");
            }
            accepted.extend(names_of(&file));
        }
        assert_eq!(accepted, names_of(&all));
    }
}
