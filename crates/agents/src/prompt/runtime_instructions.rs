//! What holds for this turn: the session's mode, and skills that the user asked for.

use std::borrow::Cow;

use super::one_line;

const MENTIONS_MAX: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeInstructions {
    /// What the session's mode means for the agent, in words.
    pub mode: Option<String>,
    /// Skills that the user's message mentions.
    pub skills: Vec<String>,
}

impl RuntimeInstructions {
    pub(super) fn text(&self) -> Cow<'static, str> {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.mode.as_ref().map(|mode| one_line(mode, 1_024)));
        lines.extend(self.skills.iter().take(MENTIONS_MAX).map(|skill| {
            let name = one_line(skill, 128);
            format!("The user asked for skill \"{name}\"; call skill with name \"{name}\" before answering.")
        }));
        Cow::Owned(lines.join("\n"))
    }
}
