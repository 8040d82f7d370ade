//! A change to one file, from the proposal to the disk: what `write` and `edit` have in common.
//!
//! Promises: what is written is what was proposed, to the file it was proposed for, or nothing at all.
//! Must not know: how the new content comes about.

use serde_json::Value;
use wire::Digest;

use super::file_edit::{DiffStats, FileEdit};
use super::format::format_count;
use super::stop::Stop;
use super::workspace::{Extent, FILE_BYTES_MAX, Target, Workspace, digest_of};
use super::{Outcome, Plan, ToolError};

/// What a tool makes of a file. Made anew from what is there, both for the preview and when it is done.
pub(super) trait Change {
    /// As the model named it.
    fn path(&self) -> &str;

    fn extent(&self) -> Extent;

    /// The new content.
    fn apply(&self, before: Option<&[u8]>, shown: &str) -> Result<Applied, ToolError>;
}

/// What becomes of a file.
pub(super) struct Applied {
    pub(super) after: Vec<u8>,
    /// For the model, beside the number of lines.
    pub(super) note: String,
}

/// Identifies a change: the tool and its input.
pub(super) fn change_digest(tool: &str, input: &Value) -> Digest {
    digest_of(format!("{tool} {input}").as_bytes())
}

pub(super) fn plan(
    change: &dyn Change,
    name: Digest,
    workspace: &Workspace,
) -> Result<Plan, ToolError> {
    let target = workspace.target(&workspace.place(change.path())?)?;
    workspace.judge(&target, change.extent())?;
    let shown = workspace.shown(&target.place);
    let applied = apply(change, &target, &shown)?;
    let edit = edit(workspace, &target, &applied);
    let (item, bodies) = edit.to_item(edit.stats());
    workspace.propose(name, &target);
    let verb = match target.before() {
        None => "Create",
        Some(_) => change.extent().verbs().0,
    };
    Ok(Plan {
        summary: format!("{verb} {shown}"),
        edits: vec![item],
        bodies,
        consent_key: format!("edit {}", workspace.uri(&target.place)),
    })
}

pub(super) fn run(
    change: &dyn Change,
    name: Digest,
    workspace: &Workspace,
    stop: &Stop,
) -> Result<Outcome, ToolError> {
    let _alone = workspace.alone();
    stop.check()?;
    let target = workspace.target(&workspace.place(change.path())?)?;
    workspace.hold_to_proposal(name, &target, change.extent())?;
    workspace.judge(&target, change.extent())?;
    let shown = workspace.shown(&target.place);
    let applied = apply(change, &target, &shown)?;
    workspace.put(&target, &applied.after, change.extent(), stop)?;
    let edit = edit(workspace, &target, &applied);
    let stats = edit.stats();
    let (content, bodies) = edit.to_content(stats);
    let summary = match target.before() {
        None => {
            let lines = format_count(stats.added as usize, "line", "lines");
            format!("Created {shown} ({lines})")
        }
        Some(_) => {
            let DiffStats { added, removed } = stats;
            format!(
                "{} {shown} (+{added} -{removed})",
                change.extent().verbs().1
            )
        }
    };
    Ok(Outcome {
        text: format!("{summary}.{}", applied.note),
        summary,
        content: vec![content],
        bodies,
        whole: None,
        success: true,
    })
}

fn apply(change: &dyn Change, target: &Target, shown: &str) -> Result<Applied, ToolError> {
    let applied = change.apply(target.before(), shown)?;
    if applied.after.len() as u64 > FILE_BYTES_MAX {
        return Err(ToolError(format!(
            "{shown} would be larger than {} MiB; nothing was written",
            FILE_BYTES_MAX / 1_024 / 1_024
        )));
    }
    if target.before() == Some(&applied.after) {
        return Err(ToolError(format!(
            "{shown} is like that already; nothing was written"
        )));
    }
    Ok(applied)
}

fn edit<'a>(workspace: &Workspace, target: &'a Target, applied: &'a Applied) -> FileEdit<'a> {
    FileEdit {
        uri: workspace.uri(&target.place),
        before: target.before(),
        after: &applied.after,
    }
}

impl Extent {
    /// What is done, and what was done, to a file that is there.
    fn verbs(self) -> (&'static str, &'static str) {
        match self {
            Self::Whole => ("Replace", "Replaced"),
            Self::Parts => ("Edit", "Edited"),
        }
    }
}
