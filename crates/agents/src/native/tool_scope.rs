//! Which tools a turn may use at all: those of a worker's brief, and those of the custom agent that the user chose.

use crate::tool::WorkerBrief;

/// Names that other programs have for tools of ours. Files of custom agents are written for those programs too.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("agent", "task"),
    ("askuserquestion", "ask_user"),
    ("ls", "list"),
    ("multiedit", "edit"),
    ("runcommands", "bash"),
    ("shell", "bash"),
    ("todowrite", "todo"),
    ("webfetch", "web_fetch"),
];

/// What a turn may use; by default everything.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolScope {
    pub brief: Option<WorkerBrief>,
    /// The names that a custom agent lists, as we have them; none: all.
    agent: Option<Vec<String>>,
}

/// The tools that a custom agent lists, as we have them; none: all.
fn own_names(listed: &[String]) -> Option<Vec<String>> {
    let lists_all = listed.iter().any(|name| name == "*");
    (!lists_all).then(|| listed.iter().map(|name| own_name(name)).collect())
}

impl ToolScope {
    pub(super) fn new(brief: Option<WorkerBrief>, agent: Option<&[String]>) -> Self {
        let of_brief = brief.as_ref().and_then(WorkerBrief::agent_tools);
        let agent = agent.or(of_brief).and_then(own_names);
        Self { brief, agent }
    }

    /// What workers of this turn may use: no more than it may itself.
    pub(super) fn agent_tools(&self) -> Option<Vec<String>> {
        self.agent.clone()
    }

    /// Whether a tool may be used, by the name that models know it by.
    pub(super) fn allows(&self, tool: &str) -> bool {
        let by_brief = self.brief.as_ref().is_none_or(|brief| brief.allows(tool));
        let by_agent = self.agent.as_ref().is_none_or(|names| {
            let mut names = names.iter();
            names.any(|name| name == tool || is_server_of(name, tool))
        });
        by_brief && by_agent
    }
}

/// Whether a name is that of an MCP server, whose tools are all meant.
fn is_server_of(name: &str, tool: &str) -> bool {
    let rest = tool.strip_prefix(name).and_then(|rest| rest.strip_prefix("__"));
    name.starts_with("mcp__") && rest.is_some()
}

/// A tool as we call it. What stands in parentheses says which calls are meant: those are asked about as ever.
fn own_name(name: &str) -> String {
    let name = name.split('(').next().unwrap_or_default().trim();
    if name.starts_with("mcp__") {
        return name.to_owned();
    }
    let lower = name.to_lowercase();
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == lower);
    other.map_or(lower, |(_, own)| (*own).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(names: &[&str]) -> ToolScope {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        ToolScope::new(None, Some(&names))
    }

    #[test]
    fn cu_008_a_list_allows_what_it_names_and_nothing_else() {
        let scope = scope(&["Read", "Bash(git:*)", "TodoWrite", "mcp__time__now", "mcp__files"]);
        for allowed in ["read", "bash", "todo", "mcp__time__now", "mcp__files__list"] {
            assert!(scope.allows(allowed), "{allowed}");
        }
        for refused in ["write", "edit", "mcp__time__zone", "mcp__files2__list", "mcp__files"] {
            assert!(refused == "mcp__files" || !scope.allows(refused), "{refused}");
        }
        assert!(ToolScope::default().allows("write"));
    }

    #[test]
    fn cu_008_an_empty_list_allows_nothing_and_a_star_everything() {
        for tool in ["read", "bash", "mcp__time__now"] {
            assert!(!scope(&[]).allows(tool));
            assert!(scope(&["*"]).allows(tool));
            assert!(scope(&["Read", "*"]).allows(tool));
        }
    }

    #[test]
    fn cu_008_a_brief_keeps_to_the_tools_of_the_custom_agent() {
        let agent = scope(&["Read", "Task"]).agent_tools().unwrap();
        let brief = WorkerBrief::read(b"{}").unwrap().within(&agent).to_bytes();
        let worker = ToolScope::new(Some(WorkerBrief::read(&brief).unwrap()), None);
        assert!(worker.allows("read"));
        assert!(!worker.allows("bash") && !worker.allows("task"));
        assert_eq!(ToolScope::default().agent_tools(), None);
    }

    #[test]
    fn a_worker_of_a_custom_agent_has_what_both_allow() {
        let brief = WorkerBrief::read(br#"{"tools": ["read", "bash"]}"#).unwrap();
        let scope = ToolScope::new(Some(brief), Some(&["Read".to_owned(), "Task".to_owned()]));
        assert!(scope.allows("read"));
        assert!(!scope.allows("bash") && !scope.allows("task"));
    }
}
