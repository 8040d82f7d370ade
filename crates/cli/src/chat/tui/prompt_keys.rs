//! The prompt about what the agent waits for: the keys that choose and confirm, and the fields a choice may open.
//!
//! Promises: a key that is meant for one question never answers the next. What came all at once confirms nothing. What is typed is
//! never lost to a prompt.

use std::time::{Duration, Instant};

use super::draw::DrawnSubject;
use super::events::READING_TIME;
use super::overlay::KeyUse;
use super::{Flow, TerminalChat};
use crate::chat::dialog::{self, PromptOutcome};
use crate::chat::keys::Key;
use crate::chat::prompt::{PromptAction, PromptField, PromptItem, PromptKey};

/// The hint when several keys come at once.
pub(super) const ALL_AT_ONCE: &str =
    "Press Enter by itself: these keys came all at once, as if pasted";

/// A question that nobody can have read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnreadQuestion {
    /// How long it is shown before a key can answer it.
    pause: Duration,
    drawn_at: Option<Instant>,
    /// A key came too early, and the hint was shown.
    has_held_back: bool,
}

impl UnreadQuestion {
    pub(super) fn new(pause: Duration) -> Self {
        Self { pause, drawn_at: None, has_held_back: false }
    }

    fn note_drawn(&mut self, now: Instant) {
        self.drawn_at.get_or_insert(now);
    }

    /// When keys can answer it; not known before it is drawn.
    fn readable_at(&self) -> Option<Instant> {
        Some(self.drawn_at? + self.pause)
    }

    fn is_readable(&self, now: Instant) -> bool {
        self.readable_at().is_some_and(|at| now >= at)
    }
}

impl TerminalChat {
    /// What is on the screen now can be read, and confirmed.
    pub(super) fn mark_drawn(&mut self) {
        self.prompt.mark_drawn();
        let subject = self.subject.as_ref();
        if let Some(unread) = &mut self.unread
            // What is decided on is there whole before it can be decided on.
            && subject.is_none_or(DrawnSubject::is_complete)
        {
            unread.note_drawn(Instant::now());
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.mark_drawn();
        }
    }

    /// When the question can be answered that somebody wanted to answer too early.
    pub(super) fn question_readable_at(&self) -> Option<Instant> {
        let unread = self.unread.filter(|unread| unread.has_held_back)?;
        unread.readable_at()
    }

    /// The question was there long enough: what was said about that is done with.
    pub(super) fn end_reading_time(&mut self) {
        self.unread = None;
        self.note = None;
    }

    /// Another question stands in the place of the one that a key was just pressed for: it is to be read first.
    fn expect_reading(&mut self) {
        self.unread = Some(UnreadQuestion::new(READING_TIME));
    }

    /// Whether a key came before the question could be read; it chooses nothing then.
    fn hold_back(&mut self, key: &Key, items: &[PromptItem]) -> bool {
        let Some(unread) = &mut self.unread else {
            return false; // it was read
        };
        if unread.is_readable(Instant::now()) {
            self.unread = None;
            return false;
        }
        let is_held = self.prompt.hold_back(key, items);
        if is_held {
            unread.has_held_back = true;
            let is_coming = self.subject.as_ref().is_some_and(|it| !it.is_complete());
            self.note(if is_coming {
                "Still loading. Read all of it before answering"
            } else {
                "The question changed. Read it before answering"
            });
        }
        is_held
    }

    /// Whether the prompt gets the keys: with text in the input line all keys are for that.
    pub(super) fn is_prompt_for_keys(&self) -> bool {
        self.asked.is_some() && self.field.is_none() && self.editor.is_empty()
    }

    pub(super) async fn press_prompt(&mut self, key: &Key) -> anyhow::Result<KeyUse> {
        let used = Ok(KeyUse::Used(Flow::Continue));
        let Some(asked) = &self.asked else {
            return Ok(KeyUse::Unused); // answered meanwhile
        };
        let items = dialog::items(&asked.input, &self.prompt);
        if self.hold_back(key, &items) {
            return used;
        }
        self.has_just_answered = false;
        let key = match key {
            Key::Enter if self.is_burst && self.prompt.has_choice() => {
                self.note(ALL_AT_ONCE);
                // A digit before it is text, then, and this the end of its line.
                if self.prompt.has_digit() { &Key::NewLine } else { return used }
            }
            key => key,
        };
        match self.prompt.press(key, &items) {
            PromptKey::Chose => used,
            PromptKey::NothingChosen => {
                self.note("Nothing selected. Choose with a digit or ↑↓, then press Enter");
                used
            }
            PromptKey::NotDrawn => {
                self.note(ALL_AT_ONCE);
                used
            }
            PromptKey::Confirmed(index) => {
                if let Some(item) = items.into_iter().nth(index) {
                    self.confirm_item(item.action).await?;
                }
                used
            }
            PromptKey::Text(digits) => {
                for digit in digits.chars() {
                    self.editor.key(&Key::Char(digit));
                }
                match key {
                    Key::NewLine => self.type_key(key).await.map(KeyUse::Used),
                    _ => Ok(KeyUse::Unused),
                }
            }
        }
    }

    async fn confirm_item(&mut self, action: PromptAction) -> anyhow::Result<()> {
        let Some(asked) = &mut self.asked else {
            return Ok(()); // answered meanwhile
        };
        let position = dialog::question_position(&asked.input);
        let outcome = dialog::apply(&mut asked.input, &mut self.prompt, action);
        self.take_outcome(outcome, position).await
    }

    /// A text was entered that a choice asked for.
    pub(super) async fn enter_field(
        &mut self,
        field: PromptField,
        text: &str,
    ) -> anyhow::Result<()> {
        let Some(asked) = &mut self.asked else {
            return Ok(()); // answered meanwhile; the field is closed with its question
        };
        let position = dialog::question_position(&asked.input);
        let outcome = dialog::enter_field(&mut asked.input, &mut self.prompt, field, text);
        match &outcome {
            PromptOutcome::Wrong(_) => self.editor.set(text),
            _ => {
                self.field = None;
                self.prompt.unfinished.clear();
            }
        }
        self.take_outcome(outcome, position).await
    }

    /// `position` is that of the question before.
    async fn take_outcome(
        &mut self,
        outcome: PromptOutcome,
        position: Option<usize>,
    ) -> anyhow::Result<()> {
        let Some(asked) = &self.asked else {
            return Ok(()); // answered meanwhile
        };
        match outcome {
            PromptOutcome::Decided(decision) => {
                self.chat.confirm(asked, &decision)?;
                self.has_just_answered = true;
            }
            PromptOutcome::Responded(response) => {
                self.chat.answer(asked, &response)?;
                self.has_just_answered = true;
            }
            PromptOutcome::Stays if dialog::is_same_question(position, &asked.input) => {}
            PromptOutcome::Stays => self.expect_reading(),
            PromptOutcome::Opens(field) => self.open_field(field),
            PromptOutcome::Edits(input) => self.edit_input(&input).await,
            PromptOutcome::SignsIn(wanted) => {
                self.prompt.clear_choice();
                self.begin_sign_in(&wanted);
            }
            PromptOutcome::Wrong(why) => self.note_error(&why),
        }
        Ok(())
    }

    fn open_field(&mut self, field: PromptField) {
        self.prompt.clear_choice();
        self.field = Some(field);
        let text = match field {
            PromptField::OwnWords if self.prompt.unfinished.is_empty() => {
                self.prompt.own_words.clone()
            }
            _ => std::mem::take(&mut self.prompt.unfinished),
        };
        self.editor.set(&text);
    }

    /// Back from a field to the prompt; what was typed is there when it is opened again.
    pub(super) fn leave_field(&mut self) {
        self.prompt.unfinished = self.editor.take();
        self.field = None;
    }

    /// Lets the user edit the input of the call; it is shown before it is approved.
    async fn edit_input(&mut self, input: &str) {
        self.prompt.clear_choice();
        match self.edit_json(input).await {
            Ok(edited) => {
                if let Some(asked) = &mut self.asked {
                    let outcome = dialog::enter_field(
                        &mut asked.input,
                        &mut self.prompt,
                        PromptField::Input,
                        &edited,
                    );
                    debug_assert_eq!(outcome, PromptOutcome::Stays, "an edit decides nothing");
                    // What would run now is another input.
                    self.expect_reading();
                }
            }
            Err(error) => self.note_error(&format!("{error:#}")),
        }
    }

    /// Tab at a prompt: the text that is typed makes room for an answer, and comes back.
    pub(super) fn put_text_aside(&mut self) {
        if self.asked.is_none() || self.field.is_some() {
            return; // nothing waits for an answer, or one is being typed
        }
        let aside = std::mem::take(&mut self.stash);
        self.stash = self.editor.take();
        self.editor.set(&aside);
    }

    /// The text that was put aside comes back, before what was typed since.
    pub(super) fn restore_stashed_text(&mut self) {
        let aside = std::mem::take(&mut self.stash);
        if aside.is_empty() {
            return; // nothing was put aside
        }
        if self.editor.is_empty() {
            self.editor.set(&aside)
        } else {
            let both = format!("{aside}\n{}", self.editor.text());
            let cursor = both.len();
            self.editor.replace(both, cursor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_unread_until_its_time_on_the_screen_is_over() {
        let pause = Duration::from_millis(400);
        let begin = Instant::now();
        let mut question = UnreadQuestion::new(pause);
        assert!(!question.is_readable(begin + 2 * pause), "nobody saw it");
        question.note_drawn(begin);
        question.note_drawn(begin + pause);
        assert!(!question.is_readable(begin));
        assert!(!question.is_readable(begin + pause / 2), "asked again");
        assert!(question.is_readable(begin + pause), "drawn once, shown since");
        let mut awaited = UnreadQuestion::new(Duration::ZERO);
        assert!(!awaited.is_readable(begin));
        awaited.note_drawn(begin);
        assert!(awaited.is_readable(begin));
    }
}
