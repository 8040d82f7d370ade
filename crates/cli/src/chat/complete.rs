//! What a host proposes, as people read it.

use client::chat::{Completion, OpenChat};

use crate::terminal::escape_line;

/// The commands of the host and what they do; none if it does not answer.
pub(crate) async fn host_commands(chat: &OpenChat) -> Vec<(String, String)> {
    let commands = chat.commands().await.unwrap_or_default();
    let described = commands.iter().map(|command| {
        let name = escape_line(command.insert_text.trim());
        (name, about(command))
    });
    described.collect()
}

/// What a host says about a proposal: `[file]  Reviews a file`.
pub(crate) fn about(completion: &Completion) -> String {
    let about = format!("{}  {}", completion.argument_hint, completion.description);
    escape_line(about.trim())
}
