//! The rounds of a turn: the model is asked, its calls are carried out, and it is asked again.
//!
//! Promises: every call has a result before the model is asked again.
//! Must not know: how the conversation began.

use std::sync::Arc;

use agent_api::{
    AgentError, AgentEvent, AgentReply, CallPurpose, EventSink, Section, TurnInput, TurnOver,
    UserMessage,
};
use serde_json::Value;

use super::answer::{CallAnswer, ModelAnswer, Numbers};
use super::ask_model::{AskError, ask_model};
use super::auto_compact::Compaction;
use super::budget::{Admitted, CallBudget, SUM_UP};
use super::call;
use super::call_events::ToolContext;
use super::context::{CompactionSettings, ContextMeter, Window};
use super::fallback::{Fallback, SentEntries};
use super::file_rules::FileRules;
use super::mcp::TurnServers;
use super::memory::ChatMemory;
use super::model_view::{HistoryEntry, ModelView};
use super::offered_tools::{OfferedTools, offers_within};
use super::outputs::PausedAnswer;
use super::recorded_call::CallContext;
use super::stop::{REFUSAL, TurnStop};
use super::tool_scope::ToolScope;
use super::usage::TurnUsage;
use super::{Model, outputs, prompt};
use crate::prompt::Prompt;
use crate::provider::{
    ModelEndpoint, ModelMessage, ModelRequest, RefusalCause, StopReason, ToolUse,
};
use crate::tool::Tool;

/// Tools of clients that are named when they cannot be offered.
const LEFT_OUT_NAMED_MAX: usize = 5;

/// Rounds of one turn: a model that goes in circles stops here.
const ROUNDS_MAX: usize = 100;

/// The longest reason of a server that is shown.
const REASON_CHARS_MAX: usize = 60;

/// A conversation with a model, round by round.
pub(super) struct Conversation<'a> {
    pub model: &'a Model,
    pub endpoint: &'a ModelEndpoint,
    pub tool_context: ToolContext<'a>,
    /// The agent's own tools, as far as the model may call them.
    pub tools: &'a [&'a dyn Tool],
    /// The MCP servers of the session, if this turn may use any.
    pub servers: TurnServers<'a>,
    /// What a worker may use.
    pub scope: ToolScope,
    /// Tools of servers and clients that were last said not to be offered.
    pub left_out: Vec<String>,
    pub view: ModelView<'a>,
    pub prompt: Prompt,
    /// Rules that do not hold yet.
    pub file_rules: FileRules,
    /// The prompt as it was last rendered, before anybody rewrote it.
    pub sections: Vec<Section>,
    /// What the request's messages were made from, one for one.
    pub entries: Vec<HistoryEntry>,
    /// The position of the message that this turn answers.
    pub newest: usize,
    /// What stands before this position was in a request that its server answered, or in a turn of before.
    pub answered: usize,
    pub request: ModelRequest,
    pub numbers: Numbers,
    pub usage: TurnUsage,
    pub budget: CallBudget,
    pub input: &'a TurnInput,
    /// What the request holds of earlier turns.
    pub memory: ChatMemory<'a>,
    pub compaction: CompactionSettings,
    pub window: Window,
    pub meter: ContextMeter,
    /// How often the conversation was summarised in this turn.
    pub summaries: usize,
}

impl<'a> Conversation<'a> {
    /// Asks the model, carries out its calls and asks again, until it makes no more calls.
    pub(super) async fn run_rounds(mut self, rounds_before: usize) -> Result<(), TurnStop> {
        let events = self.tool_context.events;
        let mut number = rounds_before;
        let mut paused = Vec::new();
        for asked in 0..ROUNDS_MAX {
            if asked > 0 {
                self.take_steering().await?;
            }
            // Both may have changed since the model was last asked, and it should know.
            let mode = self.tool_context.mode().await?;
            let offered = self.offer_tools().await?.for_mode(mode);
            prompt::apply_tools(&mut self.prompt, &offered, mode);
            self.request.tools = offered.specs();
            let workspace = self.tool_context.workspace;
            self.file_rules.apply(workspace, &mut self.prompt).await;
            self.sections = self.prompt.render();
            self.request.system = events.render(self.sections.clone()).await?;
            let admitted = match self.compact_near_window().await? {
                Compaction::NotNeeded | Compaction::Done => {
                    self.budget.admit(&self.request, self.model, events).await?
                }
                Compaction::Finish => Admitted::LastCall,
            };
            let offered = match admitted {
                Admitted::Call => offered,
                Admitted::LastCall => self.ask_for_summary().await,
            };
            let (answer, admitted) = self.ask(number, admitted, &offered).await?;
            self.meter.report(answer.usage, self.entries.len());
            self.usage.add(answer.usage, CallPurpose::Answer, self.model, events).await?;
            let output = outputs::record(&self.view.source(), number, &paused, &answer);
            if let Some(output) = output {
                events.record_output(output).await;
            }
            if answer.calls.is_empty() && answer.stop != Some(StopReason::Paused) {
                let is_first = number == rounds_before;
                return report_stop(&answer, self.model, is_first, events).await;
            }
            // An answer that was paused and the one that goes on with it are one round: so the chat shows them.
            if answer.calls.is_empty() {
                paused.push(PausedAnswer::of(&answer))
            } else {
                paused.clear();
                number += 1;
            }
            let results = call::run_calls(&self.tool_context, &offered, &answer.calls).await?;
            if admitted == Admitted::LastCall {
                return report_stop(&answer, self.model, false, events).await; // it was offered nothing, and called for something
            }
            self.add_round(answer, results).await;
        }
        Err(TurnStop::Failed(AgentError {
            error_type: "tooManyRounds".to_owned(),
            message: format!(
                "the model was asked {ROUNDS_MAX} times in this turn; resume it to go on"
            ),
            resumable: true,
        }))
    }

    /// The tools that the model may call now. What cannot be offered is said, once a turn.
    async fn offer_tools(&mut self) -> Result<OfferedTools<'a>, TurnOver> {
        let events = self.tool_context.events;
        let offers =
            if self.model.calls_tools() { events.client_tools().await? } else { Vec::new() };
        let offers = offers_within(offers, &self.scope);
        let servers = self.servers.tools(&self.scope);
        let offered = OfferedTools::with_servers(self.tools, servers, offers);
        self.prompt.tool_instructions.servers = self.servers.instructions();
        if offered.left_out != self.left_out {
            self.left_out.clone_from(&offered.left_out);
            if !offered.left_out.is_empty() {
                let text = describe_left_out(&offered.left_out);
                events.send(AgentEvent::Notice { text }).await?;
            }
        }
        Ok(offered)
    }

    /// The next answer is the last one: no tools, and the request says so.
    async fn ask_for_summary(&mut self) -> OfferedTools<'a> {
        self.request.tools = Vec::new();
        self.request.server_tools = Vec::new();
        let sum_up = ModelMessage::User(Value::from(SUM_UP));
        self.add_entry(HistoryEntry::Model(sum_up)).await;
        OfferedTools::new(&[], Vec::new())
    }

    /// Asks the model; again with less if its server refuses something. How it was asked in the end is said, too.
    async fn ask(
        &mut self,
        round: usize,
        mut admitted: Admitted,
        offered: &OfferedTools<'_>,
    ) -> Result<(ModelAnswer, Admitted), TurnStop> {
        let events = self.tool_context.events;
        let mut fallback = Fallback::begin(&self.view, &self.entries, &mut self.request);
        let mut learned = None;
        let mut may_compact = admitted == Admitted::Call;
        let none = OfferedTools::new(&[], Vec::new());
        loop {
            let offered = match admitted {
                Admitted::Call => offered,
                Admitted::LastCall => &none,
            };
            let context = CallContext {
                purpose: CallPurpose::Answer,
                round,
                model: self.model,
                endpoint: self.endpoint,
                sections_before: &self.sections,
                decisions: self.view.describe_decisions(&self.entries),
                host: events,
            };
            let (request, numbers) = (&self.request, &mut self.numbers);
            let asked = ask_model(offered, &context, events, request, numbers, learned);
            let failed = match asked.await {
                Ok(answer) => {
                    self.answered = self.entries.len();
                    return Ok((answer, admitted));
                }
                // What the call used until now is not known: what was set aside stays spent.
                Err(AskError::TurnOver) => return Err(TurnStop::Over),
                Err(AskError::Provider(failed)) => failed,
            };
            if failed.error.blame == Some(RefusalCause::TooLong)
                && std::mem::take(&mut may_compact)
                && let Some(again) = self.compact_refused().await?
            {
                admitted = again;
                if admitted == Admitted::LastCall {
                    self.ask_for_summary().await;
                }
                fallback = Fallback::begin(&self.view, &self.entries, &mut self.request);
                learned = None;
                continue;
            }
            let sent = SentEntries {
                entries: &self.entries,
                newest: self.newest,
                answered: self.answered,
            };
            let (view, request) = (&mut self.view, &mut self.request);
            let error = failed.error.clone();
            match fallback.reduce(view, &sent, request, error).await {
                Ok(less) => learned = Some(less),
                Err(stop) => {
                    let purpose = CallPurpose::Answer;
                    self.usage.add_failed(&failed, purpose, self.model, events).await?;
                    return Err(stop.into());
                }
            }
        }
    }

    async fn add_round(&mut self, answer: ModelAnswer, results: Vec<CallAnswer>) {
        assert_eq!(answer.calls.len(), results.len(), "every call has a result");
        let calls: Vec<ToolUse> = answer.calls.into_iter().map(|call| call.tool_use).collect();
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        self.add_entry(HistoryEntry::Model(ModelMessage::Assistant {
            text: answer.text,
            calls,
            items: answer.items,
        }))
        .await;
        for (id, result) in ids.into_iter().zip(results) {
            let entry = HistoryEntry::result(id, result.text, result.media);
            self.add_entry(entry).await;
        }
    }

    /// What is refused is left out of later requests of the turn as it is out of those of later turns.
    async fn add_entry(&mut self, entry: HistoryEntry) {
        let message = self.view.lower_entry(&entry, self.entries.len()).await;
        self.entries.push(entry);
        self.request.messages.push(message);
    }

    /// A round is over: takes the steering message that waits, if one does. The host makes it a part of the turn.
    async fn take_steering(&mut self) -> Result<(), TurnStop> {
        let steer = self.numbers.next();
        let events = self.tool_context.events;
        let reply = events.ask(AgentEvent::SteerPoint { steer }).await?;
        if let AgentReply::Steered { message: Some(message), message_id, .. } = reply {
            let user = match message_id {
                Some(id) => events.read_message(id).await,
                None => None,
            };
            let text = message["text"].as_str().unwrap_or("");
            let user = user.unwrap_or_else(|| Arc::new(UserMessage::text(text)));
            let position = self.entries.len();
            let message = self.view.lower_one(Arc::clone(&user), position).await?;
            self.entries.push(HistoryEntry::User(user));
            self.request.messages.push(message);
        }
        Ok(())
    }
}

/// What the user reads of tools that the model is not offered.
fn describe_left_out(left_out: &[String]) -> String {
    let mut text = "Some tools are not offered to the model:\n".to_owned();
    for reason in left_out.iter().take(LEFT_OUT_NAMED_MAX) {
        text.push_str("\n- ");
        text.push_str(reason);
    }
    let more = left_out.len().saturating_sub(LEFT_OUT_NAMED_MAX);
    if more > 0 {
        text.push_str(&format!("\n- and {more} more"));
    }
    text
}

/// The model has nothing more to do; if it was stopped, or its answer is empty, a notice says so.
async fn report_stop(
    answer: &ModelAnswer,
    model: &Model,
    is_first: bool,
    events: &dyn EventSink,
) -> Result<(), TurnStop> {
    let said_nothing = answer.text.trim().is_empty() && answer.calls.is_empty();
    let text = match &answer.stop {
        Some(StopReason::Length) => {
            "The answer was cut off: it reached the model's output limit.".to_owned()
        }
        Some(StopReason::ContentFilter) => "The model's server cut the answer off.".to_owned(),
        Some(StopReason::Refusal) => return Err(refusal(model)),
        Some(StopReason::Other(reason)) if said_nothing => {
            format!(
                "The model said nothing. Its server gives a reason: {}.",
                printable_reason(reason)
            )
        }
        // After calls it may have nothing to add.
        Some(StopReason::End) if said_nothing && is_first => "The model said nothing.".to_owned(),
        Some(
            StopReason::End | StopReason::ToolCalls | StopReason::Paused | StopReason::Other(_),
        )
        | None => {
            return Ok(());
        }
    };
    Ok(events.send(AgentEvent::Notice { text }).await?)
}

/// What ends a turn that the model does not answer, and what can be done.
fn refusal(model: &Model) -> TurnStop {
    let message = if model.api.refuses_conversations() {
        "the model refuses to answer this. It is not told of this message any more, so that it can answer others: say it in \
             other words, or choose another model, which is told of it"
    } else {
        "the model refuses to answer this"
    };
    TurnStop::Failed(AgentError {
        error_type: REFUSAL.to_owned(),
        message: message.to_owned(),
        resumable: false,
    })
}

/// A server's stop reason, as a code in a sentence.
fn printable_reason(reason: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    let plain: String = reason.chars().filter(is_plain).take(REASON_CHARS_MAX).collect();
    format!("`{plain}`")
}
