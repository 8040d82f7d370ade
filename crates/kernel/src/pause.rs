//! Handlers that may have to wait. A handler first gathers what it needs from the kernel, without changing anything; if
//! something is missing it pauses, and runs again from the start with what it was answered. Then it applies what it found,
//! and cannot pause any more.

use serde_json::Value;
use wire::rpc::code;
use wire::{ChannelUri, Digest, Object, RpcError};

use crate::bodies::UnstoredBody;
use crate::changeset_work::{ChangesetOperation, OperationOutcome};
use crate::client_file::ClientFile;
use crate::file_task::{FileAnswer, FileRefusal, FileTask};
use crate::host_guard::HostGuard;
use crate::io::{
    CompletionAnswer, CompletionTask, ComposeTask, FetchTask, FetchedContent, MessageCheck,
    ModelChange, PeerId, ReadFailed, SettingQuestion, WorkFailed,
};
use crate::journal_query::{Answer, Query};
use crate::refusal::Refusal;
use crate::submission::Submission;
use crate::watch_task::WatchTask;

/// Why a handler cannot go on now.
pub(crate) enum Pause {
    /// These must be read from the journal first.
    Read(Vec<Query>),
    /// The host must do this first.
    Work(HostWork),
    /// The client that sent the message must read these first.
    AskClient(Vec<String>),
    /// What an older connection of the same client sent comes first (G-20).
    After(PeerId),
}

/// Why something is not loaded: it must be read first, or reading failed.
#[derive(Debug)]
pub(crate) enum NotLoaded {
    Read(Vec<Query>),
    Failed(ReadFailed),
}

/// Something loaded, or why it is not.
pub(crate) type Load<T> = Result<T, NotLoaded>;

/// Why the handler of a request ends before it changes anything.
pub(crate) enum RequestStop {
    Pause(Pause),
    /// The request is answered with this error.
    Fail(RpcError),
}

/// Why the handler of an action ends before it changes anything.
pub(crate) enum ActionStop {
    Pause(Pause),
    /// The sender gets the reason.
    Refuse(Refusal),
}

impl From<Pause> for RequestStop {
    fn from(pause: Pause) -> Self {
        Self::Pause(pause)
    }
}

impl From<RpcError> for RequestStop {
    fn from(error: RpcError) -> Self {
        Self::Fail(error)
    }
}

impl From<NotLoaded> for RequestStop {
    fn from(unread: NotLoaded) -> Self {
        match unread {
            NotLoaded::Read(queries) => Self::Pause(Pause::Read(queries)),
            NotLoaded::Failed(failed) => {
                Self::Fail(RpcError::new(code::INTERNAL_ERROR, failed.to_string()))
            }
        }
    }
}

impl From<Pause> for ActionStop {
    fn from(pause: Pause) -> Self {
        Self::Pause(pause)
    }
}

impl From<Refusal> for ActionStop {
    fn from(refusal: Refusal) -> Self {
        Self::Refuse(refusal)
    }
}

impl From<NotLoaded> for ActionStop {
    fn from(unread: NotLoaded) -> Self {
        match unread {
            NotLoaded::Read(queries) => Self::Pause(Pause::Read(queries)),
            NotLoaded::Failed(failed) => Self::Refuse(Refusal(failed.to_string())),
        }
    }
}

/// Work of the host that a message waits for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HostWork {
    Fetch(FetchTask),
    Complete(Box<CompletionTask>),
    ChangeModels(Box<ModelChange>),
    StoreBodies(Vec<UnstoredBody>),
    /// The same for what was detached from the result of a call. What is left of the result waits with its message.
    StoreResult {
        bodies: Vec<UnstoredBody>,
        result: Object,
    },
    Compose(Box<ComposeTask>),
    CheckMessage(Box<MessageCheck>),
    ListSettingValues(SettingQuestion),
    OperateChangeset(Box<ChangesetOperation>),
    UseFiles(Box<FileTask>),
    BeginWatch(Box<WatchTask>),
    CheckWorktree(Value),
}

/// The result of host work.
#[derive(Debug, Clone)]
pub(crate) enum HostWorkResult {
    Fetched(Result<FetchedContent, WorkFailed>),
    Completed(Result<CompletionAnswer, WorkFailed>),
    /// What the peer is answered.
    ModelsChanged(Result<Value, WorkFailed>),
    BodiesStored(Result<StoredNames, WorkFailed>),
    Composed(Result<Box<Submission>, WorkFailed>),
    /// What the peer is answered.
    MessageChecked(Result<Value, WorkFailed>),
    SettingValues(Result<Vec<Value>, WorkFailed>),
    Operated(OperationOutcome),
    FilesUsed(Result<FileAnswer, FileRefusal>),
    WatchBegun(Result<ChannelUri, FileRefusal>),
    /// Why it would be kept, for people.
    WorktreeChecked(Option<String>),
    ClientFileRead {
        file: ClientFile,
        _hold: HostGuard,
    },
}

/// Bodies that were stored: where their names belong.
pub(crate) type StoredNames = Vec<(String, Digest)>;

/// The answers that the handler of one message has so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandlerAnswers {
    reads: Vec<(Query, Result<Answer, ReadFailed>)>,
    work: Vec<HostWorkResult>,
    /// The result that the message brings, without the bodies that the host was given to store.
    detached_result: Option<Object>,
}

impl HandlerAnswers {
    pub(crate) fn add_read(&mut self, query: Query, answer: Result<Answer, ReadFailed>) {
        self.reads.push((query, answer));
    }

    pub(crate) fn add_work(&mut self, done: HostWorkResult) {
        self.work.push(done);
    }

    pub(crate) fn set_detached_result(&mut self, result: Object) {
        debug_assert!(self.detached_result.is_none(), "a result is detached once");
        self.detached_result = Some(result);
    }

    /// The result of a call whose bodies the host was given to store.
    pub(crate) fn detached_result(&self) -> Option<&Object> {
        self.detached_result.as_ref()
    }

    /// The answer to a query; a pause to ask it if it was not asked yet.
    pub(crate) fn read(&self, query: Query) -> Load<&Answer> {
        match self.find(|asked| *asked == query) {
            None => Err(NotLoaded::Read(vec![query])),
            Some((_, Err(failed))) => Err(NotLoaded::Failed(failed.clone())),
            Some((_, Ok(answer))) => Ok(answer),
        }
    }

    pub(crate) fn find(
        &self,
        wanted: impl Fn(&Query) -> bool,
    ) -> Option<&(Query, Result<Answer, ReadFailed>)> {
        self.reads.iter().rev().find(|(query, _)| wanted(query))
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Query) -> bool) -> usize {
        self.reads.iter().filter(|(query, _)| wanted(query)).count()
    }

    pub(crate) fn fetch_result(&self) -> Option<&Result<FetchedContent, WorkFailed>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::Fetched(fetched) => Some(fetched),
            _ => None,
        })
    }

    pub(crate) fn store_result(&self) -> Option<&Result<StoredNames, WorkFailed>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::BodiesStored(stored) => Some(stored),
            _ => None,
        })
    }

    pub(crate) fn compose_result(&self) -> Option<&Result<Box<Submission>, WorkFailed>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::Composed(composed) => Some(composed),
            _ => None,
        })
    }

    /// The client's answer about a file; `None` if it was not asked yet.
    pub(crate) fn client_file(&self, uri: &str) -> Option<&ClientFile> {
        self.work.iter().find_map(|done| match done {
            HostWorkResult::ClientFileRead { file, .. } if file.uri == uri => Some(file),
            _ => None,
        })
    }

    pub(crate) fn model_change_result(&self) -> Option<&Result<Value, WorkFailed>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::ModelsChanged(changed) => Some(changed),
            _ => None,
        })
    }

    pub(crate) fn message_check_result(&self) -> Option<&Result<Value, WorkFailed>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::MessageChecked(checked) => Some(checked),
            _ => None,
        })
    }

    pub(crate) fn setting_values(&self) -> Option<&Result<Vec<Value>, WorkFailed>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::SettingValues(values) => Some(values),
            _ => None,
        })
    }

    pub(crate) fn operation_result(&self) -> Option<&OperationOutcome> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::Operated(outcome) => Some(outcome),
            _ => None,
        })
    }

    pub(crate) fn watch_result(&self) -> Option<&Result<ChannelUri, FileRefusal>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::WatchBegun(begun) => Some(begun),
            _ => None,
        })
    }

    /// Why a worktree would be kept; `None` if it was not looked at yet.
    pub(crate) fn worktree_check(&self) -> Option<&Option<String>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::WorktreeChecked(kept) => Some(kept),
            _ => None,
        })
    }

    pub(crate) fn file_result(&self) -> Option<&Result<FileAnswer, FileRefusal>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::FilesUsed(used) => Some(used),
            _ => None,
        })
    }

    pub(crate) fn completion_result(&self) -> Option<&Result<CompletionAnswer, WorkFailed>> {
        self.work.iter().rev().find_map(|done| match done {
            HostWorkResult::Completed(completed) => Some(completed),
            _ => None,
        })
    }
}
