//! The instructions of the project for agents: AGENTS.md, CLAUDE.md and the like, nearest first.

use std::borrow::Cow;

use workspace::{INSTRUCTION_BYTES_MAX, InstructionFile};

use super::{clip, one_line};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CustomInstructions {
    /// Nearest first: they take precedence, and are included when there is no space for all.
    pub files: Vec<InstructionFile>,
    /// Rules about certain files, a line each.
    pub listed: Vec<String>,
}

impl CustomInstructions {
    pub(super) fn text(&self) -> Cow<'static, str> {
        if self.files.is_empty() && self.listed.is_empty() {
            return Cow::Borrowed("");
        }
        let mut text = String::from(
            "The project says this to agents; where two files disagree, the earlier one counts.",
        );
        for file in &self.files {
            text.push_str("\n\n# ");
            text.push_str(&one_line(&file.path, 512));
            text.push('\n');
            let instructions = Cow::Owned(file.text.trim().to_owned());
            text.push_str(&clip(instructions, INSTRUCTION_BYTES_MAX));
        }
        if !self.listed.is_empty() {
            text.push_str("\n\n# Rules about certain files\nRead a rule before you work on a file that it is for.");
        }
        for rule in &self.listed {
            text.push_str("\n- ");
            text.push_str(&one_line(rule, 512));
        }
        Cow::Owned(text)
    }
}
