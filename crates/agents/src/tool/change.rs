//! A change to one file, from the proposal to the result: what `write` and `edit` have in common.
//!
//! Promises: what is proposed, what is recorded before it, and what is done are the same change, or it fails.
//! Must not know: how the new content comes about.

use std::marker::PhantomData;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;
use workspace::{Cancellation, ChangeRequest, DiffStats, Extent, FileChange, Workspace};

use super::file_edit;
use super::format::count;
use super::input::{ToolInput, parse_and_run};
use super::{Edits, Plan, PlanSubject, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome};

/// What a tool makes of a file. Computed from the content of the moment, both for the preview and when it is applied.
pub(super) trait Change: ToolInput + Sync {
    const NAME: &'static str;
    const DISPLAY_NAME: &'static str;
    const DESCRIPTION: &'static str;

    /// As the model named it.
    fn path(&self) -> &str;

    fn extent(&self) -> Extent;

    /// The new content.
    fn apply(&self, before: Option<&[u8]>, display_path: &str) -> Result<NewContent, ToolError>;
}

/// The new content of a file.
pub(super) struct NewContent {
    pub(super) content: Vec<u8>,
    /// What the model reads beside the number of lines.
    pub(super) note: String,
}

/// The tool that makes a kind of change.
pub(super) struct ChangeTool<C>(PhantomData<C>);

impl<C> ChangeTool<C> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

#[async_trait]
impl<C: Change> Tool for ChangeTool<C> {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: C::NAME,
            display_name: C::DISPLAY_NAME,
            description: C::DESCRIPTION,
            effect: ToolEffect::Edits,
            kind: None,
        }
    }

    fn parameters(&self) -> Value {
        C::schema()
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let propose =
            |change: &C, workspace: &Workspace, _: &Cancellation| propose_change(change, workspace);
        parse_and_run(input, workspace, propose).await
    }

    async fn edits(&self, input: &Value, workspace: &Workspace) -> Result<Edits, ToolError> {
        let preview = |change: &C, workspace: &Workspace, _: &Cancellation| {
            let change = workspace.pin_change(&request(change), |before, path| {
                change.apply(before, path).map(|edited| edited.content)
            });
            change.map(file_edit::recorded_edit)
        };
        parse_and_run(input, workspace, preview).await
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        let apply = |change: &C, workspace: &Workspace, cancellation: &Cancellation| {
            apply_change(change, workspace, cancellation)
        };
        parse_and_run(input, workspace, apply).await
    }
}

fn propose_change(change: &impl Change, workspace: &Workspace) -> Result<Plan, ToolError> {
    let proposed = workspace.propose_change(&request(change), |before, path| {
        change.apply(before, path).map(|edited| edited.content)
    })?;
    let (item, bodies) = file_edit::preview_item(&proposed, proposed.diff_stats());
    let verb = match proposed.before {
        None => "Create",
        Some(_) => verbs(change.extent()).0,
    };
    Ok(Plan {
        summary: format!("{verb} {}", proposed.display_path),
        edits: vec![item],
        bodies,
        subject: PlanSubject::File(change.path().to_owned()),
    })
}

fn apply_change(
    change: &impl Change,
    workspace: &Workspace,
    cancellation: &Cancellation,
) -> Result<ToolOutcome, ToolError> {
    let mut note = String::new();
    let applied = workspace.apply_change(&request(change), cancellation, |before, path| {
        let edited = change.apply(before, path)?;
        note = edited.note;
        Ok::<_, ToolError>(edited.content)
    })?;
    let stats = applied.diff_stats();
    let (content, bodies) = file_edit::result_content(&applied, stats);
    let summary = summarise(&applied, stats, change.extent());
    Ok(ToolOutcome {
        text: format!("{summary}.{note}"),
        summary,
        content: vec![content],
        bodies,
        success: true,
        ..ToolOutcome::default()
    })
}

fn request(change: &impl Change) -> ChangeRequest<'_> {
    ChangeRequest { path: change.path(), extent: change.extent() }
}

fn summarise(applied: &FileChange, stats: DiffStats, extent: Extent) -> String {
    let (path, DiffStats { added, removed }) = (&applied.display_path, stats);
    match applied.before {
        None => format!("Created {path} ({})", count(added as usize, "line", "lines")),
        Some(_) => format!("{} {path} (+{added} -{removed})", verbs(extent).1),
    }
}

/// What is done, and what was done, to a file that exists.
fn verbs(extent: Extent) -> (&'static str, &'static str) {
    match extent {
        Extent::Whole => ("Replace", "Replaced"),
        Extent::Parts => ("Edit", "Edited"),
    }
}
