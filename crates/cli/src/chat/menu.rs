//! A list to choose from: it is narrowed by typing, gone through with the arrows, and shown as far as there is room.
//!
//! Promises: a pure function of its items, what was typed and where the selection is. What is selected is always shown. No
//! line is wider than it may be.
//! Must not know: terminals, what is chosen.

use super::editor::{Editor, EditorOutcome};
use super::keys::Key;
use super::line::{Line, Style, columns};

/// Rows that PageUp and PageDown go.
const PAGE: usize = 8;

/// One thing that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MenuItem<T> {
    pub(crate) value: T,
    pub(crate) label: String,
    /// What stands beside it, dim.
    pub(crate) detail: String,
    pub(crate) tone: Tone,
}

/// What stands out in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    /// It needs somebody, or gives much.
    Warn,
    /// It cannot be used.
    Dim,
}

#[derive(Debug)]
pub(crate) struct Menu<T> {
    items: Vec<MenuItem<T>>,
    /// What is typed to narrow the list.
    pub(crate) filter: Editor,
    /// The items that match, by index.
    matching: Vec<usize>,
    /// Which of those is selected.
    selected: usize,
}

/// What a key did to a menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MenuOutcome {
    /// Something else is selected or shown, or nothing.
    Taken,
    /// The selected item is chosen.
    Chosen,
    Closed,
    /// Not a key of the menu.
    Unused,
}

impl<T> Menu<T> {
    pub(crate) fn new(items: Vec<MenuItem<T>>) -> Self {
        let matching = (0..items.len()).collect();
        Self { items, filter: Editor::default(), matching, selected: 0 }
    }

    /// Selects the first item that fits; the first of all if none does.
    pub(crate) fn select(&mut self, fits: impl Fn(&T) -> bool) {
        let fitting = self.matching.iter().position(|index| {
            let item = self.items.get(*index);
            item.is_some_and(|item| fits(&item.value))
        });
        self.selected = fitting.unwrap_or(0);
    }

    pub(crate) fn selected(&self) -> Option<&MenuItem<T>> {
        self.items.get(*self.matching.get(self.selected)?)
    }

    /// Replaces the items; what was typed stays, and the selection stays where it was in the list.
    pub(crate) fn set_items(&mut self, items: Vec<MenuItem<T>>) {
        let selected = self.selected;
        self.items = items;
        self.narrow();
        self.selected = selected.min(self.matching.len().saturating_sub(1));
    }

    /// All of them, also those that do not match.
    pub(crate) fn items(&self) -> impl Iterator<Item = &MenuItem<T>> {
        self.items.iter()
    }

    fn is_empty(&self) -> bool {
        self.matching.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.matching.len()
    }

    pub(crate) fn key(&mut self, key: &Key) -> MenuOutcome {
        match key {
            Key::Enter if self.is_empty() => {}
            Key::Enter => return MenuOutcome::Chosen,
            Key::Escape => return MenuOutcome::Closed,
            Key::Up | Key::Ctrl('p') => self.step_back(),
            Key::Down | Key::Ctrl('n') => self.step(),
            Key::PageUp => self.selected = self.selected.saturating_sub(PAGE),
            Key::PageDown => self.selected = (self.selected + PAGE).min(self.last()),
            Key::NewLine | Key::Tab => {}
            key => match self.filter.key(key) {
                EditorOutcome::Taken => self.narrow(),
                EditorOutcome::Entered(_) | EditorOutcome::Unused => return MenuOutcome::Unused,
            },
        }
        MenuOutcome::Taken
    }

    /// To the next item, from the last to the first.
    pub(crate) fn step(&mut self) {
        self.selected = match self.selected {
            selected if selected >= self.last() => 0,
            selected => selected + 1,
        };
    }

    pub(crate) fn step_back(&mut self) {
        self.selected = match self.selected {
            0 => self.last(),
            selected => selected - 1,
        };
    }

    fn last(&self) -> usize {
        self.matching.len().saturating_sub(1)
    }

    /// Every word that was typed is somewhere in what is shown of an item, in whatever case.
    fn narrow(&mut self) {
        let typed = self.filter.text().to_lowercase();
        let words: Vec<&str> = typed.split_whitespace().collect();
        let matches = |item: &MenuItem<T>| {
            let text = format!("{} {}", item.label, item.detail).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let items = self.items.iter().enumerate();
        self.matching = items.filter(|(_, item)| matches(item)).map(|(index, _)| index).collect();
        self.selected = 0;
    }

    /// The rows around the selection, and where in the list they are if not all are shown.
    pub(crate) fn lines(&self, width: usize, rows: usize) -> Vec<Line> {
        let count = self.matching.len();
        if count == 0 {
            return vec![Line::new(Style::Dim, "  no matches").clip(width)];
        }
        let rows = rows.max(2);
        let is_cut = count > rows;
        let shown = if is_cut { rows - 1 } else { count };
        let first = self.selected.saturating_sub(shown / 2).min(count - shown);
        let visible: Vec<(usize, &MenuItem<T>)> = (first..first + shown)
            .filter_map(|at| Some((at, self.items.get(*self.matching.get(at)?)?)))
            .collect();
        let label_columns = label_columns(visible.iter().map(|(_, item)| *item), width);
        let mut lines: Vec<Line> = visible
            .iter()
            .map(|(at, item)| item.line(*at == self.selected, label_columns, width))
            .collect();
        if is_cut {
            let place = format!("  {}-{} of {count}", first + 1, first + shown);
            lines.push(Line::new(Style::Dim, place).clip(width));
        }
        lines
    }
}

/// How wide the labels are: as wide as the widest, but with room for the details beside them.
fn label_columns<'a, T: 'a>(items: impl Iterator<Item = &'a MenuItem<T>>, width: usize) -> usize {
    let (mut label, mut detail) = (0, 0);
    for item in items {
        label = label.max(columns(&item.label));
        detail = detail.max(columns(&item.detail));
    }
    let room = width.saturating_sub(2);
    let beside = room.saturating_sub(detail + 2);
    label.min(beside.max(room * 3 / 5))
}

impl<T> MenuItem<T> {
    pub(crate) fn new(value: T, label: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { value, label: label.into(), detail: detail.into(), tone: Tone::Plain }
    }

    fn line(&self, is_selected: bool, label_columns: usize, width: usize) -> Line {
        let style = match (is_selected, self.tone) {
            (true, _) => Style::Bold,
            (false, Tone::Plain) => Style::Plain,
            (false, Tone::Warn) => Style::Warn,
            (false, Tone::Dim) => Style::Dim,
        };
        let marker = if is_selected { "❯ " } else { "  " };
        let label = Line::new(style, &self.label).clip(label_columns);
        let gap = " ".repeat(label_columns.saturating_sub(label.width()) + 2);
        let line = Line::new(style, marker).then(style, label.text());
        if self.detail.is_empty() {
            line
        } else {
            line.then(Style::Plain, gap).then(Style::Dim, &self.detail)
        }
        .clip(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(count: usize) -> Menu<usize> {
        let items =
            (0..count).map(|n| MenuItem::new(n, format!("item {n}"), format!("detail {}", n % 3)));
        Menu::new(items.collect())
    }

    fn texts<T>(menu: &Menu<T>, width: usize, rows: usize) -> Vec<String> {
        menu.lines(width, rows).iter().map(Line::text).collect()
    }

    fn type_in<T>(menu: &mut Menu<T>, text: &str) {
        for c in text.chars() {
            assert_eq!(menu.key(&Key::Char(c)), MenuOutcome::Taken);
        }
    }

    #[test]
    fn the_selection_is_always_shown() {
        let mut menu = menu(20);
        assert_eq!(
            texts(&menu, 40, 4),
            ["❯ item 0  detail 0", "  item 1  detail 1", "  item 2  detail 2", "  1-3 of 20"]
        );
        for _ in 0..11 {
            menu.key(&Key::Down);
            let shown = texts(&menu, 40, 4);
            assert!(shown.iter().any(|line| line.starts_with('❯')), "{shown:?}");
        }
        assert_eq!(menu.selected().map(|item| item.value), Some(11));
        menu.key(&Key::PageDown);
        menu.key(&Key::PageDown);
        assert_eq!(menu.selected().map(|item| item.value), Some(19));
        menu.key(&Key::Down);
        assert_eq!(menu.selected().map(|item| item.value), Some(0), "round");
        menu.key(&Key::Up);
        assert_eq!(menu.selected().map(|item| item.value), Some(19));
        assert_eq!(texts(&menu, 40, 4).last().unwrap(), "  18-20 of 20");
    }

    #[test]
    fn typing_narrows_by_words_in_any_case() {
        let mut menu = menu(20);
        menu.key(&Key::Down);
        type_in(&mut menu, "ITEM 1");
        assert_eq!(menu.len(), 11 + 2, "1 and 10 to 19, and those with `detail 1`");
        type_in(&mut menu, "9");
        assert_eq!(menu.selected().map(|item| item.value), Some(19));
        assert_eq!(menu.key(&Key::Enter), MenuOutcome::Chosen);
        type_in(&mut menu, "zz");
        assert_eq!(texts(&menu, 40, 4), ["  no matches"]);
        assert_eq!(menu.key(&Key::Enter), MenuOutcome::Taken, "nothing to choose");
        menu.key(&Key::Ctrl('u'));
        assert_eq!(menu.len(), 20);
        assert_eq!(menu.key(&Key::Escape), MenuOutcome::Closed);
        assert_eq!(menu.key(&Key::Ctrl('r')), MenuOutcome::Unused);
    }

    #[test]
    fn rows_fit_the_width_and_keep_their_columns() {
        let items = vec![
            MenuItem::new(
                1,
                "漢字 a rather long title of a session",
                "needs an answer · 2 minutes ago",
            ),
            MenuItem::new(2, "short\u{1b}[2J", "idle"),
        ];
        let menu = Menu::new(items);
        for width in [1, 10, 39, 79, 159] {
            for line in menu.lines(width, 8) {
                assert!(line.width() <= width, "{width}: {:?}", line.text());
            }
        }
        let lines = texts(&menu, 79, 8);
        let column = |line: &str, text: &str| columns(&line[..line.find(text).unwrap()]);
        assert_eq!(column(&lines[0], "needs"), column(&lines[1], "idle"));
        assert!(lines[1].contains("short\\x1b[2J"), "{lines:?}");
        let narrow = texts(&menu, 39, 8);
        assert!(narrow[0].contains("… ") && narrow[0].contains("needs"), "{narrow:?}");
    }

    #[test]
    fn items_may_change_under_the_selection() {
        let mut menu = menu(3);
        menu.select(|value| *value == 2);
        menu.set_items(vec![MenuItem::new(7, "seven", "")]);
        assert_eq!(menu.selected().map(|item| item.value), Some(7));
        assert_eq!(texts(&menu, 40, 4), ["❯ seven"]);
    }
}
