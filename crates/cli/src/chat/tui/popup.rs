//! The popup under the input line, on a terminal: which keys it takes, and when the host is asked.

use client::chat::{ChatError, Completion, is_completable};

use super::background::BackgroundAnswer;
use super::overlay::KeyUse;
use super::{Flow, TerminalChat};
use crate::chat::annotations;
use crate::chat::keys::Key;
use crate::chat::model_argument::{ArgumentProposal, propose};
use crate::chat::popup::{PopupQuery, WordProposal};

impl TerminalChat {
    /// Gives a key to the popup, if it is open or the key asks for it.
    pub(super) async fn press_popup(&mut self, key: &Key) -> anyhow::Result<KeyUse> {
        let used = Ok(KeyUse::Used(Flow::Continue));
        if !self.popup.is_open() {
            if *key == Key::Tab
                && let Some(proposals) = self.argument_proposals()
            {
                let (text, cursor) = (self.editor.text(), self.editor.cursor());
                self.popup.want_first_argument(text, cursor, proposals);
                match self.popup.take_wanted() {
                    Some(wanted) => self.take_proposal(&wanted),
                    None if self.popup.take_found_nothing() => self.note("No matches"),
                    None => {} // there is a choice
                }
                return used;
            }
            if *key == Key::Tab && self.may_complete() {
                let question = self.popup.want_first(self.editor.text(), self.editor.cursor());
                self.ask_for_completions(question);
                if let Some(wanted) = self.popup.take_wanted() {
                    self.take_proposal(&wanted);
                }
                return used;
            }
            return Ok(KeyUse::Unused);
        }
        match key {
            Key::Up | Key::Ctrl('p') => self.popup.step_back(),
            Key::Down | Key::Ctrl('n') => self.popup.step(),
            Key::Escape => self.popup.dismiss(),
            Key::Tab => {
                if let Some(selected) = self.popup.selected() {
                    self.take_proposal(&selected);
                }
            }
            Key::Enter => match self.popup.proposal_for_enter() {
                Some(WordProposal::Own(command)) if !command.needs_arguments() => {
                    // A command that is whole is run: nothing is left to be typed.
                    self.take_proposal(&WordProposal::Own(command));
                    let line = self.editor.take();
                    return Ok(KeyUse::Used(self.enter_text(line.trim_end()).await?));
                }
                Some(selected) => self.take_proposal(&selected),
                None => {
                    self.popup.close();
                    return Ok(KeyUse::Unused);
                }
            },
            _ => return Ok(KeyUse::Unused),
        }
        used
    }

    /// Looks at what was typed by a key that changed it.
    pub(super) fn refresh_popup(&mut self, key: &Key) {
        let is_typed = matches!(key, Key::Char(_) | Key::Backspace | Key::Ctrl('w'));
        if self.field.is_some() || self.overlay.is_some() {
            return self.popup.close();
        }
        if !is_typed {
            // Going through the history, or through the text, is no typing.
            self.popup.close()
        } else if let Some(proposals) = self.argument_proposals() {
            let (text, cursor) = (self.editor.text(), self.editor.cursor());
            self.popup.typed_argument(text, cursor, proposals);
        } else {
            let question = self.popup.update_text(self.editor.text(), self.editor.cursor());
            self.ask_for_completions(question);
        }
    }

    /// What the word behind a command of ours may become; none where no such command has the line.
    fn argument_proposals(&self) -> Option<Vec<ArgumentProposal>> {
        if self.field.is_some() || self.overlay.is_some() {
            return None;
        }
        let (text, cursor) = (self.editor.text(), self.editor.cursor());
        let typed = text.get(..cursor)?;
        let (name, _) = typed.split_once(char::is_whitespace)?;
        match name {
            "/model" => Some(propose(text, cursor, &self.chat.models())),
            "/approvals" => Some(self.propose_modes(text, cursor)),
            "/changes" | "/diff" => Some(self.propose_changes(text, cursor)),
            "/annotations" | "/comments" => Some(annotations::propose(text, cursor)),
            "/terminals" => Some(Self::propose_terminals(text, cursor)),
            _ => None,
        }
    }

    /// Whether there is a word at the cursor that may become something.
    fn may_complete(&self) -> bool {
        let editor = &self.editor;
        self.field.is_none()
            && self.overlay.is_none()
            && is_completable(editor.text(), editor.cursor())
    }

    fn ask_for_completions(&self, question: Option<PopupQuery>) {
        if let Some(query) = question {
            let asked = self.chat.completions(&query.text, query.cursor);
            self.answers.wait_for(async move {
                BackgroundAnswer::Completions { result: asked.await, query }
            });
        }
    }

    pub(super) fn take_completions(
        &mut self,
        query: &PopupQuery,
        result: Result<Vec<Completion>, ChatError>,
    ) {
        let question = match result {
            Ok(completions) => self.popup.accept_answer(query, completions),
            Err(error) => {
                let question = self.popup.note_failure();
                if self.popup.take_found_nothing() {
                    self.note_error(&error.to_string());
                }
                question
            }
        };
        self.ask_for_completions(question);
        if let Some(wanted) = self.popup.take_wanted() {
            self.take_proposal(&wanted);
        } else if self.popup.take_found_nothing() {
            self.note("No matches");
        }
    }

    fn take_proposal(&mut self, proposal: &WordProposal) {
        let taken = self.popup.text_with(proposal);
        debug_assert!(taken.is_some(), "a proposal is for the text that is there");
        if let Some((text, cursor)) = taken {
            self.editor.replace(text, cursor);
        }
        if let WordProposal::Host(completion) = proposal {
            self.accepted.accept(completion);
        }
        self.popup.close();
    }
}
