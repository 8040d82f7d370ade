//! What plugins that clients brought say to an external agent (AG-37): rules that always hold, and which other rules and skills there are.
//!
//! Promises: bounded; nothing that is switched off is told. Only plugins of clients are: what lies in directories the agent reads itself
//! (CU-11).
//! Must not know: how it reaches the agent.

use std::collections::BTreeSet;

use agent_api::ClientPlugin;
use workspace::discovery::{Child, ChildContent, Container, discover};
use workspace::{Confinement, UserDirectories, Workspace};

use super::label::label;
use crate::mcp::client_plugins;
use crate::task;

/// What is read of a rule.
const RULE_BYTES_MAX: usize = 16 * 1_024;

/// Rules that hold, in all.
const RULES_BYTES_MAX: usize = 32 * 1_024;

/// Rules about certain files and skills that are listed.
const LISTED_MAX: usize = 64;

const NAME_CHARS_MAX: usize = 200;
const DESCRIPTION_CHARS_MAX: usize = 500;

/// What the agent is told; empty if there is nothing to tell.
pub(super) async fn describe_plugins(
    plugins: &[ClientPlugin],
    switched_off: &BTreeSet<String>,
) -> String {
    if plugins.is_empty() {
        return String::new();
    }
    let (plugins, switched_off) = (plugins.to_vec(), switched_off.clone());
    task::run_blocking(move || describe(&plugins, &switched_off)).await
}

fn describe(plugins: &[ClientPlugin], switched_off: &BTreeSet<String>) -> String {
    let (user, confinement) = (UserDirectories::default(), Confinement::none());
    let found = discover(&[], &user, &client_plugins(plugins), &confinement);
    let mut instructions = PluginInstructions::default();
    for container in &found.containers {
        let copy = container.client.as_ref().map(|client| client.copy.clone());
        let copy = copy.and_then(|copy| Workspace::open(&[copy], &confinement).ok());
        let Some(copy) = copy else {
            continue; // its client left meanwhile, and the copy is gone
        };
        for child in container.enabled_children(switched_off) {
            instructions.add(&copy, container, child);
        }
    }
    instructions.text()
}

/// What is told, as it is put together.
#[derive(Default)]
struct PluginInstructions {
    rules: String,
    listed: Vec<String>,
    skills: Vec<String>,
}

impl PluginInstructions {
    fn add(&mut self, copy: &Workspace, container: &Container, child: &Child) {
        match &child.content {
            ChildContent::Rule(rule) if rule.always_applies => {
                self.add_rule(copy, container, child)
            }
            ChildContent::Rule(rule) => {
                let about = if rule.globs.is_empty() {
                    String::new()
                } else {
                    format!(", for {}", label(&rule.globs.join(", "), NAME_CHARS_MAX))
                };
                push(&mut self.listed, describe_file(container, child, &about));
            }
            ChildContent::Skill(skill) if skill.is_for_models() => {
                push(&mut self.skills, describe_file(container, child, ""));
            }
            // Servers are passed when the session is opened; the rest is for people, or cannot be passed.
            ChildContent::Skill(_)
            | ChildContent::Prompt(_)
            | ChildContent::Agent(_)
            | ChildContent::Hook
            | ChildContent::McpServer(_) => {}
        }
    }

    /// A rule that holds: what it says, or where it can be read if there is no room.
    fn add_rule(&mut self, copy: &Workspace, container: &Container, child: &Child) {
        // One that cannot be read by now is not there.
        let Ok(text) = copy.read_instructions(&child.uri, RULE_BYTES_MAX) else { return };
        if self.rules.len() + text.len() > RULES_BYTES_MAX {
            return push(&mut self.listed, describe_file(container, child, ""));
        }
        let name = label(&container.full_name(child), NAME_CHARS_MAX);
        self.rules.push_str(&format!("\n\n# {name}\n{text}"));
    }

    fn text(&self) -> String {
        let mut parts = Vec::new();
        if !self.rules.is_empty() {
            parts.push(format!("The user's plugins say this to agents.{}", self.rules));
        }
        if !self.listed.is_empty() {
            let head = "Rules of the user's plugins. Read a rule before you work on a file that it is for:";
            parts.push(format!("{head}\n{}", self.listed.join("\n")));
        }
        if !self.skills.is_empty() {
            let head = "Skills of the user's plugins. Read the file of a skill before you use it:";
            parts.push(format!("{head}\n{}", self.skills.join("\n")));
        }
        parts.join("\n\n")
    }
}

fn push(lines: &mut Vec<String>, line: String) {
    if lines.len() < LISTED_MAX {
        lines.push(line);
    }
}

/// A line about a file of a plugin: what it is called, where its copy lies, what it is for.
fn describe_file(container: &Container, child: &Child, about: &str) -> String {
    let name = label(&container.full_name(child), NAME_CHARS_MAX);
    let path = wire::file_uri::path_of(&child.uri).unwrap_or_default();
    let path = String::from_utf8_lossy(&path).into_owned();
    let path = label(&path, 4 * NAME_CHARS_MAX);
    let description = child.description.as_deref().unwrap_or_default();
    let description = label(description, DESCRIPTION_CHARS_MAX);
    format!("- {name} (`{path}`{about}): {description}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(files: &[(&str, &str)]) -> (tempfile::TempDir, ClientPlugin) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let plugin = ClientPlugin {
            client_id: "window".to_owned(),
            name: "Kit".to_owned(),
            uri: "memfs:/kit".to_owned(),
            directory: directory.path().canonicalize().unwrap(),
            digest: "d".to_owned(),
        };
        (directory, plugin)
    }

    #[test]
    fn ag_37_rules_are_told_and_skills_are_listed_with_their_files() {
        let (directory, plugin) = plugin(&[
            ("rules/tone.md", "Be brief."),
            ("rules/css.mdc", "---\nglobs: \"*.css\"\ndescription: Colours\n---\nUse names."),
            ("skills/map/SKILL.md", "---\ndescription: Draws maps\n---\nDraw."),
            (
                "skills/own/SKILL.md",
                "---\ndescription: Mine\ndisable-model-invocation: true\n---\nx",
            ),
        ]);
        let instructions = describe(std::slice::from_ref(&plugin), &BTreeSet::new());
        assert!(instructions.contains("Be brief."), "{instructions}");
        assert!(
            instructions.contains("Colours") && !instructions.contains("Use names."),
            "{instructions}"
        );
        let skill = directory.path().canonicalize().unwrap().join("skills/map/SKILL.md");
        assert!(
            instructions.contains(&format!("(`{}`): Draws maps", skill.display())),
            "{instructions}"
        );
        assert!(!instructions.contains("Mine"), "it is not for models: {instructions}");

        let key = workspace::discovery::client_plugin_key("memfs:/kit", "Kit");
        let off = describe(&[plugin], &BTreeSet::from([key.id()]));
        assert_eq!(off, "", "what is switched off is not told");
    }

    #[test]
    fn rules_are_bounded() {
        let long = "word ".repeat(3_000);
        let files: Vec<(String, &str)> =
            (0..9).map(|n| (format!("rules/r{n}.md"), long.as_str())).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let (_directory, plugin) = plugin(&files);
        let instructions = describe(&[plugin], &BTreeSet::new());
        assert!(instructions.len() < RULES_BYTES_MAX + 16 * 1_024, "{}", instructions.len());
        assert!(
            instructions.contains("Rules of the user's plugins"),
            "those without room are listed"
        );
    }
}
