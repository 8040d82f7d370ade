//! What was entered before, and where in it one is looking.
//!
//! Must not know: keys, files.

use super::chip::without_chips;

/// Entries that are kept.
const ENTRIES_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Recall {
    entries: Vec<String>,
    /// Which entry is being looked at, and what was typed before looking.
    recalled: Option<(usize, String)>,
}

impl Recall {
    pub(super) fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Adds an entry; one that was there before moves to the end.
    pub(super) fn remember(&mut self, text: &str) {
        let text = without_chips(text);
        if text.trim().is_empty() {
            return; // nothing to bring back
        }
        self.entries.retain(|entry| *entry != text);
        self.entries.push(text);
        if self.entries.len() > ENTRIES_MAX {
            self.entries.remove(0);
        }
        self.stop();
    }

    pub(super) fn stop(&mut self) {
        self.recalled = None;
    }

    /// The entry before the one that is looked at.
    pub(super) fn older(&mut self, typed: &str) -> Option<String> {
        let (index, typed) = match self.recalled.take() {
            Some((index, typed)) => (index, typed),
            None => (self.entries.len(), typed.to_owned()),
        };
        let older = index.checked_sub(1);
        self.recalled = match older {
            Some(older) => Some((older, typed)),
            // The oldest stays where it is; without any there is none to look at.
            None if self.entries.is_empty() => None,
            None => Some((0, typed)),
        };
        self.entries.get(older?).cloned()
    }

    /// The entry after it, or what was typed before.
    pub(super) fn newer(&mut self) -> Option<String> {
        let (index, typed) = self.recalled.take()?;
        match self.entries.get(index + 1) {
            Some(newer) => {
                self.recalled = Some((index + 1, typed));
                Some(newer.clone())
            }
            None => Some(typed),
        }
    }
}
