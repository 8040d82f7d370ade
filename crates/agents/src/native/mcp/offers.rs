//! Prompts of a session's servers as commands, and their resources as things that messages refer to (MC-12, MC-13, G-74).
//!
//! Promises: only servers that run are asked, and each wait is bounded; nothing is started that somebody would have to be asked
//! about. What is asked for one principal never goes out with the token of another (H-318).
//! Must not know: how servers are spoken to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent_api::{AgentCommand, AgentResource};
use serde_json::Value;

use super::{SessionMcp, TurnLocation, shown};
use crate::mcp::{McpContent, McpPrompt, McpTemplate, ReadyServer, ServerDirectories, typed_name};
use crate::mcp_settings::{McpSettings, find_servers};
use crate::server_entry::{customization_id, is_switched_off};

/// Resources that are suggested at once.
const SUGGESTED_MAX: usize = 50;

/// How a resource of a server is typed, without the `@`.
const RESOURCE_PREFIX: &str = "mcp:";

impl SessionMcp {
    /// Starts the servers that need no question, if no turn has yet, or if they were somebody else's.
    pub(in super::super) async fn begin_quietly(
        self: &Arc<Self>,
        settings: &Arc<McpSettings>,
        location: TurnLocation<'_>,
    ) {
        {
            let mut memory = self.memory.lock();
            let is_theirs = memory.users.principal.as_deref() == location.principal;
            if !self.pass_locked(&mut memory, location.principal) {
                return; // a turn of another one uses them
            }
            if is_theirs && memory.directories.is_some() {
                return; // a turn began: what may be started is
            }
        }
        let directory = location.directories.first().unwrap_or(&settings.data).clone();
        // What cannot be read is said by the turn that follows.
        let found = find_servers(settings, &directory, location.plugins, self.inputs()).await;
        let server_directories = ServerDirectories { directory, roots: location.roots.to_vec() };
        self.begin(&found, &server_directories, location.switched_off);
        let mut allowed = Vec::new();
        for declared in found.servers {
            let id = customization_id(&declared);
            let is_on = !is_switched_off(&declared, location.switched_off);
            if is_on
                && self.may_start(settings, &declared).await
                && let Ok(declaration) = declared.declaration
            {
                allowed.push((id, declaration));
            }
        }
        self.install(allowed, &server_directories);
        self.wait().await;
    }

    /// The prompts as commands.
    pub(in super::super) fn commands(&self, principal: Option<&str>) -> Vec<AgentCommand> {
        let mut names = BTreeSet::new();
        let mut commands = Vec::new();
        for server in self.ready(principal) {
            for prompt in &server.offers().prompts {
                let name = command_name(&server, prompt);
                if names.insert(name.clone()) {
                    commands.push(AgentCommand {
                        name,
                        description: Some(prompt.description.clone()).filter(|it| !it.is_empty()),
                        hint: describe_arguments(prompt),
                        expands: true,
                    });
                }
            }
        }
        commands
    }

    fn find_prompt(&self, principal: Option<&str>, name: &str) -> Option<(ReadyServer, McpPrompt)> {
        self.ready(principal).into_iter().find_map(|server| {
            let mut prompts = server.offers().prompts.iter();
            let prompt = prompts.find(|prompt| command_name(&server, prompt) == name)?.clone();
            Some((server, prompt))
        })
    }

    /// The text of a prompt with arguments in their order.
    pub(in super::super) async fn expand_prompt(
        &self,
        principal: Option<&str>,
        name: &str,
        words: &[String],
    ) -> Result<String, String> {
        let Some((server, prompt)) = self.find_prompt(principal, name) else {
            return Err("its MCP server does not run any more".to_owned());
        };
        let arguments =
            assign(&prompt, words)?.into_iter().map(|(name, value)| (name, Value::String(value)));
        let got = server.get_prompt(&prompt.name, arguments.collect()).await;
        got.map_err(|error| {
            let name = shown(server.name());
            format!("the MCP server `{name}` did not say what it stands for: {error}")
        })
    }

    /// What the last of the words may become.
    pub(in super::super) async fn complete_prompt(
        &self,
        principal: Option<&str>,
        name: &str,
        words: &[String],
    ) -> Vec<String> {
        let Some((server, prompt)) = self.find_prompt(principal, name) else {
            return Vec::new(); // no such prompt
        };
        let Some((typed, before)) = words.split_last() else {
            return Vec::new(); // nothing is being typed
        };
        let Some(argument) = prompt.arguments.get(before.len()) else {
            return Vec::new(); // it has no more arguments
        };
        let names = prompt.arguments.iter().map(|argument| argument.name.clone());
        let before: BTreeMap<String, String> = names.zip(before.iter().cloned()).collect();
        let completed = server.complete_argument(&prompt.name, &argument.name, typed, before).await;
        // Whoever types goes on typing.
        completed.unwrap_or_default()
    }

    /// Resources whose typed name begins like this: `mcp:docs:fi`.
    pub(in super::super) async fn find_resources(
        &self,
        principal: Option<&str>,
        typed: &str,
    ) -> Vec<AgentResource> {
        let mut found = Vec::new();
        for server in self.ready(principal) {
            let name = server.name();
            let prefix = format!("{RESOURCE_PREFIX}{name}:");
            let offers = server.offers();
            for resource in &offers.resources {
                let as_typed = format!("{prefix}{}", resource.uri);
                if as_typed.starts_with(typed) {
                    found.push(AgentResource {
                        uri: wire::mcp_uri::uri_of(name, &resource.uri),
                        typed: as_typed,
                        name: resource.name.clone(),
                        description: resource.description.clone(),
                        mime_type: resource.mime_type.clone(),
                    });
                }
            }
            if let Some(address) = typed.strip_prefix(&prefix) {
                let completing = offers
                    .templates
                    .iter()
                    .map(|template| complete_template(&server, template, address));
                let completed = futures_util::future::join_all(completing).await;
                found.extend(completed.into_iter().flatten());
            }
        }
        found.truncate(SUGGESTED_MAX);
        found
    }

    /// The content of a resource.
    pub(in super::super) async fn read_resource(
        &self,
        principal: Option<&str>,
        uri: &str,
    ) -> Result<Vec<u8>, String> {
        let (name, address) = wire::mcp_uri::read(uri).ok_or("it is no address of a resource")?;
        let mut servers = self.ready(principal).into_iter();
        let server = servers.find(|server| server.name() == name);
        let server = server.ok_or_else(|| format!("no MCP server `{}` runs", shown(&name)))?;
        let read = server.read(&address).await;
        let contents = read.map_err(|error| error.to_string())?;
        match <[McpContent; 1]>::try_from(contents) {
            Ok([McpContent::Media { data, .. }]) => Ok(data),
            Ok([content]) => Ok(describe(content).into_bytes()),
            Err(contents) => {
                let texts: Vec<String> = contents.into_iter().map(describe).collect();
                Ok(texts.join("\n\n").into_bytes())
            }
        }
    }
}

fn command_name(server: &ReadyServer, prompt: &McpPrompt) -> String {
    let server = typed_name(server.name());
    format!("mcp:{server}:{}", typed_name(&prompt.name))
}

/// `FILE [FOCUS]`
fn describe_arguments(prompt: &McpPrompt) -> Option<String> {
    let arguments: Vec<String> = prompt
        .arguments
        .iter()
        .map(|argument| {
            let name = shown(&argument.name);
            if argument.required { name } else { format!("[{name}]") }
        })
        .collect();
    (!arguments.is_empty()).then(|| arguments.join(" "))
}

/// Words as arguments in the declared order; the last one takes the rest.
fn assign(prompt: &McpPrompt, words: &[String]) -> Result<Vec<(String, String)>, String> {
    let mut assigned = Vec::new();
    let last = prompt.arguments.len().saturating_sub(1);
    for (at, argument) in prompt.arguments.iter().enumerate() {
        let value = if at == last {
            words.get(at..).map(|rest| rest.join(" "))
        } else {
            words.get(at).cloned()
        };
        match value.filter(|value| !value.is_empty()) {
            Some(value) => assigned.push((argument.name.clone(), value)),
            None if argument.required => {
                return Err(format!("it needs `{}`", shown(&argument.name)));
            }
            None => {}
        }
    }
    if prompt.arguments.is_empty() && !words.is_empty() {
        return Err("it takes no arguments".to_owned());
    }
    Ok(assigned)
}

async fn complete_template(
    server: &ReadyServer,
    template: &McpTemplate,
    address: &str,
) -> Vec<AgentResource> {
    let Some(value) = address.strip_prefix(&template.before) else {
        return Vec::new(); // another address is typed
    };
    let name = server.name();
    // Whoever types goes on typing.
    let values = server.complete_template(template, value).await;
    let resources = values.unwrap_or_default().into_iter().map(|value| {
        let uri = format!("{}{value}{}", template.before, template.after);
        AgentResource {
            uri: wire::mcp_uri::uri_of(name, &uri),
            typed: format!("{RESOURCE_PREFIX}{name}:{uri}"),
            name: value,
            description: template.description.clone(),
            mime_type: None,
        }
    });
    resources.collect()
}

fn describe(content: McpContent) -> String {
    match content {
        McpContent::Text(text) | McpContent::Document { text, .. } => text,
        McpContent::Link { uri, name, .. } => format!("[resource {name}, {uri}]"),
        McpContent::Media { data, mime_type, .. } => format!("[{mime_type}, {} bytes]", data.len()),
        McpContent::Unreadable(why) => format!("[{why}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::McpArgument;

    fn prompt(arguments: &[(&str, bool)]) -> McpPrompt {
        let arguments = arguments
            .iter()
            .map(|(name, required)| McpArgument { name: (*name).to_owned(), required: *required });
        McpPrompt {
            name: "review".to_owned(),
            description: String::new(),
            arguments: arguments.collect(),
        }
    }

    #[test]
    fn mc_12_words_become_arguments_in_order_and_the_last_takes_the_rest() {
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let review = prompt(&[("file", true), ("focus", false)]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = vec![pair("file", "a.rs"), pair("focus", "the last part")];
        assert_eq!(assign(&review, &words("a.rs the last part")), Ok(all));
        let one = vec![pair("file", "a.rs")];
        assert_eq!(assign(&review, &words("a.rs")), Ok(one));
        assert_eq!(assign(&review, &[]), Err("it needs `file`".to_owned()));
        assert!(assign(&prompt(&[]), &words("x")).is_err());
        assert_eq!(assign(&prompt(&[]), &[]), Ok(Vec::new()));
        assert_eq!(describe_arguments(&review).as_deref(), Some("file [focus]"));
    }
}
