//! Restores files, as a tool call of the host's own in the turn of the command: everyone sees what was done, and it can be
//! taken back like any other change.
//!
//! Promises: what each file holds is stored, and what will be done is recorded, before the first file is changed. If one cannot be
//! written, all are left as they were. What is reported is what was done.
//! Must not know: which files, and why.

use agent_api::{
    AgentError, AgentEvent, EventSink, FileContent, RecordedEdit, ToolReady, ToolResult, ToolStart,
};
use serde_json::{Value, json};
use wire::Digest;
use wire::published::state::ToolCallConfirmationReason;
use workspace::{Cancellation, FileError, WantedFile, is_binary};

use super::plan::{Files, PlannedFile, RestorePlan};
use super::turns::{FileTurn, RestoreCommand, restoration_meta};
use super::{CALL, RestoreStop, run_blocking, words};

/// The name of the call. Models cannot call it.
const TOOL: &str = "restore_files";

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RestoreResult {
    pub files: Vec<PlannedFile>,
    /// Why others were not restored.
    pub problems: Vec<String>,
}

/// A file that is about to be restored, with what is recorded of it.
struct PreparedFile {
    file: PlannedFile,
    edit: RecordedEdit,
    /// How clients are shown it: a `fileEdit` block.
    block: Value,
}

/// Restores the files of a plan.
pub(super) async fn restore(
    command: RestoreCommand,
    target: &FileTurn,
    plan: RestorePlan,
    files: &Files,
    events: &dyn EventSink,
) -> Result<RestoreResult, RestoreStop> {
    let mut problems = plan.problems;
    let (prepared, failed) = prepare(plan.files, files).await?;
    problems.extend(failed);
    start_call(command, target, &prepared, events).await?;
    let own = files.clone();
    let written = run_blocking(move |cancellation| write_all(prepared, &own, cancellation));
    let (done, failed) = written.await?;
    problems.extend(failed);
    if !done.is_empty() {
        record(&done, events).await?;
    }
    let blocks = done.iter().map(|prepared| prepared.block.clone()).collect();
    let restored =
        RestoreResult { files: done.into_iter().map(|prepared| prepared.file).collect(), problems };
    complete_call(command, &restored, blocks, events).await?;
    Ok(restored)
}

/// Stores what the files hold now. Returns those that are still what was shown, and why others are left alone.
async fn prepare(
    planned: Vec<PlannedFile>,
    files: &Files,
) -> Result<(Vec<PreparedFile>, Vec<String>), AgentError> {
    let files = files.clone();
    let prepared = run_blocking(move |_| {
        let (mut prepared, mut problems) = (Vec::new(), Vec::new());
        for file in planned {
            match prepare_one(file, &files) {
                Ok(file) => prepared.push(file),
                Err(problem) => problems.push(problem),
            }
        }
        (prepared, problems)
    });
    prepared.await
}

fn prepare_one(file: PlannedFile, files: &Files) -> Result<PreparedFile, String> {
    let say = |error: FileError| error.to_string();
    let path = files.workspace.path_of_uri(&file.uri).map_err(say)?;
    let now = files.look_at(&path, file.may_be_link).map_err(say)?;
    if now.as_ref().map(|now| now.digest) != file.seen {
        let path = file.path;
        return Err(say(FileError::ChangedSinceProposal { path }));
    }
    if let Some(now) = &now {
        let (store, time) = (files.bodies.store(), files.bodies.now());
        let stored = store.put_named(&now.digest, &now.bytes, time);
        stored.map_err(|error| format!("{} is left alone: {error}", file.path))?;
    }
    let wanted = match file.wanted {
        Some(wanted) => Some(files.read(&file.path, wanted.digest)?),
        None => None,
    };
    let edit = RecordedEdit {
        uri: file.uri.clone(),
        before: now.as_ref().map(|now| FileContent { digest: now.digest, mode: Some(now.mode) }),
        after: file.wanted,
        new_directories: match now {
            Some(_) => 0,
            None => files.workspace.missing_directories(&path),
        },
        is_made: false,
    };
    let mut block = json!({
        "type": "fileEdit",
        "diff": {"added": file.stats.added, "removed": file.stats.removed},
    });
    if let Some(now) = &now {
        block["before"] = side(&file, now.digest, &now.bytes);
    }
    if let (Some(content), Some(bytes)) = (file.wanted, &wanted) {
        block["after"] = side(&file, content.digest, bytes);
    }
    Ok(PreparedFile { file, edit, block })
}

/// `FileEditSide`
fn side(file: &PlannedFile, digest: Digest, bytes: &[u8]) -> Value {
    let is_text = !is_binary(bytes) && std::str::from_utf8(bytes).is_ok();
    let content_type =
        if is_text { "text/plain; charset=utf-8" } else { "application/octet-stream" };
    json!({
        "uri": file.uri,
        "content": {
            "uri": digest.uri_with_name(&file.path),
            "sizeHint": bytes.len(),
            "contentType": content_type,
        },
    })
}

/// Writes all files. If one cannot be written (a full disk), those before it are brought back to what they held. Which are written
/// in the end, and why others are not.
fn write_all(
    prepared: Vec<PreparedFile>,
    files: &Files,
    cancellation: &Cancellation,
) -> (Vec<PreparedFile>, Vec<String>) {
    let mut done = Vec::new();
    for prepared in prepared {
        if let Err(problem) = write_one(&prepared.file, files, cancellation) {
            let brought_back = done.len();
            // Also if the turn was cancelled meanwhile.
            let never = Cancellation::default();
            done.retain(|done: &PreparedFile| write_one(&done.inverse(), files, &never).is_err());
            let mut problems = vec![problem];
            if brought_back > done.len() {
                problems.push("the other files are left as they were".to_owned());
            }
            return (done, problems);
        }
        done.push(prepared);
    }
    (done, Vec::new())
}

impl PreparedFile {
    /// What makes the file again what it was before it was restored.
    fn inverse(&self) -> PlannedFile {
        PlannedFile {
            wanted: self.edit.before,
            seen: self.file.wanted.map(|wanted| wanted.digest),
            directories: self.edit.new_directories,
            ..self.file.clone()
        }
    }
}

fn write_one(file: &PlannedFile, files: &Files, cancellation: &Cancellation) -> Result<(), String> {
    let bytes = match file.wanted {
        Some(content) => Some(files.read(&file.path, content.digest)?),
        None => None,
    };
    let wanted = match &bytes {
        Some(bytes) => WantedFile::Content {
            bytes,
            mode: file.wanted.and_then(|content| content.mode),
            sets_mode: file.sets_mode,
        },
        None => WantedFile::Absent { directories: file.directories },
    };
    let path = files.workspace.path_of_uri(&file.uri);
    let restored =
        path.and_then(|path| files.workspace.restore_file(&path, file.seen, wanted, cancellation));
    restored.map_err(|error| error.to_string())
}

/// Shows the call, and records what it is about to do, on the disk.
async fn start_call(
    command: RestoreCommand,
    target: &FileTurn,
    prepared: &[PreparedFile],
    events: &dyn EventSink,
) -> Result<(), RestoreStop> {
    let start = ToolStart {
        name: TOOL.to_owned(),
        display_name: "Restore files".to_owned(),
        meta: Some(restoration_meta(command, &target.id)),
        ..ToolStart::default()
    };
    let start = Box::new(start);
    events.send(AgentEvent::ToolStarted { call: CALL, start }).await?;
    let ready = ToolReady {
        confirmed: Some(ToolCallConfirmationReason::UserAction),
        ..ToolReady::confirmed(words::invocation(prepared.len()), "{}".to_owned())
    };
    let ready = Box::new(ready);
    events.send(AgentEvent::ToolReady { call: CALL, ready }).await?;
    record(prepared, events).await?;
    // The answer comes when all that was sent before is on the disk.
    events.settings().await?;
    Ok(())
}

async fn record(prepared: &[PreparedFile], events: &dyn EventSink) -> Result<(), RestoreStop> {
    let edits = prepared.iter().map(|prepared| prepared.edit.clone()).collect();
    Ok(events.send(AgentEvent::ToolEdits { call: CALL, edits }).await?)
}

async fn complete_call(
    command: RestoreCommand,
    restored: &RestoreResult,
    blocks: Vec<Value>,
    events: &dyn EventSink,
) -> Result<(), RestoreStop> {
    let summary = words::summary(command, restored);
    let result = if restored.files.is_empty() {
        ToolResult::failed(summary.clone(), &summary)
    } else {
        ToolResult::new(true, summary)
    };
    let completed = AgentEvent::ToolCompleted {
        call: CALL,
        result: result.with_content(blocks),
        review: false,
    };
    Ok(events.send(completed).await?)
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
