//! Calls that are asked about more than once (AG-31b): because their agent asks again, or says that they are something else while
//! people still decide (AG-31c).
//!
//! Promises: each question about a call is a call of its own for people. An answer names a call and not a question: were they one call,
//! a yes that is on its way to the older question would count for the newer one.

use super::call::{MappedCall, Stage};
use super::call_update::CallUpdate;
use super::{Mapper, MapperStep};

impl Mapper {
    /// A call is about to be asked about. If it was asked about before, what is asked now becomes another call; the older question
    /// stays open with what it showed, and a call that runs by an older yes is over.
    pub(super) fn set_aside_asked(&mut self, update: &mut CallUpdate, steps: &mut Vec<MapperStep>) {
        let Some(before) = self.calls.get(&update.id).filter(|call| call.was_asked) else {
            return; // this is the first question about it
        };
        match before.stage {
            Stage::Asking => {}
            Stage::Running => before.complete_as("it asked again", steps),
            // Another call begins anyway.
            Stage::Started | Stage::Denied | Stage::Over => return,
        }
        update.fill_from(before);
        if let Some(before) = self.calls.remove(&update.id)
            && before.stage == Stage::Asking
        {
            self.earlier.push((update.id.clone(), before));
        }
    }

    /// The agent said something of a call while people were asked about it. If it is another call by that, they are asked about that
    /// one instead, with all that is known of it by now; none if the turn has more calls than it can have: then nobody is asked.
    pub(super) fn replace_changed(&mut self, id: &str, steps: &mut Vec<MapperStep>) {
        let usual = self.usual_directory.as_deref();
        let is_changed = |call: &&MappedCall| call.stage == Stage::Asking && call.is_changed(usual);
        let Some(before) = self.calls.get(id).filter(is_changed) else {
            return; // it is what they decide about
        };
        let older = before.number;
        let mut update = CallUpdate::about(id);
        update.fill_from(before);
        update.announce();
        self.calls.remove(id);
        match self.begin_question(update, steps) {
            Some(asked) => steps.push(MapperStep::Replace { call: older, asked: Box::new(asked) }),
            None => steps.push(MapperStep::Withdraw { call: older }),
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
