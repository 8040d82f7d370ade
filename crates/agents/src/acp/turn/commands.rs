//! Commands that an agent runs in terminals of the host (AG-52).
//!
//! Promises: nothing runs but what was consented to: the very line, directory and variables that a question showed, or that an allowed
//! call of the agent showed, once. What an agent releases ends, unless a person holds it, and is no longer counted as its own. Commands have the environment that those of the native agent have. They end with the turn,
//! unless a person holds their terminal by then; what they print is kept up to a bound.
//! Must not know: how terminals are drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent_api::{AgentEvent, TerminalOffer, ToolReady, ToolResult, ToolStart};
use agent_client_protocol_schema::v1 as acp;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use terminals::{CommandEnd, ShellCommand};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use wire::published::state::ToolInput;

use super::super::agent_process::TERMINALS_MAX;
use super::super::approvals::{self, ApprovalVerdict, ONLY_READS};
use super::super::connection::TerminalRequest;
use super::super::label::label;
use super::super::mapper::{AskedPermission, DisplayedCommand, Mapper};
use super::super::rpc::{self, AcpError, RequestId};
use super::TurnStopped;
use super::answers::AnsweredQuestion;
use super::output_tail::{OutputTail, exit_of};
use super::requested_command::RequestedCommand;
use super::run::{AskedUser, RunningTurn};
use crate::tool::{
    ShowRequest, TerminalCommand, ToolError, command_environment, ended_block, terminal_block,
};

/// The name of the host's own call for a command that no allowed call of the agent showed.
const TOOL: &str = "terminal";

const TITLE_CHARS_MAX: usize = 200;

/// The commands of a turn.
pub(super) struct TerminalRequests<'a> {
    turn_id: String,
    begun: u64,
    open: BTreeMap<String, AgentTerminal>,
    /// Places of those that are asked for and do not run yet.
    asked: BTreeMap<RequestId, OwnedSemaphorePermit>,
    /// Those whose end was not told yet.
    running: BTreeSet<String>,
    ends: FuturesUnordered<BoxFuture<'a, EndedCommand>>,
}

/// The tool call that a command belongs to.
#[derive(Clone, Copy)]
pub(super) struct CommandCall {
    number: u64,
    /// The host made the call for this command alone.
    is_own: bool,
}

impl CommandCall {
    pub(super) fn hosts(number: u64) -> Self {
        Self { number, is_own: true }
    }

    fn agents(number: u64) -> Self {
        Self { number, is_own: false }
    }
}

struct AgentTerminal {
    command: Arc<TerminalCommand>,
    output: OutputTail,
    call: CommandCall,
    title: String,
    /// Its place among the terminals that an agent may have: free again when the agent releases it.
    _place: Option<OwnedSemaphorePermit>,
}

/// A command that is over.
pub(super) struct EndedCommand {
    terminal: String,
    call: CommandCall,
    title: String,
    resource: Option<String>,
    end: CommandEnd,
    output: OutputTail,
}

impl TerminalRequests<'_> {
    pub(super) fn new(turn_id: &str) -> Self {
        Self {
            turn_id: turn_id.to_owned(),
            begun: 0,
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            running: BTreeSet::new(),
            ends: FuturesUnordered::new(),
        }
    }

    /// The next command that ends; none while none runs.
    pub(super) async fn next_end(&mut self) -> Option<EndedCommand> {
        self.ends.next().await
    }

    /// What a request asked for will not run.
    pub(super) fn free_place(&mut self, id: &RequestId) {
        self.asked.remove(id);
    }

    fn find(&self, id: &acp::TerminalId) -> Result<&AgentTerminal, AcpError> {
        let found = self.open.get(&*id.0);
        found.ok_or_else(|| {
            let id = label(&id.0, 100);
            AcpError::new(rpc::NOT_FOUND, format!("Resource not found: {id}"))
        })
    }
}

impl Drop for TerminalRequests<'_> {
    fn drop(&mut self) {
        // Who waits for the end of one holds it too.
        for terminal in self.open.values() {
            terminal.command.let_go();
        }
    }
}

impl RunningTurn<'_> {
    pub(super) async fn serve_terminal(
        &mut self,
        id: RequestId,
        request: TerminalRequest,
    ) -> Result<(), TurnStopped> {
        let answer = match request {
            TerminalRequest::Create(request) => return self.create_terminal(id, request).await,
            TerminalRequest::Output(request) => {
                let terminal = self.commands.find(&request.terminal_id);
                terminal.map(|terminal| terminal.output.to_answer())
            }
            TerminalRequest::WaitForExit(request) => {
                match self.commands.find(&request.terminal_id) {
                    Ok(terminal) => {
                        self.answer_at_end(id, Arc::clone(&terminal.command));
                        return Ok(());
                    }
                    Err(unknown) => Err(unknown),
                }
            }
            TerminalRequest::Kill(request) => {
                let terminal = self.commands.find(&request.terminal_id);
                terminal.map(|terminal| {
                    terminal.command.request_kill();
                    json!({})
                })
            }
            TerminalRequest::Release(request) => {
                let found = self.commands.find(&request.terminal_id).map(|_| json!({}));
                self.release_terminal(&request.terminal_id.0).await?;
                found
            }
        };
        self.answer(&id, answer);
        Ok(())
    }

    /// The agent waits beside all else that it does.
    fn answer_at_end(&self, id: RequestId, command: Arc<TerminalCommand>) {
        let process = Arc::clone(&self.prepared.process);
        self.prepared.process.connection.spawn(Box::pin(async move {
            let end = command.ended().await;
            process.connection.answer(&id, &Ok(exit_of(end)));
        }));
    }

    async fn create_terminal(
        &mut self,
        id: RequestId,
        request: acp::CreateTerminalRequest,
    ) -> Result<(), TurnStopped> {
        // Before anybody is asked: questions that are open count too.
        let command = match self.prepared.process.take_terminal_place() {
            Some(place) => {
                self.commands.asked.insert(id.clone(), place);
                let workspace = Arc::clone(&self.directories.workspace);
                RequestedCommand::read(request, workspace).await
            }
            None => Err(format!("there are {TERMINALS_MAX} terminals already: release one first")),
        };
        let command = match command {
            Ok(command) => command,
            Err(why) => {
                self.refuse_command(&id, &why);
                return Ok(());
            }
        };
        match self.allowed_command(&command) {
            Some(call) => self.start_command(id, CommandCall::agents(call), command).await,
            None => self.ask_about_command(id, command).await,
        }
    }

    fn refuse_command(&mut self, id: &RequestId, why: &str) {
        self.commands.free_place(id);
        self.answer(id, Err(refused(why)));
    }

    /// The running call that showed just this command and was allowed.
    fn allowed_command(&mut self, command: &RequestedCommand) -> Option<u64> {
        let usual = self.directories.workspace.command_directory().ok()?.name;
        let is_it = |shown: &DisplayedCommand| command.is_shown_by(shown, &usual);
        let (call, _) = self.mapper.take_allowed_command(is_it)?;
        Some(call)
    }

    /// The agent needs a terminal no longer: what runs in it ends, unless a person holds it.
    async fn release_terminal(&mut self, id: &str) -> Result<(), TurnStopped> {
        let Some(terminal) = self.commands.open.remove(id) else {
            return Ok(()); // it has none of this name
        };
        terminal.command.let_go();
        if terminal.command.is_left_to_person() && self.commands.running.remove(id) {
            self.leave_to_person(terminal).await?;
        }
        Ok(())
    }

    /// A command goes on because a person types there. It ends when that person lets go; its call does not wait for it.
    async fn leave_to_person(&mut self, terminal: AgentTerminal) -> Result<(), TurnStopped> {
        let CommandCall { number: call, is_own } = terminal.call;
        if !is_own {
            return Ok(()); // the agent says when its call is over
        }
        let summary = format!("Left to a person who types there: {}", terminal.title);
        let resource = terminal.command.resource.as_deref();
        let block = resource.map(|resource| terminal_block(resource, &terminal.title));
        let content = block.into_iter().collect();
        let result = ToolResult::new(true, summary).with_content(content);
        self.complete(call, result).await
    }

    /// A command that no allowed call of the agent showed is a call of its own.
    async fn ask_about_command(
        &mut self,
        id: RequestId,
        command: RequestedCommand,
    ) -> Result<(), TurnStopped> {
        let Some(call) = self.mapper.next_call() else {
            self.refuse_command(&id, "more calls than a turn can have");
            return Ok(());
        };
        let title = format!("Run {}", label(&command.line, TITLE_CHARS_MAX));
        let meta = json!({wire::meta::TOOL_KIND: "terminal"});
        let start = Box::new(ToolStart {
            name: TOOL.to_owned(),
            display_name: "Run".to_owned(),
            meta: meta.as_object().cloned(),
            ..ToolStart::default()
        });
        let events = self.turn.events;
        events.send(AgentEvent::ToolStarted { call, start }).await?;
        let mut ready = ToolReady {
            invocation_message: title.into(),
            tool_input: Some(ToolInput::Inline(command.to_input().to_string())),
            ..ToolReady::default()
        };
        ready.extra.insert("_meta".to_owned(), meta);
        let asked =
            AskedPermission { call, kind: acp::ToolKind::Execute, ready, diffs: Vec::new() };
        let config = events.settings().await?;
        match self.verdict(&config, &asked).await {
            ApprovalVerdict::Ask => {
                let ready = Box::new(asked.ready);
                let event = AgentEvent::ToolReady { call, ready };
                self.open.insert(id.clone(), AskedUser::Call(call));
                let command = Box::new(command);
                self.wait_for(id, event, AnsweredQuestion::Command { call, command }).await
            }
            ApprovalVerdict::Allow => {
                let ready = Box::new(Mapper::ready_by_setting(asked.ready));
                events.send(AgentEvent::ToolReady { call, ready }).await?;
                self.start_command(id, CommandCall::hosts(call), command).await
            }
            ApprovalVerdict::Refuse => {
                let ready = Mapper::ready_by_setting(asked.ready);
                self.show_refusal(call, ready, ONLY_READS).await?;
                self.refuse_command(&id, ONLY_READS);
                Ok(())
            }
        }
    }

    /// Runs what was allowed, in a terminal of this call.
    pub(super) async fn start_command(
        &mut self,
        id: RequestId,
        call: CommandCall,
        command: RequestedCommand,
    ) -> Result<(), TurnStopped> {
        let events = self.turn.events;
        let number = call.number;
        if call.is_own {
            // A search for what the command changes begins here.
            let edits = Vec::new();
            events.send(AgentEvent::ToolEdits { call: number, edits }).await?;
        }
        let config = events.settings().await?;
        // A session that only reads since it was allowed only reads.
        if approvals::verdict(&config, acp::ToolKind::Execute) == ApprovalVerdict::Refuse {
            self.refuse_command(&id, ONLY_READS);
            return self.fail_command(call, ONLY_READS).await;
        }
        let title = label(&command.line, TITLE_CHARS_MAX);
        let output = OutputTail::new(command.output_bytes);
        let command = shell_command(command);
        let started = self.show_command(number, &title, command, &output).await;
        let place = self.commands.asked.remove(&id);
        let started = match started {
            Ok(started) => Arc::new(started),
            Err(ToolError(why)) => {
                self.answer(&id, Err(AcpError::new(rpc::INTERNAL_ERROR, why.clone())));
                return self.fail_command(call, &why).await;
            }
        };
        self.commands.begun += 1;
        let terminal = format!("{}-{}", self.commands.turn_id, self.commands.begun);
        let resource = started.resource.clone();
        if let Some(resource) = &resource {
            let block = terminal_block(resource, &title);
            self.mapper.add_terminal(number, terminal.clone(), block.clone());
            let content = vec![block];
            events.send(AgentEvent::ToolContent { call: number, content }).await?;
        }
        let ended = EndedCommand {
            terminal: terminal.clone(),
            call,
            title: title.clone(),
            resource,
            end: CommandEnd::Exited(0),
            output: output.clone(),
        };
        let waited = Arc::clone(&started);
        self.commands.ends.push(Box::pin(async move {
            let end = waited.ended().await;
            ended.output.set_end(end);
            EndedCommand { end, ..ended }
        }));
        self.commands.running.insert(terminal.clone());
        let open = AgentTerminal { command: started, output, call, title, _place: place };
        self.commands.open.insert(terminal.clone(), open);
        self.answer(&id, Ok(json!({"terminalId": terminal})));
        Ok(())
    }

    async fn show_command(
        &mut self,
        call: u64,
        title: &str,
        command: ShellCommand,
        output: &OutputTail,
    ) -> Result<TerminalCommand, ToolError> {
        let events = self.turn.events;
        let (show, mut shows) = mpsc::channel::<ShowRequest>(1);
        let sink = Box::new(output.clone());
        let start = TerminalCommand::start(command, title.to_owned(), &show, sink);
        let mut start = std::pin::pin!(start);
        loop {
            tokio::select! {
                started = &mut start => return started,
                Some(ShowRequest { offer, shown }) = shows.recv() => {
                    let resource = events.show_terminal(TerminalOffer { call, ..offer }).await;
                    // It may be gone meanwhile: then nobody looks at it.
                    let _ = shown.send(resource.ok());
                }
            }
        }
    }

    /// A command is over: whoever looks at its call sees how.
    pub(super) async fn command_ended(&mut self, ended: EndedCommand) -> Result<(), TurnStopped> {
        // One that was left to a person is told already.
        let is_told = !self.commands.running.remove(&ended.terminal);
        let CommandCall { number: call, is_own } = ended.call;
        let preview = ended.output.preview();
        let block = ended
            .resource
            .as_ref()
            .map(|resource| ended_block(resource, &ended.title, ended.end, preview));
        if let Some(block) = &block {
            self.mapper.end_terminal(&ended.terminal, block);
        }
        if !is_own || is_told {
            return Ok(()); // the agent says when its call is over
        }
        let summary = match ended.end {
            CommandEnd::Exited(0) => format!("Ran {}", ended.title),
            CommandEnd::Exited(code) => format!("Ran {} (exit code {code})", ended.title),
            CommandEnd::Signalled(_) | CommandEnd::TimedOut(_) => {
                format!("Ran {} (it was stopped)", ended.title)
            }
        };
        let success = ended.end == CommandEnd::Exited(0);
        let result = if success {
            ToolResult::new(true, summary)
        } else {
            ToolResult::failed(summary.clone(), &summary)
        };
        let content = block.into_iter().collect();
        self.complete(call, result.with_content(content)).await
    }

    /// A command was not started. Of a call of its own the agent says itself what became of it.
    async fn fail_command(&mut self, call: CommandCall, why: &str) -> Result<(), TurnStopped> {
        if call.is_own {
            self.complete(call.number, ToolResult::failed(why, why)).await
        } else {
            Ok(())
        }
    }

    async fn complete(&mut self, call: u64, result: ToolResult) -> Result<(), TurnStopped> {
        let review = false;
        let completed = AgentEvent::ToolCompleted { call, result, review };
        Ok(self.turn.events.send(completed).await?)
    }

    /// The prompt is over: so is what runs, but for what a person holds.
    pub(super) async fn end_commands(&mut self) -> Result<(), TurnStopped> {
        let mut awaited = self.commands.running.clone();
        for (id, terminal) in std::mem::take(&mut self.commands.open) {
            terminal.command.let_go();
            // Else it ends now, or has ended.
            if terminal.command.is_left_to_person() && awaited.remove(&id) {
                self.commands.running.remove(&id);
                self.leave_to_person(terminal).await?;
            }
        }
        while !awaited.is_empty() {
            let Some(ended) = self.commands.ends.next().await else {
                break; // all were told
            };
            awaited.remove(&ended.terminal);
            self.command_ended(ended).await?;
        }
        self.commands.ends.clear();
        Ok(())
    }
}

/// What runs of what was consented to.
fn shell_command(command: RequestedCommand) -> ShellCommand {
    let mut variables = command_environment(&[]);
    let own = command.variables.into_iter();
    variables.extend(own.map(|(name, value)| (name.into(), value.into())));
    ShellCommand { text: command.line, directory: command.directory, variables, timeout: None }
}

fn refused(why: &str) -> AcpError {
    AcpError::new(rpc::INVALID_PARAMS, why)
}
