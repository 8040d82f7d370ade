//! The runs: which agent tasks work on which chats, and whether the host is going down.

use std::collections::BTreeMap;

use wire::ChannelUri;

use crate::io::RunId;

/// Agent tasks at work, by the number each of them gets once in the life of a process.
#[derive(Default)]
pub(crate) struct Runs {
    chats: BTreeMap<RunId, ChannelUri>,
    last: u64,
    stopping: bool,
}

impl Runs {
    /// A new run for a chat.
    pub(crate) fn start(&mut self, chat: ChannelUri) -> RunId {
        assert!(!self.stopping, "no run starts while the host goes down");
        self.last += 1;
        let run = RunId(self.last);
        self.chats.insert(run, chat);
        run
    }

    /// A run is over: whatever it still says is dropped.
    pub(crate) fn end(&mut self, run: RunId) {
        self.chats.remove(&run);
    }

    pub(crate) fn chat_of(&self, run: RunId) -> Option<&ChannelUri> {
        self.chats.get(&run)
    }

    /// Chats with a run, in the order the runs were started: workers come after the turns they work for.
    pub(crate) fn chats(&self) -> impl DoubleEndedIterator<Item = &ChannelUri> {
        self.chats.values()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RunId, &ChannelUri)> {
        self.chats.iter().map(|(run, chat)| (*run, chat))
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    pub(crate) fn stop(&mut self) {
        self.stopping = true;
    }
}
