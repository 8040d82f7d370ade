//! What a project or a user keeps for agents, as containers and what they hold (CU-1, CU-2): plugins, and directories of
//! skills, commands, custom agents, rules and hooks.
//!
//! Promises: the same thing has the same id in every session and after every restart.
//! Must not know: the protocol's shapes, what is switched on.

use compositor::command::Entry;
use sha2::{Digest, Sha256};

use super::checked_text::is_unshowable;
use super::plugin_servers::PluginServer;
use super::skill_file::{InvokedBy, Skill};
use super::text_span::SourceSpan;

/// Sentences about what cannot be used, for each container.
const PROBLEMS_MAX: usize = 64;

/// What a container says that holds more than is listed.
const THERE_IS_MORE: &str = "there is more than is listed";

/// The name of the container of a project's own instruction files.
pub(super) const INSTRUCTIONS: &str = "instructions";

/// The directory of a project that clients may fill with skills.
pub(super) const WRITABLE: &str = ".agents/skills";

/// A plugin, or a directory of one kind of customizations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The `file:` URI of its directory; of what a client brought, the client's own.
    pub uri: String,
    pub name: String,
    pub origin: ContainerOrigin,
    /// The client that brought it.
    pub client: Option<PluginClient>,
    pub kind: ContainerKind,
    pub children: Vec<Child>,
    /// What of it cannot be used, and why: a sentence each, which names the file.
    pub problems: Vec<String>,
}

/// Whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerOrigin {
    /// It came with a working directory: whoever wrote that is not the user.
    Project,
    User,
    /// A client of the session brought it.
    Client,
}

/// The client that brought a plugin, and how it names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginClient {
    pub client_id: String,
    pub name: String,
    /// The `file:` URI of the copy that is read.
    pub copy: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerKind {
    Directory { contents: ChildKind },
    Plugin { version: Option<String> },
}

/// One thing in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Unique in its container among those of its kind.
    pub name: String,
    /// The `file:` URI of the file that declares it.
    pub uri: String,
    /// Where in that file, if it is not the whole of it.
    pub range: Option<SourceSpan>,
    pub description: Option<String>,
    pub content: ChildContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildContent {
    Skill(Skill),
    Prompt(PromptFile),
    Agent(CustomAgent),
    Rule(RuleFile),
    /// The event at which its commands would run.
    Hook,
    /// A server that its plugin declares.
    McpServer(PluginServer),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildKind {
    Agent,
    Hook,
    McpServer,
    Prompt,
    Rule,
    Skill,
}

/// A command that a file declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    pub entry: Entry,
    /// Fields that other programs read: which agent, model and tools they would use.
    pub hints: Vec<(&'static str, String)>,
}

/// An agent that a file declares: its body is read when it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomAgent {
    pub model: Option<String>,
    /// The tools it may use; absent: all.
    pub tools: Option<Vec<String>>,
    pub invoked_by: InvokedBy,
}

/// Instructions that a file holds: its body is read when it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    pub always_applies: bool,
    /// The files it is about.
    pub globs: Vec<String>,
}

/// What names a customization for good.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomizationKey {
    pub kind: &'static str,
    /// The URI of the container it is in, or its own.
    pub container: String,
    pub name: String,
}

/// What names a plugin that a client brought: by what the client says, so that it is known before it is read. It is never that of
/// a plugin on this machine, whatever URI the client says.
pub fn client_plugin_key(uri: &str, name: &str) -> CustomizationKey {
    CustomizationKey {
        kind: "plugin",
        container: client_container(uri),
        name: super::single_line(name),
    }
}

fn client_container(uri: &str) -> String {
    format!("client:{uri}")
}

impl CustomizationKey {
    /// What names it in a session's state.
    pub fn id(&self) -> String {
        let mut digest = Sha256::new();
        for part in [self.kind, &self.container, &self.name] {
            // The length keeps two parts from being read as other two.
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part.as_bytes());
        }
        let digest = digest.finalize();
        let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{hex}", self.kind)
    }
}

impl Container {
    /// An empty directory of a project.
    pub(super) fn directory(uri: String, name: &str, contents: ChildKind) -> Self {
        Self {
            uri,
            name: name.to_owned(),
            origin: ContainerOrigin::Project,
            client: None,
            kind: ContainerKind::Directory { contents },
            children: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Whether clients may put something there (CU-3).
    pub fn is_writable(&self) -> bool {
        self.origin == ContainerOrigin::Project && self.name == WRITABLE
    }

    /// Says what of it cannot be used: a sentence, in which names from outside may stand.
    pub(super) fn add_problem(&mut self, problem: &str) {
        if self.problems.len() < PROBLEMS_MAX {
            let problem = problem.replace(is_unshowable, "\u{fffd}");
            self.problems.push(problem);
        }
    }

    /// Says once that not everything is listed, before all that is wrong otherwise.
    pub(super) fn note_more(&mut self) {
        if self.problems.first().map(String::as_str) != Some(THERE_IS_MORE) {
            self.problems.insert(0, THERE_IS_MORE.to_owned());
        }
    }

    pub fn key(&self) -> CustomizationKey {
        let kind = match &self.kind {
            ContainerKind::Directory { .. } => "directory",
            ContainerKind::Plugin { .. } => "plugin",
        };
        if let Some(client) = &self.client {
            return client_plugin_key(&self.uri, &client.name);
        }
        let name = match &self.kind {
            // A directory of rules and one of hooks may be the same.
            ContainerKind::Directory { contents } => format!("{}:{}", contents.name(), self.name),
            ContainerKind::Plugin { .. } => self.name.clone(),
        };
        CustomizationKey { kind, container: self.uri.clone(), name }
    }

    /// Whether it is the instructions of a project itself.
    pub fn holds_instructions(&self) -> bool {
        let rules = ContainerKind::Directory { contents: ChildKind::Rule };
        self.kind == rules && self.name == INSTRUCTIONS
    }

    pub fn child_key(&self, child: &Child) -> CustomizationKey {
        CustomizationKey {
            kind: child.content.kind().name(),
            container: match self.client {
                Some(_) => client_container(&self.uri),
                None => self.uri.clone(),
            },
            name: child.name.clone(),
        }
    }

    /// The URI by which clients know a file of it: that of a client's plugin is the client's own, not that of the copy.
    pub fn published_uri(&self, child: &Child) -> String {
        let copied = self.client.as_ref();
        let inside = copied.and_then(|client| child.uri.strip_prefix(&client.copy));
        match inside {
            Some(inside) => format!("{}{inside}", self.uri.trim_end_matches('/')),
            None => child.uri.clone(),
        }
    }

    /// The name of a child where names of several containers meet: those of a plugin have its name before them (CU-4).
    pub fn full_name(&self, child: &Child) -> String {
        match &self.kind {
            ContainerKind::Directory { .. } => child.name.clone(),
            ContainerKind::Plugin { .. } => format!("{}:{}", self.name, child.name),
        }
    }
}

impl ChildContent {
    pub fn kind(&self) -> ChildKind {
        match self {
            Self::Skill(_) => ChildKind::Skill,
            Self::Prompt(_) => ChildKind::Prompt,
            Self::Agent(_) => ChildKind::Agent,
            Self::Rule(_) => ChildKind::Rule,
            Self::Hook => ChildKind::Hook,
            Self::McpServer(_) => ChildKind::McpServer,
        }
    }
}

impl ChildKind {
    /// As the protocol spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Hook => "hook",
            Self::McpServer => "mcpServer",
            Self::Prompt => "prompt",
            Self::Rule => "rule",
            Self::Skill => "skill",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_the_kind_and_depends_on_each_part_alone() {
        let key = |kind, container: &str, name: &str| CustomizationKey {
            kind,
            container: container.to_owned(),
            name: name.to_owned(),
        };
        let id = key("skill", "file:///a", "b").id();
        assert!(id.starts_with("skill-") && id.len() == "skill-".len() + 16, "{id}");
        assert_eq!(id, key("skill", "file:///a", "b").id());
        for other in [
            key("rule", "file:///a", "b"),
            key("skill", "file:///", "ab"),
            key("skill", "file:///ab", ""),
        ] {
            assert_ne!(id[id.len() - 16..], other.id()[other.id().len() - 16..]);
        }
    }
}
