//! Where servers are declared: the settings file, `mcp.json` in the data directory, `.mcp.json` and `.vscode/mcp.json` of a
//! directory. The first of a name wins.
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

use super::declaration::{DirectoryProgram, McpDeclaration, McpTransport};
use super::entry::McpEntry;
use super::expand::{
    Expand, FileInputs, McpInputs, OfDirectory, UsersOwn, wanted_inputs, wanted_variables,
};
use super::jsonc::without_comments;
use super::program::{find_program, hex, look_inside};

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

/// Looks for the servers of a directory.
pub fn find_declared(
    settings: (&[McpEntry], &Path),
    data: &Path,
    directory: &Path,
    inputs: &McpInputs,
) -> DeclaredServers {
    let mut found = DeclaredServers::default();
    // Each file gets what was answered to it, and nothing that was answered to another one.
    let none = FileInputs::new();
    let answers = |file: &Path| inputs.get(file).unwrap_or(&none);
    let (entries, settings_file) = settings;
    let added = entries.iter().cloned().map(Ok);
    let own = UsersOwn {
        directory,
        inputs: answers(settings_file),
    };
    found.add_all(added, settings_file, &own, directory);
    let file = data.join(USERS_FILE);
    let own = UsersOwn {
        directory,
        inputs: answers(&file),
    };
    found.add_file(&file, &own, directory);
    for file in DIRECTORY_FILES.map(|file| directory.join(file)) {
        let other = OfDirectory {
            directory,
            inputs: answers(&file),
        };
        found.add_file(&file, &other, directory);
    }
    found
}

/// What such files hold.
#[derive(Deserialize)]
struct ServersFile {
    #[serde(default, rename = "mcpServers", alias = "servers")]
    servers: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    inputs: Vec<serde_json::Value>,
}

impl DeclaredServers {
    fn add_file(&mut self, path: &Path, expand: &dyn Expand, directory: &Path) {
        let text = match read(path) {
            Ok(None) => return, // there is none
            Ok(Some(text)) => text,
            Err(why) => {
                self.problems.push(describe_problem(path, &why));
                return;
            }
        };
        let file: ServersFile = match serde_json::from_str(&without_comments(&text)) {
            Ok(file) => file,
            Err(error) => {
                let why = format!("it is not understood: {error}");
                self.problems.push(describe_problem(path, &why));
                return;
            }
        };
        let entries = file.servers.into_iter().map(|(name, entry)| {
            let read = McpEntry::read(&name, entry);
            read.map_err(|why| format!("the server {name:?} is not understood: {why}"))
        });
        let before = self.servers.len();
        self.add_all(entries, path, expand, directory);
        // What is written in another way is not asked for, and its server says what it wants.
        let inputs = file.inputs.into_iter().take(INPUTS_MAX);
        let inputs = inputs.filter_map(|input| serde_json::from_value(input).ok());
        let inputs: Vec<McpInput> = inputs.collect();
        for server in self.servers.iter_mut().skip(before) {
            server.want_inputs(&inputs, expand);
        }
    }

    /// Adds what one file declares. Much that is wrong with it is said by a number.
    fn add_all(
        &mut self,
        entries: impl Iterator<Item = Result<McpEntry, String>>,
        file: &Path,
        expand: &dyn Expand,
        directory: &Path,
    ) {
        let mut problems = Vec::new();
        let mut unsaid = 0_usize;
        for entry in entries {
            let added = entry.and_then(|entry| self.add(&entry, file, expand, directory));
            match added {
                Ok(()) => {}
                Err(why) if problems.len() < PROBLEMS_MAX => problems.push(why),
                Err(_) => unsaid += 1,
            }
        }
        if unsaid > 0 {
            problems.push(format!("{unsaid} more servers are wrong or too many"));
        }
        let described = problems.iter().map(|why| describe_problem(file, why));
        self.problems.extend(described);
    }

    fn add(
        &mut self,
        entry: &McpEntry,
        file: &Path,
        expand: &dyn Expand,
        directory: &Path,
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
                let shadowed = make_declared(entry, file, expand, Err(why));
                self.shadowed.push((shadowed, by));
            }
            return Ok(());
        }
        if self.servers.len() >= SERVERS_MAX {
            return Err(format!(
                "{name:?} is left out: a session has at most {SERVERS_MAX} servers"
            ));
        }
        let mut declaration = entry.declare(expand);
        if let (Ok(declared), false) = (&mut declaration, expand.is_users()) {
            match look_at_program(declared, directory) {
                Ok(program) => declared.program = program,
                Err(why) => declaration = Err(why),
            }
        }
        let declared = make_declared(entry, file, expand, declaration);
        self.servers.push(declared);
        Ok(())
    }
}

fn make_declared(
    entry: &McpEntry,
    file: &Path,
    expand: &dyn Expand,
    declaration: Result<McpDeclaration, String>,
) -> DeclaredServer {
    DeclaredServer {
        name: entry.name.clone(),
        file: file.to_owned(),
        is_users: expand.is_users(),
        digest: digest(entry, expand, declaration.as_ref().ok()),
        is_sse: entry.transport.as_deref() == Some("sse"),
        variables: all_variables(entry),
        wanted: all_inputs(entry),
        inputs: Vec::new(),
        declaration,
    }
}

impl DeclaredServer {
    /// Finds the inputs that it wants and that nobody gave.
    fn want_inputs(&mut self, inputs: &[McpInput], expand: &dyn Expand) {
        let unanswered = inputs
            .iter()
            .filter(|input| self.wanted.contains(&input.id) && expand.input(&input.id).is_none());
        let unanswered: Vec<McpInput> = unanswered.cloned().collect();
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
    format!("{}: {why}", crate::trust::shown_path(path))
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
    match text.len() as u64 > FILE_BYTES_MAX {
        true => Err(format!("it has more than {FILE_BYTES_MAX} bytes")),
        false => Ok(Some(text)),
    }
}

/// Everything in an entry that may hold placeholders.
fn all_texts(entry: &McpEntry) -> impl Iterator<Item = &String> {
    let texts = entry.command.iter().chain(&entry.args).chain(&entry.cwd);
    let texts = texts.chain(&entry.url).chain(entry.env.values());
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
    let texts = all_texts(entry);
    let mut ids: Vec<String> = texts.flat_map(|text| wanted_inputs(text)).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// The program that a server of a directory starts, if it lies there.
fn look_at_program(
    declaration: &McpDeclaration,
    directory: &Path,
) -> Result<Option<DirectoryProgram>, String> {
    let McpTransport::Process {
        command, env, cwd, ..
    } = &declaration.transport
    else {
        return Ok(None); // nothing is started
    };
    let from = cwd.as_ref().map(|cwd| directory.join(cwd));
    match find_program(command, env, from.as_deref().unwrap_or(directory)) {
        Some(program) => look_inside(&program, directory),
        // One that is not there cannot be started; one that comes later is another one.
        None => Ok(Some(DirectoryProgram {
            path: from.as_deref().unwrap_or(directory).join(command),
            digest: String::new(),
        })),
    }
}

/// What an answer of the user is bound to (TR-2).
fn digest(entry: &McpEntry, expand: &dyn Expand, declaration: Option<&McpDeclaration>) -> String {
    let mut hasher = Sha256::new();
    // Written anew, so that it does not depend on blanks and comments.
    hasher.update(serde_json::to_vec(entry).unwrap_or_default());
    let program = declaration.and_then(|declaration| declaration.program.as_ref());
    if let Some(program) = program {
        hasher.update([0]);
        hasher.update(&program.digest);
    }
    // The entry has the ids alone, and the file may have other values chosen by now.
    for answer in all_inputs(entry).iter().filter_map(|id| expand.input(id)) {
        hasher.update([1]);
        hasher.update((answer.len() as u64).to_le_bytes());
        hasher.update(answer);
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests;
