//! The order of the calls of one answer that are about the same file: calls run side by side, but a model that reads a file and
//! writes it in one answer means the one after the other.
//!
//! Promises: a call that changes a file begins when the calls before it that look at that file are over, and the other way round. No
//! call waits for a later one, so all of them begin. Calls that change the same file are asked about together, and made one after the
//! other (`call.rs`).
//! Must not know: how calls are carried out.

use serde::Deserialize;
use tokio::sync::watch;
use workspace::{Workspace, WorkspacePath};

use super::answer::RequestedCall;
use super::offered_tools::{OfferedTool, OfferedTools};
use crate::tool::ToolEffect;

/// What a call does to a file.
struct CallFile {
    path: WorkspacePath,
    changes: bool,
}

/// The place of one call among the others of its answer. The call is over when this is dropped.
pub(super) struct CallPosition {
    /// Closed when a call is over that this one comes after.
    earlier: Vec<watch::Receiver<()>>,
    /// Whether it waits before people could be asked about it, so that it keeps nobody from being asked about others.
    waits_unasked: bool,
    end: watch::Sender<()>,
}

impl CallPosition {
    /// Comes after these calls, and changes a file or looks at it.
    fn after<'a>(earlier: impl IntoIterator<Item = &'a Self>, changes: bool) -> Self {
        let earlier: Vec<&Self> = earlier.into_iter().collect();
        Self {
            // A change keeps its turn to be asked about while files are looked at, which is quick; not if that waits, too, and has
            // its own turn before it.
            waits_unasked: !changes || earlier.iter().any(|call| !call.earlier.is_empty()),
            earlier: earlier.iter().map(|call| call.end.subscribe()).collect(),
            end: watch::Sender::new(()),
        }
    }

    /// Waits before its turn to be asked about has come.
    pub(super) async fn wait_unasked(&self) {
        if self.waits_unasked {
            self.wait().await;
        }
    }

    /// Waits when its turn to be asked about has come: it is asked about in the order of the calls.
    pub(super) async fn wait(&self) {
        for end in &self.earlier {
            let mut end = end.clone();
            // Nothing is ever sent: it ends when the other call does.
            while end.changed().await.is_ok() {}
        }
    }
}

/// The positions of the calls, in their order.
pub(super) fn order_calls(
    workspace: &Workspace,
    offered: &OfferedTools<'_>,
    calls: &[RequestedCall],
) -> Vec<CallPosition> {
    let mut before: Vec<(Option<CallFile>, CallPosition)> = Vec::new();
    for call in calls {
        let file = file_of(workspace, offered, call);
        let position = match &file {
            Some(file) => position_of(file, &before),
            None => CallPosition::after([], false),
        };
        before.push((file, position));
    }
    before.into_iter().map(|(_, position)| position).collect()
}

/// The position of a call that is about this file, after those before it.
fn position_of(file: &CallFile, before: &[(Option<CallFile>, CallPosition)]) -> CallPosition {
    let comes_after = |other: &CallFile| other.path == file.path && other.changes != file.changes;
    let earlier = before.iter().filter_map(|(other, position)| {
        other.as_ref().is_some_and(comes_after).then_some(position)
    });
    CallPosition::after(earlier, file.changes)
}

#[derive(Deserialize)]
struct PathInput {
    path: Option<String>,
}

/// The file that a call of the agent's own tools is about.
fn file_of(
    workspace: &Workspace,
    offered: &OfferedTools<'_>,
    call: &RequestedCall,
) -> Option<CallFile> {
    let Some(OfferedTool::Own(tool)) = offered.find(&call.tool_use.name) else {
        return None; // nobody knows which files it is about
    };
    let changes = match tool.effect() {
        ToolEffect::Reads => false,
        ToolEffect::Edits => true,
        ToolEffect::Runs | ToolEffect::Fetches => return None,
    };
    // An input that cannot be read is refused when its turn comes.
    let input = serde_json::from_str::<PathInput>(&call.tool_use.input).ok()?;
    let path = workspace.resolve(&input.path?).ok()?;
    Some(CallFile { path, changes })
}
