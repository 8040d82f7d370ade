//! What an agent says in a turn, as what clients see.
//!
//! Promises: pure: the same updates give the same steps; nothing is read, stored or awaited here. Calls are known by their ids within the
//! turn (AG-26). What needs files or stored bodies is a step of its own, which who runs the turn carries out.
//! Must not know: processes, requests, where bodies lie.

mod activity_times;
mod asked_again;
mod call;
mod call_update;
mod consent;
mod content;
mod contributor;
mod displayed_command;
mod permission;
mod plan;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod usage;

use std::collections::BTreeMap;
use std::path::PathBuf;

use agent_api::{AgentEvent, TextKind};
use agent_client_protocol_schema::v1 as acp;

use super::label::label;
use activity_times::ActivityTimes;
use call::MappedCall;
pub(super) use consent::FileDiff;
pub(super) use content::MappedMedia;
pub(super) use displayed_command::{DisplayedCommand, line_of};
pub(super) use permission::{
    AskedPermission, PermissionChoice, confirmation_options, distinct_options, option_for,
};
use text::MappedTextRun;
pub(super) use usage::UsageTotals;

/// Calls that a turn can have: those of its agent, also under an id that comes again, and the host's own for it.
const CALLS_MAX: usize = 4_096;

pub(super) const TITLE_CHARS_MAX: usize = 200;

/// What is to be done next, in this order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MapperStep {
    Send(AgentEvent),
    /// A body to be stored and shown by reference.
    Show(MappedMedia),
    /// A notice; the same title is shown once per process.
    Notice {
        title: String,
        text: String,
    },
    /// A call that edits has named files: what they hold now is what they held before (AG-27c).
    WatchFiles {
        call: u64,
        diffs: Vec<FileDiff>,
    },
    /// A call is over. What it did to files is looked up first.
    Complete(Box<call::CallCompletion>),
    /// A call that is asked about went on without an answer: nobody is to answer any more.
    Withdraw {
        call: u64,
    },
    /// A call that is asked about is another one by now: people are asked about that one.
    Replace {
        call: u64,
        asked: Box<AskedPermission>,
    },
}

/// How the prompt of a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdatesEnd {
    Completed,
    Otherwise,
}

pub(super) struct Mapper {
    /// The last number that was given to a part or a call.
    last_number: u64,
    /// How many calls began.
    begun: usize,
    /// It was said that there are too many.
    has_told_limit: bool,
    run: MappedTextRun,
    calls: BTreeMap<String, MappedCall>,
    /// Calls of questions that were open when the same id was asked about again, by that id.
    earlier: Vec<(String, MappedCall)>,
    /// A call that is over and whose output may still come.
    closing: Option<String>,
    plan: Option<plan::PlanCall>,
    usage: UsageTotals,
    is_compacting: bool,
    /// Names of MCP servers that the agent got, and the ids that clients know them by.
    servers: Vec<(String, String)>,
    /// Where commands of the agent run that name no directory; absent if that is not known.
    usual_directory: Option<PathBuf>,
    /// Terminals of the host that the agent knows by these ids.
    terminals: BTreeMap<String, serde_json::Value>,
    /// When what is mapped came: whoever hands it in notes that first.
    pub(super) activity: ActivityTimes,
}

impl Mapper {
    /// Numbers of parts and calls begin after this one.
    pub(super) fn new(last_number: u64, usage: UsageTotals) -> Self {
        Self {
            last_number,
            begun: 0,
            has_told_limit: false,
            run: MappedTextRun::default(),
            calls: BTreeMap::new(),
            earlier: Vec::new(),
            closing: None,
            plan: None,
            usage,
            is_compacting: false,
            servers: Vec::new(),
            usual_directory: None,
            terminals: BTreeMap::new(),
            activity: ActivityTimes::default(),
        }
    }

    /// Calls of these MCP servers are told by them (MC-9).
    #[must_use]
    pub(super) fn with_servers(mut self, servers: Vec<(String, String)>) -> Self {
        self.servers = servers;
        self
    }

    /// Commands that name no directory run in this one.
    #[must_use]
    pub(super) fn with_usual_directory(mut self, directory: Option<PathBuf>) -> Self {
        self.usual_directory = directory;
        self
    }

    /// The number of a call that begins. None: more calls than a turn can have.
    pub(super) fn next_call(&mut self) -> Option<u64> {
        if self.begun >= CALLS_MAX {
            return None;
        }
        self.begun += 1;
        Some(self.next_number())
    }

    /// The same, said once if there is none.
    fn next_call_or_tell(&mut self, steps: &mut Vec<MapperStep>) -> Option<u64> {
        let number = self.next_call();
        if number.is_none() && !std::mem::replace(&mut self.has_told_limit, true) {
            let text = format!(
                "This turn has {CALLS_MAX} calls, which is the most there can be: others are not shown, and those that ask are refused. \
                 Stop the turn if it goes on."
            );
            steps.push(MapperStep::Send(AgentEvent::Notice { text }));
        }
        number
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn map(&mut self, update: acp::SessionUpdate) -> Vec<MapperStep> {
        use acp::SessionUpdate as U;
        let mut steps = Vec::new();
        let is_silent = is_silent(&update);
        let is_about = match &update {
            U::ToolCall(call) => Some(call.tool_call_id.to_string()),
            U::ToolCallUpdate(call) => Some(call.tool_call_id.to_string()),
            _ => None,
        };
        if self.closing.is_some() && self.closing != is_about && !is_silent {
            self.close_call(&mut steps);
        }
        match update {
            U::AgentMessageChunk(chunk) => self.map_chunk(TextKind::Markdown, chunk, &mut steps),
            U::AgentThoughtChunk(chunk) => self.map_chunk(TextKind::Reasoning, chunk, &mut steps),
            U::ToolCall(call) => self.map_call(call_update::from_call(call), &mut steps),
            U::ToolCallUpdate(update) => {
                self.map_call(call_update::from_update(update), &mut steps)
            }
            U::Plan(plan) => self.map_plan(&plan, &mut steps),
            U::SessionInfoUpdate(info) => {
                let title = info.title.take();
                let title = title.map(|title| label(&title, TITLE_CHARS_MAX));
                let title = title.filter(|title| !title.is_empty());
                steps.extend(title.map(|title| MapperStep::Send(AgentEvent::Title(title))));
            }
            U::UsageUpdate(usage) => self.usage.apply_update(&usage),
            U::Notice(notice) => {
                let (title, text) = describe_notice(&notice);
                steps.push(MapperStep::Notice { title, text });
            }
            U::CompactionUpdate(update) => self.map_compaction(&update, &mut steps),
            // A replay or our own words (AG-43); what is said of the session goes to its listener; what we do not know.
            _ => {}
        }
        if !is_silent {
            self.activity.note_activity();
        }
        steps
    }

    fn map_chunk(&mut self, kind: TextKind, chunk: acp::ContentChunk, steps: &mut Vec<MapperStep>) {
        let id = chunk.message_id.map(|id| id.to_string());
        match content::read_block(chunk.content) {
            content::MappedBlock::Text(text) => {
                let number = &mut self.last_number;
                self.run.push(kind, id, &text, number, steps);
            }
            content::MappedBlock::Media(media) => {
                self.run.end();
                steps.push(MapperStep::Show(media));
            }
        }
    }

    fn map_plan(&mut self, plan: &acp::Plan, steps: &mut Vec<MapperStep>) {
        self.run.end();
        let call = match &self.plan {
            Some(plan) => plan.number,
            None => {
                let number = self.next_number();
                plan::start(number, steps);
                number
            }
        };
        let text = plan::to_markdown(plan);
        steps.push(MapperStep::Send(AgentEvent::ToolContent {
            call,
            content: vec![content::text_block(&text)],
        }));
        self.plan = Some(plan::PlanCall { number: call, text });
    }

    fn map_compaction(&mut self, update: &acp::CompactionUpdate, steps: &mut Vec<MapperStep>) {
        use acp::CompactionStatus as S;
        if update.status == S::InProgress {
            self.is_compacting = true;
            let activity = Some("Compacting".to_owned());
            return steps.push(MapperStep::Send(AgentEvent::Activity(activity)));
        }
        if std::mem::take(&mut self.is_compacting) {
            steps.push(MapperStep::Send(AgentEvent::Activity(None)));
        }
        let text = describe_compaction(update);
        steps.push(MapperStep::Send(AgentEvent::Notice { text }));
    }

    /// The prompt was answered: what is still open ends (AG-27).
    pub(super) fn finish(&mut self, end: UpdatesEnd) -> Vec<MapperStep> {
        let mut steps = Vec::new();
        self.run.end();
        self.close_call(&mut steps);
        if std::mem::take(&mut self.is_compacting) {
            steps.push(MapperStep::Send(AgentEvent::Activity(None)));
        }
        if end == UpdatesEnd::Completed {
            for call in self.all_calls_mut() {
                call.end_without_result(&mut steps);
            }
            if let Some(plan) = self.plan.take() {
                steps.push(plan.complete());
            }
        }
        steps
    }

    /// What was used: told once, at the end.
    pub(super) fn usage(&self) -> &UsageTotals {
        &self.usage
    }
}

/// Whether an update changes nothing that is seen: what is about to end may go on.
fn is_silent(update: &acp::SessionUpdate) -> bool {
    use acp::SessionUpdate as U;
    !matches!(
        update,
        U::AgentMessageChunk(_)
            | U::AgentThoughtChunk(_)
            | U::ToolCall(_)
            | U::ToolCallUpdate(_)
            | U::Plan(_)
    )
}

/// The title of a notice, and all of it.
fn describe_notice(notice: &acp::Notice) -> (String, String) {
    let title = label(&notice.title, 500);
    let text = match &notice.description {
        Some(description) => format!("{title}: {}", label(description, 2_000)),
        None => title.clone(),
    };
    (title, text)
}

/// How a summary that is not in progress any more ended.
fn describe_compaction(update: &acp::CompactionUpdate) -> String {
    use acp::CompactionStatus as S;
    match &update.status {
        S::Completed => "The agent summarised the conversation to make room.".to_owned(),
        S::Cancelled => "The agent stopped summarising the conversation.".to_owned(),
        _ => match update.error.value() {
            Some(why) => {
                format!("The agent could not summarise the conversation: {}", label(why, 500))
            }
            None => "The agent could not summarise the conversation.".to_owned(),
        },
    }
}

/// What an update tells people that they are to read later, if no turn hears it. One with a title is told once in a process.
pub(super) fn notice_of(update: &acp::SessionUpdate) -> Option<(Option<String>, String)> {
    match update {
        acp::SessionUpdate::Notice(notice) => {
            let (title, text) = describe_notice(notice);
            Some((Some(title), text))
        }
        acp::SessionUpdate::CompactionUpdate(update)
            if update.status != acp::CompactionStatus::InProgress =>
        {
            Some((None, describe_compaction(update)))
        }
        _ => None,
    }
}
