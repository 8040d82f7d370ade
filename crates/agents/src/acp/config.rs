//! One agent that speaks ACP, as the host was told of it: what is run, with what, and how far it is trusted.
//!
//! Promises: a command is found on `PATH` by looking, never by running something, and never in the directory that a session
//! works in.
//! Must not know: the settings file, processes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a process may be idle before it is stopped (AG-13).
pub(super) const IDLE_SECONDS: u64 = 900;

/// How long a process may take to answer for the first time (AG-14).
pub(super) const START_TIMEOUT_SECONDS: u64 = 60;

/// How long opening a session may take: agents start MCP servers first (AG-14).
const OPEN_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest line of an agent (AG-17).
pub const LINE_BYTES_MAX: usize = 32 << 20;

/// An agent that speaks ACP.
#[derive(Debug, Clone, PartialEq)]
pub struct AcpAgentConfig {
    /// The provider's id, and the scheme of its sessions.
    pub id: String,
    pub name: String,
    /// A name that is looked for on `PATH`, or an absolute path.
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Variables whose values are the operator's secrets.
    pub env_from: Vec<EnvSource>,
    /// How it is signed in; absent: by the user, with the agent's own means (AG-29).
    pub auth: Option<AcpAuth>,
    pub share: Share,
    /// Whether it gets the MCP servers that the host knows.
    pub hands_over_mcp: bool,
    /// Whether it reads and writes files through the host.
    pub fs: bool,
    pub trust: TrustPolicy,
    pub idle: Duration,
    pub start_timeout: Duration,
    /// How long opening a session may take.
    pub open_timeout: Duration,
    pub line_bytes_max: usize,
    /// Variables that are set once the directory is trusted (TR-4).
    pub trusted_env: BTreeMap<String, String>,
    /// How to install it, in words.
    pub install: String,
    /// Files of a project in which it looks for MCP servers itself.
    pub reads_mcp_files: Vec<String>,
    /// Whether users are told which model it chose: it chooses one even if nobody is signed in, and never says so.
    pub names_model: bool,
}

/// A variable of a process: the host's own of that name, or what a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvSource {
    pub name: String,
    pub file: Option<PathBuf>,
}

/// How an agent is signed in by the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcpAuth {
    /// A method that the agent offers, by its id.
    Method(String),
    /// A token that clients push for a resource is passed on as a variable.
    Resource {
        resource: String,
        token_env: String,
        /// No session begins without one (H-315).
        required: bool,
    },
}

/// Who shares a process of an agent (AG-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// All chats of all sessions in a directory.
    #[default]
    Directory,
    /// Nobody: each chat has its own.
    Chat,
}

/// What becomes of a directory that is not trusted (TR-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustPolicy {
    /// The user is asked.
    #[default]
    Ask,
    /// The agent starts in any directory.
    Always,
    /// Nobody is asked: the agent starts only where the directory was trusted before.
    Never,
}

impl AcpAgentConfig {
    /// An agent of which nothing else was said.
    pub fn new(id: &str, command: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: id.to_owned(),
            command: command.to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            env_from: Vec::new(),
            auth: None,
            share: Share::default(),
            hands_over_mcp: true,
            fs: false,
            trust: TrustPolicy::default(),
            idle: Duration::from_secs(IDLE_SECONDS),
            start_timeout: Duration::from_secs(START_TIMEOUT_SECONDS),
            open_timeout: OPEN_TIMEOUT,
            line_bytes_max: LINE_BYTES_MAX,
            trusted_env: BTreeMap::new(),
            install: String::new(),
            reads_mcp_files: Vec::new(),
            names_model: false,
        }
    }

    /// The program as it is found now on the host's `PATH`.
    pub fn find_program(&self) -> Option<PathBuf> {
        find_program(&self.command, std::env::var_os("PATH").as_deref())
    }

    /// What a user reads where the command is not found.
    pub fn describe_missing(&self) -> String {
        let command = &self.command;
        let found = if Path::new(command).is_absolute() {
            format!("there is no program `{command}`")
        } else {
            format!("`{command}` is not on the PATH of the host")
        };
        if self.install.is_empty() {
            format!("Not installed: {found}.")
        } else {
            format!("Not installed: {found}. {}", self.install)
        }
    }
}

/// Looks for a program. Directories that are not absolute are passed over: a process starts in the directory of a session,
/// where a repository could put a program of that name.
pub fn find_program(command: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|found| {
            let is_executable = found.permissions().mode() & 0o111 != 0;
            found.is_file() && is_executable
        })
    };
    if Path::new(command).is_absolute() {
        return Some(PathBuf::from(command)).filter(is_program);
    }
    if command.is_empty() || command.contains('/') {
        return None; // no name, and no path that means the same everywhere
    }
    let directories = std::env::split_paths(path?).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(command)).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_on_absolute_directories_of_the_path_alone() {
        let place = tempfile::tempdir().unwrap();
        let [bin, other] = ["bin", "other"].map(|name| place.path().join(name));
        for directory in [&bin, &other] {
            std::fs::create_dir(directory).unwrap();
        }
        let write = |path: PathBuf, mode: u32| {
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        };
        write(bin.join("agent"), 0o644);
        std::fs::create_dir(bin.join("directory")).unwrap();
        let agent = write(other.join("agent"), 0o755);
        let path = std::env::join_paths([Path::new(""), Path::new("."), &bin, &other]).unwrap();
        let find = |command: &str| find_program(command, Some(&path));
        assert_eq!(find("agent"), Some(agent.clone()));
        assert_eq!(find(agent.to_str().unwrap()), Some(agent));
        for none in ["directory", "", "./agent", "../other/agent", "Cargo.toml", "/none/agent"] {
            assert_eq!(find(none), None, "{none}");
        }
        // A relative directory would be one of the session's.
        let relative = find_program("agent", Some(OsStr::new("other:./other")));
        assert_eq!(relative, None);
        assert_eq!(find_program("agent", None), None);
    }

    #[test]
    fn a_missing_program_is_described_with_how_to_get_it() {
        let mut config = AcpAgentConfig::new("x", "no-such-agent");
        assert_eq!(
            config.describe_missing(),
            "Not installed: `no-such-agent` is not on the PATH of the host."
        );
        config.install = "Install it with `npm install -g x`.".to_owned();
        assert!(config.describe_missing().ends_with("`npm install -g x`."));
        config.command = "/none/agent".to_owned();
        assert!(config.describe_missing().contains("no program `/none/agent`"));
    }
}
