//! What the kernel wants done with files, and what it is answered.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use kernel::{FileAnswer, FileRefusal, FileTask, WatchTask};
use wire::ChannelUri;

/// Requests on files: each is answered with the next answer that a test put here, else with an empty object.
#[derive(Debug, Default)]
pub struct FilesAsked {
    pub asked: Vec<FileTask>,
    pub answers: VecDeque<Result<FileAnswer, FileRefusal>>,
    /// Watches that run, by their channels.
    pub watches: BTreeMap<ChannelUri, WatchTask>,
    /// What the next watch is refused with.
    pub refused: Option<FileRefusal>,
    begun: u64,
}

impl FilesAsked {
    pub(crate) fn use_files(&mut self, task: &FileTask) -> Result<FileAnswer, FileRefusal> {
        self.asked.push(task.clone());
        let answer = self.answers.pop_front();
        answer.unwrap_or_else(|| Ok(FileAnswer::Json(Bytes::from_static(b"{}"))))
    }

    pub(crate) fn begin_watch(&mut self, task: &WatchTask) -> Result<ChannelUri, FileRefusal> {
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        self.begun += 1;
        let name = format!("ahp-resource-watch:/w{}", self.begun);
        let uri = ChannelUri::parse(&name).expect("a URI");
        self.watches.insert(uri.clone(), task.clone());
        Ok(uri)
    }

    pub(crate) fn end_watch(&mut self, watch: &ChannelUri) {
        self.watches.remove(watch);
    }
}
