//! Tool calls: what agents say of them in any order, as calls that begin, become ready, run and end (AG-26, AG-27).
//!
//! Promises: a call becomes ready once for each time it is asked about or starts to run, and ends at most once. While it is asked about,
//! what its agent says of its state is ignored; if it says that it is another call, people are asked about that one (AG-31c).

use std::path::{Path, PathBuf};

use agent_api::{AgentEvent, ToolReady, ToolStart};
use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};
use wire::meta;
use wire::published::state::{ToolCallConfirmationReason, ToolInput};

use super::call_update::CallUpdate;
use super::consent::{CallConsent, FileDiff};
use super::content::{text_block, to_tool_block};
use super::contributor::contributor_of;
use super::displayed_command::{DisplayedCommand, is_same_command};
use super::terminal::TerminalOutput;
use super::{ActivityTimes, Mapper, MapperStep};
use crate::acp::label::label;

const TITLE_CHARS_MAX: usize = 500;
const LOCATIONS_MAX: usize = 32;
const ERROR_CHARS_MAX: usize = 2_000;

/// An output of a shape of its own is shown up to this size.
const STRUCTURED_BYTES_MAX: usize = 64 * 1_024;

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct CallCompletion {
    pub(in super::super) call: u64,
    pub(in super::super) success: bool,
    pub(in super::super) past_tense: String,
    pub(in super::super) content: Vec<Value>,
    pub(in super::super) structured: Option<wire::Object>,
    /// Why it failed.
    pub(in super::super) error: Option<String>,
    pub(in super::super) diffs: Vec<FileDiff>,
    /// What the one file that it changed held before, where the agent tells it.
    pub(in super::super) original: Option<String>,
}

#[derive(Debug)]
pub(super) struct MappedCall {
    pub(super) number: u64,
    pub(super) name: String,
    pub(super) title: String,
    kind: acp::ToolKind,
    pub(super) raw_input: Option<Value>,
    raw_output: Option<Value>,
    content: Vec<acp::ToolCallContent>,
    pub(super) locations: Vec<PathBuf>,
    terminal: TerminalOutput,
    /// Terminals of the host that its commands run in, as blocks of content.
    pub(super) shown: Vec<Value>,
    original: Option<String>,
    watched: Vec<PathBuf>,
    failed: bool,
    /// It was asked about at least once.
    pub(super) was_asked: bool,
    pub(super) consent: CallConsent,
    /// What it was when it was asked about last.
    asked: Option<ConsentSubject>,
    pub(super) stage: Stage,
}

/// What people decide about.
#[derive(Debug, Clone, PartialEq)]
enum ConsentSubject {
    /// An input: that is what runs. Of one that is no command nobody here knows which words decide that.
    Input { input: Value, is_command: bool },
    /// It showed none: then its title and the changes of files are all that they saw.
    Shown(String, Vec<FileDiff>),
}

impl ConsentSubject {
    /// Whether a decision about this is one about what the call is now. Agents describe one command in more words or fewer: opencode asks
    /// about the line alone, and says right after that where it runs and what it is for.
    fn means(&self, now: &Self, usual: Option<&Path>) -> bool {
        match (self, now) {
            (Self::Input { input, is_command }, Self::Input { input: now, is_command: is_now }) => {
                input == now || (*is_command && *is_now && is_same_command(input, now, usual))
            }
            _ => self == now,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Started,
    Asking,
    Running,
    Denied,
    Over,
}

impl Mapper {
    pub(super) fn map_call(&mut self, update: CallUpdate, steps: &mut Vec<MapperStep>) {
        self.run.end();
        let id = update.id.clone();
        let status = update.fields.status;
        let is_closing = self.closing.as_ref() == Some(&id);
        if matches!(status, Some(acp::ToolCallStatus::Completed | acp::ToolCallStatus::Failed)) {
            self.end_earlier(&id, steps);
        }
        let Some((call, is_new_content)) = self.merge_update(update, steps) else {
            return; // more calls than a turn can have
        };
        match (call.stage, status) {
            (Stage::Denied, _) => {}
            (Stage::Over, _) => {
                if is_closing && call.terminal.exit.is_some() {
                    self.close_call(steps);
                }
            }
            (Stage::Asking, Some(acp::ToolCallStatus::Completed | acp::ToolCallStatus::Failed)) => {
                call.stage = Stage::Denied;
                steps.push(MapperStep::Withdraw { call: call.number });
            }
            (Stage::Asking, _) => self.replace_changed(&id, steps),
            (stage, Some(acp::ToolCallStatus::Completed | acp::ToolCallStatus::Failed)) => {
                if stage == Stage::Started {
                    call.run_unasked(steps);
                }
                call.failed = status == Some(acp::ToolCallStatus::Failed);
                call.stage = Stage::Over;
                let may_print = call.has_terminal() && call.terminal.exit.is_none();
                self.closing = Some(id);
                if !may_print {
                    self.close_call(steps);
                }
            }
            (Stage::Started, Some(acp::ToolCallStatus::InProgress)) => {
                call.run_unasked(steps);
                call.send_content(steps);
            }
            (Stage::Running, _) if is_new_content => call.send_content(steps),
            (Stage::Started | Stage::Running, _) => {}
        }
    }

    /// Notes what is said of a call, and begins it if it is new. Also whether there is something new to show.
    pub(super) fn merge_update(
        &mut self,
        update: CallUpdate,
        steps: &mut Vec<MapperStep>,
    ) -> Option<(&mut MappedCall, bool)> {
        let is_over = self.calls.get(&update.id).map(|call| call.stage);
        let is_over = matches!(is_over, Some(Stage::Over | Stage::Denied));
        let begins = matches!(
            update.fields.status,
            Some(acp::ToolCallStatus::Pending | acp::ToolCallStatus::InProgress)
        );
        if is_over && update.is_announcement && begins {
            // The id again: another call.
            if self.closing.as_ref() == Some(&update.id) {
                self.close_call(steps);
            }
            self.calls.remove(&update.id);
        }
        if !self.calls.contains_key(&update.id) {
            let number = self.next_call_or_tell(steps)?;
            let call = MappedCall::begin(number, &update, &self.servers, &self.activity, steps);
            self.calls.insert(update.id.clone(), call);
        }
        let call = self.calls.get_mut(&update.id)?;
        let is_new_content = call.merge(update);
        call.show_terminals(&self.terminals);
        call.watch_files(steps);
        Some((call, is_new_content))
    }

    /// Ends the call that is over and was waited for.
    pub(super) fn close_call(&mut self, steps: &mut Vec<MapperStep>) {
        let call = self.closing.take().and_then(|id| self.calls.get(&id));
        steps.extend(call.map(|call| MapperStep::Complete(Box::new(call.completion()))));
    }

    /// A call by its number.
    pub(super) fn call_mut(&mut self, number: u64) -> Option<&mut MappedCall> {
        self.all_calls_mut().find(|call| call.number == number)
    }
}

impl MappedCall {
    fn begin(
        number: u64,
        update: &CallUpdate,
        servers: &[(String, String)],
        activity: &ActivityTimes,
        steps: &mut Vec<MapperStep>,
    ) -> Self {
        let fields = &update.fields;
        let kind = fields.kind.unwrap_or_default();
        let title = fields.title.as_deref().map(|title| label(title, TITLE_CHARS_MAX));
        let title = title.filter(|title| !title.is_empty());
        let name = update.tool_name(kind);
        let contributor = contributor_of(update.meta.as_ref(), &name, servers);
        let title = title.unwrap_or_else(|| name.clone());
        let mut call = Self {
            number,
            name: name.clone(),
            title,
            kind,
            raw_input: None,
            raw_output: None,
            content: Vec::new(),
            locations: Vec::new(),
            terminal: TerminalOutput::default(),
            shown: Vec::new(),
            original: None,
            watched: Vec::new(),
            failed: false,
            was_asked: false,
            consent: CallConsent::default(),
            asked: None,
            stage: Stage::Started,
        };
        call.set_locations(fields.locations.as_deref());
        let start = Box::new(ToolStart {
            name,
            display_name: call.title.clone(),
            meta: call.meta(),
            contributor,
            began: activity.beginning_of(update),
            ..ToolStart::default()
        });
        let started = AgentEvent::ToolStarted { call: number, start };
        steps.push(MapperStep::Send(started));
        call
    }

    /// Notes what is said; whether there is something new to show.
    fn merge(&mut self, update: CallUpdate) -> bool {
        let fields = update.fields;
        if let Some(title) = fields.title.as_deref().map(|title| label(title, TITLE_CHARS_MAX))
            && !title.is_empty()
        {
            self.title = title;
        }
        if let Some(kind) = fields.kind {
            self.kind = kind;
        }
        self.set_locations(fields.locations.as_deref());
        self.raw_input = fields.raw_input.or(self.raw_input.take());
        self.raw_output = fields.raw_output.or(self.raw_output.take());
        let mut is_new = fields.content.is_some();
        if let Some(content) = fields.content {
            self.content = content;
        }
        if let Some(meta) = &update.meta {
            is_new |= self.terminal.read(meta);
            let response = meta.get("claudeCode").and_then(|meta| meta.get("toolResponse"));
            let original = response.and_then(|response| response.get("originalFile"));
            if let Some(original) = original.and_then(Value::as_str) {
                self.original = Some(original.to_owned());
            }
        }
        is_new
    }

    /// What it is now is what people are asked about.
    pub(super) fn note_asked(&mut self) {
        self.asked = Some(self.consent_subject());
    }

    /// Whether it is another call than the one that people are asked about.
    /// `usual` is the directory of commands that name none.
    pub(super) fn is_changed(&self, usual: Option<&Path>) -> bool {
        let asked = self.asked.as_ref();
        asked.is_some_and(|asked| !asked.means(&self.consent_subject(), usual))
    }

    fn consent_subject(&self) -> ConsentSubject {
        match self.raw_input.clone().filter(|input| !is_empty(input)) {
            Some(input) => {
                ConsentSubject::Input { input, is_command: self.kind == acp::ToolKind::Execute }
            }
            None => ConsentSubject::Shown(self.title.clone(), self.diffs()),
        }
    }

    fn set_locations(&mut self, locations: Option<&[acp::ToolCallLocation]>) {
        let Some(locations) = locations else {
            return; // nothing is said of them
        };
        let paths = locations.iter().take(LOCATIONS_MAX);
        self.locations = paths.map(|location| location.path.clone()).collect();
    }

    pub(super) fn edits(&self) -> bool {
        use acp::ToolKind as K;
        matches!(self.kind, K::Edit | K::Delete | K::Move)
    }

    /// Names the files that a call is about to change, each once.
    fn watch_files(&mut self, steps: &mut Vec<MapperStep>) {
        if matches!(self.stage, Stage::Over | Stage::Denied) {
            return; // too late to look
        }
        let mut diffs = self.diffs();
        diffs.retain(|diff| !self.watched.contains(&diff.path));
        if !diffs.is_empty() {
            self.watched.extend(diffs.iter().map(|diff| diff.path.clone()));
            steps.push(MapperStep::WatchFiles { call: self.number, diffs });
        }
    }

    /// The files that it changes, as far as its agent tells.
    pub(super) fn diffs(&self) -> Vec<FileDiff> {
        let told = self.content.iter().filter_map(|content| match content {
            acp::ToolCallContent::Diff(diff) => Some(FileDiff {
                path: diff.path.clone(),
                old_text: diff.old_text.clone(),
                new_text: Some(diff.new_text.clone()),
            }),
            _ => None,
        });
        let mut diffs: Vec<FileDiff> = told.take(LOCATIONS_MAX).collect();
        if self.edits() {
            for path in &self.locations {
                if !diffs.iter().any(|diff| diff.path == *path) {
                    diffs.push(FileDiff::of_path(path.clone()));
                }
            }
        }
        diffs
    }

    /// What a call which runs a command says it runs, and where.
    pub(super) fn command(&self) -> Option<DisplayedCommand> {
        let input = self.raw_input.as_ref().filter(|_| self.kind == acp::ToolKind::Execute);
        DisplayedCommand::of_input(input?)
    }

    pub(super) fn content(&self) -> &[acp::ToolCallContent] {
        &self.content
    }

    fn has_terminal(&self) -> bool {
        let mut content = self.content.iter();
        content.any(|content| matches!(content, acp::ToolCallContent::Terminal(_)))
    }

    pub(super) fn kind(&self) -> acp::ToolKind {
        self.kind
    }

    /// The call as it is ready to run.
    pub(super) fn ready(&self, confirmed: Option<ToolCallConfirmationReason>) -> ToolReady {
        let mut ready = ToolReady {
            invocation_message: self.title.clone().into(),
            tool_input: self.raw_input.as_ref().map(|input| {
                ToolInput::Inline(match input {
                    Value::String(text) => text.clone(),
                    input => input.to_string(),
                })
            }),
            confirmed,
            ..ToolReady::default()
        };
        if let Some(meta) = self.meta() {
            ready.extra.insert("_meta".to_owned(), Value::Object(meta));
        }
        ready
    }

    fn run_unasked(&mut self, steps: &mut Vec<MapperStep>) {
        let ready = self.ready(Some(ToolCallConfirmationReason::NotNeeded));
        self.stage = Stage::Running;
        steps.push(MapperStep::Send(AgentEvent::ToolReady {
            call: self.number,
            ready: Box::new(ready),
        }));
    }

    fn send_content(&self, steps: &mut Vec<MapperStep>) {
        let content = self.blocks(self.terminal.live());
        if !content.is_empty() {
            steps.push(MapperStep::Send(AgentEvent::ToolContent { call: self.number, content }));
        }
    }

    fn blocks(&self, printed: Option<String>) -> Vec<Value> {
        let told = self.content.iter().filter_map(|content| match content {
            acp::ToolCallContent::Content(content) => Some(to_tool_block(&content.content)),
            // Diffs are looked up in the files; terminals are told beside the content.
            _ => None,
        });
        let printed = printed.map(|text| text_block(&text));
        told.chain(printed).chain(self.shown.clone()).collect()
    }

    fn completion(&self) -> CallCompletion {
        let mut content = self.blocks(self.terminal.whole());
        let mut structured = None;
        if content.is_empty() && self.diffs().is_empty() {
            match &self.raw_output {
                Some(Value::String(text)) => content.push(text_block(text)),
                Some(Value::Object(output)) => {
                    let bytes = serde_json::to_vec(output).map_or(usize::MAX, |json| json.len());
                    structured = (bytes <= STRUCTURED_BYTES_MAX).then(|| output.clone());
                }
                _ => {}
            }
        }
        let past_tense = match &self.terminal.exit {
            Some(exit) => format!("{} ({exit})", self.title),
            None => self.title.clone(),
        };
        CallCompletion {
            call: self.number,
            success: !self.failed,
            past_tense,
            error: self.failed.then(|| self.error(&content)),
            content,
            structured,
            diffs: self.diffs(),
            original: self.original.clone(),
        }
    }

    fn error(&self, content: &[Value]) -> String {
        let said = content.iter().find_map(|block| block["text"].as_str());
        let output = self.raw_output.as_ref();
        let output = output.and_then(|output| {
            let fields = [Some(output), output.get("error"), output.get("message")];
            fields.into_iter().flatten().find_map(Value::as_str)
        });
        let text = said.or(output).map(str::trim).unwrap_or_default();
        if text.is_empty() {
            "It failed, and its agent does not say why.".to_owned()
        } else {
            text.chars().take(ERROR_CHARS_MAX).collect()
        }
    }

    /// The turn is over and this call is not: one that ran is done.
    pub(super) fn end_without_result(&mut self, steps: &mut Vec<MapperStep>) {
        match self.stage {
            Stage::Running => {
                self.stage = Stage::Over;
                self.complete_as("ended without a result", steps);
            }
            Stage::Asking => {
                self.stage = Stage::Denied;
                steps.push(MapperStep::Withdraw { call: self.number });
            }
            // What never became ready is skipped with its turn; the others have ended.
            Stage::Started | Stage::Denied | Stage::Over => {}
        }
    }

    /// Ends it with words of why nothing more is known of it.
    pub(super) fn complete_as(&self, why: &str, steps: &mut Vec<MapperStep>) {
        let mut completion = self.completion();
        completion.past_tense = format!("{} ({why})", self.title);
        steps.push(MapperStep::Complete(Box::new(completion)));
    }

    fn meta(&self) -> Option<wire::Object> {
        use acp::ToolKind as K;
        let kind = match self.kind {
            K::Read | K::Think => Some("read"),
            K::Search => Some("search"),
            K::Fetch => Some("fetch"),
            K::Execute => Some("terminal"),
            _ => None,
        };
        let mut fields = wire::Object::new();
        if let Some(kind) = kind {
            fields.insert(meta::TOOL_KIND.to_owned(), json!(kind));
        }
        if !self.locations.is_empty() {
            let paths = self.locations.iter().filter_map(|path| path.to_str());
            let uris: Vec<String> = paths.map(wire::file_uri::uri_of).collect();
            fields.insert("locations".to_owned(), json!(uris));
        }
        (!fields.is_empty()).then_some(fields)
    }
}

/// Whether an input says nothing of what the call does.
fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
