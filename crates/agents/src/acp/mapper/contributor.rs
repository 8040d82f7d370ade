//! Whose tool a call is of: an MCP server that the agent was handed over (MC-9).

use serde_json::{Map, Value};
use wire::published::state::{ToolCallContributor, ToolCallMcpContributor};

/// The MCP server that a call is of: the one that the agent names, else the one whose name the tool's begins with, as agents
/// put them together (`mcp__s__t`, `mcp_s_t`, `s_t`). Characters that models take in no name are `_` there.
pub(super) fn contributor_of(
    meta: Option<&Map<String, Value>>,
    name: &str,
    servers: &[(String, String)],
) -> Option<ToolCallContributor> {
    let said = meta
        .and_then(|meta| meta.get("claudeCode")?.get("mcpServer")?.get("name"))
        .and_then(Value::as_str);
    let is_of = |server: &str| {
        let server: String = server.chars().map(to_name_character).collect();
        let beginnings =
            [format!("mcp__{server}__"), format!("mcp_{server}_"), format!("{server}_")];
        beginnings.iter().any(|beginning| name.starts_with(beginning))
    };
    let found = match said {
        Some(said) => servers.iter().find(|(server, _)| server == said),
        // Of two that fit, the longer name says more.
        None => {
            let fitting = servers.iter().filter(|(server, _)| is_of(server));
            fitting.max_by_key(|(server, _)| server.len())
        }
    };
    let (_, id) = found?;
    Some(ToolCallContributor::Mcp(ToolCallMcpContributor { customization_id: id.clone() }))
}

fn to_name_character(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mc_9_a_call_is_of_the_server_that_is_named_or_that_its_name_begins_with() {
        let servers = [("git", "1"), ("git_hub", "2"), ("web", "3"), ("my docs.v2", "4")]
            .map(|(name, id)| (name.to_owned(), id.to_owned()));
        let of = |name: &str, meta: Value| {
            let found = contributor_of(meta.as_object(), name, &servers);
            found.map(|found| match found {
                ToolCallContributor::Mcp(mcp) => mcp.customization_id,
                other => format!("{other:?}"),
            })
        };
        let id = |id: &str| Some(id.to_owned());
        for (name, expected) in [
            ("mcp__git__log", id("1")),
            ("mcp_web_get", id("3")),
            ("git_log", id("1")),
            ("git_hub_issues", id("2")),
            ("mcp__my_docs_v2__find", id("4")),
            ("bash", None),
        ] {
            assert_eq!(of(name, json!({})), expected, "{name}");
        }
        let said = json!({"claudeCode": {"mcpServer": {"name": "web"}}});
        assert_eq!(of("mcp__git__log", said), id("3"));
        let other = json!({"claudeCode": {"mcpServer": {"name": "its own"}}});
        assert_eq!(of("mcp__git__log", other), None);
    }
}
