//! Going through what the host suggests for a half typed word.
//!
//! Promises: what a host suggests cannot control the terminal.
//! Must not know: terminals, the protocol.

use client::chat::{Completion, OpenChat};
use markup::visible::is_hidden;

use crate::terminal::escape_line;

/// The suggestions for the word at the cursor, and which of them is shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CompletionCycle {
    /// The text before anything was suggested, and where the cursor was in it.
    pub(crate) before: (String, usize),
    /// At least one.
    completions: Vec<Completion>,
    current: usize,
}

impl CompletionCycle {
    /// `None` if there is nothing to suggest.
    pub(crate) fn new(completions: Vec<Completion>, text: &str, cursor: usize) -> Option<Self> {
        let completions: Vec<Completion> = completions.into_iter().filter(is_printable).collect();
        (!completions.is_empty()).then(|| Self {
            before: (text.to_owned(), cursor),
            completions,
            current: 0,
        })
    }

    pub(crate) fn is_only(&self) -> bool {
        self.completions.len() == 1
    }

    pub(crate) fn current(&self) -> &Completion {
        &self.completions[self.current]
    }

    /// Goes to the next suggestion, from the last to the first.
    pub(crate) fn advance(&mut self) {
        self.current = (self.current + 1) % self.completions.len();
    }

    /// The text with the suggestion in it, and where the cursor is then.
    pub(crate) fn text(&self) -> (String, usize) {
        let completion = self.current();
        let mut text = self.before.0.clone();
        text.replace_range(completion.replaces.clone(), &completion.insert_text);
        let cursor = completion.replaces.start + completion.insert_text.len();
        (text, cursor)
    }

    /// The suggestion in one line.
    pub(crate) fn describe(&self) -> String {
        let name = self.current().insert_text.trim_end();
        let about = match about(self.current()) {
            about if about.is_empty() => about,
            about => format!("  {about}"),
        };
        match self.is_only() {
            true => format!("{name}{about}"),
            false => format!(
                "{} of {}: {name}{about} · Tab: next",
                self.current + 1,
                self.completions.len()
            ),
        }
    }
}

/// The commands of the host and what they do; none if it does not answer.
pub(crate) async fn host_commands(chat: &OpenChat) -> Vec<(String, String)> {
    let commands = chat.commands().await.unwrap_or_default();
    let described = commands.iter().map(|command| {
        let name = escape_line(command.insert_text.trim());
        (name, about(command))
    });
    described.collect()
}

fn is_printable(completion: &Completion) -> bool {
    let mut chars = completion.insert_text.chars();
    chars.all(|c| !is_hidden(c) || c == '\n')
}

/// What a host says about a suggestion: `[file]  Reviews a file`.
fn about(completion: &Completion) -> String {
    let about = format!("{}  {}", completion.argument_hint, completion.description);
    escape_line(about.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(insert_text: &str) -> Completion {
        Completion {
            insert_text: insert_text.to_owned(),
            replaces: 5..7,
            attachment: None,
            argument_hint: "FILE".to_owned(),
            description: "Does\u{7} it".to_owned(),
        }
    }

    #[test]
    fn suggestions_are_gone_through_and_start_over() {
        let both = vec![completion("@file:a "), completion("@file:b ")];
        let mut cycle = CompletionCycle::new(both, "👍 @x!", 7).unwrap();
        assert_eq!(cycle.text(), ("👍 @file:a !".to_owned(), 13));
        assert_eq!(
            cycle.describe(),
            "1 of 2: @file:a  FILE  Does\\x07 it · Tab: next"
        );
        cycle.advance();
        assert_eq!(cycle.text().0, "👍 @file:b !");
        cycle.advance();
        assert_eq!(cycle.text().0, "👍 @file:a !");
        assert_eq!(cycle.before, ("👍 @x!".to_owned(), 7));
    }

    #[test]
    fn suggestions_cannot_control_the_terminal() {
        let bad = vec![completion("\u{1b}[2J")];
        assert_eq!(CompletionCycle::new(bad, "👍 @x", 7), None);
        assert_eq!(CompletionCycle::new(Vec::new(), "", 0), None);
    }
}
