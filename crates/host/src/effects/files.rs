//! Files that clients read and change, where waiting for a disk harms nobody.
//!
//! Promises: a few at a time, the others wait, and who reads does not wait for who copies a large tree; an answer is encoded here.
//! Must not know: who may use what beyond what is granted; error codes.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use kernel::{
    FileAnswer, FileRefusal, FileRefusalReason, FileTask, Input, ResourceOperand, Ticket,
    WantedAccess,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wire::methods::ResourceCall;
use wire::published::commands::{
    ContentEncoding, DirectoryEntry, ResourceListResult, ResourceReadParams, ResourceRequestParams,
    ResourceResolveResult, ResourceType, ResourceWriteMode, ResourceWriteParams,
};
use workspace::{
    Placement, ResourceAccess, ResourceError, ResourceFacts, ResourceFiles, ResourceGrant,
    ResourceKind, WriteRequest,
};

use super::{Effects, send};
use crate::blobs::encode_body;
use crate::resource_grants::ResourceGrants;
use crate::task;

/// Requests of a kind that are carried out at once; others wait.
const REQUESTS_MAX: usize = 4;

/// The kinds of requests that wait for their own only: changes can take long, and wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileWork {
    Look,
    Change,
}

impl FileWork {
    fn of(call: &ResourceCall) -> Self {
        match call {
            ResourceCall::Read(_)
            | ResourceCall::List(_)
            | ResourceCall::Resolve(_)
            | ResourceCall::Request(_) => Self::Look,
            ResourceCall::Write(_)
            | ResourceCall::Copy(_)
            | ResourceCall::Move(_)
            | ResourceCall::Delete(_)
            | ResourceCall::MakeDirectory(_) => Self::Change,
        }
    }
}

/// Carries out what clients want of files.
#[derive(Debug, Clone)]
pub(crate) struct ClientFileAccess {
    files: ResourceFiles,
    grants: Option<ResourceGrants>,
    looks: Arc<Semaphore>,
    changes: Arc<Semaphore>,
}

impl ClientFileAccess {
    pub(crate) fn new(files: ResourceFiles, grants: Option<ResourceGrants>) -> Self {
        Self {
            files,
            grants,
            looks: Arc::new(Semaphore::new(REQUESTS_MAX)),
            changes: Arc::new(Semaphore::new(REQUESTS_MAX)),
        }
    }

    /// Does what may wait for a disk, when it is its turn.
    pub(super) async fn run<T: Send + 'static>(
        self,
        kind: FileWork,
        work: impl FnOnce(&Self) -> Result<T, FileRefusal> + Send + 'static,
    ) -> Result<T, FileRefusal> {
        let failed = |message: String| FileRefusal { why: FileRefusalReason::Failed, message };
        let permits = match kind {
            FileWork::Look => &self.looks,
            FileWork::Change => &self.changes,
        };
        let permit = Arc::clone(permits).acquire_owned().await;
        let _permit = permit.map_err(|closed| failed(closed.to_string()))?;
        let done = task::spawn_blocking(move || work(&self));
        done.await.map_err(|error| {
            tracing::error!(%error, "a request on files failed");
            failed("the host could not do that; its log says why".to_owned())
        })?
    }

    pub(super) fn files(&self) -> &ResourceFiles {
        &self.files
    }

    /// What a client may use outside the roots now.
    pub(super) fn grants_of(&self, client_id: &str) -> Vec<ResourceGrant> {
        let grants = self.grants.as_ref();
        grants.map_or_else(Vec::new, |grants| grants.of_client(client_id))
    }

    fn use_files(&self, task: &FileTask) -> Result<FileAnswer, FileRefusal> {
        let grants = self.grants_of(&task.client_id);
        let (files, grants) = (&self.files, &grants[..]);
        let done = match &*task.call {
            ResourceCall::Read(params) => return read(files, params, task.bytes_max, grants),
            ResourceCall::Write(params) => {
                let bytes = body_of(params)?;
                let request = write_request(params, &bytes);
                files.write(&request, grants).map(|()| json!({}))
            }
            ResourceCall::List(params) => files.list(&params.uri, grants).map(|entries| {
                let entries = entries.into_iter().map(|entry| DirectoryEntry {
                    name: entry.name,
                    r#type: kind_name(entry.kind).to_owned(),
                });
                wire::action::to_value(&ResourceListResult { entries: entries.collect() })
            }),
            ResourceCall::Resolve(params) => {
                let follow_links = params.follow_symlinks.unwrap_or(true);
                files.resolve(&params.uri, follow_links, grants).map(resolved)
            }
            ResourceCall::Copy(params) => {
                let (source, destination) = (&params.source, &params.destination);
                let fail_if_exists = params.fail_if_exists.unwrap_or(false);
                files.copy(source, destination, fail_if_exists, grants).map(|()| json!({}))
            }
            ResourceCall::Move(params) => {
                let (source, destination) = (&params.source, &params.destination);
                let fail_if_exists = params.fail_if_exists.unwrap_or(false);
                files.rename(source, destination, fail_if_exists, grants).map(|()| json!({}))
            }
            ResourceCall::Delete(params) => {
                let recursive = params.recursive.unwrap_or(false);
                files.remove(&params.uri, recursive, grants).map(|()| json!({}))
            }
            ResourceCall::MakeDirectory(params) => {
                files.make_directory(&params.uri, grants).map(|()| json!({}))
            }
            ResourceCall::Request(params) => return self.request(&task.client_id, params),
        };
        let value = done.map_err(|error| refusal(&error, Some(&task.call)))?;
        encode_answer(&value, task.bytes_max)
    }

    /// Grants what lies in the roots anyway, and what the configuration grants.
    fn request(
        &self,
        client_id: &str,
        params: &ResourceRequestParams,
    ) -> Result<FileAnswer, FileRefusal> {
        let write = params.write.unwrap_or(false);
        let access = if write { ResourceAccess::Write } else { ResourceAccess::Read };
        let configured = self.grants.as_ref().map(ResourceGrants::configured).unwrap_or_default();
        match self.files.find_grant(&params.uri, access, &configured) {
            Ok(None) => {}
            Ok(Some(path)) => {
                if let Some(grants) = &self.grants {
                    grants.grant(client_id, ResourceGrant { path, write });
                }
            }
            Err(ResourceError::Outside { path, .. }) => {
                return Err(FileRefusal {
                    // Asking again would change nothing.
                    why: FileRefusalReason::Denied(None),
                    message: format!(
                        "{path} is not granted: add it to `resource_grants` in the host's configuration, or its directory to \
                         `workspaces`"
                    ),
                });
            }
            Err(error) => return Err(refusal(&error, None)),
        }
        Ok(FileAnswer::Json(Bytes::from_static(b"{}")))
    }
}

impl Effects {
    pub(crate) fn use_files(&self, ticket: Ticket, task: FileTask) {
        let (files, arrivals) = (self.tools().files.clone(), self.arrivals.clone());
        task::spawn(async move {
            let kind = FileWork::of(&task.call);
            let used = files.run(kind, move |access| access.use_files(&task)).await;
            send(&arrivals, Input::FilesUsed { ticket, used }).await;
        });
    }
}

fn read(
    files: &ResourceFiles,
    params: &ResourceReadParams,
    bytes_max: usize,
    grants: &[ResourceGrant],
) -> Result<FileAnswer, FileRefusal> {
    let failed = |error: ResourceError| refusal(&error, None);
    let read = files.read(&params.uri, bytes_max as u64, grants).map_err(failed)?;
    let content_type = content_type(&read.bytes);
    let size = read.bytes.len();
    let content = encode_body(&read.bytes, params.encoding, content_type);
    if content.data.len() > bytes_max {
        return Err(too_large(&format!("{} has {size} bytes; encoded it", read.name), bytes_max));
    }
    Ok(FileAnswer::Content(content))
}

/// By its first bytes; what is neither a known format nor text has no type that is known.
fn content_type(bytes: &[u8]) -> Option<String> {
    let detected = compositor::media_type::detect(bytes).map(str::to_owned);
    let is_text = || compositor::media_type::as_text(bytes).is_some();
    detected.or_else(|| is_text().then(|| "text/plain".to_owned()))
}

fn encode_answer(value: &Value, bytes_max: usize) -> Result<FileAnswer, FileRefusal> {
    let json = wire::rpc::to_json(value);
    if json.len() > bytes_max {
        Err(too_large("the answer", bytes_max))
    } else {
        Ok(FileAnswer::Json(Bytes::from(json)))
    }
}

fn too_large(what: &str, bytes_max: usize) -> FileRefusal {
    FileRefusal {
        why: FileRefusalReason::Failed,
        message: format!(
            "{what} does not fit into a message of {bytes_max} bytes (`message_out_bytes`)"
        ),
    }
}

/// What is to be written.
fn body_of(params: &ResourceWriteParams) -> Result<Vec<u8>, FileRefusal> {
    match params.encoding {
        ContentEncoding::Utf8 => Ok(params.data.clone().into_bytes()),
        ContentEncoding::Base64 => STANDARD.decode(&params.data).map_err(|_| FileRefusal {
            why: FileRefusalReason::Invalid,
            message: "`data` is not base64, though `encoding` says so".to_owned(),
        }),
    }
}

fn write_request<'a>(params: &'a ResourceWriteParams, bytes: &'a [u8]) -> WriteRequest<'a> {
    // The kernel let no negative one pass.
    let position = params.position.and_then(|position| u64::try_from(position).ok()).unwrap_or(0);
    WriteRequest {
        uri: &params.uri,
        bytes,
        placement: match params.mode.unwrap_or(ResourceWriteMode::Truncate) {
            ResourceWriteMode::Truncate => Placement::From(position),
            ResourceWriteMode::Append => Placement::BeforeLast(position),
            ResourceWriteMode::Insert => Placement::At(position),
        },
        create_only: params.create_only.unwrap_or(false),
        if_match: params.if_match.as_deref(),
    }
}

fn kind_name(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::File => "file",
        ResourceKind::Directory => "directory",
        ResourceKind::Link => "symlink",
    }
}

fn resolved(facts: ResourceFacts) -> Value {
    wire::action::to_value(&ResourceResolveResult {
        uri: facts.uri,
        r#type: match facts.kind {
            ResourceKind::File => ResourceType::File,
            ResourceKind::Directory => ResourceType::Directory,
            ResourceKind::Link => ResourceType::Symlink,
        },
        size: facts.bytes.and_then(|bytes| i64::try_from(bytes).ok()),
        mtime: Some(facts.modified.to_rfc3339()),
        ctime: facts.created.map(|created| created.to_rfc3339()),
        content_type: None,
        etag: Some(facts.etag),
    })
}

/// Which kind of refusal an error is.
pub(super) fn refusal(error: &ResourceError, call: Option<&ResourceCall>) -> FileRefusal {
    let why = match error {
        ResourceError::NotFound { .. } | ResourceError::BrokenLink { .. } => {
            FileRefusalReason::NotFound
        }
        ResourceError::Outside { needs, .. } => {
            let write = *needs == ResourceAccess::Write;
            // Of two resources only the second is written, unless one is moved away.
            let of = match (call, write) {
                (Some(ResourceCall::Copy(_)), true) => ResourceOperand::Second,
                (Some(ResourceCall::Move(params)), _) if !is_first(error, &params.source) => {
                    ResourceOperand::Second
                }
                _ => ResourceOperand::First,
            };
            FileRefusalReason::Denied(Some(WantedAccess { of, write }))
        }
        ResourceError::HostOwned { .. }
        | ResourceError::IsRoot { .. }
        | ResourceError::PermissionDenied { .. } => FileRefusalReason::Denied(None),
        ResourceError::AlreadyExists { .. } => FileRefusalReason::AlreadyExists,
        ResourceError::EtagMismatch { .. }
        | ResourceError::Changed { .. }
        | ResourceError::LeftAside { .. }
        | ResourceError::DestinationChanged { .. }
        | ResourceError::ReplacedAside { .. }
        | ResourceError::NotRemoved { .. } => FileRefusalReason::Conflict,
        ResourceError::NotLocal { .. }
        | ResourceError::IsDirectory { .. }
        | ResourceError::NotADirectory { .. }
        | ResourceError::NotRegular { .. }
        | ResourceError::NotEmpty { .. }
        | ResourceError::BeyondEnd { .. }
        | ResourceError::InvalidGlob { .. }
        | ResourceError::Nested { .. } => FileRefusalReason::Invalid,
        ResourceError::TooManyEntries { .. }
        | ResourceError::TreeTooLarge { .. }
        | ResourceError::TooManyDirectories { .. }
        | ResourceError::NoMoreWatches { .. }
        | ResourceError::TooLarge { .. }
        | ResourceError::DiskFull { .. }
        | ResourceError::Appended { .. }
        | ResourceError::Moving { .. }
        | ResourceError::Unconfined
        | ResourceError::System { .. } => FileRefusalReason::Failed,
    };
    FileRefusal { why, message: error.to_string() }
}

/// Whether an error is about this resource.
fn is_first(error: &ResourceError, uri: &str) -> bool {
    let path = wire::file_uri::path_of(uri).unwrap_or_default();
    let path = String::from_utf8_lossy(&path);
    matches!(error, ResourceError::Outside { path: named, .. } if *named == path)
}
