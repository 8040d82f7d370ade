//! A summary of a conversation, made by its model, and the command `/compact`.
//!
//! Promises: what is no summary (nothing, a refusal, a call) is never taken for one, and then nothing is forgotten; a
//! conversation that is too long to be summarised whole is summarised as far as it fits, and that is said.
//! Must not know: when a conversation is summarised by itself.

use agent_api::{AgentError, AgentEvent, CallPurpose, EventSink, Section, TurnInput, TurnOver};
use tokio::sync::mpsc;

use super::Model;
use super::answer_sender::describe_silence;
use super::ask_model::AskError;
use super::budget::{Admitted, CallBudget};
use super::context::{Window, estimate_tokens};
use super::fallback::{Fallback, SentEntries};
use super::memory::ChatMemory;
use super::model_view::{HistoryEntry, ModelView};
use super::recorded_call::{self, CallContext};
use super::refusals::LearnedRefusal;
use super::shorten::{cut_results, drop_oldest};
use super::stop::TurnStop;
use super::usage::TurnUsage;
use super::work_state::WorkState;
use crate::provider::{
    ModelEndpoint, ModelEvent, ModelMessage, ModelRequest, RefusalCause, StopReason, ToolSpec,
    Usage,
};

const REQUEST: &str = "Summarise the conversation so far for yourself, so that you can go on without it: what the user \
     wants, what was decided and why, which files and commands matter and how they stand, what is left to do. Call no \
     tool and say nothing else.";

/// The longest summary in bytes, and the part of the window that it may take.
const SUMMARY_BYTES_MAX: usize = 32 << 10;
const SUMMARY_PART: u64 = 8;

/// How often a conversation is made shorter for its summary, by half each time.
const SHORTENINGS_MAX: usize = 3;

/// Events of the model that may wait.
const EVENTS_MAX: usize = 64;

/// What a summary is made with.
pub(super) struct Summariser<'v, 'a> {
    pub model: &'v Model,
    pub endpoint: &'v ModelEndpoint,
    pub window: Window,
    pub view: &'v mut ModelView<'a>,
    pub input: &'v TurnInput,
    pub usage: &'v mut TurnUsage,
    pub budget: &'v mut CallBudget,
    /// Whether the summary may be the last call that the user allows at a limit.
    pub may_be_last: bool,
}

/// What a conversation's requests begin with; a summary's begins the same, so that it is read from the cache.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestHead {
    /// Before anybody rewrote them.
    pub sections: Vec<Section>,
    pub system: Vec<Section>,
    pub tools: Vec<ToolSpec>,
}

/// A summary, and what is to be said of it.
#[derive(Debug)]
pub(super) struct Summary {
    pub text: String,
    pub state: WorkState,
    /// What it lacks, in words.
    pub remarks: Vec<&'static str>,
}

impl Summariser<'_, '_> {
    /// Has the model summarise a conversation. `forced`: its server does not take it as long as it is. None if the user allows
    /// one last call, and it is not to be this one.
    pub(super) async fn summarise(
        &mut self,
        entries: &[HistoryEntry],
        head: RequestHead,
        hint: &str,
        forced: bool,
    ) -> Result<Option<Summary>, TurnStop> {
        let state = WorkState::of_entries(entries);
        let mut remarks = Vec::new();
        let request = HistoryEntry::user(&match hint.trim() {
            "" => REQUEST.to_owned(),
            hint => format!("{REQUEST}\n\nThe user says: {hint}"),
        });
        let is_too_long = forced || estimate_tokens(entries) > self.window.input;
        let mut asked = entries.to_vec();
        if is_too_long {
            remarks.extend(self.shorten(&mut asked));
        }
        asked.push(request);
        let events = self.view.events;
        let sections = head.sections.clone();
        let request = self.make_request(&asked, head).await?;
        match self.budget.admit(&request, self.model, events).await? {
            Admitted::LastCall if !self.may_be_last => return Ok(None),
            Admitted::LastCall | Admitted::Call => {}
        }
        events.send(summarising()).await?;
        let collected = self.ask(asked, request, sections, &mut remarks).await;
        events.send(AgentEvent::Activity(None)).await?;
        let collected = collected?;
        if collected.stop == Some(StopReason::Length) {
            remarks.push("the end of the summary, because the model reached its output limit");
        }
        let purpose = CallPurpose::Compaction;
        self.usage.add(collected.usage, purpose, self.model, events).await?;
        let mut text = collected.into_summary().map_err(no_summary)?;
        let most = usize::try_from(self.window.size / SUMMARY_PART * 4).unwrap_or(usize::MAX);
        let end = text.floor_char_boundary(most.min(SUMMARY_BYTES_MAX));
        if end < text.len() {
            text.truncate(end);
            remarks.push("the end of the summary, which was too long");
        }
        let text = state.add_to(text, self.input);
        Ok(Some(Summary { text, state, remarks }))
    }

    /// Makes a conversation fit into the request for its summary; what is lost by that.
    fn shorten(&self, entries: &mut Vec<HistoryEntry>) -> Option<&'static str> {
        let tokens = estimate_tokens(entries);
        cut_results(entries);
        // A server that refuses less than its window has another one.
        let most = self.window.comfortable.min(tokens / 2).max(1);
        drop_oldest(entries, most).then_some("the oldest part, which did not fit any more")
    }

    async fn make_request(
        &mut self,
        entries: &[HistoryEntry],
        head: RequestHead,
    ) -> Result<ModelRequest, TurnStop> {
        let holds_calls = entries.iter().any(|entry| holds_calls(entry, self.model));
        Ok(ModelRequest {
            model: self.model.server_name().to_owned(),
            system: head.system,
            messages: self.view.lower_conversation(entries, usize::MAX).await?,
            // Servers refuse calls of tools that they are not told of.
            tools: head.tools.into_iter().filter(|_| holds_calls).collect(),
            server_tools: if holds_calls { self.model.server_tools.clone() } else { Vec::new() },
            forbids_calls: true,
            max_output_tokens: self.model.answer_tokens(),
            ..ModelRequest::default()
        })
    }

    /// Asks; again with less if the server refuses something.
    async fn ask(
        &mut self,
        mut entries: Vec<HistoryEntry>,
        mut request: ModelRequest,
        sections: Vec<Section>,
        remarks: &mut Vec<&'static str>,
    ) -> Result<SummaryAnswer, TurnStop> {
        let events = self.view.events;
        let mut fallback = Fallback::begin(self.view, &entries, &mut request);
        let mut learned: Option<LearnedRefusal> = None;
        let mut shortenings = 0;
        loop {
            let context = CallContext {
                purpose: CallPurpose::Compaction,
                round: 0,
                model: self.model,
                endpoint: self.endpoint,
                sections_before: &sections,
                decisions: self.view.describe_decisions(&entries),
                host: events,
            };
            let failed = match collect_answer(&context, events, &request).await {
                Ok(collected) => {
                    for event in learned.into_iter().flat_map(LearnedRefusal::into_events) {
                        events.send(event).await?;
                    }
                    return Ok(collected);
                }
                Err(AskError::TurnOver) => return Err(TurnStop::Over),
                Err(AskError::Provider(failed)) => failed,
            };
            if failed.error.blame == Some(RefusalCause::TooLong) && shortenings < SHORTENINGS_MAX {
                shortenings += 1;
                let asked = entries.pop();
                if let Some(lost) = self.shorten(&mut entries)
                    && !remarks.contains(&lost)
                {
                    remarks.push(lost);
                }
                entries.extend(asked);
                request.messages = self.view.lower_conversation(&entries, usize::MAX).await?;
                fallback = Fallback::begin(self.view, &entries, &mut request);
                continue;
            }
            let sent = SentEntries { entries: &entries, newest: usize::MAX, answered: usize::MAX };
            let error = failed.error.clone();
            let reduced = fallback.reduce(self.view, &sent, &mut request, error);
            match reduced.await {
                Ok(less) => learned = Some(less),
                Err(stop) => {
                    let purpose = CallPurpose::Compaction;
                    self.usage.add_failed(&failed, purpose, self.model, events).await?;
                    return Err(stop.into());
                }
            }
        }
    }
}

/// Carries out `/compact`: what is remembered from then on.
pub(super) async fn compact_by_command<'t>(
    mut summariser: Summariser<'_, '_>,
    input: &'t TurnInput,
    head: RequestHead,
) -> Result<ChatMemory<'t>, TurnStop> {
    let memory = ChatMemory::of_turn(input);
    let events = summariser.view.events;
    if memory.turns.is_empty() {
        let text = "There is nothing to shorten yet.".to_owned();
        events.send(AgentEvent::Notice { text }).await?;
        return Ok(memory);
    }
    let entries = memory.recall(u64::MAX, &summariser.view.source()).entries;
    let hint = input.compact.as_deref().unwrap_or("");
    let made = summariser.summarise(&entries, head, hint, false).await?;
    let Some(summary) = made else {
        return Ok(memory); // a command's summary may be the last call
    };
    let turns = memory.turns.len();
    let compacted =
        AgentEvent::Compacted { keep_turns: 0, rounds: 0, summary: Some(summary.text.clone()) };
    events.send(compacted).await?;
    let text = match turns {
        1 => "The turn before is summarised for the model.".to_owned(),
        turns => format!("The {turns} turns before are summarised for the model."),
    };
    let text = summary.describe(&text);
    events.send(AgentEvent::Notice { text }).await?;
    Ok(ChatMemory { summary: Some(summary.text), summarised_rounds: 0, turns: &[] })
}

impl Summary {
    /// What people read of it: what happened, and what is in it for sure.
    pub(super) fn describe(&self, what: &str) -> String {
        let mut text = what.to_owned();
        let kept = self.state.for_people();
        if !kept.is_empty() {
            text.push_str(&format!(" Kept beside the summary: {}.", kept.join("; ")));
        }
        if !self.remarks.is_empty() {
            text.push_str(&format!(" Left out: {}.", self.remarks.join("; ")));
        }
        text
    }
}

/// Whether an entry holds calls, of our tools or of the server's.
fn holds_calls(entry: &HistoryEntry, model: &Model) -> bool {
    match entry {
        HistoryEntry::Model(ModelMessage::Assistant { calls, items, .. }) => {
            !calls.is_empty() || (items.is_some() && !model.server_tools.is_empty())
        }
        HistoryEntry::Model(_) | HistoryEntry::User(_) | HistoryEntry::Result { .. } => false,
    }
}

/// Why nothing was summarised.
fn no_summary(why: String) -> TurnStop {
    TurnStop::Failed(AgentError {
        error_type: "notCompacted".to_owned(),
        message: format!("the conversation was not summarised: {why}; nothing of it was changed"),
        resumable: true,
    })
}

fn summarising() -> AgentEvent {
    AgentEvent::Activity(Some("summarising".to_owned()))
}

/// The answer to a request for a summary.
#[derive(Debug, Default)]
struct SummaryAnswer {
    text: String,
    calls: usize,
    refused: bool,
    stop: Option<StopReason>,
    usage: Usage,
}

impl SummaryAnswer {
    /// The summary; otherwise why it is none.
    fn into_summary(self) -> Result<String, String> {
        let wrong = match self.stop {
            Some(StopReason::Refusal) => "the model refused to summarise it",
            _ if self.refused => "the model refused to summarise it",
            Some(StopReason::ContentFilter) => "the model's server cut the summary off",
            _ if self.calls > 0 => "the model called a tool instead",
            Some(StopReason::Length) if self.text.trim().is_empty() => {
                "the model reached its output limit before it said anything"
            }
            _ if self.text.trim().is_empty() => "the model said nothing",
            _ => return Ok(self.text.trim().to_owned()),
        };
        Err(wrong.to_owned())
    }
}

async fn collect_answer(
    context: &CallContext<'_>,
    events: &dyn EventSink,
    request: &ModelRequest,
) -> Result<SummaryAnswer, AskError> {
    let (sender, mut received) = mpsc::channel(EVENTS_MAX);
    let asking = async move { recorded_call::ask(context, request, &sender).await };
    let collecting = async {
        let mut collected = SummaryAnswer::default();
        let mut shows_silence = false;
        while let Some(event) = received.recv().await {
            if let ModelEvent::Silent(lasted) = event {
                shows_silence = true;
                events.send(describe_silence(lasted)).await?;
                continue;
            }
            if std::mem::take(&mut shows_silence) {
                events.send(summarising()).await?;
            }
            match event {
                ModelEvent::Text(piece) => collected.text.push_str(&piece),
                ModelEvent::Refusal(_) => collected.refused = true,
                ModelEvent::CallStarted { .. } => collected.calls += 1,
                ModelEvent::Usage(usage) => collected.usage = usage,
                ModelEvent::Stopped(reason) => collected.stop = Some(reason),
                ModelEvent::Waiting(text) => {
                    events.send(AgentEvent::Notice { text }).await?;
                }
                // Thoughts, and what else is no summary.
                _ => {}
            }
        }
        Ok::<SummaryAnswer, TurnOver>(collected)
    };
    let (asked, collected) = tokio::join!(asking, collecting);
    asked.map_err(AskError::Provider)?;
    Ok(collected?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_summary_is_not_taken_for_one() {
        let said = |text: &str, stop: StopReason| SummaryAnswer {
            text: text.to_owned(),
            stop: Some(stop),
            ..SummaryAnswer::default()
        };
        let words = |collected: SummaryAnswer| collected.into_summary().unwrap_err();
        assert!(words(said(" \n", StopReason::End)).contains("said nothing"));
        assert!(words(said("No.", StopReason::Refusal)).contains("refused"));
        assert!(words(said("We", StopReason::ContentFilter)).contains("cut"));
        assert!(words(said("", StopReason::Length)).contains("output limit"));
        let called = SummaryAnswer { calls: 1, ..said("", StopReason::ToolCalls) };
        assert!(words(called).contains("called a tool"));
        let fine = said(" All of it. ", StopReason::End);
        assert_eq!(fine.into_summary().unwrap(), "All of it.");
    }
}
