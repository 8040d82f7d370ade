//! What a server offers beside tools: prompts and resources, as far as they are kept (MC-12, MC-13).
//!
//! Promises: bounded, however many pages a server sends; every text is short and without control characters.
//! Must not know: how they are shown.

use rmcp::model::{PaginatedRequestParams, Prompt, Resource, ResourceTemplate};
use rmcp::service::{Peer, RoleClient};

use super::error::{McpError, clean};

/// What is kept of one server.
const PROMPTS_MAX: usize = 128;
const ARGUMENTS_MAX: usize = 16;
const RESOURCES_MAX: usize = 1_000;
const TEMPLATES_MAX: usize = 32;

/// Pages that are asked for.
const PAGES_MAX: usize = 64;

/// Longer names and addresses are not kept: they could not be given back as they are.
const NAME_BYTES_MAX: usize = 512;
const URI_BYTES_MAX: usize = 2_048;

/// What a server offers beside tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerOffers {
    pub prompts: Vec<McpPrompt>,
    pub resources: Vec<McpResource>,
    pub templates: Vec<McpTemplate>,
}

/// A prompt as its server describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpPrompt {
    pub name: String,
    pub description: String,
    pub arguments: Vec<McpArgument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpArgument {
    pub name: String,
    pub required: bool,
}

/// Something that can be read from a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpResource {
    pub uri: String,
    pub name: String,
    pub description: String,
    pub mime_type: Option<String>,
}

/// Addresses of things that can be read, with one thing left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpTemplate {
    /// Whole, as the server knows it.
    pub template: String,
    /// What is before and after the variable.
    pub before: String,
    pub after: String,
    pub variable: String,
    pub description: String,
}

pub(super) async fn list_prompts(peer: &Peer<RoleClient>) -> Result<Vec<McpPrompt>, McpError> {
    let mut prompts = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let listed = peer.list_prompts(page(cursor)).await.map_err(McpError::of_request)?;
        prompts.extend(listed.prompts.into_iter().filter_map(read_prompt));
        cursor = listed.next_cursor;
        if cursor.is_none() || prompts.len() >= PROMPTS_MAX {
            break;
        }
    }
    prompts.truncate(PROMPTS_MAX);
    Ok(prompts)
}

pub(super) async fn list_resources(peer: &Peer<RoleClient>) -> Result<Vec<McpResource>, McpError> {
    let mut resources = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let listed = peer.list_resources(page(cursor)).await.map_err(McpError::of_request)?;
        resources.extend(listed.resources.into_iter().filter_map(read_resource));
        cursor = listed.next_cursor;
        if cursor.is_none() || resources.len() >= RESOURCES_MAX {
            break;
        }
    }
    resources.truncate(RESOURCES_MAX);
    Ok(resources)
}

/// The first page of templates: more are not typed.
pub(super) async fn list_templates(peer: &Peer<RoleClient>) -> Result<Vec<McpTemplate>, McpError> {
    let listed = peer.list_resource_templates(page(None)).await.map_err(McpError::of_request)?;
    let templates = listed.resource_templates.into_iter();
    Ok(templates.filter_map(read_template).take(TEMPLATES_MAX).collect())
}

fn page(cursor: Option<String>) -> Option<PaginatedRequestParams> {
    Some(PaginatedRequestParams::default().with_cursor(cursor))
}

fn read_prompt(prompt: Prompt) -> Option<McpPrompt> {
    let arguments = prompt.arguments.unwrap_or_default();
    let has_room = prompt.name.len() <= NAME_BYTES_MAX
        && arguments.len() <= ARGUMENTS_MAX
        && arguments.iter().all(|argument| argument.name.len() <= NAME_BYTES_MAX);
    let description = prompt.description.or(prompt.title).unwrap_or_default();
    has_room.then(|| McpPrompt {
        name: prompt.name,
        description: clean(&description),
        arguments: arguments
            .into_iter()
            .map(|argument| McpArgument {
                name: argument.name,
                required: argument.required == Some(true),
            })
            .collect(),
    })
}

fn read_resource(resource: Resource) -> Option<McpResource> {
    let name = resource.title.unwrap_or(resource.name);
    let mime_type = resource.mime_type.filter(|mime| mime.len() <= NAME_BYTES_MAX);
    (resource.uri.len() <= URI_BYTES_MAX).then(|| McpResource {
        uri: resource.uri,
        name: clean(&name),
        description: clean(&resource.description.unwrap_or_default()),
        mime_type,
    })
}

/// Templates with one variable; others cannot be completed word by word.
fn read_template(template: ResourceTemplate) -> Option<McpTemplate> {
    let whole = template.uri_template;
    let (before, rest) = whole.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    let variable = inside.trim_start_matches(['+', '#', '/']).trim_end_matches('*');
    let is_plain = !variable.is_empty() && !after.contains('{') && !variable.contains(',');
    (is_plain && whole.len() <= URI_BYTES_MAX).then(|| McpTemplate {
        before: before.to_owned(),
        after: after.to_owned(),
        variable: variable.to_owned(),
        description: clean(&template.description.unwrap_or(template.name)),
        template: whole.clone(),
    })
}
