//! What projects and users keep for agents: commands that users can type, skills, custom agents, rules, hooks and plugins
//! (G-41, CU-1 to CU-4).
//!
//! Promises: every open is confined to the working directories and the user's own; what is read is bounded in files, bytes and
//! time; a file that cannot be used is skipped with a [`Warning`] and affects nothing else. Nothing is run.
//! Must not know: channels, turns, what is done with what was found.

mod agent_file;
mod cache;
mod checked_text;
mod command_file;
mod customization;
mod front_matter;
mod hook_file;
mod known_texts;
mod places;
mod plugin;
mod plugin_servers;
mod rule_file;
mod scan;
mod skill_file;
mod text_span;
mod warning;

use std::collections::BTreeSet;

use compositor::Catalogue;
use compositor::command::Source;

pub use cache::DiscoveryCache;
pub use customization::{
    Child, ChildContent, ChildKind, Container, ContainerKind, ContainerOrigin, CustomAgent,
    CustomizationKey, PluginClient, PromptFile, RuleFile, client_plugin_key,
};
pub use plugin_servers::PluginServer;
pub use skill_file::{InvokedBy, Skill, SkillBody, SkillError, is_skill_name};
pub use text_span::{SourcePosition, SourceSpan, find_member};
pub use warning::{Warning, WarningKind};

use crate::{ClientPluginCopy, Confinement, FileError, UserDirectories, Workspace};
use checked_text::is_unshowable;
use known_texts::KnownTexts;
use scan::Scan;

/// The longest file of a custom agent, a rule or hooks.
const FILE_BYTES_MAX: usize = 256 * 1_024;

/// The longest description that is listed.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// What a session's working directories and its user have for agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// Everything, in the order in which names count.
    pub containers: Vec<Container>,
    /// Ids of what of it is switched off.
    pub switched_off: BTreeSet<String>,
    /// Commands, the built-in ones included.
    pub catalogue: Catalogue,
    /// One for each name: the first that was found.
    pub skills: Vec<Skill>,
    /// What was skipped and why. Holds paths: it is for the user, not for a log.
    pub warnings: Vec<Warning>,
}

/// Searches directories given as `file:` URIs, the default one first, those of the user, and plugins of clients. Blocks.
pub fn discover(
    working_directories: &[String],
    user: &UserDirectories,
    brought: &[ClientPluginCopy],
    confinement: &Confinement,
) -> Discovered {
    let texts = KnownTexts::default();
    discover_again(working_directories, user, brought, confinement, texts)
}

/// The same for who did so before: files that did not change are not read. Blocks.
fn discover_again(
    working_directories: &[String],
    user: &UserDirectories,
    brought: &[ClientPluginCopy],
    confinement: &Confinement,
    texts: KnownTexts,
) -> Discovered {
    let (workspace, errors) =
        Workspace::open_available_with(working_directories, user, brought, confinement);
    let mut scan = Scan::with_texts(&workspace, texts);
    for error in errors {
        scan.warn(Warning::new(WarningKind::Unreadable, error.to_string()));
    }
    let containers = places::find_all(&mut scan);
    let mut discovered = Discovered::of(containers, &BTreeSet::new());
    for warning in std::mem::take(&mut discovered.warnings) {
        scan.warn(warning);
    }
    discovered.warnings = scan.into_warnings();
    discovered
}

/// The plugins with MCP servers, in the order in which names count, and nothing of them but those. Blocks.
pub fn find_plugin_servers(
    working_directories: &[String],
    user: &UserDirectories,
    brought: &[ClientPluginCopy],
    confinement: &Confinement,
) -> Vec<Container> {
    // What cannot be opened is said by whoever looks for everything.
    let (workspace, _) =
        Workspace::open_available_with(working_directories, user, brought, confinement);
    let mut found = places::find_plugins(&mut Scan::new(&workspace));
    found.retain(|container| !container.children.is_empty());
    found
}

impl Discovered {
    /// What is left of it without what is switched off, by ids.
    #[must_use]
    pub fn without(&self, switched_off: &BTreeSet<String>) -> Self {
        Self::of(self.containers.clone(), switched_off)
    }

    fn of(containers: Vec<Container>, switched_off: &BTreeSet<String>) -> Self {
        let mut discovered = Self {
            containers,
            switched_off: switched_off.clone(),
            catalogue: Catalogue::built_in(),
            skills: Vec::new(),
            warnings: Vec::new(),
        };
        let containers = std::mem::take(&mut discovered.containers);
        for container in &containers {
            for child in container.enabled_children(switched_off) {
                match &child.content {
                    ChildContent::Prompt(prompt) => {
                        let mut entry = prompt.entry.clone();
                        match container.origin {
                            ContainerOrigin::Project => {}
                            ContainerOrigin::User | ContainerOrigin::Client => {
                                entry.source = Source::User;
                            }
                        }
                        let name = container.full_name(child);
                        let refused = discovered.catalogue.insert(&name, entry);
                        discovered.warn_of_name(&child.uri, refused);
                    }
                    ChildContent::Skill(skill) => {
                        let mut skill = skill.clone();
                        skill.name = container.full_name(child);
                        discovered.add_skill(skill);
                    }
                    ChildContent::Agent(_)
                    | ChildContent::Rule(_)
                    | ChildContent::Hook
                    | ChildContent::McpServer(_) => {}
                }
            }
        }
        for skill in std::mem::take(&mut discovered.skills) {
            if let Some((trigger, entry)) = skill.command() {
                let refused = discovered.catalogue.insert(trigger, entry);
                discovered.warn_of_name(&skill.uri, refused);
            }
            discovered.skills.push(skill);
        }
        discovered.containers = containers;
        discovered
    }

    fn add_skill(&mut self, skill: Skill) {
        match self.skills.iter().find(|known| known.name == skill.name) {
            None => self.skills.push(skill),
            Some(known) => {
                let first = path_of(&known.uri);
                let reason = format!("{first} has the same name and is used");
                self.warn_of_name(&skill.uri, Some(reason));
            }
        }
    }

    fn warn_of_name(&mut self, uri: &str, reason: Option<String>) {
        if let Some(reason) = reason {
            let message = format!("{}: {reason}", path_of(uri));
            self.warnings.push(Warning::new(WarningKind::Name, message));
        }
    }
}

impl Container {
    /// Those of its children that are switched on, if it is.
    pub fn enabled_children<'a>(
        &'a self,
        switched_off: &'a BTreeSet<String>,
    ) -> impl Iterator<Item = &'a Child> {
        let is_on = switched_off.is_empty() || !switched_off.contains(&self.key().id());
        let children = self.children.iter().filter(move |_| is_on);
        children.filter(|child| {
            switched_off.is_empty() || !switched_off.contains(&self.child_key(child).id())
        })
    }
}

impl Workspace {
    /// What the working directories and the user have, without what the session switched off. Blocks.
    pub fn discover(&self) -> Discovered {
        let containers = places::find_all(&mut Scan::new(self));
        Discovered::of(containers, &self.switched_off())
    }

    /// The text of a file that was discovered, without its front matter. Blocks.
    pub fn read_instructions(&self, uri: &str, bytes_max: usize) -> Result<String, FileError> {
        let path = self.resolve(&path_of(uri))?;
        let Some(prefix) = self.read_prefix(&path, bytes_max)? else {
            return Err(FileError::NotFound { path: self.display_path(&path) });
        };
        let text = String::from_utf8_lossy(&prefix.bytes);
        // It was readable when it was discovered; if it is not by now, all of it is text.
        let mut body = front_matter::parse(&text)
            .map_or(&*text, |document| document.body)
            .trim()
            .trim_end_matches('\u{fffd}')
            .to_owned();
        if prefix.is_cut {
            let path = self.display_path(&path);
            body.push_str(&format!("\n[there is more in {path}]"));
        }
        Ok(body)
    }

    /// A file that was discovered, as models and people read it.
    pub fn display_uri(&self, uri: &str) -> String {
        let path = path_of(uri);
        match self.resolve(&path) {
            Ok(path) => self.display_path(&path),
            Err(_) => path, // it is no working directory's
        }
    }
}

/// A file's path as people read it.
fn path_of(uri: &str) -> String {
    match wire::file_uri::path_of(uri) {
        Some(path) => String::from_utf8_lossy(&path).into_owned(),
        None => uri.to_owned(),
    }
}

/// A file in one line: the description it has, or its first line of text.
fn describe(description: Option<&str>, body: &str) -> Option<String> {
    let first_line = || {
        let lines = body.lines().map(|line| line.trim_start_matches('#').trim());
        lines.into_iter().find(|line| !line.is_empty())
    };
    description.or_else(first_line).map(single_line)
}

fn single_line(text: &str) -> String {
    let text =
        text.split(is_unshowable).flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod customization_tests;
#[cfg(test)]
mod plugin_tests;
#[cfg(test)]
mod tests;
