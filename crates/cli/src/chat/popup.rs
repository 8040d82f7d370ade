//! What is proposed under the input line while a command or a mention is typed.
//!
//! Promises: typing never waits: proposals are asked for one at a time, and an answer to what is no longer there is dropped.
//! What a host proposes cannot control the terminal. Once closed it stays closed for that word.
//! Must not know: terminals, connections.

use client::chat::{Completion, is_completable};
use markup::visible::is_hidden;

use super::command_table::{COMMANDS, OwnCommand};
use super::complete::about;
use super::line::Line;
use super::menu::{Menu, MenuItem};
use super::model_argument::ArgumentProposal;

/// Lines of the popup.
const ROWS: usize = 8;

/// What was typed, and where the cursor is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PopupQuery {
    pub(crate) text: String,
    pub(crate) cursor: usize,
}

/// Something that the word at the cursor may become.
#[derive(Debug, Clone)]
pub(crate) enum WordProposal {
    Own(&'static OwnCommand),
    /// What may stand behind a command of ours.
    Argument(ArgumentProposal),
    Host(Completion),
}

#[derive(Debug, Default)]
pub(crate) struct Popup {
    /// What is at the cursor now, if it may become something.
    current: Option<PopupQuery>,
    /// What is at the cursor stands behind a command of ours: the host knows nothing of it.
    is_argument: bool,
    /// What the host was asked about and has not answered.
    asked: Option<PopupQuery>,
    menu: Option<Menu<WordProposal>>,
    /// Where the word begins that this was closed for.
    closed_at: Option<usize>,
    /// The first proposal is to be taken as soon as it is there.
    is_taken_when_there: bool,
    /// The arrows were used: what is selected was chosen on purpose.
    is_steered: bool,
}

impl PopupQuery {
    /// Where the word at the cursor begins.
    fn word_start(&self) -> usize {
        let before = self.text.get(..self.cursor).unwrap_or(&self.text);
        before
            .char_indices()
            .rev()
            .find(|(_, c)| c.is_whitespace())
            .map_or(0, |(at, c)| at + c.len_utf8())
    }

    fn word(&self) -> &str {
        self.text.get(self.word_start()..self.cursor).unwrap_or("")
    }

    fn is_command(&self) -> bool {
        self.text.starts_with('/') && self.word_start() == 0
    }

    /// Whether it is certain that something of ours is being typed: a `#` or an `@` inside of a word may be anything.
    fn is_certain(&self) -> bool {
        self.is_command()
            || self.word().trim_start_matches(['(', '[', '{', '"', '\'']).starts_with('@')
    }
}

impl Popup {
    /// Something was typed; what the host is to be asked about it now, if anything.
    pub(crate) fn update_text(&mut self, text: &str, cursor: usize) -> Option<PopupQuery> {
        let query = PopupQuery { text: text.to_owned(), cursor };
        if !is_completable(text, cursor) {
            self.close();
            return None;
        }
        let start = query.word_start();
        if self.closed_at.is_some_and(|closed| closed != start) {
            self.closed_at = None;
        }
        let before = self.current.replace(query.clone());
        self.is_argument = false;
        self.is_steered = false;
        self.is_taken_when_there = false;
        let items = self.filter_items(before.as_ref(), &query);
        self.show(items);
        self.next_question()
    }

    /// Something was typed behind a command of ours; what it may become is known here.
    pub(crate) fn typed_argument(
        &mut self,
        text: &str,
        cursor: usize,
        proposals: Vec<ArgumentProposal>,
    ) {
        let query = PopupQuery { text: text.to_owned(), cursor };
        let start = query.word_start();
        if self.closed_at.is_some_and(|closed| closed != start) {
            self.closed_at = None;
        }
        self.current = Some(query);
        self.is_argument = true;
        self.is_steered = false;
        self.is_taken_when_there = false;
        let proposals = proposals.into_iter().filter(|one| !one.text.contains(is_hidden));
        let items = proposals.map(|one| {
            let (label, about) = (one.text.clone(), one.about.clone());
            MenuItem::new(WordProposal::Argument(one), label, about)
        });
        self.show(items.collect());
    }

    /// Tab behind a command of ours, where nothing is shown.
    pub(crate) fn want_first_argument(
        &mut self,
        text: &str,
        cursor: usize,
        proposals: Vec<ArgumentProposal>,
    ) {
        self.closed_at = None;
        self.typed_argument(text, cursor, proposals);
        self.is_taken_when_there = true;
    }

    /// The host's answer to what was asked; what it is to be asked next, if anything.
    pub(crate) fn accept_answer(
        &mut self,
        query: &PopupQuery,
        completions: Vec<Completion>,
    ) -> Option<PopupQuery> {
        self.asked = None;
        if self.current.as_ref() != Some(query) {
            return self.next_question(); // stale
        }
        let mut items = own_items(query);
        let is_own = |completion: &Completion| {
            let name = completion.insert_text.trim_end();
            query.is_command() && COMMANDS.iter().any(|command| command.name == name)
        };
        let completions = completions.into_iter().filter(is_printable);
        items.extend(completions.filter(|one| !is_own(one)).map(host_item));
        let selected = self.menu.as_ref().filter(|_| self.is_steered);
        let selected = selected.and_then(|menu| menu.selected().map(|item| item.label.clone()));
        self.show(items);
        if let (Some(menu), Some(label)) = (&mut self.menu, selected) {
            let labels = |proposal: &WordProposal| proposal.label() == label;
            menu.select(labels);
        }
        None
    }

    /// The host did not answer; what it is to be asked next, if anything.
    pub(crate) fn note_failure(&mut self) -> Option<PopupQuery> {
        let failed = self.asked.take();
        if failed == self.current {
            return None; // it is asked again when more is typed
        }
        self.next_question()
    }

    /// Tab where nothing is shown: the first proposal is wanted. What the host is to be asked, or `None` if it was asked
    /// already.
    pub(crate) fn want_first(&mut self, text: &str, cursor: usize) -> Option<PopupQuery> {
        self.closed_at = None;
        let question = self.update_text(text, cursor);
        self.is_taken_when_there = true;
        question
    }

    /// What Tab waited for, once it is there; the popup stays open if there is a choice. `None` while nothing is there.
    pub(crate) fn take_wanted(&mut self) -> Option<WordProposal> {
        let menu = self.menu.as_ref().filter(|_| self.is_taken_when_there)?;
        let is_only = menu.len() == 1;
        self.is_taken_when_there = false;
        is_only.then(|| self.selected()).flatten()
    }

    /// Whether Tab waited for proposals, and there are none.
    pub(crate) fn take_found_nothing(&mut self) -> bool {
        let is_answered = self.asked.is_none() && self.menu.is_none();
        is_answered && std::mem::take(&mut self.is_taken_when_there)
    }

    fn next_question(&mut self) -> Option<PopupQuery> {
        if self.asked.is_some() || self.closed_at.is_some() || self.is_argument {
            return None;
        }
        self.asked = self.current.clone();
        self.asked.clone()
    }

    /// What fits of what was shown before the last key, with our own commands: it is there before the host answers.
    fn filter_items(
        &self,
        before: Option<&PopupQuery>,
        now: &PopupQuery,
    ) -> Vec<MenuItem<WordProposal>> {
        let mut items = own_items(now);
        let (Some(before), Some(menu)) = (before, &self.menu) else { return items };
        let tail = |query: &PopupQuery| query.text.get(query.cursor..).map(str::to_owned);
        if before.word_start() != now.word_start() || tail(before) != tail(now) {
            return items;
        }
        let typed = now.word().trim_start_matches(['@', '#', '/']).to_lowercase();
        items.extend(menu.items().filter_map(|item| {
            let WordProposal::Host(completion) = &item.value else { return None };
            let mut completion = completion.clone();
            let end = completion.replaces.end + now.cursor;
            completion.replaces.end = end.checked_sub(before.cursor)?;
            let is_range = completion.replaces.start <= completion.replaces.end
                && completion.replaces.end <= now.text.len();
            let fits = completion.insert_text.to_lowercase().contains(&typed);
            (is_range && fits).then(|| host_item(completion))
        }));
        items
    }

    fn show(&mut self, items: Vec<MenuItem<WordProposal>>) {
        let is_wanted = !items.is_empty() && self.closed_at.is_none();
        self.menu = is_wanted.then(|| Menu::new(items));
    }

    pub(crate) fn is_open(&self) -> bool {
        self.menu.is_some()
    }

    /// Forgets what is at the cursor: it was sent, or something else has the keys.
    pub(crate) fn close(&mut self) {
        self.current = None;
        self.menu = None;
        self.closed_at = None;
        self.is_taken_when_there = false;
    }

    /// Escape: closed for this word.
    pub(crate) fn dismiss(&mut self) {
        self.menu = None;
        self.closed_at = self.current.as_ref().map(PopupQuery::word_start);
    }

    pub(crate) fn step(&mut self) {
        self.is_steered = true;
        if let Some(menu) = &mut self.menu {
            menu.step();
        }
    }

    pub(crate) fn step_back(&mut self) {
        self.is_steered = true;
        if let Some(menu) = &mut self.menu {
            menu.step_back();
        }
    }

    pub(crate) fn selected(&self) -> Option<WordProposal> {
        Some(self.menu.as_ref()?.selected()?.value.clone())
    }

    /// What Enter takes: what is selected, unless it is what was typed already, or what was typed may be something else.
    pub(crate) fn proposal_for_enter(&self) -> Option<WordProposal> {
        let query = self.current.as_ref()?;
        let selected = self.selected()?;
        let is_typed = selected.label() == query.word();
        let is_exact = query.is_command()
            && COMMANDS.iter().any(|command| command.name == query.word())
            && !self.is_steered;
        if matches!(selected, WordProposal::Argument(_)) {
            // Enter without a word enters the line as it is; a word that is an argument is entered, too.
            let is_argument = self.has_label(query.word());
            let is_meant = self.is_steered || !(query.word().is_empty() || is_argument);
            return (is_meant && !is_typed).then_some(selected);
        }
        let is_meant = query.is_certain() || self.is_steered;
        (is_meant && !is_typed && !is_exact).then_some(selected)
    }

    fn has_label(&self, word: &str) -> bool {
        let mut items = self.menu.iter().flat_map(Menu::items);
        items.any(|item| item.label == word)
    }

    /// The text with a proposal in it, and where the cursor is then.
    pub(crate) fn text_with(&self, proposal: &WordProposal) -> Option<(String, usize)> {
        let query = self.current.as_ref()?;
        let mut text = query.text.clone();
        let (range, inserted) = match proposal {
            WordProposal::Own(command) => {
                let end = text.find(char::is_whitespace).unwrap_or(text.len());
                let space = match (command.arguments.is_empty(), text.len() == end) {
                    (false, true) => " ",
                    _ => "",
                };
                (0..end, format!("{}{space}", command.name))
            }
            WordProposal::Argument(argument) => (argument.replaces.clone(), argument.text.clone()),
            WordProposal::Host(completion) => {
                (completion.replaces.clone(), completion.insert_text.clone())
            }
        };
        text.get(range.clone())?;
        let cursor = range.start + inserted.len();
        text.replace_range(range, &inserted);
        Some((text, cursor))
    }

    pub(crate) fn lines(&self, width: usize) -> Vec<Line> {
        let menu = self.menu.as_ref();
        menu.map_or(Vec::new(), |menu| menu.lines(width, ROWS))
    }
}

impl WordProposal {
    fn label(&self) -> String {
        match self {
            Self::Own(command) => command.name.to_owned(),
            Self::Argument(argument) => argument.text.clone(),
            Self::Host(completion) => completion.insert_text.trim_end().to_owned(),
        }
    }
}

/// Our own commands that what is typed may become: those that begin with it first.
fn own_items(query: &PopupQuery) -> Vec<MenuItem<WordProposal>> {
    if !query.is_command() {
        return Vec::new();
    }
    let typed = query.word().to_lowercase();
    let name = typed.trim_start_matches('/');
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for command in COMMANDS {
        let about = format!("{}  {}", command.arguments, command.what);
        let item = MenuItem::new(WordProposal::Own(command), command.name, about.trim());
        if command.name.starts_with(&typed) {
            first.push(item);
        } else if command.name.contains(name) {
            second.push(item);
        }
    }
    first.extend(second);
    first
}

fn host_item(completion: Completion) -> MenuItem<WordProposal> {
    let label = completion.insert_text.trim_end().to_owned();
    let about = about(&completion);
    MenuItem::new(WordProposal::Host(completion), label, about)
}

fn is_printable(completion: &Completion) -> bool {
    !completion.insert_text.contains(is_hidden)
}

#[cfg(test)]
mod tests;
