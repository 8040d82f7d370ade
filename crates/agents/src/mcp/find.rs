//! Where servers are declared: the settings file, `mcp.json` in the data directory, plugins of the user and of clients,
//! `.mcp.json` and `.vscode/mcp.json` of a directory, and its plugins. The first of a name wins.
//!
//! Promises: files are bounded and are no links; one that cannot be read hides no other. A declaration has a digest that is
//! another one if anything of it changes, what was answered to its inputs, or the program that lies in the directory. What
//! was answered to a file goes to no other. All functions block.
//! Must not know: who is asked.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use agent_api::ClientPlugin;
use workspace::discovery::{Container, ContainerOrigin, SourceSpan, find_member};

use super::declaration::{DirectoryProgram, McpDeclaration, McpTransport};
use super::entry::McpEntry;
use super::expand::{
    DirectoryExpander, Expander, FileInputs, McpInputs, UserExpander, wanted_inputs,
    wanted_variables,
};
use super::jsonc::without_comments;
use super::plugin::{
    PluginDeclaration, PluginExpander, PluginOrigin, declarations, is_plugin_root,
};
use super::program::{find_program, hex, look_inside};
use super::span::find_table;

/// Its name in the data directory.
const USERS_FILE: &str = "mcp.json";

/// Their names in a directory.
const DIRECTORY_FILES: [&str; 2] = [".mcp.json", ".vscode/mcp.json"];

const FILE_BYTES_MAX: u64 = 256 * 1_024;

/// Servers that a session may have.
const SERVERS_MAX: usize = 64;

/// What is said of one file: a person reads it.
const PROBLEMS_MAX: usize = 8;

/// A server that is declared.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredServer {
    pub name: String,
    /// The file that declares it.
    pub file: PathBuf,
    /// Where in that file.
    pub span: Option<SourceSpan>,
    /// The plugin that the file is of.
    pub plugin: Option<PluginOrigin>,
    /// Whether the user wrote it for all directories; if not, they are asked before it is started (TR-2).
    pub is_users: bool,
    /// Changes with the declaration, with what was answered to its inputs, and with a program of the directory that it starts.
    pub digest: String,
    /// Whether it is said to speak the older protocol over HTTP.
    pub is_sse: bool,
    /// Variables of the host that it gets by name.
    pub variables: Vec<String>,
    /// Ids of inputs that it names.
    pub wanted: Vec<String>,
    /// What the user must say first: inputs of the file that were not answered yet.
    pub inputs: Vec<McpInput>,
    /// Or why it cannot be started.
    pub declaration: Result<McpDeclaration, String>,
}

/// Something that a file has the user say.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct McpInput {
    pub id: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub default: Option<String>,
    /// What may be chosen; anything without.
    #[serde(default)]
    pub options: Vec<String>,
    /// A secret: chats are stored, so it is not asked for in one.
    #[serde(default)]
    pub password: bool,
}

/// What files call the servers.
const SERVERS_KEYS: [&str; 2] = ["mcpServers", "servers"];

/// Inputs of a file that are read; others are not asked for.
const INPUTS_MAX: usize = 16;

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeclaredServers {
    pub servers: Vec<DeclaredServer>,
    /// Those whose name another one has already: never started. With the file of that one.
    pub shadowed: Vec<(DeclaredServer, PathBuf)>,
    /// Files that could not be read, and why.
    pub problems: Vec<String>,
}

/// Where servers are looked for.
pub struct ServerSources<'a> {
    /// `[[mcp]]` of the settings file, and that file.
    pub settings: (&'a [McpEntry], &'a Path),
    pub data: &'a Path,
    /// The session's primary one.
    pub directory: &'a Path,
    /// Plugins with servers, in the order in which names count.
    pub plugins: &'a [Container],
    /// What clients brought of them.
    pub brought: &'a [ClientPlugin],
}

/// Looks for the servers of a session.
pub fn find_declared(sources: &ServerSources<'_>, inputs: &McpInputs) -> DeclaredServers {
    let mut found = DeclaredServers::default();
    // Each file gets what was answered to it, and nothing that was answered to another one.
    let none = FileInputs::new();
    let answers = |file: &Path| inputs.get(file).unwrap_or(&none);
    let directory = sources.directory;
    let (entries, settings_file) = sources.settings;
    let own = UserExpander { directory, inputs: answers(settings_file) };
    found.add_settings(entries, &DeclaringFile::new(settings_file, &own, directory));
    let file = sources.data.join(USERS_FILE);
    let own = UserExpander { directory, inputs: answers(&file) };
    found.add_file(&DeclaringFile::new(&file, &own, directory));
    let plugins = declarations(sources.plugins, sources.brought);
    let (others, of_directory): (Vec<_>, Vec<_>) =
        plugins.into_iter().partition(|declared| declared.place != ContainerOrigin::Project);
    found.add_plugins(&others, directory);
    for file in DIRECTORY_FILES.map(|file| directory.join(file)) {
        let other = DirectoryExpander { directory, inputs: answers(&file) };
        found.add_file(&DeclaringFile::new(&file, &other, directory));
    }
    found.add_plugins(&of_directory, directory);
    found
}

/// A file that declares servers, and what may stand for something else in it.
struct DeclaringFile<'a> {
    path: &'a Path,
    expand: &'a dyn Expander,
    /// Of the session.
    directory: &'a Path,
    plugin: Option<&'a PluginDeclaration>,
}

impl<'a> DeclaringFile<'a> {
    fn new(path: &'a Path, expand: &'a dyn Expander, directory: &'a Path) -> Self {
        Self { path, expand, directory, plugin: None }
    }
}

/// A server that a file declares, and where in it.
type FileEntry = Result<(McpEntry, Option<SourceSpan>), String>;

/// What such files hold.
#[derive(Deserialize)]
struct ServersFile {
    #[serde(default, rename = "mcpServers", alias = "servers")]
    servers: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    inputs: Vec<serde_json::Value>,
}

impl DeclaredServers {
    fn add_settings(&mut self, entries: &[McpEntry], file: &DeclaringFile<'_>) {
        // Only where they stand is read from it: what they are was read when the host was started.
        let text = read(file.path).ok().flatten().unwrap_or_default();
        let added = entries
            .iter()
            .cloned()
            .enumerate()
            .map(|(index, entry)| Ok((entry, find_table(&text, index))));
        self.add_all(added, file);
    }

    fn add_file(&mut self, file: &DeclaringFile<'_>) {
        let text = match read(file.path) {
            Ok(None) => return, // there is none
            Ok(Some(text)) => without_comments(&text),
            Err(why) => {
                self.problems.push(describe_problem(file.path, &why));
                return;
            }
        };
        let ServersFile { servers, inputs } = match serde_json::from_str(&text) {
            Ok(file) => file,
            Err(error) => {
                let why = format!("it is not understood: {error}");
                self.problems.push(describe_problem(file.path, &why));
                return;
            }
        };
        let find_span = |name: &str| {
            let mut keys = SERVERS_KEYS.iter();
            keys.find_map(|key| find_member(&text, Some(key), name))
        };
        let entries = servers.into_iter().map(|(name, entry)| {
            let span = find_span(&name);
            read_entry(&name, entry).map(|entry| (entry, span))
        });
        let before = self.servers.len();
        self.add_all(entries, file);
        // What is written in another way is not asked for, and its server says what it wants.
        let inputs: Vec<McpInput> = inputs
            .into_iter()
            .take(INPUTS_MAX)
            .filter_map(|input| serde_json::from_value(input).ok())
            .collect();
        for server in self.servers.iter_mut().skip(before) {
            server.want_inputs(&inputs, file.expand);
        }
    }

    fn add_plugins(&mut self, declared: &[PluginDeclaration], directory: &Path) {
        let inputs = FileInputs::new(); // plugins have none
        let inputs = &inputs;
        let (own, other) =
            (UserExpander { directory, inputs }, DirectoryExpander { directory, inputs });
        for plugin in declared {
            let others: &dyn Expander = match plugin.place {
                ContainerOrigin::User => &own,
                ContainerOrigin::Client | ContainerOrigin::Project => &other,
            };
            let expand = PluginExpander { root: &plugin.root, others };
            let file = DeclaringFile {
                plugin: Some(plugin),
                ..DeclaringFile::new(&plugin.file, &expand, directory)
            };
            let entry = read_entry(&plugin.name, plugin.declaration.clone());
            let entry = entry.map(|entry| (entry, plugin.span));
            self.add_all(std::iter::once(entry), &file);
        }
    }

    /// Adds what one file declares. Much that is wrong with it is said by a number.
    fn add_all(&mut self, entries: impl Iterator<Item = FileEntry>, file: &DeclaringFile<'_>) {
        let mut problems = Vec::new();
        let mut unsaid = 0_usize;
        for entry in entries {
            let added = entry.and_then(|(entry, span)| self.add(&entry, span, file));
            match added {
                Ok(()) => {}
                Err(why) if problems.len() < PROBLEMS_MAX => problems.push(why),
                Err(_) => unsaid += 1,
            }
        }
        if unsaid > 0 {
            problems.push(format!("{unsaid} more servers are wrong or too many"));
        }
        let described = problems.iter().map(|why| describe_problem(file.path, why));
        self.problems.extend(described);
    }

    fn add(
        &mut self,
        entry: &McpEntry,
        span: Option<SourceSpan>,
        file: &DeclaringFile<'_>,
    ) -> Result<(), String> {
        let name = &entry.name;
        if entry.disabled {
            return Ok(());
        }
        let mut servers = self.servers.iter();
        if let Some(first) = servers.find(|server| server.name == *name) {
            let by = first.file.clone();
            if self.shadowed.len() < SERVERS_MAX {
                let why = "another file declares a server of this name first".to_owned();
                let shadowed = make_declared(entry, span, file, Err(why));
                self.shadowed.push((shadowed, by));
            }
            return Ok(());
        }
        if self.servers.len() >= SERVERS_MAX {
            return Err(format!(
                "{name:?} is left out: a session has at most {SERVERS_MAX} servers"
            ));
        }
        let mut declaration = entry.declare(file.expand);
        if let (Ok(declared), false) = (&mut declaration, file.expand.is_users()) {
            match look_at_program(declared, file) {
                Ok(program) => declared.program = program,
                Err(why) => declaration = Err(why),
            }
        }
        let declared = make_declared(entry, span, file, declaration);
        self.servers.push(declared);
        Ok(())
    }
}

fn read_entry(name: &str, written: serde_json::Value) -> Result<McpEntry, String> {
    let read = McpEntry::read(name, written);
    read.map_err(|why| format!("the server {name:?} is not understood: {why}"))
}

fn make_declared(
    entry: &McpEntry,
    span: Option<SourceSpan>,
    file: &DeclaringFile<'_>,
    declaration: Result<McpDeclaration, String>,
) -> DeclaredServer {
    let mut variables = all_variables(entry);
    if file.plugin.is_some() {
        variables.retain(|variable| !is_plugin_root(variable));
    }
    DeclaredServer {
        name: entry.name.clone(),
        file: file.path.to_owned(),
        span,
        plugin: file.plugin.map(|plugin| plugin.origin.clone()),
        is_users: file.expand.is_users(),
        digest: digest(entry, file, declaration.as_ref().ok()),
        is_sse: entry.transport.as_deref() == Some("sse"),
        variables,
        wanted: all_inputs(entry),
        inputs: Vec::new(),
        declaration,
    }
}

impl DeclaredServer {
    /// Finds the inputs that it wants and that nobody gave.
    fn want_inputs(&mut self, inputs: &[McpInput], expand: &dyn Expander) {
        let unanswered: Vec<McpInput> = inputs
            .iter()
            .filter(|input| self.wanted.contains(&input.id) && expand.input(&input.id).is_none())
            .cloned()
            .collect();
        if let Some(secret) = unanswered.iter().find(|input| input.password) {
            self.declaration = Err(format!(
                "it wants the secret `{}`, and what is typed in a chat is stored; declare the server in greenroom.toml with `${{env:NAME}}`",
                secret.id.escape_debug()
            ));
        } else {
            self.inputs = unanswered;
        }
    }
}

fn describe_problem(path: &Path, why: &str) -> String {
    format!("{}: {why}", crate::trust::printable_path(path))
}

/// A file that is there; none if it is not.
fn read(path: &Path) -> Result<Option<String>, String> {
    let facts = match path.symlink_metadata() {
        Ok(facts) => facts,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    if !facts.is_file() {
        return Err("it is not a file; links are not followed".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        Err(format!("it has more than {FILE_BYTES_MAX} bytes"))
    } else {
        Ok(Some(text))
    }
}

/// Everything in an entry that may hold placeholders.
fn all_texts(entry: &McpEntry) -> impl Iterator<Item = &String> {
    let texts = entry
        .command
        .iter()
        .chain(&entry.args)
        .chain(&entry.cwd)
        .chain(&entry.url)
        .chain(entry.env.values());
    texts.chain(entry.headers.values())
}

fn all_variables(entry: &McpEntry) -> Vec<String> {
    let texts = all_texts(entry);
    let mut names: Vec<String> = texts.flat_map(|text| wanted_variables(text)).collect();
    names.sort();
    names.dedup();
    names
}

fn all_inputs(entry: &McpEntry) -> Vec<String> {
    let mut ids: Vec<String> = all_texts(entry).flat_map(|text| wanted_inputs(text)).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// The program that a server of a directory or of a plugin starts, if it lies there.
fn look_at_program(
    declaration: &McpDeclaration,
    file: &DeclaringFile<'_>,
) -> Result<Option<DirectoryProgram>, String> {
    let McpTransport::Process { command, env, cwd, .. } = &declaration.transport else {
        return Ok(None); // nothing is started
    };
    let directory = file.directory;
    let from = cwd.as_ref().map(|cwd| directory.join(cwd));
    let Some(program) = find_program(command, env, from.as_deref().unwrap_or(directory)) else {
        // One that is not there cannot be started; one that comes later is another one.
        return Ok(Some(DirectoryProgram {
            path: from.as_deref().unwrap_or(directory).join(command),
            digest: String::new(),
        }));
    };
    match (look_inside(&program, directory)?, file.plugin) {
        (None, Some(plugin)) => look_inside(&program, &plugin.root),
        (looked_at, _) => Ok(looked_at),
    }
}

/// What an answer of the user is bound to (TR-2).
fn digest(
    entry: &McpEntry,
    file: &DeclaringFile<'_>,
    declaration: Option<&McpDeclaration>,
) -> String {
    let mut hasher = Sha256::new();
    // Written anew, so that it does not depend on blanks and comments.
    hasher.update(serde_json::to_vec(entry).unwrap_or_default());
    let program = declaration.and_then(|declaration| declaration.program.as_ref());
    if let Some(program) = program {
        hasher.update([0]);
        hasher.update(&program.digest);
    }
    // The entry has the ids alone, and the file may have other values chosen by now.
    let inputs = all_inputs(entry);
    for answer in inputs.iter().filter_map(|id| file.expand.input(id)) {
        hasher.update([1]);
        hasher.update((answer.len() as u64).to_le_bytes());
        hasher.update(answer);
    }
    // A program that it starts may read any file of the plugin, which its client can replace.
    if let Some(plugin) = file.plugin.and_then(|plugin| plugin.digest.as_ref()) {
        hasher.update([2]);
        hasher.update(plugin);
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests;
