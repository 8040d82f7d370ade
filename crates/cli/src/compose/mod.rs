//! `greenroom compose`: what a message would become, and what each provider would be sent of it, before anybody sends it.
//!
//! Promises: nothing is stored, staged or sent to a model; no host is needed, but for a message to a session.

mod check;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use compositor::SubmittedMessage;
use compositor::lower::{CapabilityMap, Lowered, Target};
use host::DocumentReader;
use host::preview::{Preview, PreviewContext, preview};
use serde_json::{Value, json};
use wire::ext::compose::ComposeResult;

use crate::clock::now;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::serve::{document_reader, settings};
use crate::session_name::SessionName;
use crate::target::HostOptions;
use crate::terminal::{escape, escape_line, json_line};

/// The largest input that is read.
const INPUT_BYTES_MAX: u64 = 256 * 1_024 * 1_024;

/// Show what a message would become and what each provider would get of it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  echo 'look at @file:src/main.rs:10-25' | greenroom compose
  greenroom compose message.json --target anthropic --json
  echo '/review src/lib.rs' | greenroom compose --workspace ~/project --target openai_chat
  greenroom compose message.json --model claude
  echo 'and now?' | greenroom compose --session native:/0190...

The input is a message of the protocol as JSON (`text`, `attachments`), a list of parts as JSON, an object with `parts`, or plain \
text. Commands and skills are those of the workspace. Nothing is sent to a model, stored or written anywhere. With --session \
the host says what its chat's model would get, with what its server refused there before, and the room left in its window.")]
pub(crate) struct ComposeOptions {
    /// File with the message; `-` or nothing reads standard input
    file: Option<PathBuf>,
    /// Only this target: anthropic, openai_responses, openai_chat, gemini or acp
    #[arg(long, value_name = "NAME", value_parser = parse_target)]
    target: Option<Target>,
    /// For this model: an id of the configuration or of a key in the environment, or WIRE+URL#MODEL; with --session, an id of its host
    #[arg(long, value_name = "ID", conflicts_with = "target")]
    model: Option<String>,
    /// For this session or chat of a running host (a URI, a part of an id, or a title), with its model and the room left there
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["target", "workspace", "entities", "capabilities"])]
    session: Option<SessionName>,
    /// The directory that paths, commands and skills belong to
    #[arg(long, value_name = "DIR", default_value = ".")]
    workspace: PathBuf,
    /// JSON array of the things that mentions may name: `[{"kind":"node","id":"n42"}]`
    #[arg(long, value_name = "FILE")]
    entities: Option<PathBuf>,
    /// What targets and models take, over what is built in (JSON)
    #[arg(long, value_name = "FILE")]
    capabilities: Option<PathBuf>,
    /// Print one JSON object: `parts`, `diagnostics`, `lowered`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostOptions,
}

fn parse_target(name: &str) -> Result<Target, String> {
    let known = Target::ALL.map(Target::name).join(", ");
    Target::from_name(name).ok_or_else(|| format!("there are {known}"))
}

pub(crate) async fn run(options: &ComposeOptions) -> anyhow::Result<Exit> {
    if let Some(session) = &options.session {
        let input = parse_input(&read_input(options.file.as_ref())?)?;
        let model = options.model.as_deref();
        let checked = check::check_in_session(&options.host, session, model, input).await?;
        return print_check(&checked, options.json);
    }
    if !options.workspace.is_dir() {
        bail!("{} is not a directory", options.workspace.display());
    }
    let entities = match &options.entities {
        Some(file) => parse_entities(&read_json(file)?)?,
        None => Vec::new(),
    };
    let capabilities = match &options.capabilities {
        Some(file) => CapabilityMap::built_in().with(&read_json(file)?)?,
        None => CapabilityMap::built_in(),
    };
    let documents = DocumentReader::new(document_reader());
    let context = PreviewContext {
        workspace: &options.workspace,
        user: settings(options.host.data_directory()?, None)?.user_directories(),
        entities,
        capabilities,
        documents: &documents,
        now: now(),
    };
    let targets: Vec<Target> = match options.target {
        Some(target) => vec![target],
        None => Target::ALL.to_vec(),
    };
    let input = parse_input(&read_input(options.file.as_ref())?)?;
    if let Some(model) = &options.model {
        let checked = check::check_for_model(&options.host, model, input, &context)?;
        return print_check(&checked, options.json);
    }
    let (preview, exit) = match preview(input, &context, &targets) {
        Ok(preview) => (preview, Exit::Complete),
        Err(refused) => {
            eprintln!("greenroom: {}", escape(&refused.to_string()));
            let preview = Preview { diagnostics: vec![refused.to_string()], ..Preview::default() };
            (preview, Exit::Failed)
        }
    };
    if options.json {
        print_json(&to_json(&preview, options.target))?
    } else {
        print(&to_text(&preview))?
    }
    Ok(exit)
}

fn print_check(checked: &ComposeResult, json: bool) -> anyhow::Result<Exit> {
    if json {
        print_json(&wire::action::to_value(checked))?
    } else {
        print(&check::to_text(checked))?
    }
    Ok(Exit::Complete)
}

fn read_json(file: &PathBuf) -> anyhow::Result<Value> {
    let text = std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not JSON", file.display()))
}

fn parse_entities(value: &Value) -> anyhow::Result<Vec<(String, String)>> {
    let list =
        value.as_array().context("the entities must be a JSON array of {\"kind\", \"id\"}")?;
    let entity = |entity: &Value| {
        let text = |key: &str| Some(entity.get(key)?.as_str()?.to_owned());
        Some((text("kind")?, text("id")?))
    };
    let entities = list.iter().map(entity).collect::<Option<Vec<_>>>();
    entities.ok_or_else(|| anyhow!("each entity needs a `kind` and an `id`, both strings"))
}

fn read_input(file: Option<&PathBuf>) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    match file.filter(|file| file.as_os_str() != "-") {
        Some(file) => {
            let opened = std::fs::File::open(file)
                .with_context(|| format!("{} cannot be read", file.display()))?;
            opened.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        }
        None => {
            let input = std::io::stdin().lock();
            input.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        }
    }
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        bail!("the input has more than {INPUT_BYTES_MAX} bytes");
    }
    String::from_utf8(bytes).context("the input is not UTF-8")
}

/// Parts, a message of the protocol, or typed text.
fn parse_input(text: &str) -> anyhow::Result<SubmittedMessage> {
    let parsed = if text.trim_start().starts_with(['{', '[']) {
        serde_json::from_str::<Value>(text).ok()
    } else {
        None
    };
    Ok(match parsed {
        Some(Value::Array(parts)) => {
            SubmittedMessage::Parts { parts, metadata: wire::Object::new() }
        }
        Some(Value::Object(mut object)) if object.contains_key("parts") => {
            let metadata = match object.shift_remove("metadata") {
                Some(Value::Object(metadata)) => metadata,
                _ => wire::Object::new(),
            };
            match object.shift_remove("parts") {
                Some(Value::Array(parts)) => SubmittedMessage::Parts { parts, metadata },
                _ => bail!("`parts` must be a list"),
            }
        }
        Some(Value::Object(message))
            if message.contains_key("text") || message.contains_key("attachments") =>
        {
            SubmittedMessage::Ahp(message)
        }
        // Lines end in a newline that is not part of the message.
        _ => SubmittedMessage::Text(text.strip_suffix('\n').unwrap_or(text).to_owned()),
    })
}

fn to_json(preview: &Preview, target: Option<Target>) -> Value {
    let parts: Vec<Value> = preview.parts.iter().map(|part| part.to_value()).collect();
    let blocks = |lowered: &Lowered| Value::Array(lowered.blocks.clone());
    let lowered = match (target, preview.lowered.first()) {
        (Some(_), Some((_, lowered))) => blocks(lowered),
        (Some(_), None) => json!([]),
        (None, _) => preview
            .lowered
            .iter()
            .map(|(target, lowered)| (target.name().to_owned(), blocks(lowered)))
            .collect(),
    };
    json!({"parts": parts, "diagnostics": preview.diagnostics, "lowered": lowered})
}

fn to_text(preview: &Preview) -> String {
    let mut text = String::from("Stored as\n");
    for (index, part) in preview.parts.iter().enumerate() {
        let _ = writeln!(text, "  {index} {}", brief(&part.to_value()));
    }
    for (target, lowered) in &preview.lowered {
        let _ = writeln!(text, "\nSent to {}", target.name());
        for block in &lowered.blocks {
            let _ = writeln!(text, "  {}", brief(block));
        }
        if lowered.blocks.is_empty() {
            text.push_str("  nothing: no model is called\n");
        }
        for decision in &lowered.decisions {
            let why = decision.why.as_deref().map(|why| format!(": {why}"));
            let (part, became) = (decision.part, escape_line(&decision.became));
            let why = escape_line(&why.unwrap_or_default());
            let _ = writeln!(text, "  part {part} becomes {became}{why}");
        }
    }
    if !preview.diagnostics.is_empty() {
        text.push_str("\nShown to the user\n");
        for diagnostic in &preview.diagnostics {
            let _ = writeln!(text, "  {}", escape(diagnostic));
        }
    }
    text
}

/// A value as one line, its long strings cut.
fn brief(value: &Value) -> String {
    const PREVIEW_CHARS: usize = 400;
    fn cut(value: &Value) -> Value {
        match value {
            Value::String(text) if text.chars().count() > PREVIEW_CHARS => {
                let preview: String = text.chars().take(PREVIEW_CHARS).collect();
                json!(format!("{preview}… ({} bytes)", text.len()))
            }
            Value::Array(items) => items.iter().map(cut).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), cut(value))).collect()
            }
            other => other.clone(),
        }
    }
    json_line(&cut(value))
}
