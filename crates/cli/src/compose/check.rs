//! What would become of a message for one model: of the configuration, or of a chat with the room that is left there.

use std::fmt::Write as _;

use anyhow::{Context, anyhow, bail};
use client::chat::{ChatSelector, OpenChat, OpenOptions};
use compositor::SubmittedMessage;
use host::Model;
use host::preview::{PreviewContext, preview_for_model};
use serde_json::json;
use wire::ext::compose::{ComposeResult, ComposedPart};
use wire::{ChannelUri, Object};

use crate::serve::settings;
use crate::session_name::SessionName;
use crate::target::HostOptions;
use crate::terminal::{escape, escape_line};

/// Asks the host that serves a session.
pub(super) async fn check_in_session(
    host: &HostOptions,
    session: &SessionName,
    model: Option<&str>,
    input: SubmittedMessage,
) -> anyhow::Result<ComposeResult> {
    let message = message_of(input)?;
    let (live, updates) = host.live(&[ChannelUri::root()]).await?;
    let selector = ChatSelector::Channel(session.find(&live).await?);
    let chat = OpenChat::open(live, updates, &selector, &OpenOptions::default()).await?;
    let checked = chat.check_message(message, model).await;
    chat.close().await;
    Ok(checked?)
}

fn message_of(input: SubmittedMessage) -> anyhow::Result<Object> {
    match input {
        SubmittedMessage::Ahp(message) | SubmittedMessage::WithBodies { message, .. } => {
            Ok(message)
        }
        SubmittedMessage::Text(text) => {
            let message = json!({"text": text});
            message.as_object().cloned().context("a message")
        }
        SubmittedMessage::Parts { .. } => {
            bail!(
                "a list of parts is not a message that can be sent; give its text and attachments"
            )
        }
    }
}

/// Asks nobody: the model is one of the configuration, or named by its address.
pub(super) fn check_for_model(
    host: &HostOptions,
    name: &str,
    input: SubmittedMessage,
    context: &PreviewContext<'_>,
) -> anyhow::Result<ComposeResult> {
    let model = find_model(host, name)?;
    Ok(preview_for_model(input, context, &model)?)
}

fn find_model(host: &HostOptions, name: &str) -> anyhow::Result<Model> {
    if name.contains('#') {
        return Ok(Model::parse(name)?);
    }
    let models = settings(host.data_directory()?, None)?.ordered_models();
    let ids: Vec<String> = models.iter().map(|model| escape_line(&model.id)).collect();
    let mut models = models.into_iter();
    models.find(|model| model.id == name).ok_or_else(|| {
        let name = escape_line(name);
        if ids.is_empty() { anyhow!("no model is configured; add `{name}` with `greenroom models add`, or give WIRE+URL#MODEL") } else { anyhow!("no model `{name}` is configured; there are: {}", ids.join(", ")) }
    })
}

pub(super) fn to_text(result: &ComposeResult) -> String {
    let mut text = String::new();
    let model = result.model.as_deref().unwrap_or("an agent without models");
    // Writing into a string does not fail.
    let _ = writeln!(text, "For {} ({})", escape_line(model), escape_line(&result.target));
    if !result.reaches_model {
        text.push_str("  nothing: no model is called\n");
    }
    for part in &result.parts {
        let _ = writeln!(text, "  {}", describe_part(part));
    }
    let more = if result.tokens_complete { "" } else { " and what is not known" };
    let cost = result.cost.map(|cost| format!(", ${cost:.4}"));
    let _ = writeln!(text, "\nAbout {} tokens{more}{}", result.tokens, cost.unwrap_or_default());
    if let Some(context) = result.context {
        let used = match context.used {
            Some(used) => format!("{used} used"),
            None => "nothing used yet".to_owned(),
        };
        let fits = if result.tokens > context.left { "; it does NOT fit" } else { "" };
        let _ =
            writeln!(text, "Window: {} tokens, {used}, {} left{fits}", context.size, context.left);
    }
    if !result.diagnostics.is_empty() {
        text.push_str("\nShown to the user\n");
        for diagnostic in &result.diagnostics {
            let _ = writeln!(text, "  {}", escape(diagnostic));
        }
    }
    text
}

fn describe_part(part: &ComposedPart) -> String {
    let name = match &part.name {
        Some(name) => format!(" {}", escape_line(name)),
        None => String::new(),
    };
    let treatment = if part.treatment == part.became {
        part.treatment.clone()
    } else {
        format!("{} ({})", part.treatment, part.became)
    };
    let why = part.why.as_deref().map(|why| format!(": {why}"));
    let tokens = match part.tokens {
        Some(tokens) => format!("about {tokens} tokens"),
        None => "tokens not known".to_owned(),
    };
    let (number, kind) = (part.part, escape_line(&part.kind));
    let treatment = escape_line(&format!("{treatment}{}", why.unwrap_or_default()));
    format!("part {number}: {kind}{name}, {treatment}, {tokens}")
}
