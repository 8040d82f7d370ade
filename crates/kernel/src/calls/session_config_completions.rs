//! `sessionConfigCompletions`: the values of a setting that only its agent knows (H-121). The host asks the agent; a step must not.

use serde_json::{Value, json};
use wire::RpcError;
use wire::published::commands::SessionConfigCompletionsParams;
use wire::rpc::code;

use super::create_session::agent_of;
use super::uri;
use crate::agent_word::SettingQuestion;
use crate::io::PeerId;
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, HostWork, Pause, RequestStop};
use crate::state::Kernel;

/// Most values of one answer.
const ITEMS_MAX: usize = 256;

/// The values that fit what was typed. `channel` names the session if there is one already.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &SessionConfigCompletionsParams,
    answers: &HandlerAnswers,
) -> Result<Value, RequestStop> {
    let channel = uri::parse("channel", &params.channel)?;
    let (provider, schema, session, directory) = if channel.is_root() {
        let agent = agent_of(kernel, peer, params.provider.as_deref())?;
        let directory = params.working_directory.clone();
        (agent.provider.clone(), &agent.config_schema, None, directory)
    } else {
        need_channel(kernel, &channel, answers)?;
        let session =
            kernel.find_session(&channel).ok_or_else(|| uri::not_found(kernel, &channel))?;
        let state = session.state();
        let schema = state.config.as_ref().map(|config| &config.schema).unwrap_or(&Value::Null);
        let directories = state.working_directories.as_deref().unwrap_or_default();
        let directory = directories.first().cloned();
        (state.provider.clone(), schema, Some(channel), directory)
    };
    let Some(property) = schema["properties"].get(&params.property) else {
        return Err(uri::bad(format!("no property `{}`", params.property)).into());
    };
    if property["enumDynamic"] != true {
        return Ok(json!({"items": []})); // its schema says all there is to say
    }
    match answers.setting_values() {
        None => Err(Pause::Work(HostWork::ListSettingValues(SettingQuestion {
            provider,
            session,
            property: params.property.clone(),
            working_directory: directory,
        }))
        .into()),
        Some(Ok(items)) => {
            let query = params.query.as_deref().unwrap_or("").to_lowercase();
            let fitting = items.iter().filter(|item| fits(item, &query));
            let items: Vec<&Value> = fitting.take(ITEMS_MAX).collect();
            Ok(json!({"items": items}))
        }
        Some(Err(failed)) => Err(RpcError::new(code::INTERNAL_ERROR, failed.to_string()).into()),
    }
}

/// Whether a value is what somebody may be typing, by its name or as it is.
fn fits(item: &Value, query: &str) -> bool {
    ["value", "label"]
        .into_iter()
        .any(|field| item[field].as_str().unwrap_or("").to_lowercase().contains(query))
}
