//! What can be done with the files of a changeset: the host's operations, and marks that somebody looked at a file.
//!
//! Promises: what is offered is what the host offers; a mark is set only on what was listed. What the host refuses is an error.
//! Must not know: how changes are shown.

use serde_json::{Value, json};
use wire::ForceOffer;

use crate::{ClientError, Live};

use super::OpenChat;
use super::changes::{ChangesError, ChangesList, FileChangeEntry, FileChangeKind};
use super::watched_changeset::WatchedChangeset;

/// Something that the host does with the files of a changeset when it is asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedOperation {
    pub id: String,
    /// What the host calls it.
    pub label: String,
    pub description: String,
    /// What has to be asked first, if it takes something away.
    pub confirmation: Option<String>,
    /// Whether it can be done to all files, and to one of them.
    pub is_for_all: bool,
    pub is_for_files: bool,
    pub status: OperationStatus,
}

/// Whether an operation can be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationStatus {
    Idle,
    Running,
    Disabled,
    /// It failed the last time; why.
    Failed(String),
}

/// What is asked of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationRequest {
    pub operation: OfferedOperation,
    /// The files it is about; all of the list if there are none.
    pub files: Vec<FileChangeEntry>,
    /// Of a commit.
    pub message: Option<String>,
    /// What others changed meanwhile may be replaced: of the first file, or of all if there are none.
    pub is_forced: bool,
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationResult {
    /// What the host says of it, once for each file that it was asked about.
    Done(Vec<String>),
    /// The rest was not done: the host asks for a confirmation.
    NeedsForce {
        why: String,
        /// What the host says of what was done before.
        said: Vec<String>,
        /// What is still to be done.
        rest: Box<OperationRequest>,
    },
    /// The host did not do the rest.
    Failed { why: ClientError, said: Vec<String> },
}

impl OperationRequest {
    /// The first file is done. Whoever insisted was asked about that one only.
    fn take_next(&mut self) {
        self.files.remove(0);
        self.is_forced = false;
    }
}

impl OfferedOperation {
    pub(super) fn from_value(operation: &Value) -> Option<Self> {
        let text = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
        let id = operation["id"].as_str()?;
        let scopes = operation["scopes"].as_array();
        let has = |scope: &str| scopes.is_some_and(|scopes| scopes.iter().any(|own| own == scope));
        let label = operation["label"].as_str().filter(|label| !label.is_empty());
        let status = match operation["status"].as_str() {
            Some("running") => OperationStatus::Running,
            Some("disabled") => OperationStatus::Disabled,
            Some("error") => {
                let why = operation["error"]["message"].as_str();
                OperationStatus::Failed(why.unwrap_or("no reason was given").to_owned())
            }
            Some(_) | None => OperationStatus::Idle,
        };
        Some(Self {
            id: id.to_owned(),
            label: label.unwrap_or(id).to_owned(),
            description: text("description"),
            confirmation: text_of(&operation["confirmation"]),
            is_for_all: has("changeset"),
            is_for_files: has("resource"),
            status,
        })
    }

    /// Whether it takes a message of whoever asks for it.
    pub fn takes_message(&self) -> bool {
        self.id == "commit"
    }
}

/// `StringOrMarkdown`
fn text_of(value: &Value) -> Option<String> {
    let text = value.as_str().or_else(|| value["markdown"].as_str());
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

impl OpenChat {
    /// Has the host carry out an operation on files of a list. Of several files each is asked for by itself, and the first that
    /// fails ends it.
    pub fn operate_on_changes(
        &self,
        list: &ChangesList,
        request: OperationRequest,
    ) -> impl Future<Output = OperationResult> + Send + 'static {
        let (live, channel) = (self.live.clone(), list.changeset.to_string());
        async move { operate(&live, &channel, request).await }
    }

    /// Marks files of a list as reviewed, or not any more; the list as it is then. A file that is another by now is an error, and
    /// nothing is marked: nobody looked at it.
    pub fn review_changes(
        &self,
        list: &ChangesList,
        files: Vec<FileChangeEntry>,
        is_reviewed: bool,
    ) -> impl Future<Output = Result<ChangesList, ChangesError>> + Send + 'static {
        let live = self.live.clone();
        let (changeset, of, turn) = (list.changeset.clone(), list.of.clone(), list.turn.clone());
        async move {
            let watched = WatchedChangeset::open(&live, changeset, of, turn).await?;
            let marked = mark(&watched, &files, is_reviewed).await;
            watched.close().await;
            marked
        }
    }
}

async fn mark(
    watched: &WatchedChangeset,
    files: &[FileChangeEntry],
    is_reviewed: bool,
) -> Result<ChangesList, ChangesError> {
    let now = watched.list()?;
    let known = |file: &FileChangeEntry| now.files.iter().find(|other| other.id == file.id);
    for file in files {
        let is_same = known(file).is_some_and(|now| now.is_same_change(file));
        if is_reviewed && !is_same {
            return Err(ChangesError::ChangedSince(file.uri.clone()));
        }
    }
    let ids: Vec<&str> = files.iter().map(|file| file.id.as_str()).collect();
    let action = json!({
        "type": "changeset/filesReviewChanged",
        "files": ids,
        "reviewed": is_reviewed,
    });
    watched.dispatch(action).await?;
    let now = watched.list()?;
    let is_set = |file: &FileChangeEntry| {
        let file = now.files.iter().find(|other| other.id == file.id);
        file.is_none_or(|file| file.is_reviewed == is_reviewed)
    };
    if files.iter().all(is_set) { Ok(now) } else { Err(ChangesError::NotMarked) }
}

async fn operate(live: &Live, channel: &str, mut request: OperationRequest) -> OperationResult {
    let mut said = Vec::new();
    loop {
        let params = params_of(channel, &request);
        match live.request("invokeChangesetOperation", params).await {
            Ok(answer) => {
                let message = answer["message"].as_str().unwrap_or("Done.");
                said.push(message.to_owned());
            }
            Err(error) => {
                let conflict = conflict_of(&error).filter(|_| !request.is_forced);
                return match conflict {
                    Some(why) => OperationResult::NeedsForce { why, said, rest: Box::new(request) },
                    None => OperationResult::Failed { why: error, said },
                };
            }
        }
        if request.files.len() <= 1 {
            return OperationResult::Done(said);
        }
        request.take_next();
    }
}

/// Of the first file that is still to be done, or of all.
fn params_of(channel: &str, request: &OperationRequest) -> Value {
    let mut params = json!({"channel": channel, "operationId": request.operation.id});
    if let Some(file) = request.files.first() {
        params["target"] = json!({"kind": "resource", "resource": file.uri});
        if file.kind == FileChangeKind::Removed {
            params["target"]["side"] = json!("before");
        }
    }
    if let Some(message) = &request.message {
        params["_meta"]["message"] = json!(message);
    }
    if request.is_forced {
        params["_meta"]["force"] = json!(true);
    }
    params
}

/// Why nothing was done, if insisting on it would help.
fn conflict_of(error: &ClientError) -> Option<String> {
    match error {
        ClientError::Rpc(error) => ForceOffer::of_error(error).map(|offer| offer.reason),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use wire::RpcError;
    use wire::rpc::code;

    use super::*;

    #[test]
    fn an_operation_is_what_the_host_says() {
        let operation = json!({
            "id": "discard", "label": "Discard", "description": "D", "scopes": ["changeset", "resource"],
            "confirmation": {"markdown": "Really?"}, "status": "error", "error": {"message": "the disk is full"},
        });
        let operation = OfferedOperation::from_value(&operation).unwrap();
        assert!(operation.is_for_all && operation.is_for_files && !operation.takes_message());
        assert_eq!(operation.confirmation.as_deref(), Some("Really?"));
        let why = OperationStatus::Failed("the disk is full".to_owned());
        assert_eq!(operation.status, why);
        let small = OfferedOperation::from_value(&json!({"id": "go"})).unwrap();
        assert_eq!((small.label.as_str(), small.confirmation), ("go", None));
        assert!(!small.is_for_all && !small.is_for_files);
        assert_eq!(OfferedOperation::from_value(&json!({"label": "x"})), None);
    }

    #[test]
    fn only_the_file_that_was_asked_about_is_forced() {
        let file = |name: &str| {
            let edit = json!({"after": {"uri": format!("file:///w/{name}")}});
            json!({"id": name, "edit": edit})
        };
        let state = json!({"status": "ready", "files": [file("a"), file("b")]});
        let state = wire::state::ChangesetState::from_value(state).unwrap();
        let uri = wire::ChannelUri::parse("x:/s/changeset/session").unwrap();
        let of = json!({"uriTemplate": uri.as_str()});
        let of = super::super::ChangesetOffer::from_value(&of).unwrap();
        let mut request = OperationRequest {
            operation: OfferedOperation::from_value(&json!({"id": "discard"})).unwrap(),
            files: ChangesList::from_state(of, None, uri, &state).files,
            message: None,
            is_forced: true,
        };
        let first = params_of("x:/s", &request);
        assert_eq!(first["_meta"]["force"], true);
        request.take_next();
        let second = params_of("x:/s", &request);
        assert_eq!(second["target"]["resource"], "file:///w/b");
        assert_eq!(second["_meta"]["force"], Value::Null);
    }

    #[test]
    fn only_a_conflict_that_can_be_forced_is_asked_about() {
        let offer = ForceOffer {
            reason: "nothing was done: a.txt changed since".to_owned(),
            resources: Vec::new(),
        };
        let offered = offer.to_error("replace what is there");
        let words = RpcError::new(code::CONFLICT, offered.message.clone());
        let why = conflict_of(&ClientError::Rpc(offered));
        assert_eq!(why, Some(offer.reason));
        assert_eq!(conflict_of(&ClientError::Rpc(words)), None);
        assert_eq!(conflict_of(&ClientError::TooOld), None);
    }
}
