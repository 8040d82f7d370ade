//! A tool as one call uses it.
//!
//! Promises: what the call proposes, records and does to a file is compared with what this call proposed, not with what another
//! call of the same session did, also if both ask for the same.
//! Must not know: how calls are consented to.

use std::ops::Deref;

use serde_json::Value;
use workspace::Workspace;

use crate::tool::{Edits, Plan, Tool, ToolError};

pub(super) struct CallTool<'a> {
    tool: &'a dyn Tool,
    workspace: Workspace,
}

impl<'a> CallTool<'a> {
    pub(super) fn new(tool: &'a dyn Tool, session: &Workspace) -> Self {
        let workspace = session.for_call();
        Self { tool, workspace }
    }

    /// The session's working directories, for this call.
    pub(super) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(super) async fn plan(&self, input: &Value) -> Result<Plan, ToolError> {
        self.tool.plan(input, &self.workspace).await
    }

    pub(super) async fn edits(&self, input: &Value) -> Result<Edits, ToolError> {
        self.tool.edits(input, &self.workspace).await
    }
}

impl<'a> Deref for CallTool<'a> {
    type Target = dyn Tool + 'a;

    fn deref(&self) -> &Self::Target {
        self.tool
    }
}
