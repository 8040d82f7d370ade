//! A prompt: what can be chosen at it, and the two keys that choose (G-64).
//!
//! Promises: nothing is chosen at first. A digit or an arrow chooses, Enter confirms; no letter and no paste ever does. Only a
//! choice that was drawn can be confirmed: keys that come all at once confirm nothing. Whatever else is typed is text of the
//! input line, the digit before it included, and once there is text digits are text, too.
//! Must not know: terminals, connections, what is asked.

use std::collections::BTreeSet;

use client::chat::{InputResponse, ToolDecision, WantedToken};

use super::keys::Key;
use super::line::{Line, Style, columns};
use super::wrap::wrap;

/// Rows of one item; a label that takes more is printed whole elsewhere.
const ITEM_ROWS_MAX: usize = 4;
/// Rows of what Enter would do.
const HINT_ROWS_MAX: usize = 2;
/// What stands before the item that is chosen, and before all others.
const CHOSEN: &str = "❯ ";
const NOT_CHOSEN: &str = "  ";

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PromptItem<A = PromptAction> {
    /// None where there are more items than digits: arrows reach it.
    pub(crate) digit: Option<char>,
    /// The word for it, or the label that the agent sent. Safe to print.
    pub(crate) word: String,
    /// What else there is to know about it. Safe to print.
    pub(crate) detail: String,
    /// Whether it is marked, where several can be.
    pub(crate) mark: Option<bool>,
    pub(crate) action: A,
}

/// What confirming an item does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PromptAction {
    Decide(ToolDecision),
    Respond(InputResponse),
    /// A text is typed first.
    OpenField(PromptField),
    /// The input of the call is edited first.
    Edit(String),
    /// Gets the token that the call waits for.
    SignIn(Box<WantedToken>),
    /// Answers the question by the option with this index.
    Select(usize),
    /// Answers the question by yes or no.
    AnswerYesNo(bool),
    /// Takes the default answer, or skips the question.
    GoOn,
    /// Marks or unmarks one of several options.
    Mark(usize),
    SendMarked,
    /// Goes back to the question before.
    GoBack,
}

/// What a text that a prompt asked for is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptField {
    /// Why something is denied, or what to do instead.
    Reason,
    /// The answer to a question.
    Answer,
    /// One's own words beside the options that are marked.
    OwnWords,
    /// The whole input of a call, where there is no editor to open.
    Input,
}

/// What is chosen and marked at the prompt that is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PromptState {
    choice: Option<PromptChoice>,
    /// Digits that came too early to choose anything, and may become text.
    held: String,
    /// Options that are marked; those of the default answer while none was touched.
    pub(crate) marks: Option<BTreeSet<usize>>,
    pub(crate) own_words: String,
    /// What was typed into a field that was left without an answer.
    pub(crate) unfinished: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PromptChoice {
    index: usize,
    /// The digit that was pressed for it and has not become text.
    digit: Option<char>,
    /// Whoever presses Enter can have seen it.
    is_drawn: bool,
}

/// What a key did at a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptKey {
    /// Another item is chosen, or none any more.
    Chose,
    /// The item with this index is confirmed.
    Confirmed(usize),
    /// Enter, but nothing is chosen.
    NothingChosen,
    /// Enter, but it came together with the key that chose.
    NotDrawn,
    /// It is for the input line, behind the digits that were pressed before it.
    Text(String),
}

impl PromptState {
    /// Takes a key that was pressed while the input line is empty. With text in it all keys are for that.
    pub(crate) fn press<A>(&mut self, key: &Key, items: &[PromptItem<A>]) -> PromptKey {
        let held = std::mem::take(&mut self.held);
        let chosen = self.choice.filter(|choice| choice.index < items.len());
        match (key, chosen) {
            (Key::Up | Key::Down, _) => {
                self.choice = step(key, chosen, items.len());
                PromptKey::Chose
            }
            (Key::Backspace | Key::Delete | Key::Escape, Some(_)) => {
                self.choice = None;
                PromptKey::Chose
            }
            (Key::Enter, Some(choice)) if !choice.is_drawn => PromptKey::NotDrawn,
            (Key::Enter, Some(choice)) => {
                // A digit that was confirmed is no text any more.
                self.choice = Some(PromptChoice { digit: None, ..choice });
                PromptKey::Confirmed(choice.index)
            }
            (Key::Enter, None) => PromptKey::NothingChosen,
            (Key::Char(c), None | Some(PromptChoice { digit: None, .. })) => {
                let index = items.iter().position(|item| item.digit == Some(*c));
                self.choice =
                    index.map(|index| PromptChoice { index, digit: Some(*c), is_drawn: false });
                match self.choice {
                    Some(_) => PromptKey::Chose,
                    None => PromptKey::Text(held),
                }
            }
            (Key::Char(_) | Key::Paste(_) | Key::NewLine, chosen) => {
                self.choice = None;
                let digit = chosen.and_then(|choice| choice.digit);
                PromptKey::Text(digit.map_or(held, String::from))
            }
            _ => PromptKey::Text(String::new()),
        }
    }

    /// Takes a key that came before the prompt could be read, if it would choose or confirm something.
    pub(crate) fn hold_back<A>(&mut self, key: &Key, items: &[PromptItem<A>]) -> bool {
        match key {
            Key::Up | Key::Down | Key::Enter => {
                self.held.clear();
                true
            }
            Key::Char(c) if items.iter().any(|item| item.digit == Some(*c)) => {
                self.held.push(*c);
                true
            }
            _ => false,
        }
    }

    /// What is chosen stands on the screen now.
    pub(crate) fn mark_drawn(&mut self) {
        if let Some(choice) = &mut self.choice {
            choice.is_drawn = true;
        }
    }

    pub(crate) fn has_choice(&self) -> bool {
        self.choice.is_some()
    }

    /// Whether it was made by a digit that may still become text.
    pub(crate) fn has_digit(&self) -> bool {
        self.choice.is_some_and(|choice| choice.digit.is_some())
    }

    pub(crate) fn clear_choice(&mut self) {
        self.choice = None;
    }

    fn is_chosen(&self, index: usize) -> bool {
        self.choice.is_some_and(|choice| choice.index == index)
    }

    /// The items in lines, no more of them than fit around the chosen one, and what Enter would do.
    pub(crate) fn lines<A>(
        &self,
        items: &[PromptItem<A>],
        width: usize,
        rows_max: usize,
    ) -> Vec<Line> {
        let all: Vec<Vec<Line>> = items
            .iter()
            .enumerate()
            .map(|(index, item)| fold_item(item.lines(self.is_chosen(index), width)))
            .collect();
        let chosen = self.choice.map_or(0, |choice| choice.index);
        let mut lines = window(all, chosen, rows_max);
        let chosen = self.choice.and_then(|choice| items.get(choice.index));
        let hint = match chosen {
            Some(item) => format!("Enter confirms: {}", item.word),
            None => "A digit or ↑↓ chooses, Enter confirms".to_owned(),
        };
        let hint = wrap(&hint, width.saturating_sub(2)).into_iter().take(HINT_ROWS_MAX);
        lines.extend(hint.map(|text| Line::new(Style::Dim, format!("{NOT_CHOSEN}{text}"))));
        lines
    }
}

/// Whether an item takes more rows than it gets.
pub(crate) fn is_item_cut<A>(items: &[PromptItem<A>], width: usize) -> bool {
    let mut rows = items.iter().map(|item| item.lines(false, width).len());
    rows.any(|rows| rows > ITEM_ROWS_MAX)
}

/// The first rows of an item, with a sign if there are more.
fn fold_item(mut lines: Vec<Line>) -> Vec<Line> {
    if lines.len() > ITEM_ROWS_MAX {
        lines.truncate(ITEM_ROWS_MAX - 1);
        lines.push(Line::new(Style::Dim, "    … more above (Ctrl-O)"));
    }
    lines
}

impl<A> PromptItem<A> {
    pub(crate) fn new(digit: char, word: impl Into<String>, action: A) -> Self {
        Self { digit: Some(digit), word: word.into(), detail: String::new(), mark: None, action }
    }

    pub(crate) fn lines(&self, is_chosen: bool, width: usize) -> Vec<Line> {
        let (before, style) =
            if is_chosen { (CHOSEN, Style::Bold) } else { (NOT_CHOSEN, Style::Plain) };
        let digit = self.digit.unwrap_or('·');
        let mark = match self.mark {
            Some(true) => "[x] ",
            Some(false) => "[ ] ",
            None => "",
        };
        let mut text = format!("{digit} {mark}{}", self.word);
        if !self.detail.is_empty() {
            text.push_str(&format!(": {}", self.detail));
        }
        let indent = columns(before) + 2;
        let mut lines = Vec::new();
        for (index, text) in
            wrap(&text, width.saturating_sub(indent).max(1)).into_iter().enumerate()
        {
            lines.push(match index {
                0 => Line::new(style, format!("{before}{text}")),
                _ => Line::new(style, format!("{}{text}", " ".repeat(indent))),
            });
        }
        lines
    }
}

/// The item that an exact line names: its digit, or its word as it is.
pub(crate) fn item_named<'a>(items: &'a [PromptItem], line: &str) -> Option<&'a PromptItem> {
    let mut chars = line.chars();
    let digit = chars.next().filter(|_| chars.as_str().is_empty());
    let by_digit = items.iter().find(|item| digit.is_some() && item.digit == digit);
    by_digit.or_else(|| items.iter().find(|item| item.word == line))
}

/// The items from the first, or as many before the chosen one as fit, with a line for those that are left out.
fn window(all: Vec<Vec<Line>>, chosen: usize, rows_max: usize) -> Vec<Line> {
    let rows = |items: &[Vec<Line>]| items.iter().map(Vec::len).sum::<usize>();
    if rows(&all) <= rows_max {
        return all.into_iter().flatten().collect();
    }
    let mut first = 0;
    while first < chosen && rows(&all[first..=chosen.min(all.len() - 1)]) > rows_max {
        first += 1;
    }
    let mut lines = Vec::new();
    let mut shown = 0;
    for item in &all[first..] {
        if shown > 0 && lines.len() + item.len() > rows_max {
            break;
        }
        lines.extend(item.iter().cloned());
        shown += 1;
    }
    let left_out = all.len() - shown;
    lines.push(Line::new(Style::Dim, format!("{NOT_CHOSEN}… {left_out} more: ↑↓")));
    lines
}

/// The next item in the direction of an arrow, from the last to the first and back.
fn step(key: &Key, chosen: Option<PromptChoice>, count: usize) -> Option<PromptChoice> {
    let last = count.checked_sub(1)?;
    let index = match (key, chosen.map(|choice| choice.index)) {
        (Key::Up, None | Some(0)) => last,
        (Key::Up, Some(index)) => index - 1,
        (_, Some(index)) if index < last => index + 1,
        _ => 0,
    };
    Some(PromptChoice { index, digit: None, is_drawn: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<PromptItem> {
        let item = |digit, word: &str| PromptItem::new(digit, word, PromptAction::GoOn);
        vec![item('1', "Approve"), item('2', "Deny"), item('5', "Always")]
    }

    /// What the keys did, the last one first asked; and what went to the input line.
    fn press(keys: &[Key]) -> (PromptKey, String, PromptState) {
        let items = items();
        let (mut state, mut line) = (PromptState::default(), String::new());
        let mut last = PromptKey::NothingChosen;
        for key in keys {
            if !line.is_empty() {
                if let Key::Char(c) = key {
                    line.push(*c);
                }
                continue;
            }
            last = state.press(key, &items);
            state.mark_drawn();
            if let PromptKey::Text(digits) = &last {
                line.push_str(digits);
                match key {
                    Key::Char(c) => line.push(*c),
                    Key::Paste(text) => line.push_str(text),
                    _ => {}
                }
            }
        }
        (last, line, state)
    }

    fn typed(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn a_digit_or_an_arrow_chooses_and_enter_confirms() {
        use Key::{Backspace, Char, Down, Enter, Escape, Up};
        for (keys, expected) in [
            (&[Enter][..], PromptKey::NothingChosen),
            (&[Char('1'), Enter], PromptKey::Confirmed(0)),
            (&[Char('5'), Enter], PromptKey::Confirmed(2)),
            (&[Down, Enter], PromptKey::Confirmed(0)),
            (&[Up, Enter], PromptKey::Confirmed(2)),
            (&[Down, Down, Up, Up, Enter], PromptKey::Confirmed(2)),
            (&[Down, Down, Down, Down, Enter], PromptKey::Confirmed(0)),
            (&[Down, Char('2'), Enter], PromptKey::Confirmed(1)),
            (&[Char('2'), Backspace, Enter], PromptKey::NothingChosen),
            (&[Up, Escape, Enter], PromptKey::NothingChosen),
        ] {
            assert_eq!(press(keys).0, expected, "{keys:?}");
        }
    }

    #[test]
    fn what_is_typed_is_text_and_clears_the_choice() {
        for text in ["hmm, actually no", "maybe", "yes please", "1 or 2?", "12", "4", "y", "n"] {
            let (_, line, state) = press(&typed(text));
            assert_eq!(line, text);
            assert!(!state.has_choice(), "{text}");
        }
        let mut keys = vec![Key::Down];
        keys.extend(typed("so"));
        let (_, line, state) = press(&keys);
        assert!(line == "so" && !state.has_choice());
    }

    #[test]
    fn a_paste_never_chooses() {
        let (last, line, state) = press(&[Key::Paste("1".to_owned())]);
        assert_eq!(last, PromptKey::Text(String::new()));
        assert_eq!(line, "1");
        assert!(!state.has_choice());
        let (_, line, state) = press(&[Key::Char('2'), Key::Paste("1\n".to_owned())]);
        assert!(line == "21\n" && !state.has_choice());
    }

    #[test]
    fn keys_that_came_too_early_choose_nothing_and_are_not_lost() {
        let items = items();
        let mut state = PromptState::default();
        for key in [Key::Char('1'), Key::Enter, Key::Down, Key::Enter] {
            assert!(state.hold_back(&key, &items), "{key:?}");
            assert!(!state.has_choice());
        }
        assert_eq!(state.press(&Key::Enter, &items), PromptKey::NothingChosen);
        assert!(state.hold_back(&Key::Char('1'), &items));
        assert!(state.hold_back(&Key::Char('2'), &items));
        assert_eq!(state.press(&Key::Char(' '), &items), PromptKey::Text("12".to_owned()));
        assert!(!state.hold_back(&Key::Char('x'), &items));
        assert!(state.hold_back(&Key::Char('1'), &items));
        assert_eq!(state.press(&Key::Char('2'), &items), PromptKey::Chose);
    }

    #[test]
    fn a_choice_that_was_not_drawn_is_not_confirmed() {
        let items = items();
        for key in [Key::Char('1'), Key::Down] {
            let mut state = PromptState::default();
            assert_eq!(state.press(&key, &items), PromptKey::Chose);
            assert_eq!(state.press(&Key::Enter, &items), PromptKey::NotDrawn);
            assert!(state.has_choice(), "it is confirmed by another Enter");
            state.mark_drawn();
            // Another choice is a new one.
            assert_eq!(state.press(&Key::Down, &items), PromptKey::Chose);
            assert_eq!(state.press(&Key::Enter, &items), PromptKey::NotDrawn);
            state.mark_drawn();
            assert!(matches!(state.press(&Key::Enter, &items), PromptKey::Confirmed(_)));
        }
    }

    #[test]
    fn a_long_list_shows_what_is_around_the_choice() {
        let items: Vec<PromptItem> = (0..20)
            .map(|n| PromptItem {
                digit: None,
                ..PromptItem::new('1', format!("Way {n}"), PromptAction::GoOn)
            })
            .collect();
        let mut state = PromptState::default();
        let drawn = |state: &PromptState| {
            let lines: Vec<String> = state.lines(&items, 40, 3).iter().map(Line::text).collect();
            lines.join("|")
        };
        assert!(drawn(&state).starts_with("  · Way 0|  · Way 1|  · Way 2|  … 17 more: ↑↓|"));
        state.press(&Key::Up, &items);
        assert!(drawn(&state).starts_with("  · Way 17|  · Way 18|❯ · Way 19|"));
    }

    #[test]
    fn a_line_names_an_item_by_its_digit_or_its_exact_word() {
        let items = items();
        let named = |line: &str| item_named(&items, line).map(|item| item.word.as_str());
        assert_eq!(named("1"), Some("Approve"));
        assert_eq!(named("Always"), Some("Always"));
        for line in ["", "3", "11", "y", "yes", "approve", "1 ", "Approve it"] {
            assert_eq!(named(line), None, "{line:?}");
        }
    }
}
