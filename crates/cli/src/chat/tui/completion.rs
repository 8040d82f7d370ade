//! Tab on a word that the host may complete.

use client::chat::is_completable;

use super::TerminalChat;
use crate::chat::complete::CompletionCycle;

impl TerminalChat {
    /// Whether there is a word at the cursor that the host may complete.
    pub(super) fn may_complete(&self) -> bool {
        let editor = &self.editor;
        self.field.is_none()
            && (self.completing.is_some() || is_completable(editor.text(), editor.cursor()))
    }

    /// What is suggested is taken: another key was pressed.
    pub(super) fn accept_completion(&mut self) {
        if let Some(completing) = self.completing.take() {
            self.accepted.accept(completing.current());
        }
    }

    /// Escape: the text as it was before anything was suggested; `false` if nothing was.
    pub(super) fn undo_completion(&mut self) -> bool {
        let Some(completing) = self.completing.take() else {
            return false;
        };
        let (text, cursor) = completing.before;
        self.editor.replace(text, cursor);
        true
    }

    /// The host's first suggestion, then its next.
    pub(super) async fn complete(&mut self) {
        let completing = match self.completing.take() {
            Some(mut completing) => {
                completing.advance();
                completing
            }
            None => {
                let (text, cursor) = (self.editor.text(), self.editor.cursor());
                let suggested = match self.chat.completions(text, cursor).await {
                    Ok(completions) => CompletionCycle::new(completions, text, cursor),
                    Err(error) => return self.note_error(&error.to_string()),
                };
                match suggested {
                    Some(suggested) => suggested,
                    None => return self.note("No matches"),
                }
            }
        };
        let (text, cursor) = completing.text();
        self.editor.replace(text, cursor);
        self.note(&completing.describe());
        if completing.is_only() {
            self.accepted.accept(completing.current());
        } else {
            self.completing = Some(completing);
        }
    }
}
