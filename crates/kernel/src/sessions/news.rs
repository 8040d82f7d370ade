//! What an agent says of its session, in a turn or between turns: a setting, a title, its MCP servers.

use serde_json::{Value, json};
use wire::{ActionKind, ChannelUri, Object};

use super::title::set_title_by_agent;
use crate::agent_word::{SessionChange, SessionNews};
use crate::config::known_values;
use crate::customization::publish_servers;
use crate::state::Step;

/// Brings a session in line with what its agent says of it between turns.
pub(crate) fn apply_news(step: &mut Step, uri: &ChannelUri, news: SessionNews) {
    let session = step.find_session(uri);
    if session.is_none_or(|session| session.state().provider != news.provider) {
        return; // a chat, or the session of another agent: that is not what was meant
    }
    match news.change {
        SessionChange::McpServers(servers) => publish_servers(step, uri, servers),
        SessionChange::Title(title) => set_title_by_agent(step, uri, &title),
        SessionChange::Setting { name, value } => {
            // What the session's own schema forbids was said by another version of the agent than the session began with. The
            // session keeps what it has; no turn runs that could show why.
            let _ = change_setting(step, uri, name, value);
        }
    }
}

/// Changes a setting of a session without a client having asked for it; or says what is wrong with the value.
pub(crate) fn change_setting(
    step: &mut Step,
    session: &ChannelUri,
    name: String,
    value: Value,
) -> Result<(), String> {
    let Some(config) = step.session(session).state().config.as_ref() else {
        return Err("this session has no settings to change".to_owned());
    };
    let wanted = Object::from_iter([(name, value)]);
    let known = known_values(&config.schema, &wanted);
    let values = known.map_err(|bad| format!("the setting was not changed: {bad}"))?;
    if values.is_empty() {
        return Err("this session has no setting of that name".to_owned());
    }
    let fields = json!({"config": values});
    step.act_as_host(session, ActionKind::SessionConfigChanged, fields);
    Ok(())
}
