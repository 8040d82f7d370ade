//! A settings file for people: every setting with what it does and its default, as a comment.
//!
//! Promises: as it is, the file changes nothing; with all comments taken away it is a file that loads. A setting that is missing
//! here fails a test.
//! Must not know: what the settings are used for.

use std::fmt::Write as _;

use crate::config::Config;
use crate::limits::ServerLimits;

/// A key, what it does, and what it may look like if its default is to have none.
type Setting = (&'static str, &'static str, Option<&'static str>);

const SETTINGS: &[Setting] = &[
    (
        "listen",
        "Address and port to listen on. One that other machines reach is safe only behind a TLS proxy or an SSH tunnel.",
        None,
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
        "Where sessions are stored: \"sqlite\", or \"memory\" to lose them when the host stops.",
        None,
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
        "Directories in which agents of others may be started without a question, with all that is below. Whole paths.",
        Some("[\"/home/me/src\"]"),
    ),
    (
        "default_model",
        "The id of the model that messages go to unless they name another; the first one without it.",
        Some("\"qwen3\""),
    ),
];

/// The keys of a `[[models]]` table.
const MODEL_SETTINGS: &[Setting] = &[
    (
        "id",
        "What clients and the server call it.",
        Some("\"qwen3\""),
    ),
    (
        "base_url",
        "Any server that speaks Chat Completions.",
        Some("\"http://localhost:11434/v1\""),
    ),
    (
        "api",
        "How the server is asked: \"chat\" (Chat Completions), \"anthropic\", \"responses\" or \"gemini\".",
        Some("\"chat\""),
    ),
    (
        "name",
        "What people see, if not the id.",
        Some("\"Qwen 3\""),
    ),
    (
        "model",
        "What the server calls it, if not the id.",
        Some("\"qwen3:latest\""),
    ),
    (
        "key_env",
        "The variable of the host's environment that holds the key. Keys are never in this file.",
        Some("\"MY_API_KEY\""),
    ),
    (
        "key_file",
        "Or the file that holds it.",
        Some("\"/path/to/key\""),
    ),
    (
        "key_command",
        "Or the command that prints it.",
        Some("[\"pass\", \"show\", \"my-key\"]"),
    ),
    (
        "key_header",
        "The header that carries the key, if it is no bearer token.",
        Some("\"x-api-key\""),
    ),
    (
        "query",
        "Query parameters of requests.",
        Some("{ api-version = \"1\" }"),
    ),
    (
        "headers",
        "Further headers of requests.",
        Some("{ X-Team = \"mine\" }"),
    ),
    (
        "known_as",
        "The known model that it is, where its server has another name for it.",
        Some("\"gpt-5.5\""),
    ),
    (
        "context_tokens",
        "How much it can read at once.",
        Some("32768"),
    ),
    (
        "output_tokens",
        "How much it may write in one answer.",
        Some("8192"),
    ),
    ("vision", "Whether it can see images.", Some("false")),
    ("pdf", "Whether it takes PDFs.", Some("false")),
    ("pdf_pages", "The most pages of a PDF.", Some("100")),
    ("pdf_bytes", "The largest PDF.", Some("32000000")),
    (
        "pdf_encrypted",
        "Whether it can open an encrypted PDF.",
        Some("false"),
    ),
    ("audio", "Whether it can hear.", Some("false")),
    ("video", "Whether it can see films.", Some("false")),
    ("tools", "Whether it can call tools.", Some("true")),
    (
        "efforts",
        "How much it may be told to think, in its server's words.",
        Some("[\"low\", \"high\"]"),
    ),
    (
        "settings",
        "Settings that messages may give it, as JSON Schema.",
        Some("{ temperature = { type = \"number\" } }"),
    ),
    (
        "server_tools",
        "Tools that the server carries out itself, as its API names them.",
        Some("[{ type = \"web_search\" }]"),
    ),
    (
        "stall_s",
        "Seconds for which the server may be silent.",
        Some("300"),
    ),
    (
        "prices",
        "Dollars per million tokens.",
        Some("{ input = 0.5, output = 1.5 }"),
    ),
];

/// The keys of an `[[agents]]` table.
const AGENT_SETTINGS: &[Setting] = &[
    (
        "id",
        "What it is called on the command line: small letters, digits and `-`.",
        Some("\"claude\""),
    ),
    (
        "preset",
        "What the rest is taken from: claude, codex, gemini, opencode, qwen, goose or copilot; the id, if it is one of them.",
        Some("\"claude\""),
    ),
    ("name", "What people see.", Some("\"Claude Code\"")),
    (
        "command",
        "The program: a name that is looked for on PATH, or a whole path. No shell.",
        Some("\"claude-agent-acp\""),
    ),
    ("args", "Its arguments.", Some("[]")),
    (
        "env",
        "Variables of its environment. It gets PATH, HOME and the like, and no keys of the host.",
        Some("{ ANTHROPIC_BASE_URL = \"http://localhost:8080\" }"),
    ),
    (
        "env_from",
        "Variables that it gets from the host's environment, or from files: { NAME = { file = \"/path\" } }.",
        Some("[\"ANTHROPIC_API_KEY\"]"),
    ),
    (
        "auth",
        "The method of its own by which it is signed in when it says that it is not.",
        Some("{ method = \"api-key\" }"),
    ),
    (
        "share",
        "Who shares a process: \"directory\", all chats there; \"chat\", nobody.",
        Some("\"directory\""),
    ),
    (
        "mcp",
        "Whether it gets the MCP servers that are configured here: \"hand-over\" or \"none\".",
        Some("\"hand-over\""),
    ),
    (
        "fs",
        "Whether it reads and writes files through the host.",
        Some("false"),
    ),
    (
        "trust",
        "Whether you are asked before it starts in a directory that is not trusted: \"ask\", \"always\" (it starts), \"never\".",
        Some("\"ask\""),
    ),
    (
        "idle_s",
        "Seconds without a turn after which its process is stopped.",
        Some("900"),
    ),
    (
        "start_timeout_s",
        "Seconds that it may take to start.",
        Some("60"),
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
# Agents of others that speak the Agent Client Protocol, each with an [[agents]] line of its own. `greenroom agents` lists them.
#
#[[agents]]
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
    for (head, settings) in [(MODELS_HEAD, MODEL_SETTINGS), (AGENTS_HEAD, AGENT_SETTINGS)] {
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
        let tables = ["limits", "models", "agents", "budget"];
        let keys = keys_of("no_such_key = 1\n");
        assert!(keys.len() > 5);
        for key in keys.iter().filter(|key| !tables.contains(&key.as_str())) {
            assert!(
                template.contains(&format!("\n#{key} = ")),
                "{key} is missing"
            );
        }
        for table in ["models", "agents"] {
            let (_, part) = template.split_once(&format!("[[{table}]]")).unwrap();
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
        assert_eq!(all.offered_agents().unwrap()[0].config.id, "claude");
        assert_eq!(all.budget.day.seconds, Some(1_800));
    }
}
