//! Whether the journal takes writes, and what is caught up on when it does again (G-15).

use std::collections::{BTreeMap, BTreeSet};

use agent_api::TerminalChange;
use wire::ChannelUri;

use crate::agent_word::SessionNews;
use crate::background_task::BackgroundTask;

/// The journal's health, and work that waits for it.
#[derive(Default)]
pub(crate) struct Recovery {
    /// Why nothing can be written, if nothing can be.
    failure: Option<String>,
    /// Chats whose turn has no agent any more and must be closed.
    interrupted: BTreeSet<ChannelUri>,
    /// Why the last step in a chat could not be recorded, as long as its turn is not closed for it.
    unrecorded: BTreeMap<ChannelUri, String>,
    /// Tasks that wait until something can be written again.
    postponed: Vec<BackgroundTask>,
    /// Tasks that were done since the last commit, and in which steps: if that fails they are done again.
    done: Vec<(usize, BackgroundTask)>,
    /// How often steps in which a task of a channel was done could not be written.
    refused: BTreeMap<ChannelUri, u32>,
    /// The number of this step since the last commit.
    step: usize,
}

/// News of agents that wait until something can be written, at most.
const NEWS_MAX: usize = 1_024;

/// What a terminal prints while nothing can be written, at most: of more, it is shown anew.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Other things that happen in one meanwhile.
const OUTPUT_CHANGES_MAX: usize = 1_024;

/// A task whose step can never be written is done again so often, alone: the fault may have been another's in that step.
const TRIES_MAX: u32 = 3;

impl Recovery {
    /// The reason to refuse what must be written, if nothing can be.
    pub(crate) fn unwritable(&self) -> Option<String> {
        self.failure.as_deref().map(unwritable_reason)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        !self.interrupted.is_empty()
    }

    pub(crate) fn add_interrupted(&mut self, chat: ChannelUri) {
        self.interrupted.insert(chat);
    }

    pub(crate) fn add_unrecorded(&mut self, chat: ChannelUri, why: String) {
        self.unrecorded.insert(chat, why);
    }

    /// Returns what could not be recorded in it, if that is why.
    pub(crate) fn remove_interrupted(&mut self, chat: &ChannelUri) -> Option<String> {
        self.interrupted.remove(chat);
        self.unrecorded.remove(chat)
    }

    /// Chats whose turn is closed as soon as that can be written, for checkers; others may be among them, without harm.
    pub(crate) fn chats_to_close(&self) -> impl Iterator<Item = &ChannelUri> {
        let postponed = self.postponed.iter().filter_map(|task| match task {
            BackgroundTask::CloseInterruptedTurn(chat) => Some(chat),
            _ => None,
        });
        self.interrupted.iter().chain(postponed)
    }

    pub(crate) fn postpone(&mut self, task: BackgroundTask) {
        if let BackgroundTask::ApplyNews(news) = &task {
            self.forget_old_news(news);
        }
        self.postponed.push(task);
    }

    /// An agent may send news for as long as the disk is full: the newest is kept, and at most this many wait.
    fn forget_old_news(&mut self, newer: &SessionNews) {
        let is_old = |task: &BackgroundTask| match task {
            BackgroundTask::ApplyNews(news) => {
                news.session == newer.session && news.change.is_about_same(&newer.change)
            }
            _ => false,
        };
        self.postponed.retain(|task| !is_old(task));
        let is_news = |task: &&BackgroundTask| matches!(task, BackgroundTask::ApplyNews(_));
        if self.postponed.iter().filter(is_news).count() >= NEWS_MAX
            && let Some(oldest) = self.postponed.iter().position(|task| is_news(&task))
        {
            self.postponed.remove(oldest);
        }
    }

    /// What happened in a terminal waits. Returns whether that was too much: then the terminal is to be shown anew.
    pub(crate) fn postpone_output(
        &mut self,
        terminal: &ChannelUri,
        changes: Vec<TerminalChange>,
    ) -> bool {
        let mut own: Vec<_> = self
            .postponed
            .iter_mut()
            .filter_map(|task| match task {
                BackgroundTask::ApplyTerminal(of, waiting) if of == terminal => Some(waiting),
                _ => None,
            })
            .collect();
        let printed = own.iter().flat_map(|waiting| waiting.iter()).chain(&changes);
        let bytes: usize = printed.map(printed_bytes).sum();
        let is_anew = changes.contains(&TerminalChange::Cleared);
        let is_too_much = bytes > OUTPUT_BYTES_MAX && !is_anew;
        if is_anew || is_too_much {
            // What is shown anew holds all that was printed before.
            own.iter_mut().for_each(|waiting| drop_printed(waiting));
        }
        let mut added = Vec::new();
        let waiting = match own.pop() {
            Some(waiting) => waiting,
            None => &mut added,
        };
        for change in changes {
            match (waiting.last_mut(), change) {
                (Some(TerminalChange::Data(text)), TerminalChange::Data(more)) => {
                    text.push_str(&more);
                }
                (_, change) => waiting.push(change),
            }
        }
        if is_too_much {
            drop_printed(waiting);
        }
        let oldest = waiting.len().saturating_sub(OUTPUT_CHANGES_MAX);
        waiting.drain(..oldest);
        if !added.is_empty() {
            let task = BackgroundTask::ApplyTerminal(terminal.clone(), added);
            self.postponed.push(task);
        }
        is_too_much
    }

    pub(crate) fn note_done(&mut self, task: BackgroundTask) {
        self.done.push((self.step, task));
    }

    pub(crate) fn begin_step(&mut self, step: usize) {
        self.step = step;
    }

    /// Takes the tasks that were done in some steps.
    pub(crate) fn take_done(&mut self, steps: &BTreeSet<usize>) -> Vec<(usize, BackgroundTask)> {
        let done = std::mem::take(&mut self.done).into_iter();
        let (taken, kept) = done.partition(|(step, _)| steps.contains(step));
        self.done = kept;
        taken
    }

    /// A task was done in a step that can never be written. Returns whether it is to be done again.
    pub(crate) fn try_again(&mut self, task: BackgroundTask) -> bool {
        let tries = self.refused.entry(task.channel().clone()).or_default();
        if *tries == TRIES_MAX {
            return false;
        }
        *tries += 1;
        self.postponed.push(task);
        true
    }

    /// The next of the tasks that wait, and whether there are more. None while nothing can be written.
    pub(crate) fn take_postponed(&mut self) -> Option<(BackgroundTask, bool)> {
        if self.failure.is_some() || self.postponed.is_empty() {
            return None;
        }
        let task = self.postponed.remove(0);
        Some((task, !self.postponed.is_empty()))
    }

    pub(crate) fn commit(&mut self) {
        for (_, task) in self.done.drain(..) {
            self.refused.remove(task.channel());
        }
    }

    /// A write failed: nothing else is tried until one succeeds.
    pub(crate) fn roll_back(&mut self, why: &str) {
        debug_assert!(self.failure.is_none(), "a write is tried while none succeeds");
        let done = std::mem::take(&mut self.done).into_iter();
        self.postponed.extend(done.map(|(_, task)| task));
        self.failure = Some(why.to_owned());
    }

    /// Writing works again. Returns what must be caught up on.
    pub(crate) fn recover(&mut self) -> Vec<BackgroundTask> {
        self.failure = None;
        let interrupted = std::mem::take(&mut self.interrupted).into_iter();
        let mut tasks: Vec<BackgroundTask> =
            interrupted.map(BackgroundTask::CloseInterruptedTurn).collect();
        tasks.append(&mut self.postponed);
        tasks
    }
}

fn printed_bytes(change: &TerminalChange) -> usize {
    match change {
        TerminalChange::Data(text) => text.len(),
        _ => 0,
    }
}

fn drop_printed(changes: &mut Vec<TerminalChange>) {
    changes.retain(|change| !matches!(change, TerminalChange::Data(_)));
}

/// Said of a step that can never be written, whatever the state of the disk.
pub(crate) fn unrecordable_reason(why: &str) -> String {
    format!("this cannot be recorded, so nothing was changed: {why}")
}

/// Said of a step that rests on such a one.
pub(crate) const RESTS_ON_UNRECORDED: &str =
    "what this rests on cannot be recorded, so nothing was changed; try again";

pub(crate) fn unwritable_reason(why: &str) -> String {
    format!("nothing can be recorded right now, so nothing was changed: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_word::SessionChange;

    #[test]
    fn tasks_that_were_not_committed_are_done_again() {
        let uri = |name: &str| ChannelUri::parse(&format!("ahp-chat:/{name}")).unwrap();
        let mut recovery = Recovery::default();
        recovery.note_done(BackgroundTask::StartQueue(uri("a")));
        recovery.commit();
        recovery.note_done(BackgroundTask::StartQueue(uri("b")));
        recovery.roll_back("full");
        assert!(recovery.unwritable().is_some());
        recovery.add_interrupted(uri("c"));
        let again: Vec<String> =
            recovery.recover().iter().map(|task| task.channel().to_string()).collect();
        assert_eq!(again, ["ahp-chat:/c", "ahp-chat:/b"]);
        assert_eq!(recovery.unwritable(), None);
    }

    #[test]
    fn the_last_word_of_an_agent_waits_and_not_all_of_them() {
        let news = |session: usize, name: &str, value: usize| {
            BackgroundTask::ApplyNews(SessionNews {
                provider: "p".to_owned(),
                session: ChannelUri::parse(&format!("ahp-session:/{session}")).unwrap(),
                change: SessionChange::Setting { name: name.to_owned(), value: value.into() },
            })
        };
        let mut recovery = Recovery::default();
        recovery.roll_back("full");
        for value in 0..3 {
            recovery.postpone(news(0, "mode", value));
            recovery.postpone(news(0, "model", value));
        }
        let last: Vec<String> = recovery.postponed.iter().map(|task| format!("{task:?}")).collect();
        assert_eq!(last.len(), 2);
        assert!(last.iter().all(|task| task.contains("value: Number(2)")), "{last:?}");
        for session in 0..2 * NEWS_MAX {
            recovery.postpone(news(session, "mode", 0));
        }
        assert_eq!(recovery.postponed.len(), NEWS_MAX);
    }

    #[test]
    fn a_task_whose_step_is_refused_is_tried_again_so_often() {
        let uri = ChannelUri::parse("ahp-chat:/a").unwrap();
        let task = || BackgroundTask::StartQueue(uri.clone());
        let mut recovery = Recovery::default();
        for _ in 0..TRIES_MAX {
            assert!(recovery.try_again(task()));
            assert!(matches!(recovery.take_postponed(), Some((_, false))));
        }
        assert!(!recovery.try_again(task()));
        assert!(recovery.take_postponed().is_none());
        // Once it was written, it starts to count anew.
        recovery.note_done(task());
        recovery.commit();
        for _ in 0..TRIES_MAX {
            assert!(recovery.try_again(task()));
        }
    }
}
