//! Which tools and skills there are.

use std::borrow::Cow;

use super::one_line;

const NAME_BYTES_MAX: usize = 128;
const SKILLS_MAX: usize = 64;
const SKILL_BYTES_MAX: usize = 512;

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
        Cow::Owned(text)
    }
}
