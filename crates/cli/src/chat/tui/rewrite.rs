//! Sending a message in place of the last one: what followed it goes, so it is asked about first (G-67).
//!
//! Promises: nothing leaves the chat before the message that replaces it is known to be one: a command that nobody knows, a model
//! that is gone, or a chat that has gone on meanwhile change nothing. It is not asked beside a question of the agent.

use super::entering::{EnteredLine, LineOrigin};
use super::overlay::{KeyUse, Overlay, OverlayLines};
use super::prompt_keys::ALL_AT_ONCE;
use super::{Flow, TerminalChat};
use crate::chat::command::EnteredInput;
use crate::chat::editor::EditorOutcome;
use crate::chat::keys::Key;
use crate::chat::line::Style;
use crate::chat::prompt::{PromptItem, PromptKey, PromptState};
use crate::chat::tool::body;

/// The question, while it is open.
#[derive(Debug, Default)]
pub(super) struct RewritePrompt {
    state: PromptState,
}

/// What can be done with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RewriteChoice {
    /// Go back to before the message and send this.
    Replace,
    /// Go on editing.
    Stay,
    /// Leave the message and send this as another.
    SendAsNew,
}

fn items() -> Vec<PromptItem<RewriteChoice>> {
    vec![
        PromptItem::new('1', "Replace", RewriteChoice::Replace),
        PromptItem::new('2', "Go on editing", RewriteChoice::Stay),
        PromptItem::new('3', "Send it as a new message", RewriteChoice::SendAsNew),
    ]
}

impl RewritePrompt {
    pub(super) fn mark_drawn(&mut self) {
        self.state.mark_drawn();
    }

    pub(super) fn lines(&self, width: usize) -> OverlayLines {
        let question = "Replace your last message by this? That message and what came of it leave the chat; files stay \
                        as they are.";
        let mut above = body(question, Style::Bold, width);
        above.extend(self.state.lines(&items(), width, items().len()));
        OverlayLines { above, ..OverlayLines::default() }
    }
}

impl TerminalChat {
    /// Enter on a message that is written anew: the text stays in the input line until it is decided.
    pub(super) async fn enter_rewritten(&mut self, text: &str) -> anyhow::Result<Flow> {
        match EnteredInput::parse(text) {
            // A command of this client is no message: it replaces none.
            EnteredInput::Command(_) => {
                self.stop_rewriting();
                self.remember(text);
                return self.enter_line(EnteredLine::new(text)).await;
            }
            EnteredInput::Wrong(why) => {
                self.editor.set(text);
                self.note_error(&why);
            }
            EnteredInput::Message | EnteredInput::Other(_) => {
                self.editor.set(text);
                match self.asked {
                    Some(_) => self.note("Answer the question above first; your text stays here"),
                    None => self.overlay = Some(Overlay::Rewrite(RewritePrompt::default())),
                }
            }
        }
        Ok(Flow::Continue)
    }

    /// The agent asks something: one question at a time. The text stays, and Enter asks again.
    pub(super) fn close_rewrite_prompt(&mut self) {
        if matches!(self.overlay, Some(Overlay::Rewrite(_))) {
            self.overlay = None;
            self.note("The agent asks something: your text is not sent yet");
        }
    }

    pub(super) async fn press_rewrite(
        &mut self,
        mut prompt: RewritePrompt,
        key: &Key,
    ) -> anyhow::Result<KeyUse> {
        let used = Ok(KeyUse::Used(Flow::Continue));
        let items = items();
        if *key == Key::Escape && !prompt.state.has_choice() {
            return used; // back to editing
        }
        let pressed = match key {
            Key::Enter if self.is_burst => PromptKey::NotDrawn,
            key => prompt.state.press(key, &items),
        };
        match pressed {
            PromptKey::Chose => self.overlay = Some(Overlay::Rewrite(prompt)),
            PromptKey::NothingChosen => {
                self.note("Nothing selected. Choose with a digit or ↑↓, then press Enter");
                self.overlay = Some(Overlay::Rewrite(prompt));
            }
            PromptKey::NotDrawn => {
                self.note(ALL_AT_ONCE);
                self.overlay = Some(Overlay::Rewrite(prompt));
            }
            PromptKey::Text(digits) => {
                for digit in digits.chars() {
                    self.editor.key(&Key::Char(digit));
                }
                return Ok(KeyUse::Unused); // the text is edited on
            }
            PromptKey::Confirmed(index) => {
                let choice = items.get(index).map(|item| item.action);
                return self.decide_rewrite(choice).await.map(KeyUse::Used);
            }
        }
        used
    }

    async fn decide_rewrite(&mut self, choice: Option<RewriteChoice>) -> anyhow::Result<Flow> {
        let (Some(choice), Some(rewriting)) = (choice, self.rewriting.clone()) else {
            return Ok(Flow::Continue); // there is no such choice any more
        };
        let replaced_turn = match choice {
            RewriteChoice::Stay => return Ok(Flow::Continue),
            RewriteChoice::SendAsNew => None,
            RewriteChoice::Replace => Some(rewriting.turn_id),
        };
        for (label, attachment) in self.editor.attachments() {
            self.accepted.accept_attachment(label, attachment);
        }
        let EditorOutcome::Entered(text) = self.editor.key(&Key::Enter) else {
            return Ok(Flow::Continue); // the text ends in a backslash: it got its next line
        };
        self.remember(&text);
        let origin = LineOrigin::Rewritten { replaced_turn };
        self.enter_line(EnteredLine { text, origin }).await
    }

    /// Takes the message out of the chat that is replaced. The one in its place is sent next; nothing else is left to check.
    pub(super) fn remove_replaced(&mut self, turn_id: &str) -> bool {
        if self.chat.last_turn_id().as_deref() != Some(turn_id) {
            self.note_error("The chat has continued since that message: nothing is replaced");
            return false;
        }
        match self.chat.rewind_before(turn_id) {
            Ok(()) => true,
            Err(error) => {
                self.note_error(&format!("{error}: nothing is replaced"));
                false
            }
        }
    }
}
