//! A tool call, told in the ways of different agents.

use agent_client_protocol_schema::v1::RequestPermissionRequest;
use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::agent::await_file;
use crate::connection::Answered;
use crate::player::{Player, write_file};
use crate::script::{Announced, Consent, Outcome, Tool};

/// What became of the question whether a call may run.
enum Decision {
    Allowed,
    Denied,
    Withdrawn,
}

pub(crate) async fn play(player: &mut Player, tool: Tool) -> Result<()> {
    player.calls += 1;
    let id = tool.id.clone().unwrap_or_else(|| format!("call_{}", player.calls));
    if tool.announced == Announced::First {
        announce(player, &tool, &id, "pending").await?;
    }
    if tool.runs_before_asking {
        progress(player, &tool, &id).await?;
    }
    if let Some(consent) = &tool.ask {
        let decision = ask(player, &tool, &id, consent).await?;
        if tool.announced == Announced::AfterAnswer {
            announce(player, &tool, &id, "pending").await?;
        }
        match decision {
            Decision::Allowed => {}
            Decision::Denied if tool.silent_after_denial => return Ok(()),
            Decision::Denied => {
                let text = "The user rejected this call.";
                return close(player, &id, "failed", json!([text_content(text)])).await;
            }
            Decision::Withdrawn => return Ok(()),
        }
    }
    run(player, &tool, &id).await
}

async fn run(player: &mut Player, tool: &Tool, id: &str) -> Result<()> {
    let is_last = tool.announced == Announced::AtTheEnd;
    if !is_last {
        progress(player, tool, id).await?;
    }
    player.play(&tool.steps).await?;
    if let Some(write) = &tool.write {
        write_file(write)?;
    }
    if let Some(terminal) = &tool.terminal {
        for data in &terminal.output {
            let meta = json!({"terminal_output": {"terminal_id": id, "data": data}});
            player.update(update(id, json!({"_meta": meta}))).await?;
        }
    }
    for output in &tool.outputs {
        let content = json!([text_content(output)]);
        let running = update(id, json!({"content": content}));
        if !is_last {
            player.update(running).await?;
        }
    }
    let status = match tool.outcome {
        Outcome::Completed => "completed",
        Outcome::Failed => "failed",
        Outcome::None => return Ok(()),
    };
    let mut fields = described(tool);
    fields.insert("status".to_owned(), json!(status));
    let last = tool.outputs.last().map(|text| text_content(text));
    let content: Vec<Value> = diff(tool).into_iter().chain(last).collect();
    if !content.is_empty() {
        fields.insert("content".to_owned(), json!(content));
    }
    if let Some(output) = &tool.raw_output {
        fields.insert("rawOutput".to_owned(), output.clone());
    }
    if let Some(terminal) = &tool.terminal {
        let exit = json!({"terminal_id": id, "exit_code": terminal.exit_code, "signal": null});
        fields.insert("_meta".to_owned(), json!({"terminal_exit": exit}));
    }
    player.update(update(id, Value::Object(fields))).await
}

async fn announce(player: &mut Player, tool: &Tool, id: &str, status: &str) -> Result<()> {
    let mut fields = described(tool);
    fields.insert("sessionUpdate".to_owned(), json!("tool_call"));
    fields.insert("toolCallId".to_owned(), json!(id));
    fields.insert("status".to_owned(), json!(status));
    if let Some(input) = &tool.input {
        fields.insert("rawInput".to_owned(), input.clone());
    }
    let mut meta = tool.meta.clone();
    let mut content: Vec<Value> = diff(tool).into_iter().collect();
    if tool.terminal.is_some() {
        content.push(json!({"type": "terminal", "terminalId": id}));
        meta.insert("terminal_info".to_owned(), json!({"terminal_id": id}));
    }
    if !content.is_empty() {
        fields.insert("content".to_owned(), json!(content));
    }
    if !meta.is_empty() {
        fields.insert("_meta".to_owned(), Value::Object(meta));
    }
    player.update(Value::Object(fields)).await
}

async fn progress(player: &mut Player, tool: &Tool, id: &str) -> Result<()> {
    let mut fields = described(tool);
    fields.insert("status".to_owned(), json!("in_progress"));
    if let Some(input) = &tool.input {
        fields.insert("rawInput".to_owned(), input.clone());
    }
    player.update(update(id, Value::Object(fields))).await
}

async fn close(player: &mut Player, id: &str, status: &str, content: Value) -> Result<()> {
    let fields = json!({"status": status, "content": content});
    player.update(update(id, fields)).await
}

async fn ask(player: &mut Player, tool: &Tool, id: &str, consent: &Consent) -> Result<Decision> {
    let options = consent.options.clone().unwrap_or_else(usual_options);
    let mut call = described(tool);
    call.insert("toolCallId".to_owned(), json!(id));
    call.insert("status".to_owned(), json!("pending"));
    if let Some(input) = tool.asked_input.as_ref().or(tool.input.as_ref()) {
        call.insert("rawInput".to_owned(), input.clone());
    }
    if let Some(diff) = diff(tool) {
        call.insert("content".to_owned(), json!([diff]));
    }
    if let Some(meta) = &consent.meta {
        call.insert("_meta".to_owned(), meta.clone());
    }
    let params = json!({"sessionId": player.session, "toolCall": call, "options": options});
    serde_json::from_value::<RequestPermissionRequest>(params.clone())
        .with_context(|| format!("this question is not of the schema: {params}"))?;
    let Some(withdraw) = &consent.withdraw else {
        let answer = player.request("session/request_permission", &params).await?;
        return Ok(decision(&answer, &options));
    };
    let agent = player.agent.clone();
    let connection = &agent.connection;
    let method = "session/request_permission";
    let sent = connection.request(&player.session, method, &params);
    let (request, answered) = sent.await?;
    tokio::select! {
        answer = answered => {
            let answer = answer.context("no answer can come any more")?;
            player.keep_answer(&answer);
            Ok(decision(&answer, &options))
        }
        () = await_file(&agent.options.state, withdraw) => {
            connection.notify("$/cancel_request", &json!({"requestId": request})).await?;
            Ok(Decision::Withdrawn)
        }
    }
}

fn decision(answer: &Answered, options: &[Value]) -> Decision {
    let chosen = answer.as_ref().ok().and_then(|result| result["outcome"]["optionId"].as_str());
    let option = options.iter().find(|it| it["optionId"].as_str() == chosen && chosen.is_some());
    let kind = option.and_then(|option| option["kind"].as_str());
    if kind.is_some_and(|kind| kind.starts_with("allow")) {
        Decision::Allowed
    } else {
        Decision::Denied
    }
}

fn usual_options() -> Vec<Value> {
    vec![
        json!({"optionId": "once", "kind": "allow_once", "name": "Allow once"}),
        json!({"optionId": "always", "kind": "allow_always", "name": "Always allow"}),
        json!({"optionId": "reject", "kind": "reject_once", "name": "Reject"}),
    ]
}

/// What every message about a call may repeat.
fn described(tool: &Tool) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("title".to_owned(), json!(tool.title));
    fields.insert("kind".to_owned(), json!(tool.kind));
    if let Some(name) = &tool.name {
        fields.insert("name".to_owned(), json!(name));
    }
    if !tool.locations.is_empty() {
        let place = |path: &String| json!({"path": path});
        let places: Vec<Value> = tool.locations.iter().map(place).collect();
        fields.insert("locations".to_owned(), json!(places));
    }
    fields
}

fn update(id: &str, mut fields: Value) -> Value {
    fields["sessionUpdate"] = json!("tool_call_update");
    fields["toolCallId"] = json!(id);
    fields
}

fn diff(tool: &Tool) -> Option<Value> {
    let diff = tool.diff.as_ref()?;
    Some(json!({"type": "diff", "path": diff.path, "oldText": diff.old, "newText": diff.new}))
}

fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}
