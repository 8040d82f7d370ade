//! A settings file for people: every setting with what it does and its default, as a comment.
//!
//! Promises: as it is, the file changes nothing; with all comments taken away it is a file that loads. A setting that is missing
//! here fails a test.
//! Must not know: what the settings are used for.

use std::fmt::Write as _;

use crate::config::Config;
use crate::limits::ServerLimits;
use crate::settings_tables::{
    AGENT_SETTINGS, MCP_SETTINGS, MODEL_SETTINGS, MOUNT_SETTINGS, SPACE_SETTINGS, Setting,
};

const SETTINGS: &[Setting] = &[
    (
        "listen",
        "Address and port to listen on. One that other machines reach is safe only with tls_cert and tls_key, behind a TLS \
         proxy or through an SSH tunnel (docs/remote.md).",
        None,
    ),
    (
        "tls_cert",
        "A certificate (PEM, with those that vouch for it behind it): other machines are answered over TLS alone. Read again \
         when it changes.",
        Some("\"/etc/greenroom/cert.pem\""),
    ),
    (
        "tls_key",
        "The private key of tls_cert (PEM).",
        Some("\"/etc/greenroom/key.pem\""),
    ),
    (
        "workspaces",
        "Directories that sessions may work in, the first being the default. None: where the host is started, and your home.",
        None,
    ),
    (
        "scripted",
        "Whether the scripted agent is offered, which needs no model: to try greenroom out.",
        None,
    ),
    (
        "script",
        "A script for the scripted agent, instead of the built-in one.",
        Some("\"my-script.json\""),
    ),
    (
        "tool_env",
        "Variables of the host's environment that commands of agents get beside PATH, HOME and the like. Whole names.",
        Some("[\"SSH_AUTH_SOCK\"]"),
    ),
    (
        "bash_timeout_s",
        "After how many seconds a command of an agent is killed, if its call does not say.",
        None,
    ),
    (
        "bash_timeout_max_s",
        "How many seconds a call may give its command at most. Commands in the background have no limit.",
        None,
    ),
    (
        "web_fetch_allow",
        "Hosts with their ports that agents may fetch pages from though they are in a private network or on this machine.",
        Some("[\"wiki.local:443\"]"),
    ),
    (
        "restricted_sections",
        "Sections of the system prompt that no client may read or rewrite.",
        None,
    ),
    (
        "allowed_hosts",
        "Names beside IP addresses and localhost under which clients may call this host, such as that of a proxy.",
        Some("[\"agents.example.com\"]"),
    ),
    (
        "allowed_origins",
        "Web pages beside the host's own that may connect from a browser.",
        Some("[\"https://app.example.com\"]"),
    ),
    (
        "journal",
        "Where sessions are stored: \"sqlite\", \"postgres\", or \"memory\" to lose them when the host stops.",
        None,
    ),
    (
        "postgres",
        "The database of journal = \"postgres\": sessions and their content; tokens, devices and rules stay in the data directory.",
        Some("\"host=/run/postgresql dbname=greenroom\""),
    ),
    (
        "cluster",
        "This node among others on the same database: what it is called, and where other nodes reach it.",
        Some("{ name = \"a\", address = \"10.0.0.1:4791\" }"),
    ),
    (
        "blobs",
        "Where bodies of 1 MiB and more lie that belong to spaces in the database: s3://bucket/prefix, with AWS_ACCESS_KEY_ID and the like in the environment. In the database if absent.",
        Some("{ store = \"s3://greenroom/bodies\" }"),
    ),
    (
        "capabilities",
        "A JSON file that says what models accept, over what is built in.",
        Some("\"capabilities.json\""),
    ),
    (
        "auto_compact",
        "Whether a conversation is summarised by its model when it comes near what that can keep in mind.",
        None,
    ),
    (
        "auto_compact_at",
        "The part of that, less the room for an answer, at which it is done: 0.1 to 1.0.",
        None,
    ),
    (
        "otlp_endpoint",
        "A collector of OpenTelemetry that logs, traces and metrics are sent to: OTLP over HTTP, as JSON. No content, prompt or path is in them.",
        Some("\"http://127.0.0.1:4318\""),
    ),
    (
        "worktree_dir",
        "Where the git worktrees of sessions lie that have `isolation` = \"worktree\", in a directory for each repository; \
         without it in `.greenroom/worktrees` of the repository. Sessions may work there, and clients read and write there. Not with [[spaces]].",
        Some("\"/home/ann/worktrees\""),
    ),
    (
        "title_model",
        "The id of a small model that gives sessions their titles; without it they have the first line of their first message.",
        Some("\"qwen3\""),
    ),
    (
        "agents_auto",
        "Whether agents such as Claude Code are offered where they are installed, without an [[agents]] table of their own.",
        None,
    ),
    (
        "trusted",
        "Directories in which external agents may be started without a question, with all that is below. Whole paths.",
        Some("[\"/home/me/src\"]"),
    ),
    (
        "plugins",
        "Directories of plugins, beside those in ~/.agents/plugins. Whole paths.",
        Some("[\"/home/me/plugins/notes\"]"),
    ),
    (
        "resource_grants",
        "Files and directories outside `workspaces` that clients may ask for, and whether they may change them. Whole paths. \
         Counts at once.",
        Some("[{ path = \"/srv/shared\", write = false }]"),
    ),
    (
        "default_model",
        "The id of the model that messages go to unless they name another; the first one without it.",
        Some("\"qwen3\""),
    ),
];

const HEAD: &str = "\
# Settings of the greenroom host. Every setting is here with its default, as a comment: take the `#` away to change one.
# `greenroom config check` finds mistakes. A running host reads this file when it is restarted: `greenroom restart`.
";

const MODELS_HEAD: &str = "
# Models, each with a [[models]] line of its own. `greenroom models add` writes one, `greenroom models` tries them.
#
#[[models]]
";

const AGENTS_HEAD: &str = "
# External agents that speak the Agent Client Protocol, each with an [[agents]] line of its own. `greenroom agents` lists them.
#
#[[agents]]
";

const MCP_HEAD: &str = "
# MCP servers for the native agent, each with an [[mcp]] line of its own. Those of a directory are in its .mcp.json.
#
#[[mcp]]
";

const SPACES_HEAD: &str = "
# Further spaces beside that of the data directory, each with a [[spaces]] line of its own: sessions, devices and a token of their
# own, served at the same address. Clients find one with `--data DIRECTORY`; over the network its token names it.
#
#[[spaces]]
";

const MOUNTS_HEAD: &str = "
# Directories that this node offers to spaces of the database, each with a [[mounts]] line of its own. A space that names a label
# (`greenroom space mount`) works there, and its turns run on nodes that offer it.
#
#[[mounts]]
";

const LIMITS_HEAD: &str = "
# Bounds and periods: sizes in bytes, times in milliseconds or seconds as the name says.
[limits]
";

const BUDGET_HEAD: &str = "
# What may be spent on models by a turn, by a session, and by all sessions in a day: in tokens, in dollars (by the prices of the
# models), in calls of models and in seconds of work. At a limit you are asked: the same again, a last answer, or stop.
";

/// The keys of a `[budget.turn]`, `[budget.session]` or `[budget.day]` table.
const BUDGET_SETTINGS: &[(&str, &str)] = &[
    ("tokens", "500000"),
    ("usd", "2.5"),
    ("calls", "100"),
    ("seconds", "1800"),
];

/// The file.
pub fn settings_template() -> String {
    let defaults = toml::Table::try_from(Config::default()).unwrap_or_default();
    let mut text = HEAD.to_owned();
    for (key, words, example) in SETTINGS {
        let default = defaults.get(*key).map(ToString::to_string);
        let value = example.map_or_else(|| default.unwrap_or_default(), str::to_owned);
        write_setting(&mut text, &[words], key, &value);
    }
    for (head, settings) in [
        (MODELS_HEAD, MODEL_SETTINGS),
        (AGENTS_HEAD, AGENT_SETTINGS),
        (MCP_HEAD, MCP_SETTINGS),
        (SPACES_HEAD, SPACE_SETTINGS),
        (MOUNTS_HEAD, MOUNT_SETTINGS),
    ] {
        text.push_str(head);
        for (key, words, example) in settings {
            // Writing into a string does not fail.
            let _ = writeln!(text, "## {words}\n#{key} = {}", example.unwrap_or_default());
        }
    }
    text.push_str(LIMITS_HEAD);
    let limits = defaults.get("limits");
    for (key, words) in ServerLimits::HELP.iter().chain(kernel::Limits::HELP) {
        let default = limits.and_then(|limits| limits.get(key));
        let value = default.map(ToString::to_string).unwrap_or_default();
        write_setting(&mut text, words, key, &value);
    }
    text.push_str(BUDGET_HEAD);
    for scope in ["turn", "session", "day"] {
        // Writing into a string does not fail.
        let _ = writeln!(text, "\n[budget.{scope}]");
        for (key, example) in BUDGET_SETTINGS {
            let _ = writeln!(text, "#{key} = {example}");
        }
    }
    text
}

/// What a setting does, then the setting itself, all of it as comments.
fn write_setting(text: &mut String, words: &[&str], key: &str, value: &str) {
    text.push('\n');
    for line in words {
        let _ = writeln!(text, "# {}", without_rules(line.trim()));
    }
    let _ = writeln!(text, "#{key} = {value}");
}

/// Numbers of rules are for who reads the source.
fn without_rules(line: &str) -> String {
    match line.rfind(" (") {
        Some(at) if line.get(at + 2..).is_some_and(is_rule) => {
            let end = line.get(at..).and_then(|rest| rest.find(')'));
            let rest = end.and_then(|end| line.get(at + end + 1..));
            format!(
                "{}{}",
                line.get(..at).unwrap_or_default(),
                rest.unwrap_or_default()
            )
        }
        _ => line.to_owned(),
    }
}

fn is_rule(text: &str) -> bool {
    ["G-", "H-", "C-", "AG-", "TR-"]
        .iter()
        .any(|prefix| text.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// The keys that a table takes, as its own error names them.
    fn keys_of(text: &str) -> Vec<String> {
        let error = toml::from_str::<Config>(text).err().unwrap();
        let (_, list) = error.message().split_once("expected").unwrap();
        let names = list.split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect()
    }

    #[test]
    fn every_setting_is_in_the_file() {
        let template = settings_template();
        let tables = [
            "limits", "models", "agents", "mcp", "spaces", "mounts", "budget",
        ];
        let keys = keys_of("no_such_key = 1\n");
        assert!(keys.len() > 5);
        for key in keys.iter().filter(|key| !tables.contains(&key.as_str())) {
            assert!(
                template.contains(&format!("\n#{key} = ")),
                "{key} is missing"
            );
        }
        for table in ["models", "agents", "mcp", "spaces", "mounts"] {
            let (_, part) = template.split_once(&format!("\n#[[{table}]]")).unwrap();
            let part = part.split("\n\n").next().unwrap();
            for key in keys_of(&format!("[[{table}]]\nno_such_key = 1\n")) {
                let line = format!("\n#{key} = ");
                assert!(part.contains(&line), "{key} of {table} is missing");
            }
        }
        for table in keys_of("[budget]\nno_such_key = 1\n") {
            assert!(template.contains(&format!("\n[budget.{table}]")), "{table}");
            for key in keys_of(&format!("[budget.{table}]\nno_such_key = 1\n")) {
                assert!(template.contains(&format!("\n#{key} = ")), "{key}");
            }
        }
        for key in crate::limits::LimitsTable::keys() {
            assert!(
                template.contains(&format!("\n#{key} = ")),
                "{key} is missing"
            );
        }
        assert!(!template.contains("(G-") && !template.contains("(H-"));
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

        let uncommented: String = template
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with([' ', '#']) => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let all: Config = toml::from_str(&uncommented).unwrap();
        assert_eq!(all.limits, Config::default().limits);
        assert_eq!(all.listen, Config::default().listen);
        assert_eq!(all.models.len(), 1);
        assert_eq!(all.spaces.len(), 1);
        assert_eq!(all.mounts.len(), 1);
        assert_eq!(all.offered_agents().unwrap()[0].config.id, "claude");
        assert_eq!(all.budget.day.seconds, Some(1_800));
    }
}
