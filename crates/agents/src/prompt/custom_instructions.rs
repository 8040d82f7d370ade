//! What the project says to agents: AGENTS.md, CLAUDE.md and the like, nearest first.

use std::borrow::Cow;

use super::{clip, one_line};

/// What one file may say.
pub(super) const FILE_BYTES_MAX: usize = 16 * 1_024;

/// A file of the project that is meant for agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Where it lies, as the model may name it.
    pub path: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CustomInstructions {
    /// Nearest first: what lies nearer counts for more, and is there when there is no room for all.
    pub files: Vec<InstructionFile>,
}

impl CustomInstructions {
    pub(super) fn text(&self) -> Cow<'static, str> {
        if self.files.is_empty() {
            return Cow::Borrowed("");
        }
        let mut text = String::from(
            "The project says this to agents; where two files disagree, the earlier one counts.",
        );
        for file in &self.files {
            text.push_str("\n\n# ");
            text.push_str(&one_line(&file.path, 512));
            text.push('\n');
            let said = file.text.trim();
            text.push_str(&clip(Cow::Owned(said.to_owned()), FILE_BYTES_MAX));
        }
        Cow::Owned(text)
    }
}
