//! Files that steer tools, editors and agents: an agent that may edit freely still asks before it changes one (G-63).

use std::path::Path;

/// Directories and files of a project that are protected wherever they lie in it, with everything below.
const NAMES: &[&str] = &[
    ".agents",
    ".claude",
    ".cursorrules",
    ".git",
    ".github",
    ".greenroom",
    ".mcp.json",
    ".vscode",
    ".windsurfrules",
    "agents.md",
    "agents.override.md",
    "claude.local.md",
    "claude.md",
    "copilot-instructions.md",
    "gemini.md",
    "qwen.md",
];

/// Directories of other agents, which read instructions and commands from them.
const AGENT_DIRECTORIES: &[&str] = &[".codex", ".cursor", ".gemini", ".opencode", ".qwen"];

const INSTRUCTIONS_ENDING: &str = ".instructions.md";

/// Whether a path without links is one of them. Upper and lower case are one: they are on some disks.
pub fn is_protected(relative: &Path) -> bool {
    relative.components().any(|part| {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        // Some disks ignore these at the end of a name.
        let name = name.trim_end_matches(['.', ' ']);
        NAMES.contains(&name)
            || AGENT_DIRECTORIES.contains(&name)
            || name.ends_with(INSTRUCTIONS_ENDING)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_tools_is_protected_in_any_case_and_depth() {
        for path in [
            ".git/config",
            ".GIT/hooks/pre-commit",
            "sub/.git/config",
            ".github/workflows/ci.yml",
            ".vscode/tasks.json",
            ".mcp.json",
            ".Claude/settings.json",
            "AGENTS.md",
            "docs/agents.md",
            "Claude.MD",
            "GEMINI.md",
            ".github/copilot-instructions.md",
            "rust.instructions.md",
            ".greenroom/commands/x.md",
            ".git./config",
            ".cursor/rules/x.mdc",
        ] {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        for path in [
            "src/main.rs",
            ".gitignore",
            "git/config",
            "agents/src/lib.rs",
            "README.md",
            ".githubx",
        ] {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }
}
