//! What is installed and tried: agents and MCP servers that others make, in pinned versions.

/// Where a package comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registry {
    Npm {
        /// An older Node gets an older package.
        needs_new_node: bool,
    },
    PyPi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageKind {
    Agent,
    Server,
    SignIn,
}

impl PackageKind {
    /// The file of conformance tests with a test for each.
    pub(super) fn tests(self) -> &'static str {
        match self {
            Self::Agent => "acp_real",
            Self::Server => "real_servers",
            Self::SignIn => "real_oauth",
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Server => "MCP server",
            Self::SignIn => "authorisation server",
        }
    }
}

/// A package, and the name that its test and its directory have.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealPackage {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: PackageKind,
    pub(super) registry: Registry,
    /// Packages of the same registry that its test needs besides, with their versions.
    pub(super) besides: &'static [(&'static str, &'static str)],
    /// A command that completes the installation, in its directory: what a program would download when it is first used.
    pub(super) completed_by: &'static [&'static str],
}

/// The oldest Node that gets the agents of these versions: npm installs older agents for an older one, without a word.
pub(super) const NODE_MIN: u32 = 22;

const NEW_NODE: Registry = Registry::Npm { needs_new_node: true };
const ANY_NODE: Registry = Registry::Npm { needs_new_node: false };

const fn agent(
    name: &'static str,
    package: &'static str,
    version: &'static str,
    registry: Registry,
) -> RealPackage {
    RealPackage {
        name,
        package,
        version,
        kind: PackageKind::Agent,
        registry,
        besides: &[],
        completed_by: &[],
    }
}

const fn server(
    name: &'static str,
    package: &'static str,
    version: &'static str,
    registry: Registry,
) -> RealPackage {
    RealPackage {
        name,
        package,
        version,
        kind: PackageKind::Server,
        registry,
        besides: &[],
        completed_by: &[],
    }
}

/// `fetch` has pages simplified by a program in JavaScript, whose packages its first call would install with npm: that takes as long as
/// the registry does, npm prints into the answers, and the newest of them are for a newer Node.
const EXTRACTOR: &[&str] = &[
    "bin/python",
    "-c",
    "import os, subprocess, readabilipy; subprocess.run(['npm', 'install', '--no-audit', '--no-fund', '--save-exact', '--loglevel=error', \
     'jsdom@26.1.0', '@mozilla/readability@0.6.0', 'minimist@1.2.8'], \
     cwd=os.path.join(os.path.dirname(readabilipy.__file__), 'javascript'), check=True)",
];

pub(super) const PACKAGES: &[RealPackage] = &[
    // The last one that has its examples in it.
    agent("sdk-example", "@agentclientprotocol/sdk", "1.0.0", ANY_NODE),
    agent("claude", "@agentclientprotocol/claude-agent-acp", "0.99.1", NEW_NODE),
    agent("gemini", "@google/gemini-cli", "0.61.0", NEW_NODE),
    agent("opencode", "opencode-ai", "1.18.33", NEW_NODE),
    agent("codex", "@agentclientprotocol/codex-acp", "2.6.0", NEW_NODE),
    agent("qwen", "@qwen-code/qwen-code", "0.24.4", NEW_NODE),
    server("everything", "@modelcontextprotocol/server-everything", "2026.8.31", ANY_NODE),
    server("filesystem", "@modelcontextprotocol/server-filesystem", "2026.8.31", ANY_NODE),
    server("memory", "@modelcontextprotocol/server-memory", "2026.8.31", ANY_NODE),
    server("git", "mcp-server-git", "2026.10.19", Registry::PyPi),
    server("time", "mcp-server-time", "2026.10.19", Registry::PyPi),
    RealPackage {
        completed_by: EXTRACTOR,
        ..server("fetch", "mcp-server-fetch", "2026.10.24", Registry::PyPi)
    },
    RealPackage {
        name: "oauth",
        package: "oidc-provider",
        version: "9.13.3",
        kind: PackageKind::SignIn,
        registry: NEW_NODE,
        // The resource that it guards.
        besides: &[("@modelcontextprotocol/sdk", "1.32.2")],
        completed_by: &[],
    },
];
