//! What was found for agents, as the protocol's customizations (H-300). What users decided of it is not known here.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wire::Object;
use workspace::discovery::{
    Child, ChildContent, Container, ContainerKind, InvokedBy, SourcePosition,
};

/// What a degraded container says at most.
const PROBLEM_BYTES_MAX: usize = 2_048;

/// Why a hook is off and cannot be switched on.
const HOOKS_DO_NOT_RUN: &str = "greenroom lists hooks and does not run them";

/// The containers in the shape of a session's `customizations`.
pub(crate) fn customization_entries(containers: &[Container]) -> Vec<Value> {
    containers.iter().map(container_entry).collect()
}

/// What an agent uses that has skills and rules of its own (CU-9, CU-11).
#[derive(Debug, Default)]
pub(crate) struct UsedEntries {
    /// MCP servers are handed over to it.
    pub(crate) servers: bool,
    /// It has these itself: choosing one chooses that.
    pub(crate) custom_agents: BTreeSet<String>,
}

impl UsedEntries {
    fn contains(&self, child: &Value) -> bool {
        let name = child["name"].as_str().unwrap_or_default();
        match child["type"].as_str() {
            Some("mcpServer") => self.servers,
            Some("agent") => self.custom_agents.contains(name),
            _ => false,
        }
    }
}

/// The containers that have something of this, with nothing else in them, and what clients brought.
pub(crate) fn used_entries(containers: &[Container], used: &UsedEntries) -> Vec<Value> {
    let mut entries = customization_entries(containers);
    for entry in &mut entries {
        if let Some(children) = entry.get_mut("children").and_then(Value::as_array_mut) {
            children.retain(|child| used.contains(child));
            let objects = children.iter_mut().filter_map(Value::as_object_mut);
            for child in objects {
                // Its own agent of that name works with its own model and tools.
                child.shift_remove("model");
                child.shift_remove("tools");
                if child.get("type").is_some_and(|kind| kind == "agent") {
                    // Choosing it chooses a mode of the agent, which a file of a repository may not describe: harmless words
                    // under the name of a mode that asks for nothing would have people choose that.
                    child.shift_remove("description");
                }
            }
        }
    }
    entries.retain(|entry| {
        let children = entry["children"].as_array();
        let has_any = children.is_some_and(|children| !children.is_empty());
        has_any || entry.get("clientId").is_some()
    });
    entries
}

fn container_entry(container: &Container) -> Value {
    let children: Vec<Value> =
        container.children.iter().map(|child| child_entry(container, child)).collect();
    let mut entry = Object::new();
    let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    put("id", json!(container.key().id()));
    put("uri", json!(container.uri));
    match &container.client {
        Some(client) => {
            put("name", json!(client.name));
            put("clientId", json!(client.client_id));
        }
        None => {
            put("name", json!(container.name));
        }
    }
    put("load", load_state(&container.problems));
    put("children", Value::Array(children));
    match &container.kind {
        ContainerKind::Directory { contents } => {
            put("type", json!("directory"));
            put("enabled", json!(true));
            put("contents", json!(contents.name()));
            put("writable", json!(container.is_writable()));
        }
        ContainerKind::Plugin { version } => {
            put("type", json!("plugin"));
            if let Some(version) = version {
                put("version", json!(version));
            }
        }
    }
    Value::Object(entry)
}

fn load_state(problems: &[String]) -> Value {
    if problems.is_empty() {
        return json!({"kind": "loaded"});
    }
    let mut message = problems.join("\n");
    if message.len() > PROBLEM_BYTES_MAX {
        message.truncate(message.floor_char_boundary(PROBLEM_BYTES_MAX));
        message.push('…');
    }
    json!({"kind": "degraded", "message": message})
}

fn child_entry(container: &Container, child: &Child) -> Value {
    let kind = child.content.kind().name();
    let id = container.child_key(child).id();
    let uri = container.published_uri(child);
    let mut entry = json!({"type": kind, "id": id, "uri": uri, "name": child.name});
    let mut put = |name: &str, value: Value| entry[name] = value;
    if let Some(description) = &child.description {
        put("description", json!(description));
    }
    if let Some(range) = child.range {
        let position = |at: SourcePosition| json!({"line": at.line, "character": at.character});
        let range = json!({"start": position(range.start), "end": position(range.end)});
        put("range", range);
    }
    match &child.content {
        ChildContent::Skill(skill) => put_invoked_by(put, skill.invoked_by),
        ChildContent::Prompt(prompt) => {
            if !prompt.hints.is_empty() {
                let hints =
                    prompt.hints.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
                put("_meta", Value::Object(hints.collect()));
            }
        }
        ChildContent::Agent(agent) => {
            if let Some(model) = &agent.model {
                put("model", json!(model));
            }
            if let Some(tools) = &agent.tools {
                put("tools", json!(tools));
            }
            put_invoked_by(put, agent.invoked_by);
        }
        ChildContent::Rule(rule) => {
            put("alwaysApply", json!(rule.always_applies));
            if !rule.globs.is_empty() {
                put("globs", json!(rule.globs));
            }
        }
        ChildContent::Hook => {
            put("enabled", json!(false));
            put("_meta", json!({"note": HOOKS_DO_NOT_RUN}));
        }
        // How it is, its agent says.
        ChildContent::McpServer(_) => put("state", json!({"kind": "stopped"})),
    }
    entry
}

fn put_invoked_by(mut put: impl FnMut(&str, Value), invoked_by: InvokedBy) {
    if matches!(invoked_by, InvokedBy::Models | InvokedBy::Nobody) {
        put("disableUserInvocation", json!(true));
    }
    if matches!(invoked_by, InvokedBy::Users | InvokedBy::Nobody) {
        put("disableModelInvocation", json!(true));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use wire::published::state::{ChildCustomization, Customization, CustomizationLoadState};
    use workspace::discovery::discover;
    use workspace::{Confinement, UserDirectories};

    use super::*;

    fn entries(files: &[(&str, &str)]) -> Vec<Value> {
        customization_entries(&find(files))
    }

    fn find(files: &[(&str, &str)]) -> Vec<Container> {
        let project = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = project.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let uri = wire::file_uri::uri_of(project.path().as_os_str().as_bytes());
        discover(&[uri], &UserDirectories::default(), &[], &Confinement::none()).containers
    }

    #[test]
    fn cu_9_an_agent_of_others_is_listed_with_what_it_uses_alone() {
        let found = find(&[
            (
                ".claude/agents/plan.md",
                "---\ndescription: Harmless\nmodel: big\ntools: read\n---\nP.",
            ),
            (".claude/agents/other.md", "O."),
            (".agents/skills/a/SKILL.md", "A."),
            (".agents/plugins/k/agents/plan.md", "K."),
            (".agents/plugins/k/.mcp.json", "{\"s\": {\"command\": \"c\"}}"),
        ]);
        let names = |used: &UsedEntries| -> Vec<(String, String)> {
            let entries = used_entries(&found, used);
            let children = entries.iter().flat_map(|entry| entry["children"].as_array().unwrap());
            let mut names: Vec<(String, String)> = children
                .map(|child| {
                    for field in ["model", "tools", "description"] {
                        assert!(child.get(field).is_none(), "{child}");
                    }
                    let text = |field: &str| child[field].as_str().unwrap().to_owned();
                    (text("type"), text("name"))
                })
                .collect();
            names.sort_unstable();
            names
        };
        let pair = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
        let mut used = UsedEntries { servers: true, custom_agents: BTreeSet::new() };
        assert_eq!(names(&used), [pair("mcpServer", "s")]);
        used.custom_agents.insert("plan".to_owned());
        assert_eq!(
            names(&used),
            [pair("agent", "plan"), pair("agent", "plan"), pair("mcpServer", "s")]
        );
        used.servers = false;
        assert_eq!(names(&used), [pair("agent", "plan"), pair("agent", "plan")]);
    }

    #[test]
    fn h_300_published_clients_read_every_kind() {
        let entries = entries(&[
            (".agents/skills/a/SKILL.md", "---\nuser-invocable: false\n---\nA."),
            (".github/prompts/p.prompt.md", "---\nmode: ask\n---\nP."),
            (
                ".claude/agents/x.md",
                "---\nmodel: big\ntools: read\ndisable-model-invocation: true\n---\nX.",
            ),
            (".agents/rules/r.mdc", "---\nglobs: src/**\n---\nR."),
            (".claude/settings.json", "{\"hooks\": {\"Stop\": []}}"),
            (".agents/plugins/k/plugin.json", "{\"version\": \"2\"}"),
            (".agents/plugins/k/commands/go.md", "Go."),
            (".agents/plugins/k/.mcp.json", "{\"s\": {\"command\": \"c\"}}"),
            (".agents/plugins/k/commands/empty.md", ""),
        ]);
        let mut seen = Vec::new();
        for entry in &entries {
            let read: Customization = serde_json::from_value(entry.clone()).unwrap();
            let children = match &read {
                Customization::Directory(directory) => directory.children.as_ref(),
                Customization::Plugin(plugin) => {
                    assert!(matches!(plugin.load, Some(CustomizationLoadState::Degraded(_))));
                    assert_eq!(plugin.version.as_deref(), Some("2"));
                    plugin.children.as_ref()
                }
                other => panic!("{other:?}"),
            };
            for child in children.unwrap() {
                seen.push(match child {
                    ChildCustomization::Skill(skill) => {
                        assert_eq!(skill.disable_user_invocation, Some(true));
                        "skill"
                    }
                    ChildCustomization::Prompt(_) => "prompt",
                    ChildCustomization::Agent(agent) => {
                        assert_eq!(agent.model.as_deref(), Some("big"));
                        assert_eq!(agent.tools.as_deref(), Some(&["read".to_owned()][..]));
                        assert_eq!(agent.disable_model_invocation, Some(true));
                        "agent"
                    }
                    ChildCustomization::Rule(rule) => {
                        assert_eq!(rule.always_apply, Some(false));
                        "rule"
                    }
                    ChildCustomization::Hook(hook) => {
                        assert_eq!(hook.enabled, Some(false));
                        assert!(hook.range.is_some());
                        "hook"
                    }
                    ChildCustomization::McpServer(server) => {
                        assert!(server.range.is_some());
                        "mcpServer"
                    }
                    other => panic!("{other:?}"),
                });
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, ["agent", "hook", "mcpServer", "prompt", "prompt", "rule", "skill"]);
    }
}
