//! A conversation that comes near the model's context window is summarised by itself: between turns, and between the rounds
//! of one.
//!
//! Promises: the message that is answered stays as it is, and so does the newest part, as far as it is small; what is kept
//! is said, and is on the disk before the conversation goes on; a summary tells nothing of what is kept; one that fails ends
//! the turn and loses nothing; there is an end to summaries in one turn.
//! Must not know: how a summary is made.

use std::sync::Arc;

use agent_api::{AgentError, AgentEvent};

use super::budget::Admitted;
use super::compact::{RequestHead, Summariser, Summary};
use super::context::{estimate_tokens, show_tokens};
use super::conversation::Conversation;
use super::memory::ChatMemory;
use super::model_view::HistoryEntry;
use super::notices::with_notices;
use super::stop::TurnStop;
use crate::provider::ModelMessage;

/// The part of the window that is kept whole.
const KEPT_PART: u64 = 4;

/// Turns before this one that are kept whole.
const KEPT_TURNS_MAX: usize = 2;

/// Summaries in one turn.
const SUMMARIES_MAX: usize = 10;

/// Whether a conversation had to be summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compaction {
    NotNeeded,
    Done,
    /// A limit is reached, and the user wants one last answer: that call is permitted, and none for a summary.
    Finish,
}

/// Why a conversation is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompactionReason {
    /// It takes so many tokens.
    NearWindow(u64),
    /// The model's server says that it is too long.
    Refused,
}

/// What of a conversation stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RetainedHistory {
    /// The last turns before this one; none if rounds of this one are summarised.
    turns: usize,
    /// The rounds of this turn that the summary covers.
    summarised_rounds: usize,
    /// Where the rest of this turn's response begins.
    from: usize,
}

impl Conversation<'_> {
    /// Summarises what was before, if the next request comes near the window.
    pub(super) async fn compact_near_window(&mut self) -> Result<Compaction, TurnStop> {
        if !self.compaction.auto {
            return Ok(Compaction::NotNeeded); // the user does it by `/compact`
        }
        let (system, tools) = (&self.request.system, &self.request.tools);
        let tokens = self.meter.tokens(&self.entries, system, tools);
        if tokens <= self.window.comfortable {
            return Ok(Compaction::NotNeeded);
        }
        let reason = CompactionReason::NearWindow(tokens);
        let kept = self.choose_kept(self.window.input / KEPT_PART);
        // What seems to fit may count for more than it is estimated to.
        match kept.or_else(|| self.choose_kept(0)) {
            Some(kept) => self.compact(kept, reason).await,
            // There is only the message itself: whether it fits, the server says.
            None => Ok(Compaction::NotNeeded),
        }
    }

    /// Summarises what was before, because the server does not take it; how the model may be asked then. None if there was
    /// nothing to summarise.
    pub(super) async fn compact_refused(&mut self) -> Result<Option<Admitted>, TurnStop> {
        if !self.compaction.auto {
            return Ok(None);
        }
        let Some(kept) = self.choose_kept(0) else { return Ok(None) };
        let events = self.tool_context.events;
        // The call that was refused used nothing; the one after the summary is another one.
        events.release_call().await;
        if self.compact(kept, CompactionReason::Refused).await? == Compaction::Finish {
            events.release_call().await;
            let text = "Stopped at a limit: the conversation is too long for a last answer without a summary of it.".to_owned();
            events.send(AgentEvent::Notice { text }).await?;
            return Err(TurnStop::Ended);
        }
        let admitted = self.budget.admit(&self.request, self.model, events).await?;
        Ok(Some(admitted))
    }

    /// What stays as it is, if that takes at most so many tokens; none if there is nothing else.
    fn choose_kept(&self, tokens_max: u64) -> Option<RetainedHistory> {
        let response = self.newest + 1;
        let rounds = self.rounds_in_response();
        // From the newest round backwards.
        let mut kept_rounds = 0;
        for (index, start) in rounds.iter().enumerate().rev() {
            let part = self.entries.get(*start..).unwrap_or_default();
            if estimate_tokens(part) > tokens_max {
                break;
            }
            kept_rounds = rounds.len() - index;
        }
        if kept_rounds < rounds.len() {
            let summarised = rounds.len() - kept_rounds;
            return Some(RetainedHistory {
                turns: 0,
                summarised_rounds: summarised,
                from: self.end_of_round(&rounds, summarised),
            });
        }
        let turns = self.count_kept_turns(tokens_max, response);
        let tells = turns < self.memory.turns.len();
        tells.then_some(RetainedHistory { turns, summarised_rounds: 0, from: response })
    }

    /// How many turns before this one stay as they are: not all, and not one that is summarised in part.
    fn count_kept_turns(&self, tokens_max: u64, response: usize) -> usize {
        let turns = self.memory.turns;
        let source = self.view.source();
        let mut left = self.entries.get(response..).map_or(0, estimate_tokens);
        let mut kept = 0;
        for turn in turns.iter().rev().take(KEPT_TURNS_MAX) {
            let alone = ChatMemory {
                summary: None,
                summarised_rounds: 0,
                turns: std::slice::from_ref(turn),
            };
            left += estimate_tokens(&alone.recall(u64::MAX, &source).entries);
            if left > tokens_max || kept + 1 >= turns.len() {
                break;
            }
            kept += 1;
        }
        kept
    }

    /// Where the rounds of this turn begin that are in the conversation.
    fn rounds_in_response(&self) -> Vec<usize> {
        let is_round = |entry: &HistoryEntry| matches!(entry, HistoryEntry::Model(ModelMessage::Assistant { calls, .. }) if !calls.is_empty());
        let entries = self.entries.iter().enumerate().skip(self.newest + 1);
        let rounds = entries.filter(|(_, entry)| is_round(entry));
        rounds.map(|(index, _)| index).collect()
    }

    /// Where the results of the last of so many rounds end: what the user added after them stays.
    fn end_of_round(&self, rounds: &[usize], count: usize) -> usize {
        let last = count.checked_sub(1).and_then(|last| rounds.get(last));
        let start = last.map_or(self.newest, |start| *start) + 1;
        let is_result = |entry: &&HistoryEntry| {
            matches!(
                entry,
                HistoryEntry::Result { .. } | HistoryEntry::Model(ModelMessage::ToolResult { .. })
            )
        };
        let results = self.entries.iter().skip(start).take_while(is_result);
        start + results.count()
    }

    async fn compact(
        &mut self,
        kept: RetainedHistory,
        reason: CompactionReason,
    ) -> Result<Compaction, TurnStop> {
        self.summaries += 1;
        if self.summaries > SUMMARIES_MAX {
            return Err(TurnStop::Failed(AgentError {
                error_type: "contextFull".to_owned(),
                message: format!(
                    "this turn was summarised {SUMMARIES_MAX} times and still does not fit into the model's context window; \
                     ask for less at once, or take a model with a larger one"
                ),
                resumable: true,
            }));
        }
        let before = self.memory.turns.len();
        // No more than is summarised: the user may take the rest back, and then nothing of it may be left.
        let summarised_until = match kept.summarised_rounds {
            0 => {
                let source = self.view.source();
                self.memory.count_entries(before - kept.turns, &source)
            }
            _ => kept.from,
        };
        let head = RequestHead {
            sections: self.sections.clone(),
            system: self.request.system.clone(),
            tools: self.request.tools.clone(),
        };
        let mut summariser = Summariser {
            model: self.model,
            endpoint: self.endpoint,
            window: self.window,
            view: &mut self.view,
            input: self.input,
            usage: &mut self.usage,
            budget: &mut self.budget,
            may_be_last: false,
        };
        let forced = reason == CompactionReason::Refused;
        let summarised = self.entries.get(..summarised_until).unwrap_or_default();
        let made = summariser.summarise(summarised, head, "", forced);
        let Some(summary) = made.await.map_err(|stop| explain(stop, reason))? else {
            return Ok(Compaction::Finish);
        };
        let summarised_before = usize::try_from(self.memory.summarised_rounds_of_active());
        let summarised_rounds = kept.summarised_rounds + summarised_before.unwrap_or(usize::MAX);
        let summarised_rounds = match kept.turns {
            0 => u64::try_from(summarised_rounds).unwrap_or(u64::MAX),
            _ => 0,
        };
        let events = self.tool_context.events;
        let compacted = AgentEvent::Compacted {
            keep_turns: kept.turns,
            rounds: summarised_rounds,
            summary: Some(summary.text.clone()),
        };
        events.send(compacted).await?;
        let text = self.describe(kept, reason, &summary, before - kept.turns);
        events.send(AgentEvent::Notice { text }).await?;
        let turns = self.memory.turns;
        self.memory = ChatMemory {
            summary: Some(summary.text),
            summarised_rounds,
            turns: turns.get(before - kept.turns..).unwrap_or_default(),
        };
        self.rebuild(kept).await;
        Ok(Compaction::Done)
    }

    /// The conversation as later turns will send it.
    async fn rebuild(&mut self, kept: RetainedHistory) {
        let recalled = self.memory.recall(u64::MAX, &self.view.source());
        let rest = self.entries.split_off(kept.from.min(self.entries.len()));
        let user = with_notices(Arc::clone(&self.input.user), &recalled.notices);
        let answered = self.answered.saturating_sub(kept.from);
        self.entries = recalled.entries;
        self.newest = self.entries.len();
        self.entries.push(HistoryEntry::User(user));
        // What was answered before is so still, further to the front.
        self.answered = match kept.summarised_rounds {
            _ if answered > 0 => self.entries.len() + answered,
            0 => self.newest,
            _ => self.entries.len(),
        };
        self.entries.extend(rest);
        self.meter.reset();
        let newest = self.newest;
        self.request.messages = self.view.lower_again(&self.entries, newest).await;
    }

    /// What people read of it.
    fn describe(
        &self,
        kept: RetainedHistory,
        reason: CompactionReason,
        summary: &Summary,
        summarised_turns: usize,
    ) -> String {
        let why = match reason {
            CompactionReason::NearWindow(tokens) => format!(
                "The conversation takes about {} of the {} tokens that the model can keep in mind",
                show_tokens(tokens),
                show_tokens(self.window.size)
            ),
            CompactionReason::Refused => {
                "The conversation is longer than what the model can keep in mind".to_owned()
            }
        };
        let turns = match summarised_turns {
            0 => None,
            1 => Some("the turn before".to_owned()),
            turns => Some(format!("{turns} turns before")),
        };
        let steps = match kept.summarised_rounds {
            0 => None,
            1 => Some("the first step of this turn".to_owned()),
            steps => Some(format!("the first {steps} steps of this turn")),
        };
        let summarised: Vec<String> = turns.into_iter().chain(steps).collect();
        let summarised = if summarised.is_empty() {
            "what was before".to_owned()
        } else {
            summarised.join(" and ")
        };
        let whole = match kept.turns {
            0 => "your message and what came last".to_owned(),
            1 => "the turn before this one, your message and what came since".to_owned(),
            turns => {
                format!("the {turns} turns before this one, your message and what came since")
            }
        };
        let text = format!(
            "{why}, so the model has summarised {summarised}. Kept word for word: {whole}."
        );
        summary.describe(&text)
    }
}

/// Why a turn ends that could not be summarised.
fn explain(stop: TurnStop, reason: CompactionReason) -> TurnStop {
    let TurnStop::Failed(error) = stop else { return stop };
    let why = match reason {
        CompactionReason::NearWindow(_) => "the conversation comes near the model's context window",
        CompactionReason::Refused => "the conversation is longer than the model's context window",
    };
    TurnStop::Failed(AgentError {
        message: format!(
            "{why}, and summarising it failed: {}. Nothing is lost: resume this turn to try again, or try `/compact`",
            error.message
        ),
        // The conversation is as it was.
        resumable: true,
        ..error
    })
}
