//! The tools of the server: every kind of result, and what goes wrong in a call.
#![allow(deprecated, reason = "servers of today still log and ask for roots")]

use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ContentBlock, ElicitRequestParams, ElicitationAction, ElicitationSchema,
    ErrorData, JsonObject, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, Resource, ResourceContents, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::TestServer;

/// A picture of one pixel.
pub(crate) const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Names and descriptions.
const TOOLS: &[(&str, &str)] = &[
    ("echo", "Says `text` again"),
    ("slow", "Takes `steps` steps of `ms` milliseconds, and says so"),
    ("fail", "Fails, in words"),
    ("error", "Answers with an error of the protocol"),
    ("big", "Answers with `bytes` bytes"),
    ("env", "Prints the environment"),
    ("ask", "Asks the user for a name"),
    ("ask_url", "Sends the user to a page"),
    ("storm", "Says `count` times that its list changed, and has a tool more"),
    ("crash", "Ends the process"),
    ("media", "An image, a link, an embedded text"),
    ("roots", "Lists what the client works in"),
    ("log", "Logs `count` messages"),
    ("pid", "The number of the process"),
    ("child", "Starts a process in a session of its own and leaves it running"),
    ("destroy", "Says of itself that it destroys"),
];

pub(crate) fn named() -> Vec<Tool> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let mut tools: Vec<Tool> = TOOLS
        .iter()
        .map(|(name, description)| Tool::new(*name, *description, object(schema.clone())))
        .collect();
    for tool in &mut tools {
        tool.annotations = match &*tool.name {
            // What a server says of itself need not be true.
            "env" => Some(ToolAnnotations::new().read_only(true).open_world(false)),
            "destroy" => Some(ToolAnnotations::with_title("Destroy it all").destructive(true)),
            _ => None,
        };
    }
    tools
}

pub(crate) fn extra() -> Tool {
    Tool::new("extra", "Came later", object(json!({"type": "object"})))
}

pub(crate) fn listed(times: usize) -> Tool {
    let name = format!("listed{times}");
    Tool::new(name, "Another time", object(json!({"type": "object"})))
}

pub(crate) fn numbered(number: usize) -> Tool {
    let name = format!("tool{number}");
    Tool::new(name, "One of many", object(json!({"type": "object"})))
}

fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

pub(crate) async fn call(
    server: &TestServer,
    name: &str,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let number = |name: &str, otherwise: u64| {
        let given = arguments.get(name).and_then(Value::as_u64);
        given.unwrap_or(otherwise)
    };
    let text = |text: String| Ok(CallToolResult::success(vec![ContentBlock::text(text)]));
    match name {
        "echo" => {
            let said = arguments.get("text").and_then(Value::as_str).unwrap_or("(nothing)");
            let mut result = CallToolResult::success(vec![ContentBlock::text(said)]);
            result.structured_content = Some(json!({"said": said}));
            Ok(result)
        }
        "slow" => slow(number("steps", 3), number("ms", 50), context).await,
        "fail" | "destroy" => {
            let words = ContentBlock::text("The moon is in the wrong phase");
            Ok(CallToolResult::error(vec![words]))
        }
        "error" => Err(ErrorData::invalid_params("this is never right", None)),
        "big" => {
            let bytes = number("bytes", 20 << 20);
            text("x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX)))
        }
        "env" => {
            let variables = std::env::vars().map(|(name, value)| format!("{name}={value}"));
            text(variables.collect::<Vec<_>>().join("\n"))
        }
        "ask" => ask(context).await,
        "ask_url" => ask_url(context).await,
        "storm" => {
            server.has_extra.store(true, Ordering::SeqCst);
            for _ in 0..number("count", 50) {
                let _ = context.peer.notify_tool_list_changed().await;
                let _ = context.peer.notify_resource_list_changed().await;
            }
            text("changed".to_owned())
        }
        "crash" => {
            eprintln!("the disk is on fire");
            std::process::exit(3)
        }
        "media" => Ok(CallToolResult::success(media())),
        "roots" => roots(context).await,
        "log" => {
            for index in 0..number("count", 1) {
                let said = json!(format!("message {index}"));
                let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, said);
                let _ = context.peer.notify_logging_message(message).await;
            }
            text("logged".to_owned())
        }
        "pid" => text(std::process::id().to_string()),
        "child" => leave_child(),
        "extra" => text("here".to_owned()),
        _ => Ok(CallToolResult::error(vec![ContentBlock::text(format!("Unknown tool: {name}"))])),
    }
}

/// A process that outlives the server unless somebody ends it.
fn leave_child() -> Result<CallToolResult, ErrorData> {
    let child = Command::new("setsid")
        .args(["sleep", "1000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let id = ContentBlock::text(child.id().to_string());
    Ok(CallToolResult::success(vec![id]))
}

fn media() -> Vec<ContentBlock> {
    let link = Resource::new("test://guide", "guide").with_description("How to review");
    let binary = ResourceContents::blob(PIXEL, "test://pixel").with_mime_type("image/png");
    vec![
        ContentBlock::text("a picture:"),
        ContentBlock::image(PIXEL, "image/png"),
        ContentBlock::resource_link(link),
        ContentBlock::embedded_text("test://note", "Mind the gap."),
        ContentBlock::resource(binary),
    ]
}

async fn slow(
    steps: u64,
    ms: u64,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    for step in 1..=steps {
        let cancelled = context.ct.cancelled();
        let step_time = Duration::from_millis(ms);
        if tokio::time::timeout(step_time, cancelled).await.is_ok() {
            eprintln!("cancelled at step {step}");
            return Err(ErrorData::internal_error("cancelled", None));
        }
        if let Some(token) = context.meta.get_progress_token() {
            #[allow(clippy::cast_precision_loss, reason = "a handful of steps")]
            let progress = ProgressNotificationParam::new(token, step as f64)
                .with_total(steps as f64)
                .with_message(format!("step {step}"));
            let _ = context.peer.notify_progress(progress).await;
        }
    }
    let words = ContentBlock::text(format!("{steps} steps"));
    Ok(CallToolResult::success(vec![words]))
}

async fn ask(context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "Who you are"},
            "age": {"type": "integer", "minimum": 1, "maximum": 150},
            "colour": {"type": "string", "enum": ["red", "green"]},
            "sure": {"type": "boolean"},
        },
        "required": ["name"],
    });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let question = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "Who goes there?".to_owned(),
        requested_schema,
    };
    answer(context, question).await
}

async fn ask_url(context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
    let question = ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: "Sign in, please".to_owned(),
        url: "https://sign.example/in".to_owned(),
        elicitation_id: "e1".to_owned(),
    };
    answer(context, question).await
}

async fn answer(
    context: &RequestContext<RoleServer>,
    question: ElicitRequestParams,
) -> Result<CallToolResult, ErrorData> {
    let answered = context
        .peer
        .create_elicitation(question)
        .await
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let content = answered.content.unwrap_or_default();
    let words = match answered.action {
        ElicitationAction::Accept => format!("accepted {content}"),
        ElicitationAction::Decline => "declined".to_owned(),
        ElicitationAction::Cancel => "cancelled".to_owned(),
        _ => "something else".to_owned(),
    };
    Ok(CallToolResult::success(vec![ContentBlock::text(words)]))
}

async fn roots(context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
    let listed = context
        .peer
        .list_roots()
        .await
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let uris: Vec<String> = listed.roots.into_iter().map(|root| root.uri).collect();
    Ok(CallToolResult::success(vec![ContentBlock::text(uris.join("\n"))]))
}
