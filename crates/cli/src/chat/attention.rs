//! What is sent to the terminal beside what is drawn in it: a title for its window, and a signal when the user is needed and
//! looks elsewhere.
//!
//! Promises: a signal is given once for each reason, and none while the terminal is looked at. Titles and messages are cleaned
//! and short.
//! Must not know: terminals, beyond the sequences they take.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use super::line::{Line, Style};

const TITLE_COLUMNS_MAX: usize = 80;
/// Who pressed no key for so long looks elsewhere, where the terminal does not say.
const AWAY_AFTER: Duration = Duration::from_secs(30);

/// How the user is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Off,
    Bell,
    /// A notification of the desktop, where the terminal passes it on.
    Desktop,
}

impl Signal {
    /// What `GREENROOM_NOTIFY` says, else what the terminal can do.
    pub(crate) fn choose(setting: Option<&OsStr>, terminal: &[Option<&OsStr>]) -> Self {
        match setting.and_then(OsStr::to_str) {
            Some("off" | "0" | "none") => return Self::Off,
            Some("bell") => return Self::Bell,
            Some("desktop") => return Self::Desktop,
            _ => {}
        }
        let names = terminal.iter().flatten().filter_map(|name| name.to_str());
        let knows = |name: &str| {
            ["iTerm.app", "WezTerm", "ghostty", "xterm-ghostty", "xterm-kitty"].contains(&name)
        };
        if names.into_iter().any(knows) { Self::Desktop } else { Self::Bell }
    }

    /// What to write.
    pub(crate) fn encode(self, message: &str) -> String {
        match self {
            Self::Off => String::new(),
            Self::Bell => "\x07".to_owned(),
            Self::Desktop => format!("\x1b]9;greenroom: {}\x07", clean(message)),
        }
    }
}

/// What is going on, as far as it may be a reason to call the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Situation {
    /// Something is asked in this chat.
    pub(crate) is_asking: bool,
    pub(crate) is_working: bool,
    /// Other sessions that wait for the user.
    pub(crate) waiting_elsewhere: usize,
}

/// Whether the terminal is looked at, and what the user knows.
#[derive(Debug)]
pub(crate) struct Attention {
    focus: Focus,
    last_key: Instant,
    known: Option<Situation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    /// The terminal did not say yet, and may never.
    Unknown,
    Here,
    Elsewhere,
}

impl Attention {
    pub(crate) fn new(now: Instant) -> Self {
        Self { focus: Focus::Unknown, last_key: now, known: None }
    }

    pub(crate) fn key_pressed(&mut self, now: Instant) {
        self.last_key = now;
    }

    pub(crate) fn focus_changed(&mut self, is_here: bool) {
        self.focus = if is_here { Focus::Here } else { Focus::Elsewhere };
    }

    fn is_away(&self, now: Instant) -> bool {
        match self.focus {
            Focus::Here => false,
            Focus::Elsewhere => true,
            Focus::Unknown => now.duration_since(self.last_key) >= AWAY_AFTER,
        }
    }

    /// What the user is to be called for, if anything is new and they look elsewhere.
    pub(crate) fn observe(&mut self, situation: Situation, now: Instant) -> Option<&'static str> {
        let before = self.known.replace(situation)?;
        let reason = if situation.is_asking && !before.is_asking {
            "the agent asks you something"
        } else if situation.waiting_elsewhere > before.waiting_elsewhere {
            "another session needs you"
        } else if before.is_working && !situation.is_working {
            "the agent is done"
        } else {
            return None;
        };
        self.is_away(now).then_some(reason)
    }
}

/// The title of the window.
pub(crate) fn window_title(session_title: &str, situation: Situation) -> String {
    let state = match (situation.is_asking, situation.is_working) {
        (true, _) => "needs you: ",
        (false, true) => "working: ",
        (false, false) => "",
    };
    let title = match session_title.trim() {
        "" => "greenroom".to_owned(),
        title => format!("{title} - greenroom"),
    };
    clean(&format!("{state}{title}"))
}

/// What sets the title of the window; the name of its icon is left alone.
pub(crate) fn encode_title(title: &str) -> String {
    format!("\x1b]2;{title}\x07")
}

fn clean(text: &str) -> String {
    Line::new(Style::Plain, text).clip(TITLE_COLUMNS_MAX).text()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Situation = Situation { is_asking: false, is_working: false, waiting_elsewhere: 0 };
    const WORKING: Situation = Situation { is_working: true, ..IDLE };
    const ASKING: Situation = Situation { is_asking: true, ..WORKING };

    #[test]
    fn the_user_is_called_once_and_only_when_away() {
        let now = Instant::now();
        let mut attention = Attention::new(now);
        attention.focus_changed(false);
        assert_eq!(attention.observe(IDLE, now), None, "nothing is known before");
        assert_eq!(attention.observe(WORKING, now), None);
        assert_eq!(attention.observe(ASKING, now), Some("the agent asks you something"));
        assert_eq!(attention.observe(ASKING, now), None, "once");
        assert_eq!(attention.observe(WORKING, now), None);
        assert_eq!(attention.observe(IDLE, now), Some("the agent is done"));
        let elsewhere = Situation { waiting_elsewhere: 1, ..IDLE };
        assert_eq!(attention.observe(elsewhere, now), Some("another session needs you"));
        attention.focus_changed(true);
        attention.observe(WORKING, now);
        assert_eq!(attention.observe(IDLE, now), None, "looked at");
    }

    #[test]
    fn without_focus_reports_a_pause_tells() {
        let start = Instant::now();
        let mut attention = Attention::new(start);
        attention.observe(WORKING, start);
        assert_eq!(attention.observe(IDLE, start + Duration::from_secs(5)), None);
        attention.observe(WORKING, start);
        let later = start + Duration::from_secs(31);
        assert_eq!(attention.observe(IDLE, later), Some("the agent is done"));
        attention.key_pressed(later);
        attention.observe(WORKING, later);
        assert_eq!(attention.observe(IDLE, later), None);
    }

    #[test]
    fn titles_and_messages_are_cleaned() {
        assert_eq!(window_title("", IDLE), "greenroom");
        assert_eq!(
            window_title("Fix\u{7}\u{1b}]2;x", ASKING),
            "needs you: Fix\\x07\\x1b]2;x - greenroom"
        );
        assert!(window_title(&"x".repeat(500), WORKING).chars().count() <= TITLE_COLUMNS_MAX);
        assert_eq!(encode_title("t"), "\x1b]2;t\x07");
        assert_eq!(Signal::Desktop.encode("a\u{7}b"), "\x1b]9;greenroom: a\\x07b\x07");
        assert_eq!(Signal::Bell.encode("x"), "\x07");
        assert_eq!(Signal::Off.encode("x"), "");
    }

    #[test]
    fn the_setting_wins_over_what_the_terminal_can_do() {
        let choose = |setting: Option<&str>, terminal: &str| {
            Signal::choose(setting.map(OsStr::new), &[Some(OsStr::new(terminal)), None])
        };
        assert_eq!(choose(None, "xterm-256color"), Signal::Bell);
        assert_eq!(choose(None, "xterm-kitty"), Signal::Desktop);
        assert_eq!(choose(Some("off"), "xterm-kitty"), Signal::Off);
        assert_eq!(choose(Some("bell"), "xterm-kitty"), Signal::Bell);
        assert_eq!(choose(Some("desktop"), "xterm"), Signal::Desktop);
    }
}
