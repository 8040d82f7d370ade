//! Where projects, users and plugins keep what agents read (CU-3, CU-4).

use super::customization::{ChildKind, Container, ContainerOrigin, WRITABLE};
use super::scan::{CHILDREN_MAX, Scan};
use super::{agent_file, command_file, hook_file, plugin, rule_file, skill_file};
use crate::roots::RootUse;
use crate::{Workspace, WorkspacePath};

/// Directories of a project; of two things of one name the first counts.
const PROJECT: [(&str, ChildKind); 15] = [
    (".agents/skills", ChildKind::Skill),
    (".claude/skills", ChildKind::Skill),
    (".greenroom/commands", ChildKind::Prompt),
    (".agents/commands", ChildKind::Prompt),
    (".claude/commands", ChildKind::Prompt),
    (".github/prompts", ChildKind::Prompt),
    (".agents/agents", ChildKind::Agent),
    (".claude/agents", ChildKind::Agent),
    (".github/agents", ChildKind::Agent),
    (".github/chatmodes", ChildKind::Agent),
    (".github/instructions", ChildKind::Rule),
    (".claude/rules", ChildKind::Rule),
    (".agents/rules", ChildKind::Rule),
    (".claude", ChildKind::Hook),
    (".github/hooks", ChildKind::Hook),
];

/// Directories of a plugin, unless its manifest names others.
const PLUGIN: [(&str, ChildKind); 5] = [
    ("skills", ChildKind::Skill),
    ("commands", ChildKind::Prompt),
    ("agents", ChildKind::Agent),
    ("rules", ChildKind::Rule),
    ("hooks", ChildKind::Hook),
];

/// Containers in all.
const CONTAINERS_MAX: usize = 64;

/// Everything that the directories hold, in the order in which names count.
pub(super) fn find_all(scan: &mut Scan<'_>) -> Vec<Container> {
    find(scan, DiscoveryScope::Everything)
}

/// The plugins that the directories hold, with their MCP servers alone, in the order in which names of servers count: those of
/// the user, of clients, of projects.
pub(super) fn find_plugins(scan: &mut Scan<'_>) -> Vec<Container> {
    let mut found = find(scan, DiscoveryScope::PluginServers);
    found.sort_by_key(|container| match container.origin {
        ContainerOrigin::User => 0,
        ContainerOrigin::Client => 1,
        ContainerOrigin::Project => 2,
    });
    found
}

/// The directories that clients may fill and that are not there yet (CU-3).
pub(super) fn find_missing_writable(workspace: &Workspace) -> Vec<Container> {
    let paths = workspace.root_paths().map(|root| root.join(WRITABLE));
    let missing = paths.filter(|path| matches!(workspace.directory_if_exists(path), Ok(None)));
    missing
        .map(|path| Container::directory(workspace.uri(&path), WRITABLE, ChildKind::Skill))
        .collect()
}

/// What is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DiscoveryScope {
    Everything,
    PluginServers,
}

impl DiscoveryScope {
    /// Where a plugin keeps it.
    fn parts(self) -> &'static [(&'static str, ChildKind)] {
        match self {
            Self::Everything => &PLUGIN,
            Self::PluginServers => &[],
        }
    }
}

fn find(scan: &mut Scan<'_>, wanted: DiscoveryScope) -> Vec<Container> {
    let mut found = FoundContainers { wanted, containers: Vec::new(), children: 0 };
    let brought = scan.workspace.plugins();
    let roots: Vec<WorkspacePath> = scan.workspace.root_paths().collect();
    for root in &roots {
        match scan.workspace.root(root).role {
            RootUse::Working => add_project(scan, root, &mut found),
            RootUse::UserAgents => {
                add_user_skills(scan, root, &mut found);
                add_plugins(scan, &root.join("plugins"), ContainerOrigin::User, &mut found);
            }
            RootUse::Plugin => {
                let plugin = plugin::read(scan, root, ContainerOrigin::User, wanted.parts());
                found.add(scan, plugin);
            }
            RootUse::Attachments => {
                for plugin in &brought {
                    if let Some(path) = scan.workspace.path_in_root(root, &plugin.directory) {
                        let plugin = plugin::read_brought(scan, &path, plugin, wanted.parts());
                        found.add(scan, Some(plugin));
                    }
                }
            }
        }
    }
    found.containers
}

/// The skills that a user has for all projects.
fn add_user_skills(scan: &mut Scan<'_>, root: &WorkspacePath, found: &mut FoundContainers) {
    if found.wanted == DiscoveryScope::PluginServers {
        return; // they are no plugin
    }
    let directory = root.join("skills");
    let mut skills =
        Container::directory(scan.uri(&directory), "~/.agents/skills", ChildKind::Skill);
    skills.origin = ContainerOrigin::User;
    let is_there = fill(scan, &directory, ChildKind::Skill, &mut skills);
    found.add(scan, is_there.then_some(skills));
}

fn add_project(scan: &mut Scan<'_>, root: &WorkspacePath, found: &mut FoundContainers) {
    if found.wanted == DiscoveryScope::Everything {
        for (path, contents) in PROJECT {
            let directory = find_directory(scan, &root.join(path), path, contents);
            found.add(scan, directory);
        }
        let instructions = rule_file::find_instructions(scan, root);
        found.add(scan, instructions);
    }
    add_plugins(scan, &root.join(".agents/plugins"), ContainerOrigin::Project, found);
}

/// Every directory in a directory of plugins.
fn add_plugins(
    scan: &mut Scan<'_>,
    path: &WorkspacePath,
    origin: ContainerOrigin,
    found: &mut FoundContainers,
) {
    for directory in scan.subdirectories(path) {
        if found.containers.len() >= CONTAINERS_MAX {
            return scan.warn_of_limit();
        }
        let plugin = plugin::read(scan, &directory, origin, found.wanted.parts());
        found.add(scan, plugin);
    }
}

/// A directory of a project for one kind of things; `None` if it is not there.
fn find_directory(
    scan: &mut Scan<'_>,
    path: &WorkspacePath,
    name: &str,
    contents: ChildKind,
) -> Option<Container> {
    let mut container = Container::directory(scan.uri(path), name, contents);
    let is_there = fill(scan, path, contents, &mut container);
    // `.claude` is there for many reasons: only one with hooks is a directory of hooks.
    let counts = contents != ChildKind::Hook || !container.children.is_empty();
    (is_there && counts).then_some(container)
}

/// Adds what a directory holds to a container; says whether the directory is there.
pub(super) fn fill(
    scan: &mut Scan<'_>,
    path: &WorkspacePath,
    contents: ChildKind,
    container: &mut Container,
) -> bool {
    let Some(directory) = scan.directory(path) else {
        return false; // Most projects do not have it; what cannot be opened is a warning.
    };
    let before = scan.problem_count();
    match contents {
        ChildKind::Skill => skill_file::find(scan, &directory, container),
        ChildKind::Prompt => command_file::find(scan, &directory, container),
        ChildKind::Agent => agent_file::find(scan, &directory, container),
        ChildKind::Rule => rule_file::find(scan, &directory, container),
        ChildKind::Hook => hook_file::find(scan, &directory, container),
        ChildKind::McpServer => debug_assert!(false, "servers are in files, not in directories"),
    }
    for problem in scan.problems_since(before) {
        container.add_problem(&problem);
    }
    true
}

/// What was found so far, within the bounds.
struct FoundContainers {
    wanted: DiscoveryScope,
    containers: Vec<Container>,
    children: usize,
}

impl FoundContainers {
    fn add(&mut self, scan: &mut Scan<'_>, container: Option<Container>) {
        let Some(mut container) = container else {
            return; // It is not there.
        };
        let room = CHILDREN_MAX - self.children;
        if self.containers.len() >= CONTAINERS_MAX || container.children.len() > room {
            scan.warn_of_limit();
            container.children.truncate(room);
            container.note_more();
        }
        if self.containers.len() < CONTAINERS_MAX {
            self.children += container.children.len();
            self.containers.push(container);
        }
        debug_assert!(self.children <= CHILDREN_MAX);
    }
}
