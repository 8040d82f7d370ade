//! What holds for this turn: the session's mode, who the work is for, what is left to do of it, and skills that the user
//! asked for.

use std::borrow::Cow;

use super::one_line;

const MENTIONS_MAX: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeInstructions {
    /// What the session's mode means for the agent, in words.
    pub mode: Option<String>,
    /// The custom agent that the user chose: its name, and what it is told.
    pub agent: Option<(String, String)>,
    /// The turn is a task that another agent gave.
    pub is_worker: bool,
    /// The agent's own list of what is to be done, as it stood when the turn began.
    pub todo: Option<String>,
    /// Skills that the user's message mentions.
    pub skills: Vec<String>,
}

const WORKER: &str = "Another agent gave you this task, and nobody answers questions. Do all of it, then end with a message that \
     says what you found or did: that message is all the other agent gets.";

/// Of the list that is repeated; the rest is in the conversation.
const TODO_BYTES_MAX: usize = 4 * 1_024;

impl RuntimeInstructions {
    pub(super) fn text(&self) -> Cow<'static, str> {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.mode.as_ref().map(|mode| one_line(mode, 1_024)));
        lines.extend(self.agent.as_ref().map(|(name, text)| {
            let name = one_line(name, 128);
            format!("The user chose the agent \"{name}\", which is told this:\n{text}\n")
        }));
        lines.extend(self.is_worker.then(|| WORKER.to_owned()));
        lines.extend(self.todo.as_ref().map(|todo| {
            let end = todo.floor_char_boundary(TODO_BYTES_MAX);
            let todo = todo[..end].trim_end();
            format!("Your list of what is to be done, as it stood when this turn began:\n{todo}")
        }));
        lines.extend(self.skills.iter().take(MENTIONS_MAX).map(|skill| {
            let name = one_line(skill, 128);
            format!("The user asked for skill \"{name}\"; call skill with name \"{name}\" before answering.")
        }));
        Cow::Owned(lines.join("\n"))
    }
}
