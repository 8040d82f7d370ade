//! Which tools and skills there are.

use std::borrow::Cow;

use super::one_line;

const NAME_BYTES_MAX: usize = 128;
const SKILLS_MAX: usize = 64;
const SKILL_BYTES_MAX: usize = 512;
const SERVERS_MAX: usize = 16;
const SERVER_BYTES_MAX: usize = 2 * 1_024;

/// A skill that the model may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedSkill {
    pub name: String,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolInstructions {
    /// Names of the tools, in the order they are offered; their descriptions travel with the request.
    pub tools: Vec<String>,
    pub skills: Vec<OfferedSkill>,
    /// What MCP servers say about the use of their tools, by their names.
    pub servers: Vec<(String, String)>,
}

impl ToolInstructions {
    pub(super) fn text(&self) -> Cow<'static, str> {
        let mut text = String::with_capacity(128);
        if !self.tools.is_empty() {
            text.push_str("Your tools: ");
            for (index, tool) in self.tools.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                text.push_str(&one_line(tool, NAME_BYTES_MAX));
            }
            text.push('.');
        }
        if !self.skills.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str("Skills, to be read with the tool `skill` before you use one:");
            for skill in self.skills.iter().take(SKILLS_MAX) {
                text.push_str("\n- ");
                text.push_str(&one_line(&skill.name, NAME_BYTES_MAX));
                text.push_str(": ");
                text.push_str(&one_line(&skill.description, SKILL_BYTES_MAX));
            }
        }
        for (name, instructions) in self.servers.iter().take(SERVERS_MAX) {
            if !text.is_empty() {
                text.push('\n');
            }
            let name = one_line(name, NAME_BYTES_MAX);
            let end = instructions.floor_char_boundary(SERVER_BYTES_MAX);
            text.push_str(&format!(
                "The MCP server `{name}` says of its tools, which are called mcp__{name}__...:\n{}",
                &instructions[..end]
            ));
        }
        Cow::Owned(text)
    }
}
