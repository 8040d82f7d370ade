//! How a turn of an agent fails, in words for its user.
//!
//! Promises: says what happened and what to do next; holds one short line of what the agent printed at most, and no secret.

use std::time::Duration;

use agent_api::AgentError;
use serde_json::Value;

use super::config::{AcpAgentConfig, AcpAuth};
use super::connection::{
    Abilities, AcpConnection, ConnectionEnd, EndKind, RequestError, SignInMethod, read_methods,
};
use super::label::label;
use super::process::StderrTail;
use super::rpc::{self, AcpError};

const MESSAGE_CHARS_MAX: usize = 2_000;

fn error(error_type: &str, message: String, resumable: bool) -> AgentError {
    AgentError { error_type: error_type.to_owned(), message, resumable }
}

pub(super) fn missing(config: &AcpAgentConfig) -> AgentError {
    error("agentMissing", config.describe_missing(), true)
}

pub(super) fn no_directory(config: &AcpAgentConfig, why: &str) -> AgentError {
    let message = format!("{} needs a working directory: {why}", config.name);
    error("agentError", message, false)
}

pub(super) fn start_failed(config: &AcpAgentConfig, why: &str) -> AgentError {
    let message = format!("{} could not be started: {why}", config.name);
    error("agentError", message, true)
}

pub(super) fn unavailable(config: &AcpAgentConfig, left: Duration) -> AgentError {
    let message = format!(
        "{} ended right after its start three times in a minute. It is tried again in {} seconds; `greenroom agents --log {}` \
         shows what it printed.",
        config.name,
        left.as_secs().max(1),
        config.id,
    );
    error("agentUnavailable", message, true)
}

/// The first words failed.
pub(super) fn start(
    config: &AcpAgentConfig,
    connection: &AcpConnection,
    why: &RequestError,
) -> AgentError {
    match why {
        RequestError::TimedOut { limit, .. } => {
            slow_start(config, &format!("no answer within {} seconds", limit.as_secs()), connection)
        }
        RequestError::Unreadable { why, .. } => {
            let why = redact_and_shorten(connection.tail(), why, 500);
            let message = format!("{} cannot be used: {why}", config.name);
            error("agentProtocol", message, false)
        }
        other => request(config, connection, other),
    }
}

/// Words of the agent as they are shown: without secrets, then cut to a label, so that no part of one is left at the cut.
fn redact_and_shorten(tail: &StderrTail, words: &str, chars_max: usize) -> String {
    label(&tail.blank(words.to_owned()), chars_max)
}

fn slow_start(config: &AcpAgentConfig, why: &str, connection: &AcpConnection) -> AgentError {
    let mut message = format!("{} did not start: {why}", config.name);
    if let Some(line) = connection.tail().last_line() {
        message.push_str(&format!(". It last printed: {line}"));
    }
    error("agentStartTimeout", message, true)
}

/// A request failed that a turn cannot do without.
pub(super) fn request(
    config: &AcpAgentConfig,
    connection: &AcpConnection,
    why: &RequestError,
) -> AgentError {
    match why {
        RequestError::Refused(refused) => {
            let text = redact_and_shorten(connection.tail(), &refused.text(), MESSAGE_CHARS_MAX);
            error("agentError", format!("{}: {text}", config.name), true)
        }
        RequestError::TimedOut { .. } => slow_start(config, &why.to_string(), connection),
        RequestError::Ended(end) => ended(config, end),
        RequestError::Unreadable { .. } => {
            let why = redact_and_shorten(connection.tail(), &why.to_string(), 500);
            error("agentProtocol", format!("{}: {why}", config.name), true)
        }
    }
}

/// The process is gone.
pub(super) fn ended(config: &AcpAgentConfig, end: &ConnectionEnd) -> AgentError {
    let error_type = match end.kind {
        EndKind::Protocol(_) => "agentProtocol",
        EndKind::SlowStart => "agentStartTimeout",
        EndKind::Exited | EndKind::Stopped | EndKind::Hung => "agentExited",
    };
    error(error_type, format!("{} {end}", config.name), true)
}

pub(super) fn refusal(config: &AcpAgentConfig) -> AgentError {
    let message = format!("{}'s model refused to answer.", config.name);
    error("refusal", message, false)
}

pub(super) fn cancelled(config: &AcpAgentConfig) -> AgentError {
    let message = format!("{} cancelled the turn by itself.", config.name);
    error("agentCancelled", message, true)
}

pub(super) fn protocol(config: &AcpAgentConfig, why: &str) -> AgentError {
    error("agentProtocol", format!("{}: {why}", config.name), true)
}

pub(super) fn no_compact(config: &AcpAgentConfig) -> AgentError {
    let message = format!(
        "{} has no command `/compact`: it decides by itself when to summarise the conversation.",
        config.name
    );
    error("agentError", message, false)
}

pub(super) fn unknown_model(config: &AcpAgentConfig, model: &str) -> AgentError {
    let message = format!("{} offers no model `{}`.", config.name, label(model, 100));
    error("agentError", message, false)
}

/// The custom agent of a message is not to be had: the session does not list it any more, or the agent has no mode of its name.
pub(super) fn no_custom_agent(config: &AcpAgentConfig, name: Option<&str>) -> AgentError {
    let message = match name {
        Some(name) => format!(
            "{} has no mode `{}` now; send the message again with another custom agent, or with none.",
            config.name,
            label(name, 100)
        ),
        None => "The custom agent of this message does not exist any more; send it again with another, or with none."
            .to_owned(),
    };
    error("customAgentMissing", message, true)
}

pub(super) fn is_sign_in(error: &AcpError) -> bool {
    error.code == rpc::AUTH_REQUIRED
}

/// Whether an agent says that it does not know a session; each has words of its own.
pub(super) fn is_unknown_session(error: &AcpError) -> bool {
    if error.code == rpc::NOT_FOUND {
        return true;
    }
    // One agent names the part of it that failed, and nothing else.
    let of_sessions = error.data.get("service").and_then(Value::as_str) == Some("session");
    if error.code == rpc::INTERNAL_ERROR && of_sessions {
        return true;
    }
    let text = error.text().to_lowercase();
    let is_about = ["session", "thread", "conversation"].iter().any(|word| text.contains(word));
    let is_unknown =
        ["not found", "unknown", "no rollout", "invalid session", "does not exist", "no such"]
            .iter()
            .any(|words| text.contains(words));
    matches!(error.code, rpc::INVALID_PARAMS | rpc::INTERNAL_ERROR) && is_about && is_unknown
}

/// The agent wants its user to sign in: what to run (AG-29).
pub(super) fn sign_in(
    config: &AcpAgentConfig,
    abilities: &Abilities,
    tail: &StderrTail,
    why: &AcpError,
) -> AgentError {
    let words = redact_and_shorten(tail, &why.message, 300);
    let mut lines = vec![format!("{} is not signed in: {words}", config.name)];
    let variables = why
        .data
        .get("envVars")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(variable_name);
    let variables = label(&variables.collect::<Vec<_>>().join(", "), 300);
    if !variables.is_empty() {
        lines.push(format!(
            "It looks for these variables: {variables}. Name them in `env_from` of {}.",
            describe_table(config)
        ));
    }
    // Some say with the error alone how to sign in.
    let told = if abilities.sign_in.is_empty() {
        read_methods(&why.data["authMethods"])
    } else {
        abilities.sign_in.clone()
    };
    let (terminal, others): (Vec<_>, Vec<_>) = told.iter().partition(|it| it.is_terminal);
    if !terminal.is_empty() {
        let these = match terminal.len() {
            1 => "this",
            _ => "one of these",
        };
        lines.push(format!("To sign in, run {these} in a terminal and send the message again:"));
        let commands = terminal.iter().map(|method| command_line(config, method));
        lines.extend(commands.map(|command| format!("    {command}")));
    } else if let Some(first) = others.first() {
        lines.push("It can be signed in by:".to_owned());
        lines.extend(others.iter().map(|method| describe_method(method)));
        let table = describe_table(config);
        lines.push(match &config.auth {
            Some(AcpAuth::Method(tried)) => format!("`{tried}` of {table} was tried."),
            Some(AcpAuth::Resource { .. }) | None => format!(
                "Sign in with its own program, or name one of them in {table}: `auth = {{ method = \"{}\" }}`.",
                first.id
            ),
        });
    }
    error("agentSignIn", lines.join("\n"), true)
}

/// Where the settings of an agent are; one that was found by itself has none yet.
fn describe_table(config: &AcpAgentConfig) -> String {
    let id = &config.id;
    format!("its table in greenroom.toml (`[[agents]]` with `id = \"{id}\"`)")
}

/// A way to sign in that is not a command: what it is, and what the settings file calls it.
fn describe_method(method: &SignInMethod) -> String {
    let SignInMethod { id, name, .. } = method;
    match &method.description {
        Some(description) => format!("    {name} (`{id}`): {description}"),
        None => format!("    {name} (`{id}`)"),
    }
}

fn variable_name(variable: &Value) -> Option<&str> {
    variable.as_str().or_else(|| variable.get("name")?.as_str())
}

fn command_line(config: &AcpAgentConfig, method: &SignInMethod) -> String {
    let command = method.command.as_deref().unwrap_or(&config.command);
    // What an agent runs as itself, it runs without the switches that make it speak to us.
    let words = std::iter::once(command).chain(method.args.iter().map(String::as_str));
    let quoted: Vec<String> = words.map(quote).collect();
    quoted.join(" ")
}

/// A word for a shell.
pub(super) fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sessions_are_lost_in_many_words() {
        for (code, message, data) in [
            (-32002, "Resource not found", Value::Null),
            (-32603, "Internal error", json!({"details": "no rollout found for thread id 0"})),
            (-32603, "Internal error", json!({"details": "Invalid session identifier \"0\""})),
            (-32603, "Internal error", json!({"details": "Session nope not found"})),
            (-32603, "Internal error: OpenCode service failure", json!({"service": "session"})),
        ] {
            let error = AcpError { code, message: message.to_owned(), data };
            assert!(is_unknown_session(&error), "{error:?}");
        }
        assert!(!is_unknown_session(&AcpError::new(-32603, "Internal error")));
        assert!(!is_unknown_session(&AcpError::new(
            -32602,
            "Invalid params: unknown config option: nope"
        )));
    }

    #[test]
    fn what_to_run_is_quoted_for_a_shell() {
        let config = AcpAgentConfig::new("a", "agent");
        let abilities = Abilities {
            sign_in: vec![SignInMethod {
                command: Some("/opt/my agent".to_owned()),
                args: vec!["login".to_owned(), "it's".to_owned()],
                is_terminal: true,
                ..SignInMethod::default()
            }],
            ..Abilities::default()
        };
        let mut why = AcpError::new(-32000, "Authentication required");
        why.data = json!({"envVars": [{"name": "KEY"}]});
        let error = sign_in(&config, &abilities, &StderrTail::default(), &why);
        assert_eq!(error.error_type, "agentSignIn");
        assert!(error.resumable);
        assert!(
            error.message.contains("    '/opt/my agent' login 'it'\\''s'"),
            "{}",
            error.message
        );
        assert!(error.message.contains("KEY"), "{}", error.message);
    }

    #[test]
    fn ag_29_ways_that_are_no_commands_are_named_as_the_settings_file_has_them() {
        let mut config = AcpAgentConfig::new("a", "agent");
        let mut why = AcpError::new(-32000, "the key hush-hush is wrong");
        why.data = json!({"authMethods": [{"id": "api-key", "name": "API Key", "description": "By a key"}]});
        let tail = StderrTail::new(vec!["hush-hush".to_owned()]);
        let said =
            |config: &AcpAgentConfig| sign_in(config, &Abilities::default(), &tail, &why).message;
        let message = said(&config);
        assert!(message.contains("    API Key (`api-key`): By a key"), "{message}");
        let table = "its table in greenroom.toml (`[[agents]]` with `id = \"a\"`): `auth = { method = \"api-key\" }`.";
        assert!(message.ends_with(table), "{message}");
        assert!(message.contains("the key *** is wrong"), "{message}");
        config.auth = Some(AcpAuth::Method("api-key".to_owned()));
        let message = said(&config);
        assert!(message.contains("`api-key` of its table"), "{message}");
        assert!(message.ends_with("was tried."), "{message}");
    }

    #[test]
    fn ag_18_a_secret_at_the_cut_leaves_nothing() {
        let tail = StderrTail::new(vec!["hush-hush".to_owned()]);
        let words = format!("{}hush-hush", "x".repeat(295));
        assert!(!redact_and_shorten(&tail, &words, 300).contains("hush"));
    }
}
