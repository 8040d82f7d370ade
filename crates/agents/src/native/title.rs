//! Titles of sessions: the first line of the first message, and a better one of a small model, if one is configured.
//!
//! Promises: a model is asked once a session, for little and for a short time, within the budget and on record; what fails is
//! logged once, without content.
//! Must not know: who shows a title.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_api::{
    CallKind, CallPermit, CallPurpose, CallUsage, HostServices, Section, SuggestedTitle,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::budget::estimate;
use super::model_list::ModelEntry;
use super::model_settings;
use super::recorded_call::{self, CallContext};
use super::usage::cost_of;
use crate::provider::{ModelEvent, ModelMessage, ModelRequest, Usage};

/// Longest title.
const TITLE_CHARS_MAX: usize = 60;

/// What the model reads of a message.
const TEXT_CHARS_MAX: usize = 2_000;

/// How long it may take: after that nobody waits for a title any more.
const TIME_MAX: Duration = Duration::from_secs(30);

/// What the answer may take; some models think before they say five words.
const OUTPUT_TOKENS: u64 = 500;

const EVENTS_MAX: usize = 16;

const SYSTEM: &str = "You give titles to conversations.";

const REQUEST: &str = "Give a conversation a title of three to six words, in its language, without quotes and without a \
     full stop. Answer with the title alone. The conversation begins so:";

/// The model that gives titles.
#[derive(Debug, Default)]
pub(super) struct TitleModel {
    pub id: Option<String>,
    /// Whether a failure was logged.
    has_failed: AtomicBool,
}

impl TitleModel {
    pub(super) fn new(id: Option<String>) -> Self {
        Self { id, ..Self::default() }
    }

    /// A title for a conversation that begins with this text.
    pub(super) async fn suggest(
        &self,
        model: &ModelEntry,
        text: &str,
        host: &dyn HostServices,
    ) -> Option<SuggestedTitle> {
        let replaces = make_title(text)?;
        let why = match timeout(TIME_MAX, ask(model, text, host)).await {
            Ok(Ok(said)) => match make_title(without_thoughts(&said)).map(|title| clean(&title)) {
                Some(title) if !title.is_empty() => {
                    return Some(SuggestedTitle { replaces, title });
                }
                Some(_) | None => "it said nothing".to_owned(),
            },
            // The user is asked by turns alone.
            Ok(Err(TitleFailure::LimitReached)) => return None,
            Ok(Err(TitleFailure::Failed(why))) => why,
            Err(_) => "it took too long".to_owned(),
        };
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                why,
                "the title model gave no title; sessions keep the first line of their first message"
            );
        }
        None
    }
}

/// Why a model gave no title.
enum TitleFailure {
    /// Nothing more may be spent.
    LimitReached,
    Failed(String),
}

async fn ask(
    model: &ModelEntry,
    text: &str,
    host: &dyn HostServices,
) -> Result<String, TitleFailure> {
    let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
    let request = ModelRequest {
        model: model.model.server_name().to_owned(),
        system: vec![Section::new("identity", SYSTEM)],
        messages: vec![ModelMessage::User(json!(format!("{REQUEST}\n\n{text}")))],
        max_output_tokens: Some(OUTPUT_TOKENS),
        settings: model_settings::least_thinking(&model.model),
        ..ModelRequest::default()
    };
    let permit = host.begin_call(estimate(&request, &model.model), CallKind::Usual);
    match permit.await {
        Ok(CallPermit::Granted { .. }) => {}
        Ok(CallPermit::Reached(_)) => return Err(TitleFailure::LimitReached),
        Err(error) => return Err(TitleFailure::Failed(error.to_string())),
    }
    let context = CallContext {
        purpose: CallPurpose::Title,
        round: 0,
        model: &model.model,
        endpoint: &model.endpoint,
        sections_before: &request.system,
        decisions: Vec::new(),
        host,
    };
    let (sender, mut received) = mpsc::channel(EVENTS_MAX);
    let asking = async {
        let sender = sender;
        recorded_call::ask(&context, &request, &sender).await
    };
    let collecting = async {
        let (mut said, mut usage) = (String::new(), Usage::default());
        while let Some(event) = received.recv().await {
            match event {
                ModelEvent::Text(piece) if said.len() < TEXT_CHARS_MAX => said.push_str(&piece),
                ModelEvent::Usage(used) => usage = used,
                _ => {} // no title is made of thoughts
            }
        }
        (said, usage)
    };
    let (asked, (said, usage)) = tokio::join!(asking, collecting);
    // Of a call that its server did not count, what was set aside stays spent.
    if usage != Usage::default() {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let used = CallUsage {
            tokens: count(usage.input_tokens).saturating_add(count(usage.output_tokens)),
            usd: cost_of(usage, &model.model),
        };
        host.settle_call(used).await;
    } else if asked.as_ref().is_err_and(|failed| !failed.is_billed) {
        host.release_call().await;
    }
    match asked {
        Ok(()) => Ok(said),
        Err(failed) => Err(TitleFailure::Failed(format!("{:?}", failed.error.kind))),
    }
}

/// The first line that says something, as far as a title goes.
pub(super) fn make_title(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE_CHARS_MAX).collect();
    if title.len() < line.len() {
        title = title.trim_end().to_owned();
        title.push('…');
    }
    Some(title)
}

/// What a small model says after it thought aloud; nothing if it never came to an end of that.
fn without_thoughts(said: &str) -> &str {
    let said = said.trim_start();
    match said.rsplit_once("</think>") {
        Some((_, title)) => title,
        None if said.starts_with("<think>") => "",
        None => said,
    }
}

/// Without what models put around a title, and without what is no text.
fn clean(title: &str) -> String {
    let around =
        |c: char| matches!(c, '"' | '\'' | '`' | '*' | '#' | '“' | '”' | '.') || c.is_whitespace();
    let title = title.strip_prefix("Title:").unwrap_or(title);
    title.trim_matches(around).chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_cut_to_size() {
        assert_eq!(make_title("\n  fix the tests \nplease"), Some("fix the tests".to_owned()));
        let long = make_title(&"word ".repeat(30)).unwrap();
        assert!(long.ends_with('…') && long.chars().count() <= TITLE_CHARS_MAX + 1, "{long}");
        assert_eq!(make_title(" \n"), None);
    }

    #[test]
    fn thoughts_are_no_title() {
        assert_eq!(without_thoughts("<think>\nHm.\n</think>\n\nFix it"), "\n\nFix it");
        assert_eq!(without_thoughts("Hm.</think>Fix it"), "Fix it");
        assert_eq!(without_thoughts(" <think>Hm."), "");
        assert_eq!(without_thoughts("Fix <think>"), "Fix <think>");
    }

    #[test]
    fn what_models_put_around_a_title_is_taken_off() {
        for said in [
            "\"Fix the tests.\"",
            "**Fix the tests**",
            "Title: Fix the tests",
            "# Fix the tests\u{7}",
        ] {
            assert_eq!(clean(said), "Fix the tests");
        }
    }
}
