//! The whole transcript on a screen of its own: gone through from its end upwards, older turns loaded on the way.
//!
//! Promises: turns are drawn by the same functions as in the chat. What is looked at stays where it is when older turns come
//! in above it, or new lines below. A turn is drawn again only if it or the width changed.
//! Must not know: terminals, connections.

use std::collections::HashMap;
use std::sync::Arc;

use wire::state::{ChatState, Turn, TurnList};

use super::keys::Key;
use super::line::{Line, Style};
use super::render::Page;
use super::transcript::{ChatView, Transcript};

/// A page that is turned leaves so many lines of the last one.
const OVERLAP: usize = 2;

/// Where one is in the transcript.
#[derive(Debug, Default)]
pub(crate) struct Pager {
    /// What the turns were drawn for.
    page: Option<Page>,
    /// Rows for the transcript.
    rows: usize,
    /// The completed turns, in order.
    turns: Vec<DrawnTurn>,
    /// The turn that runs.
    tail: PagerTail,
    position: PagerPosition,
    /// Whether there are older turns that are not here.
    has_older: bool,
    /// Why older turns could not be loaded.
    trouble: Option<String>,
}

#[derive(Debug, Clone)]
struct DrawnTurn {
    turn: Arc<Turn>,
    lines: Arc<Vec<Line>>,
}

#[derive(Debug, Default)]
struct PagerTail {
    turn_id: String,
    transcript: Transcript,
    settled: Vec<Line>,
    moving: Vec<Line>,
}

/// Which line is the first on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum PagerPosition {
    /// The last lines are shown, also when more come.
    #[default]
    End,
    Top(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PagerOutcome {
    Stay,
    Close,
}

impl Pager {
    /// Takes the chat as it is now, for a screen of this size. The last row is for the pager itself.
    pub(crate) fn update(&mut self, chat: &ChatState, view: &ChatView<'_>) {
        let is_other_page = self.page != Some(view.page);
        let anchor = is_other_page.then(|| self.anchor()).flatten();
        if is_other_page {
            self.turns.clear();
            self.tail = PagerTail::default();
        }
        self.page = Some(view.page);
        self.rows = view.page.rows.saturating_sub(1).max(1);
        self.has_older = chat.turns_next_cursor.is_some();
        let added_above = self.take_turns(chat, view);
        self.take_tail(chat, view);
        match (anchor, self.position) {
            (Some(turn_id), PagerPosition::Top(_)) => {
                self.position = PagerPosition::Top(self.line_of(&turn_id).unwrap_or(0));
            }
            (None, PagerPosition::Top(top)) => {
                self.position = PagerPosition::Top(top + added_above)
            }
            (_, PagerPosition::End) => {}
        }
    }

    /// Older turns cannot be loaded.
    pub(crate) fn set_trouble(&mut self, why: String) {
        self.trouble = Some(why);
    }

    /// Whether older turns are wanted: the beginning of what is here is on the screen.
    pub(crate) fn wants_older(&self) -> bool {
        self.has_older && self.trouble.is_none() && self.top() == 0
    }

    pub(crate) fn key(&mut self, key: &Key) -> PagerOutcome {
        let page = self.rows.saturating_sub(OVERLAP).max(1);
        match key {
            Key::Escape | Key::Char('q') | Key::Ctrl('c' | 'd') => return PagerOutcome::Close,
            Key::Up | Key::Char('k') => self.go_to(self.top().saturating_sub(1)),
            Key::Down | Key::Char('j') | Key::Enter => self.go_to(self.top() + 1),
            Key::PageUp | Key::Char('b') => self.go_to(self.top().saturating_sub(page)),
            Key::PageDown | Key::Char(' ' | 'f') => {
                if self.position == PagerPosition::End {
                    return PagerOutcome::Close; // beyond the end is the input line
                }
                self.go_to(self.top() + page);
            }
            Key::Home | Key::Char('g') => {
                self.trouble = None;
                self.go_to(0);
            }
            Key::End | Key::Char('G') => self.position = PagerPosition::End,
            _ => {}
        }
        PagerOutcome::Stay
    }

    /// What is on the screen: as many lines as it has rows. `notice` is pointed out in the last.
    pub(crate) fn lines(&self, notice: Option<&str>) -> Vec<Line> {
        let top = self.top();
        let total = self.total();
        let mut shown: Vec<Line> = self.lines_from(top).take(self.rows).cloned().collect();
        shown.resize(self.rows, Line::default());
        let width = self.page.map_or(0, |page| page.width);
        shown.push(self.status(top, total, notice).clip(width));
        shown
    }

    fn status(&self, top: usize, total: usize, notice: Option<&str>) -> Line {
        let last = (top + self.rows).min(total);
        let place = match total {
            0 => "nothing yet".to_owned(),
            total => format!("lines {}-{last} of {total}", top + 1),
        };
        let older = match (&self.trouble, self.has_older, top) {
            (Some(why), ..) => format!(" · earlier turns not loaded: {why}"),
            (None, true, 0) => " · loading earlier turns".to_owned(),
            (None, true, _) => " · earlier turns above".to_owned(),
            (None, false, _) => String::new(),
        };
        let line = match notice {
            Some(notice) => Line::new(Style::Warn, format!("{notice} · ")),
            None => Line::default(),
        };
        line.then(Style::Bold, place)
            .then(Style::Dim, " · q returns")
            .then(Style::Dim, older)
            .then(Style::Dim, " · PageUp, PageDown, arrows")
    }

    fn go_to(&mut self, top: usize) {
        self.position =
            if top >= self.last_top() { PagerPosition::End } else { PagerPosition::Top(top) };
    }

    fn total(&self) -> usize {
        let turns: usize = self.turns.iter().map(|turn| turn.lines.len()).sum();
        turns + self.tail.settled.len() + self.tail.moving.len()
    }

    fn last_top(&self) -> usize {
        self.total().saturating_sub(self.rows)
    }

    fn top(&self) -> usize {
        match self.position {
            PagerPosition::End => self.last_top(),
            PagerPosition::Top(top) => top.min(self.last_top()),
        }
    }

    fn lines_from(&self, top: usize) -> impl Iterator<Item = &Line> {
        let mut before = 0;
        let first = self.turns.iter().position(|turn| {
            let is_here = before + turn.lines.len() > top;
            before += if is_here { 0 } else { turn.lines.len() };
            is_here
        });
        let turns = self.turns.iter().skip(first.unwrap_or(self.turns.len()));
        let lines = turns.flat_map(|turn| turn.lines.iter());
        let tail = self.tail.settled.iter().chain(&self.tail.moving);
        lines.chain(tail).skip(top - before)
    }

    /// The turn whose lines are at the top of the screen.
    fn anchor(&self) -> Option<String> {
        let mut left = self.top();
        let mut turns = self.turns.iter();
        let turn = turns.find(|turn| match left.checked_sub(turn.lines.len()) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        turn.map(|turn| turn.turn.id.clone())
    }

    fn line_of(&self, turn_id: &str) -> Option<usize> {
        let index = self.turns.iter().position(|turn| turn.turn.id == turn_id)?;
        let before = self.turns.iter().take(index);
        Some(before.map(|turn| turn.lines.len()).sum())
    }

    /// Draws the turns that are new; how many lines came above those that were here.
    fn take_turns(&mut self, chat: &ChatState, view: &ChatView<'_>) -> usize {
        let turns = chat.turns.as_slice();
        let is_same = self.turns.len() == turns.len()
            && self.turns.iter().zip(turns).all(|(drawn, turn)| Arc::ptr_eq(&drawn.turn, turn));
        if is_same {
            return 0;
        }
        let known: HashMap<String, DrawnTurn> = std::mem::take(&mut self.turns)
            .into_iter()
            .map(|drawn| (drawn.turn.id.clone(), drawn))
            .collect();
        let first_known = turns.iter().position(|turn| known.contains_key(&turn.id));
        for turn in turns {
            let drawn = match known.get(&turn.id) {
                Some(drawn) if *drawn.turn == **turn => {
                    DrawnTurn { turn: Arc::clone(turn), lines: Arc::clone(&drawn.lines) }
                }
                _ => DrawnTurn { turn: Arc::clone(turn), lines: Arc::new(draw_turn(turn, view)) },
            };
            self.turns.push(drawn);
        }
        self.turns.iter().take(first_known.unwrap_or(0)).map(|turn| turn.lines.len()).sum()
    }

    fn take_tail(&mut self, chat: &ChatState, view: &ChatView<'_>) {
        let Some(active) = &chat.active_turn else {
            self.tail = PagerTail::default();
            return; // what ran is among the completed turns now
        };
        if self.tail.turn_id != active.id {
            self.tail = PagerTail {
                turn_id: active.id.clone(),
                transcript: Transcript::below(),
                ..PagerTail::default()
            };
        }
        let alone = ChatState { turns: Arc::default(), turns_next_cursor: None, ..chat.clone() };
        // Here nobody waits for contents: what is not known is named.
        let settled = self.tail.transcript.settle_all(&alone, view);
        self.tail.settled.extend(rows_of(settled, view));
        self.tail.moving = rows_of(self.tail.transcript.moving(&alone, None, view), view);
    }
}

/// A completed turn as the chat prints it.
fn draw_turn(turn: &Arc<Turn>, view: &ChatView<'_>) -> Vec<Line> {
    let mut alone = ChatState::new("ahp-chat:/one", "", 1, String::new());
    alone.turns = Arc::new(TurnList::new(vec![Arc::clone(turn)]));
    rows_of(Transcript::below().settle_all(&alone, view), view)
}

/// Lines as rows of the screen: a long line of code is one line, and takes several.
fn rows_of(lines: Vec<Line>, view: &ChatView<'_>) -> Vec<Line> {
    let rows = lines.into_iter().map(|line| line.break_into(view.page.width));
    rows.flatten().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::line::Colors;
    use crate::chat::render::{LinkStyle, ProseStyle};
    use crate::chat::tool::References;

    fn turn(n: usize) -> Arc<Turn> {
        let turn = json!({
            "id": format!("t{n}"), "state": "complete",
            "message": {"text": format!("question {n}"), "origin": {"kind": "user"}},
            "responseParts": [{"kind": "markdown", "id": "p", "content": format!("answer {n}")}],
        });
        Arc::new(Turn::from_value(&turn).unwrap())
    }

    fn chat(turns: std::ops::Range<usize>) -> ChatState {
        let mut chat = ChatState::new("ahp-chat:/c", "", 1, String::new());
        chat.turns = Arc::new(TurnList::new(turns.clone().map(turn).collect()));
        chat.turns_next_cursor = (turns.start > 0).then(|| "older".to_owned());
        chat
    }

    fn update(pager: &mut Pager, chat: &ChatState, width: usize, rows: usize) {
        let page = Page {
            width,
            rows,
            colors: Colors::Off,
            links: LinkStyle::WrittenOut,
            prose: ProseStyle::Rendered,
        };
        let references = References::default();
        let view = ChatView { page, references: &references, now: std::time::Instant::now() };
        pager.update(chat, &view);
    }

    fn shown(pager: &Pager) -> Vec<String> {
        let lines = pager.lines(None);
        lines.iter().map(Line::text).filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn it_opens_at_the_end_and_loads_upwards() {
        let mut pager = Pager::default();
        update(&mut pager, &chat(10..20), 40, 9);
        let screen = shown(&pager);
        assert_eq!(screen[screen.len() - 2], "answer 19");
        assert!(screen.last().unwrap().contains("of 40"), "{screen:?}");
        assert!(!pager.wants_older());
        pager.key(&Key::Home);
        assert!(pager.wants_older());
        let before = shown(&pager);
        assert_eq!(before[0], "› question 10");
        update(&mut pager, &chat(0..20), 40, 9);
        let after = shown(&pager);
        assert_eq!(after[..3], before[..3], "what is looked at stays");
        assert!(!pager.wants_older());
        pager.key(&Key::PageUp);
        assert!(shown(&pager).contains(&"answer 9".to_owned()));
        pager.key(&Key::Home);
        assert_eq!(shown(&pager)[0], "› question 0");
    }

    #[test]
    fn keys_go_through_it_and_leave_it() {
        let mut pager = Pager::default();
        update(&mut pager, &chat(0..20), 40, 9);
        let end = shown(&pager);
        assert_eq!(pager.key(&Key::Up), PagerOutcome::Stay);
        assert_ne!(shown(&pager), end);
        assert_eq!(pager.key(&Key::Down), PagerOutcome::Stay);
        assert_eq!(shown(&pager), end);
        pager.key(&Key::PageUp);
        assert_eq!(pager.key(&Key::PageDown), PagerOutcome::Stay);
        assert_eq!(shown(&pager), end);
        assert_eq!(pager.key(&Key::PageDown), PagerOutcome::Close);
        for key in [Key::Escape, Key::Char('q'), Key::Ctrl('c')] {
            assert_eq!(pager.key(&key), PagerOutcome::Close);
        }
    }

    #[test]
    fn another_width_stays_at_the_turn_and_a_running_turn_is_shown() {
        let mut pager = Pager::default();
        update(&mut pager, &chat(0..20), 40, 9);
        pager.key(&Key::Home);
        for _ in 0..8 {
            pager.key(&Key::Down);
        }
        let anchor = pager.anchor();
        update(&mut pager, &chat(0..20), 12, 9);
        assert_eq!(pager.anchor(), anchor);
        let mut running = chat(0..1);
        let message = json!({"text": "now", "origin": {"kind": "user"}});
        running.active_turn = Some(wire::state::ActiveTurn::new("a", "", message));
        let mut pager = Pager::default();
        update(&mut pager, &running, 40, 9);
        assert!(shown(&pager).contains(&"› now".to_owned()));
        running.active_turn = None;
        update(&mut pager, &running, 40, 9);
        assert!(!shown(&pager).contains(&"› now".to_owned()));
    }

    #[test]
    fn trouble_is_said_and_tried_again_from_the_beginning() {
        let mut pager = Pager::default();
        update(&mut pager, &chat(10..12), 70, 30);
        assert!(pager.wants_older(), "all of it is on the screen");
        pager.set_trouble("no connection".to_owned());
        assert!(!pager.wants_older());
        assert!(shown(&pager).last().unwrap().contains("no connection"));
        pager.key(&Key::Home);
        assert!(pager.wants_older());
    }
}
