//! Files that an agent writes through the host (AG-51).
//!
//! Promises: nothing is written but what was consented to: the very text that a running edit showed when it was allowed, or that the
//! write itself shows, or that the settings allow. What an agent says of its calls consents to nothing. A file that changed since the agent
//! read it through the host, or since the write was shown, is not written.
//! Must not know: what agents edit by themselves.

use std::path::{Path, PathBuf};

use agent_api::{AgentEvent, RecordedEdit, StoreError, ToolReady, ToolResult, ToolStart};
use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};
use wire::published::state::ToolInput;
use workspace::{ChangeRequest, Extent, FileChange, FileError, Workspace};

use super::super::approvals::{self, ApprovalVerdict, ONLY_READS};
use super::super::mapper::{AskedPermission, FileDiff, Mapper};
use super::super::rpc::{self, AcpError, RequestId};
use super::TurnStopped;
use super::answers::AnsweredQuestion;
use super::edits::store_all;
use super::files::not_offered;
use super::run::{AskedUser, RunningTurn};
use crate::tool::{ToolError, preview_item, recorded_edit, result_content, run_blocking};

/// The name of the host's own call for a write that no allowed call of the agent showed.
const TOOL: &str = "write";

/// A write that an agent asks for, and what it would make of the file.
#[derive(Debug, Clone)]
pub(super) struct AgentWrite {
    /// Of this write alone.
    workspace: Workspace,
    path: String,
    content: Vec<u8>,
    proposed: FileChange,
}

/// A file that was written.
struct WrittenFile {
    /// Shows what became of it.
    block: Value,
    edits: Vec<RecordedEdit>,
}

impl RunningTurn<'_> {
    pub(super) async fn write_file(
        &mut self,
        id: RequestId,
        request: acp::WriteTextFileRequest,
    ) -> Result<(), TurnStopped> {
        if !self.turn.core.config.fs {
            self.answer(&id, Err(not_offered("fs/write_text_file")));
            return Ok(());
        }
        let path = request.path.clone();
        let write = match self.propose(request).await {
            Ok(Some(write)) => write,
            Ok(None) => {
                self.answer(&id, Ok(json!({}))); // it holds that already
                return Ok(());
            }
            Err(why) => {
                self.answer(&id, Err(refused(&why)));
                return Ok(());
            }
        };
        match self.allowed_edit(&path, &write) {
            Some(call) => self.write_in_call(id, call, &path, &write).await,
            None => self.ask_about_write(id, path, write).await,
        }
    }

    /// What a write would make of its file; none if that changes nothing.
    async fn propose(
        &mut self,
        request: acp::WriteTextFileRequest,
    ) -> Result<Option<AgentWrite>, String> {
        let path = request.path.to_str().filter(|_| request.path.is_absolute());
        let path = path.ok_or("the path must be absolute")?.to_owned();
        let content = request.content.into_bytes();
        let workspace = self.directories.workspace.for_call();
        let proposed = run_blocking(move |_| {
            let change = change_request(&path);
            let after = content.clone();
            let proposed = workspace.propose_change::<FileError>(&change, |_, _| Ok(after));
            match proposed {
                Ok(proposed) => Ok(Some(AgentWrite { workspace, path, content, proposed })),
                Err(FileError::SameContent { .. }) => Ok(None),
                Err(error) => Err(ToolError::from(error)),
            }
        });
        proposed.await.map_err(|ToolError(why)| why)
    }

    /// The running call that showed just this write and was allowed.
    fn allowed_edit(&self, path: &Path, write: &AgentWrite) -> Option<u64> {
        let before = write.proposed.before.as_deref();
        let edits = self.mapper.allowed_edits(path).into_iter();
        let mut shown = edits.filter(|(call, changes)| {
            let made = self.edits.previewed_result(*call, changes, before);
            made.is_some_and(|made| made == write.content)
        });
        shown.next().map(|(call, _)| call)
    }

    /// Writes what a call of the agent showed and was allowed. It counts as made whatever the agent says of the call later.
    async fn write_in_call(
        &mut self,
        id: RequestId,
        call: u64,
        path: &Path,
        write: &AgentWrite,
    ) -> Result<(), TurnStopped> {
        let earlier = self.mapper.made_edits(call);
        let done = match self.write(call, write, &earlier).await? {
            Ok(written) => {
                let made =
                    written.edits.into_iter().map(|edit| RecordedEdit { is_made: true, ..edit });
                let edits: Vec<RecordedEdit> = earlier.into_iter().chain(made).collect();
                self.mapper.note_made(call, path, edits.clone());
                self.turn.events.send(AgentEvent::ToolEdits { call, edits }).await?;
                Ok(json!({}))
            }
            Err(why) => {
                let (events, edits) = (self.turn.events, earlier);
                events.send(AgentEvent::ToolEdits { call, edits }).await?;
                Err(refused(&why))
            }
        };
        self.answer(&id, done);
        Ok(())
    }

    /// A write that no allowed call of the agent showed is a call of its own.
    async fn ask_about_write(
        &mut self,
        id: RequestId,
        path: PathBuf,
        write: AgentWrite,
    ) -> Result<(), TurnStopped> {
        let Some(call) = self.mapper.next_call() else {
            self.answer(&id, Err(refused("more calls than a turn can have")));
            return Ok(());
        };
        let title = format!("Write {}", write.proposed.display_path);
        let start = Box::new(ToolStart {
            name: TOOL.to_owned(),
            display_name: title.clone(),
            ..ToolStart::default()
        });
        let events = self.turn.events;
        events.send(AgentEvent::ToolStarted { call, start }).await?;
        let input = json!({"path": write.path}).to_string();
        let ready = ToolReady {
            invocation_message: title.into(),
            tool_input: Some(ToolInput::Inline(input)),
            ..ToolReady::default()
        };
        let asked = AskedPermission {
            call,
            kind: acp::ToolKind::Edit,
            ready,
            diffs: vec![FileDiff::of_path(path)],
        };
        let config = events.settings().await?;
        match self.verdict(&config, &asked).await {
            ApprovalVerdict::Ask => self.ask_people_about_write(id, asked, write).await,
            ApprovalVerdict::Allow => {
                let ready = Box::new(Mapper::ready_by_setting(asked.ready));
                events.send(AgentEvent::ToolReady { call, ready }).await?;
                self.finish_write(id, call, &write).await
            }
            ApprovalVerdict::Refuse => {
                let ready = Mapper::ready_by_setting(asked.ready);
                self.show_refusal(call, ready, ONLY_READS).await?;
                self.answer(&id, Err(refused(ONLY_READS)));
                Ok(())
            }
        }
    }

    async fn ask_people_about_write(
        &mut self,
        id: RequestId,
        asked: AskedPermission,
        write: AgentWrite,
    ) -> Result<(), TurnStopped> {
        let AskedPermission { call, mut ready, .. } = asked;
        let (item, bodies) = preview_item(&write.proposed, write.proposed.diff_stats());
        if let Err(why) = store_all(self.turn.events, bodies).await {
            // Nobody consents to what cannot be shown.
            let why = format!("Refused: what it would change cannot be shown ({why}).");
            self.show_refusal(call, ready, &why).await?;
            self.answer(&id, Err(refused(&why)));
            return Ok(());
        }
        ready.edits = vec![item];
        let ready = Box::new(ready);
        let event = AgentEvent::ToolReady { call, ready };
        self.open.insert(id.clone(), AskedUser::Call(call));
        let write = Box::new(write);
        self.wait_for(id, event, AnsweredQuestion::Write { call, write }).await
    }

    /// Writes what was allowed, and says how it went to the agent and to people.
    pub(super) async fn finish_write(
        &mut self,
        id: RequestId,
        call: u64,
        write: &AgentWrite,
    ) -> Result<(), TurnStopped> {
        let done = self.write(call, write, &[]).await?;
        let path = &write.proposed.display_path;
        let result = match &done {
            Ok(written) => ToolResult::new(true, format!("Wrote {path}"))
                .with_content(vec![written.block.clone()]),
            Err(why) => ToolResult::failed(format!("{path} was not written"), why),
        };
        let completed = AgentEvent::ToolCompleted { call, result, review: false };
        self.turn.events.send(completed).await?;
        let done = done.map(|_| json!({}));
        self.answer(&id, done.map_err(|why| refused(&why)));
        Ok(())
    }

    /// Nobody allowed it.
    pub(super) fn deny_request(&mut self, id: &RequestId) {
        self.commands.free_place(id);
        self.answer(id, Err(refused("The user did not allow it.")));
    }

    /// Writes exactly what was proposed; what both sides hold is on the disk before, beside the `earlier` edits of its call. Or why
    /// it was not done.
    async fn write(
        &mut self,
        call: u64,
        write: &AgentWrite,
        earlier: &[RecordedEdit],
    ) -> Result<Result<WrittenFile, String>, TurnStopped> {
        let pinning = write.clone();
        let pinned = run_blocking(move |_| {
            let (change, after) = (change_request(&pinning.path), pinning.content);
            pinning.workspace.pin_change::<ToolError>(&change, |_, _| Ok(after))
        });
        let pinned = match pinned.await {
            Ok(pinned) if pinned == write.proposed => pinned,
            Ok(_) => return Ok(Err("the file changed meanwhile".to_owned())),
            Err(ToolError(why)) => return Ok(Err(why)),
        };
        let events = self.turn.events;
        let recorded = recorded_edit(pinned);
        if let Err(StoreError(why)) = store_all(events, recorded.bodies).await {
            return Ok(Err(format!("what the file holds now cannot be kept: {why}")));
        }
        let edits = [earlier, &recorded.edits].concat();
        events.send(AgentEvent::ToolEdits { call, edits }).await?;
        // The answer comes when all that was sent before is on the disk.
        let config = events.settings().await?;
        // A session that only reads since it was allowed only reads.
        if approvals::verdict(&config, acp::ToolKind::Edit) == ApprovalVerdict::Refuse {
            return Ok(Err(ONLY_READS.to_owned()));
        }
        let applying = write.clone();
        let written = run_blocking(move |cancellation| {
            let (change, after) = (change_request(&applying.path), applying.content);
            applying.workspace.apply_change::<ToolError>(&change, cancellation, |_, _| Ok(after))
        });
        Ok(match written.await {
            Ok(made) => Ok(WrittenFile {
                block: result_content(&made, made.diff_stats()).0,
                edits: recorded.edits,
            }),
            Err(ToolError(why)) => Err(why),
        })
    }
}

/// Agents write whole files, of which they may have read a part.
fn change_request(path: &str) -> ChangeRequest<'_> {
    ChangeRequest { path, extent: Extent::Parts }
}

fn refused(why: &str) -> AcpError {
    AcpError::new(rpc::INVALID_PARAMS, why)
}
