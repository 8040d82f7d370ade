//! One function for each request of a client.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    AuthenticateRequest, CancelNotification, CloseSessionRequest, ForkSessionRequest,
    InitializeRequest, InitializeResponse, LoadSessionRequest, NewSessionRequest, PromptRequest,
    ResumeSessionRequest, SetSessionConfigOptionRequest, SetSessionModeRequest,
    SetSessionTitleRequest,
};
use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::agent::{Agent, Ends};
use crate::connection::Answered;
use crate::player::{self, Player};
use crate::script::{Answer, Replay};
use crate::session::Stored;

/// Whether the parameters are of the schema; what is wrong if not.
pub(crate) fn check(method: &str, params: &Value) -> Result<(), String> {
    fn is<T: DeserializeOwned>(params: &Value) -> Result<(), String> {
        let read = serde_json::from_value::<T>(params.clone());
        read.map(drop).map_err(|error| error.to_string())
    }
    match method {
        "initialize" => is::<InitializeRequest>(params),
        "authenticate" => is::<AuthenticateRequest>(params),
        "session/new" => is::<NewSessionRequest>(params),
        "session/load" => is::<LoadSessionRequest>(params),
        "session/resume" => is::<ResumeSessionRequest>(params),
        "session/fork" => is::<ForkSessionRequest>(params),
        "session/close" => is::<CloseSessionRequest>(params),
        "session/prompt" => is::<PromptRequest>(params),
        "session/cancel" => is::<CancelNotification>(params),
        "session/set_mode" => is::<SetSessionModeRequest>(params),
        "session/set_config_option" => is::<SetSessionConfigOptionRequest>(params),
        "session/set_title" => is::<SetSessionTitleRequest>(params),
        // Not of the schema: extensions, and what older agents took.
        _ => Ok(()),
    }
}

pub(crate) async fn handle(
    agent: &Arc<Agent>,
    method: &str,
    id: &Value,
    params: &Value,
    ends: Option<Ends>,
) -> Result<()> {
    let session = params["sessionId"].as_str().unwrap_or_default();
    if let Some(rule) = agent.rule(method)? {
        Player::new(agent, session).play(&rule.steps).await?;
        let answer = match &rule.answer {
            None => None,
            Some(Answer::Error(error)) => Some(Err(error.clone())),
            Some(Answer::Result(result)) => Some(Ok(result.clone())),
            Some(Answer::Silence) => return Ok(()),
        };
        if let Some(answer) = answer {
            if let Some(open) = ends.and_then(|_| agent.session(session)) {
                open.finish();
            }
            return agent.connection.respond(id, answer).await;
        }
    }
    if let Err(wrong) = check(method, params) {
        let error = error(-32602, &format!("Invalid params: {wrong}"), Value::Null);
        return agent.connection.respond(id, Err(error)).await;
    }
    if let Some(ends) = ends {
        return player::play_prompt(agent, session, id, params, ends).await;
    }
    let answer = match method {
        "session/new" | "session/load" | "session/resume" | "session/fork" => {
            return open(agent, method, id, params).await;
        }
        "initialize" => Ok(initialize(agent)?),
        "authenticate" | "session/set_title" => Ok(json!({})),
        "session/close" if offers(agent, method)? => Ok(close(agent, session)),
        "session/set_mode" => set(agent, session, "mode", &params["modeId"])?,
        "session/set_model" => set(agent, session, "model", &params["modelId"])?,
        "session/set_config_option" => set_option(agent, session, params)?,
        "_session/steering" if offers(agent, method)? => Ok(steer(agent, session, params)),
        _ => Err(unknown(method)),
    };
    agent.connection.respond(id, answer).await
}

fn initialize(agent: &Agent) -> Result<Value> {
    let mut result = json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "acp-agent", "title": "Fake Agent", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": true},
            "sessionCapabilities": {"close": {}, "resume": {}},
        },
        "authMethods": [],
    });
    serde_json::from_value::<InitializeResponse>(result.clone())
        .context("the usual answer to initialize is not of the schema")?;
    merge(&mut result, &agent.script.initialize);
    Ok(result)
}

/// JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        if !patch.is_null() {
            *target = patch.clone();
        }
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    if let Value::Object(fields) = target {
        for (name, value) in patch {
            match value {
                Value::Null => drop(fields.remove(name)),
                _ => merge(fields.entry(name.clone()).or_insert(Value::Null), value),
            }
        }
    }
}

/// Whether `initialize` says that a method can be asked.
fn offers(agent: &Agent, method: &str) -> Result<bool> {
    let told = initialize(agent)?;
    let capabilities = &told["agentCapabilities"];
    let of_sessions = &capabilities["sessionCapabilities"];
    Ok(match method {
        "session/load" => capabilities["loadSession"] == true,
        "session/resume" => of_sessions["resume"].is_object(),
        "session/fork" => of_sessions["fork"].is_object(),
        "session/close" => of_sessions["close"].is_object(),
        "_session/steering" => told["_meta"]["steering"]["supported"] == true,
        _ => true,
    })
}

/// `session/new`, `load`, `resume`, `fork`.
async fn open(agent: &Arc<Agent>, method: &str, id: &Value, params: &Value) -> Result<()> {
    let connection = &agent.connection;
    if !offers(agent, method)? {
        return connection.respond(id, Err(unknown(method))).await;
    }
    let directory = std::env::current_dir()?.display().to_string();
    let asked = params["sessionId"].as_str().unwrap_or_default();
    let stored = match method {
        "session/new" => Some(Stored { directory, ..Stored::default() }),
        _ => agent.sessions.find(asked, &directory),
    };
    let Some(stored) = stored else {
        let data = json!({"sessionId": asked});
        let error = error(-32002, "Resource not found", data);
        return connection.respond(id, Err(error)).await;
    };
    let mut result: Map<String, Value> = stored.apply_values(&agent.script.session);
    let session = match method {
        "session/load" | "session/resume" => asked.to_owned(),
        _ => {
            let session = agent.sessions.create(&stored)?;
            result.insert("sessionId".to_owned(), json!(session));
            session
        }
    };
    agent.open_session(&session);
    let replays = match method {
        "session/load" => true,
        "session/resume" => agent.script.resume_replays,
        _ => false,
    };
    let is_late = method == "session/load" && agent.script.replay == Replay::AfterResponse;
    if replays && !is_late {
        replay(agent, &session, &stored).await?;
    }
    connection.respond(id, Ok(Value::Object(result))).await?;
    if replays && is_late {
        replay(agent, &session, &stored).await?;
    }
    let mut player = Player::new(agent, &session);
    player.play(&agent.script.on_open).await
}

async fn replay(agent: &Agent, session: &str, stored: &Stored) -> Result<()> {
    for update in &stored.past {
        let params = json!({"sessionId": session, "update": update});
        agent.connection.notify("session/update", &params).await?;
    }
    Ok(())
}

fn close(agent: &Agent, session: &str) -> Value {
    // Closing what is not open changes nothing.
    agent.close_session(session);
    json!({})
}

fn set(agent: &Agent, session: &str, name: &str, value: &Value) -> Result<Answered> {
    if agent.session(session).is_none() {
        return Ok(Err(lost(session)));
    }
    agent.sessions.change(session, |stored| {
        stored.values.insert(name.to_owned(), value.clone());
    })?;
    Ok(Ok(json!({})))
}

fn set_option(agent: &Agent, session: &str, params: &Value) -> Result<Answered> {
    let name = params["configId"].as_str().unwrap_or_default();
    let value = &params["value"];
    let mut options =
        agent.script.session.get("configOptions").and_then(Value::as_array).into_iter().flatten();
    let known = options.find(|option| option["id"] == name);
    let is_good = known.is_some_and(|option| takes(option, value));
    if !is_good {
        let message = format!("Invalid params: unknown config option or value: {name} = {value}");
        return Ok(Err(error(-32602, &message, Value::Null)));
    }
    if let Err(error) = set(agent, session, name, value)? {
        return Ok(Err(error));
    }
    let stored = agent.sessions.change(session, |_| {})?;
    let fields = stored.apply_values(&agent.script.session);
    Ok(Ok(json!({"configOptions": fields.get("configOptions")})))
}

fn takes(option: &Value, value: &Value) -> bool {
    if option["type"] == "boolean" {
        return value.is_boolean();
    }
    let options = option["options"].as_array().into_iter().flatten();
    let mut all = options.flat_map(|it| match it["options"].as_array() {
        Some(group) => group.iter().collect(),
        None => vec![it],
    });
    all.any(|it| it["value"] == *value)
}

fn steer(agent: &Agent, session: &str, params: &Value) -> Value {
    let text = player::text_of(&params["prompt"]);
    let open = agent.session(session);
    let outcome =
        if open.is_some_and(|open| open.steer(text)) { "injected" } else { "promptRequired" };
    json!({"outcome": outcome})
}

pub(crate) fn lost(session: &str) -> Value {
    let message = format!("Session {session} not found");
    error(-32002, &message, json!({"sessionId": session}))
}

fn unknown(method: &str) -> Value {
    let message = format!("\"Method not found\": {method}");
    error(-32601, &message, json!({"method": method}))
}

fn error(code: i64, message: &str, data: Value) -> Value {
    let mut error = json!({"code": code, "message": message});
    if !data.is_null() {
        error["data"] = data;
    }
    error
}
