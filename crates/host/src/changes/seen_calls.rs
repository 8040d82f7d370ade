//! What is heard of the calls of a turn, and which changes that two looks found are theirs.
//!
//! Promises: a change counts to the turn if it was made while a call ran that may change anything, else to the user (G-72). A call of which
//! is heard when it is over may have run since its agent was heard last. What a call said it would change counts if it succeeded, or if it is known to be made.
//! Must not know: what calls do; how changes are found.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_api::{RecordedEdit, edits_of_call};
use serde_json::{Value, json};
use workspace::{DiffStats, TreeChange};

use super::{ChangedSide, FileChanges, RecordedChange};
use crate::sorted_map::SortedMap;

/// How much earlier than it happened a file may be stamped: its clock goes by ticks.
const TICK: Duration = Duration::from_millis(20);

/// A point in time, counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    seconds: i64,
    nanos: u32,
}

/// What was heard of the turn's calls.
#[derive(Default)]
pub(super) struct SeenCalls {
    /// Calls that run and may change anything, and since when.
    running: SortedMap<u64, Moment>,
    /// When such calls ran.
    pub(super) spans: Vec<(Moment, Moment)>,
    /// By call, in the order they were announced.
    pub(super) edits: Vec<(u64, Vec<RecordedEdit>)>,
    /// How many of `edits` were there before the first look.
    pub(super) edits_before_look: Option<usize>,
}

impl SeenCalls {
    /// A call begins, or began then.
    pub(super) fn begin(&mut self, call: u64, began: Option<SystemTime>) {
        let since = moment_of(began.unwrap_or_else(SystemTime::now));
        self.running.get_or_insert_with(call, || since);
    }

    /// A call is over. One that failed changed nothing of what it said.
    pub(super) fn end(&mut self, call: u64, result: &Value) {
        if let Some(since) = self.running.remove(&call) {
            self.spans.push((since, now()));
        }
        let has_edits = self.edits.iter().any(|(of, _)| *of == call);
        if result["success"] == false {
            self.retain(call, |edit| edit.is_made);
        } else if !has_edits {
            // External agents say it with the result.
            let mut done = result.clone();
            done["status"] = json!("completed");
            let edits = edits_of_call(&done);
            if !edits.is_empty() {
                self.edits.push((call, edits));
            }
        }
    }

    /// A call announces its changes, all of them each time. Those that were announced before keep their place.
    pub(super) fn announce(&mut self, call: u64, edits: &[RecordedEdit]) {
        let mut later = edits.to_vec();
        for (of, known) in &mut self.edits {
            if *of == call {
                known.retain_mut(|known| {
                    let again = later.iter().position(|edit| is_same(edit, known));
                    again.map(|index| *known = later.remove(index)).is_some()
                });
            }
        }
        if !later.is_empty() {
            self.edits.push((call, later));
        }
    }

    pub(super) fn forget(&mut self, call: u64) {
        self.retain(call, |_| false);
    }

    /// Entries stay where they are, also empty ones: how many there were before the first look counts them.
    fn retain(&mut self, call: u64, keep: impl Fn(&RecordedEdit) -> bool) {
        for (_, edits) in self.edits.iter_mut().filter(|(of, _)| *of == call) {
            edits.retain(&keep);
        }
    }

    pub(super) fn end_all(&mut self) {
        let running = std::mem::take(&mut self.running);
        let ended = now();
        self.spans.extend(running.values().map(|since| (*since, ended)));
    }
}

/// The same change, of which more may be known by now.
fn is_same(one: &RecordedEdit, other: &RecordedEdit) -> bool {
    let content = |edit: &RecordedEdit| (edit.before, edit.after);
    one.uri == other.uri && content(one) == content(other)
}

impl FileChanges {
    /// What a look found, and the edits that were made after the first one.
    pub(super) fn add_looked(
        &mut self,
        found: Vec<TreeChange>,
        later: &[(u64, Vec<RecordedEdit>)],
        spans: &[(Moment, Moment)],
    ) {
        let mut own: BTreeMap<&str, &RecordedEdit> = BTreeMap::new();
        for edit in later.iter().flat_map(|(_, edits)| edits) {
            own.insert(&edit.uri, edit);
        }
        for change in &found {
            let after = change.after.map(ChangedSide::from);
            let last = own.get(change.uri.as_str());
            let is_own = last.is_some_and(|edit| {
                edit.after.map(|content| content.digest)
                    == change.after.and_then(|side| side.digest)
            });
            let (seconds, nanos) = change.made_at;
            let made_at = Moment { seconds, nanos };
            let is_the_calls = match change.after {
                Some(_) => was_running(spans, made_at),
                None => ran_before(spans, made_at),
            };
            if !is_own && !is_the_calls {
                continue; // the user's, whatever it was before
            }
            let file = self.files.entry(change.uri.clone()).or_insert_with(|| RecordedChange {
                uri: change.uri.clone(),
                before: change.before.map(ChangedSide::from),
                after: None,
                new_directories: change.new_directories,
                stats: DiffStats::default(),
            });
            file.after = after;
        }
        let is_found = |uri: &str| found.iter().any(|change| change.uri == uri);
        for edit in later.iter().flat_map(|(_, edits)| edits) {
            let is_known = self.files.contains_key(&edit.uri);
            // Where a look found something else by now, that is what became of the edit.
            if !is_known || !is_found(&edit.uri) {
                self.add_edit(edit);
            }
        }
    }
}

/// Whether something was made while a call ran.
fn was_running(spans: &[(Moment, Moment)], at: Moment) -> bool {
    let mut spans = spans.iter();
    spans.any(|(from, to)| from.earlier() <= at && at <= *to)
}

/// Whether a call had begun by then. All that is known of a removal is when something in its directory changed last, which may have been
/// later.
fn ran_before(spans: &[(Moment, Moment)], at: Moment) -> bool {
    spans.iter().any(|(from, _)| from.earlier() <= at)
}

impl Moment {
    /// Returns the moment one tick before.
    fn earlier(self) -> Self {
        let tick = TICK.subsec_nanos();
        match self.nanos.checked_sub(tick) {
            Some(nanos) => Self { nanos, ..self },
            None => Self { seconds: self.seconds - 1, nanos: self.nanos + 1_000_000_000 - tick },
        }
    }
}

fn now() -> Moment {
    moment_of(SystemTime::now())
}

fn moment_of(time: SystemTime) -> Moment {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Moment { seconds, nanos: since.subsec_nanos() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_told_of_when_it_is_over_ran_before() {
        let before = SystemTime::now() - Duration::from_secs(10);
        let mut seen = SeenCalls::default();
        seen.begin(1, Some(before));
        seen.begin(1, None);
        seen.end(1, &json!({"success": true}));
        seen.begin(2, None);
        seen.end_all();
        let while_it_ran = moment_of(before + Duration::from_secs(5));
        let [of_the_first, of_the_second] = seen.spans[..] else {
            panic!("{:?}", seen.spans);
        };
        assert!(was_running(&[of_the_first], while_it_ran));
        assert!(!was_running(&[of_the_second], while_it_ran));
    }

    fn edit(uri: &str, is_made: bool) -> RecordedEdit {
        RecordedEdit { uri: uri.to_owned(), before: None, after: None, new_directories: 0, is_made }
    }

    #[test]
    fn what_a_call_announces_again_is_known_once() {
        let mut seen = SeenCalls::default();
        seen.announce(1, &[edit("a", false)]);
        seen.announce(2, &[edit("x", false)]);
        seen.announce(1, &[edit("a", true), edit("b", false)]);
        let known =
            [(1, vec![edit("a", true)]), (2, vec![edit("x", false)]), (1, vec![edit("b", false)])];
        assert_eq!(seen.edits, known);
        // The second was not made after all.
        seen.announce(1, &[edit("a", true)]);
        assert_eq!(seen.edits[2], (1, Vec::new()));
    }

    #[test]
    fn a_call_that_failed_changed_nothing_but_what_is_known_to_be_made() {
        let mut seen = SeenCalls::default();
        seen.announce(1, &[edit("a", true), edit("b", false)]);
        seen.announce(2, &[edit("x", false)]);
        for call in [1, 2] {
            seen.end(call, &json!({"success": false}));
        }
        assert_eq!(seen.edits, [(1, vec![edit("a", true)]), (2, Vec::new())]);
    }

    #[test]
    fn a_change_counts_to_the_call_that_ran() {
        let at = |seconds, nanos| Moment { seconds, nanos };
        let spans = [(at(10, 5_000_000), at(11, 0)), (at(20, 0), at(21, 0))];
        assert!(was_running(&spans, at(10, 500)));
        assert!(was_running(&spans, at(9, 995_000_000)), "a tick before");
        assert!(!was_running(&spans, at(9, 0)));
        assert!(!was_running(&spans, at(15, 0)));
        assert!(was_running(&spans, at(21, 0)));
        assert!(!was_running(&spans, at(21, 1)));
        assert!(ran_before(&spans, at(21, 1)) && !ran_before(&spans, at(9, 0)));
    }
}
