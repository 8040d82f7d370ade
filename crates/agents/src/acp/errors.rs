//! How a turn of an agent fails, in words for its user.
//!
//! Promises: says what happened and what to do next; holds one short line of what the agent printed at most, and no secret.

use std::time::Duration;

use agent_api::AgentError;
use serde_json::Value;

use super::config::AcpAgentConfig;
use super::connection::{
    Abilities, AcpConnection, ConnectionEnd, EndKind, RequestError, SignInMethod,
};
use super::label::label;
use super::rpc::{self, AcpError};

const MESSAGE_CHARS_MAX: usize = 2_000;

fn error(error_type: &str, message: String, resumable: bool) -> AgentError {
    AgentError {
        error_type: error_type.to_owned(),
        message,
        resumable,
    }
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
        RequestError::TimedOut { limit, .. } => slow_start(
            config,
            &format!("no answer within {} seconds", limit.as_secs()),
            connection,
        ),
        RequestError::Unreadable { why, .. } => {
            let message = format!("{} cannot be used: {}", config.name, label(why, 500));
            error("agentProtocol", message, false)
        }
        other => request(config, connection, other),
    }
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
            let text = connection
                .tail()
                .blank(label(&refused.text(), MESSAGE_CHARS_MAX));
            error("agentError", format!("{}: {text}", config.name), true)
        }
        RequestError::TimedOut { .. } => slow_start(config, &why.to_string(), connection),
        RequestError::Ended(end) => ended(config, end),
        RequestError::Unreadable { .. } => {
            let message = format!("{}: {}", config.name, label(&why.to_string(), 500));
            error("agentProtocol", message, true)
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
    error(error_type, format!("{}: {end}", config.name), true)
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

pub(super) fn is_sign_in(error: &AcpError) -> bool {
    error.code == rpc::AUTH_REQUIRED
}

/// Whether an agent says that it does not know a session; each has words of its own.
pub(super) fn is_unknown_session(error: &AcpError) -> bool {
    if error.code == rpc::NOT_FOUND {
        return true;
    }
    let text = error.text().to_lowercase();
    let is_about = ["session", "thread", "conversation"]
        .iter()
        .any(|word| text.contains(word));
    let is_unknown = [
        "not found",
        "unknown",
        "no rollout",
        "invalid session",
        "does not exist",
        "no such",
    ];
    let is_unknown = is_unknown.iter().any(|words| text.contains(words));
    matches!(error.code, rpc::INVALID_PARAMS | rpc::INTERNAL_ERROR) && is_about && is_unknown
}

/// The agent wants its user to sign in: what to run (AG-29).
pub(super) fn sign_in(
    config: &AcpAgentConfig,
    abilities: &Abilities,
    why: &AcpError,
) -> AgentError {
    let mut lines = vec![format!(
        "{} is not signed in: {}",
        config.name,
        label(&why.message, 300)
    )];
    let variables = why.data.get("envVars").and_then(Value::as_array);
    let variables: Vec<&str> = variables
        .into_iter()
        .flatten()
        .filter_map(variable_name)
        .collect();
    if !variables.is_empty() {
        let names = label(&variables.join(", "), 300);
        lines.push(format!(
            "It looks for these variables: {names}. Name them in `env_from` of its entry."
        ));
    }
    let terminal: Vec<&SignInMethod> = abilities
        .sign_in
        .iter()
        .filter(|method| method.is_terminal)
        .collect();
    if !terminal.is_empty() {
        lines.push(
            "To sign in, run one of these in a terminal and send the message again:".to_owned(),
        );
        lines.extend(
            terminal
                .iter()
                .map(|method| format!("    {}", command_line(config, method))),
        );
    } else if !abilities.sign_in.is_empty() {
        lines.push("It can be signed in by:".to_owned());
        lines.extend(
            abilities
                .sign_in
                .iter()
                .map(|method| match &method.description {
                    Some(description) => format!("    {}: {description}", method.name),
                    None => format!("    {}", method.name),
                }),
        );
    }
    error("agentSignIn", lines.join("\n"), true)
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
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
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
            (
                -32603,
                "Internal error",
                json!({"details": "no rollout found for thread id 0"}),
            ),
            (
                -32603,
                "Internal error",
                json!({"details": "Invalid session identifier \"0\""}),
            ),
            (
                -32603,
                "Internal error",
                json!({"details": "Session nope not found"}),
            ),
        ] {
            let error = AcpError {
                code,
                message: message.to_owned(),
                data,
            };
            assert!(is_unknown_session(&error), "{error:?}");
        }
        assert!(!is_unknown_session(&AcpError::new(
            -32603,
            "Internal error"
        )));
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
        let error = sign_in(&config, &abilities, &why);
        assert_eq!(error.error_type, "agentSignIn");
        assert!(error.resumable);
        assert!(
            error
                .message
                .contains("    '/opt/my agent' login 'it'\\''s'"),
            "{}",
            error.message
        );
        assert!(error.message.contains("KEY"), "{}", error.message);
    }
}
