//! Sending a message in place of the last one: what followed it goes, so it is asked about first (G-67).

use super::overlay::{KeyUse, Overlay, OverlayLines};
use super::{Flow, TerminalChat};
use crate::chat::confirm::{APPROVE, DENY};
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
        PromptItem::new('1', APPROVE, RewriteChoice::Replace),
        PromptItem::new('2', DENY, RewriteChoice::Stay),
        PromptItem::new('5', "Send it as a new message", RewriteChoice::SendAsNew),
    ]
}

impl RewritePrompt {
    pub(super) fn lines(&self, width: usize) -> OverlayLines {
        let question = "Send this instead of your last message? That message and what came of it leave the chat; \
                        files stay as they are.";
        let mut above = body(question, Style::Bold, width);
        above.extend(self.state.lines(&items(), width, items().len()));
        OverlayLines {
            above,
            ..OverlayLines::default()
        }
    }
}

impl TerminalChat {
    /// Enter on a message that is written anew: the text stays in the input line until it is decided.
    pub(super) fn ask_to_rewrite(&mut self, text: &str) {
        self.editor.set(text);
        self.overlay = Some(Overlay::Rewrite(RewritePrompt::default()));
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
        let confirmed = match prompt.state.press(key, &items) {
            PromptKey::Chose => {
                self.overlay = Some(Overlay::Rewrite(prompt));
                return used;
            }
            PromptKey::NothingChosen => {
                self.note("Nothing is chosen: a digit or ↑↓ chooses, Enter confirms");
                self.overlay = Some(Overlay::Rewrite(prompt));
                return used;
            }
            PromptKey::Text(digit) => {
                if let Some(digit) = digit {
                    self.editor.key(&Key::Char(digit));
                }
                return Ok(KeyUse::Unused); // the text is edited on
            }
            PromptKey::Confirmed(index) => items.get(index).map(|item| item.action),
        };
        let (Some(choice), Some(rewriting)) = (confirmed, self.rewriting.clone()) else {
            return used; // there is no such choice any more
        };
        if choice == RewriteChoice::Stay {
            return used;
        }
        if choice == RewriteChoice::Replace
            && let Err(error) = self.chat.rewind_before(&rewriting.turn_id)
        {
            self.note_error(&error.to_string());
            return used;
        }
        self.rewriting = None;
        self.type_key(&Key::Enter).await.map(KeyUse::Used)
    }
}
