//! Calls that are asked about more than once (AG-31b).
//!
//! Promises: each question about a call is a call of its own for people. An answer names a call and not a question: were they one call,
//! a yes that is on its way to the older question would count for the newer one.

use super::call::{MappedCall, Stage};
use super::call_words::CallWords;
use super::{Mapper, MapperStep};

impl Mapper {
    /// A call is about to be asked about. If it was asked about before, what is asked now becomes another call; the older question
    /// stays open with what it showed, and a call that runs by an older yes is over.
    pub(super) fn set_aside_asked(&mut self, words: &mut CallWords, steps: &mut Vec<MapperStep>) {
        let Some(before) = self.calls.get(&words.id).filter(|call| call.was_asked) else {
            return; // this is the first question about it
        };
        match before.stage {
            Stage::Asking => {}
            Stage::Running => before.complete_as("it asked again", steps),
            // Another call begins anyway.
            Stage::Started | Stage::Denied | Stage::Over => return,
        }
        words.fill_from(before);
        if let Some(before) = self.calls.remove(&words.id)
            && before.stage == Stage::Asking
        {
            self.earlier.push((words.id.clone(), before));
        }
    }

    /// The agent says that a call is over: so are the questions about it that are still open.
    pub(super) fn end_earlier(&mut self, id: &str, steps: &mut Vec<MapperStep>) {
        for (_, mut call) in self.earlier.extract_if(.., |(earlier, _)| earlier == id) {
            call.end_without_result(steps);
        }
    }

    /// Every call, those of older questions first.
    pub(super) fn all_calls_mut(&mut self) -> impl Iterator<Item = &mut MappedCall> {
        let earlier = self.earlier.iter_mut().map(|(_, call)| call);
        earlier.chain(self.calls.values_mut())
    }
}
