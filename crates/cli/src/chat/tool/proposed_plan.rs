//! A plan that the model proposes by `exit_plan`, as the Markdown that it is.
//!
//! Promises: a plan is shown instead of the input that holds it only if that holds nothing else.
//! Must not know: terminals, what carrying it out means.

use serde_json::Value;
use wire::Object;

use super::input_json::parse_fields;
use super::{hanging, indent_lines, text_width};
use crate::chat::line::{Line, Style};
use crate::chat::render::{LinkStyle, Page, ProseStyle, markdown_lines};
use crate::terminal::escape;

/// The tool that proposes a plan.
const TOOL: &str = "exit_plan";

/// The plan that a call asks about, if that is what its message and its input are.
pub(super) fn proposed_plan(call: &Object, input: &str) -> Option<String> {
    let message = call.get("invocationMessage")?["markdown"].as_str()?;
    let plan = only_plan(call, input)?;
    (plan == message && call.contains_key("confirmationTitle")).then_some(plan)
}

/// The plan that somebody approved, with what they changed in it.
pub(super) fn approved_plan(call: &Object) -> Option<String> {
    let has_succeeded = call.get("success") == Some(&Value::Bool(true));
    let input = call.get("toolInput")?.as_str()?;
    only_plan(call, input).filter(|_| has_succeeded)
}

/// The plan of an input that has nothing else.
fn only_plan(call: &Object, input: &str) -> Option<String> {
    if call.get("toolName").and_then(Value::as_str) != Some(TOOL) {
        return None;
    }
    let fields = parse_fields(input).filter(|fields| fields.len() == 1)?;
    Some(fields.get("plan")?.as_str()?.to_owned())
}

pub(super) fn lines(plan: &str, page: Page) -> Vec<Line> {
    match page.prose {
        ProseStyle::Written => hanging(&escape(plan), Style::Plain, page.width),
        ProseStyle::Rendered => {
            let room = Page {
                width: text_width(page.width),
                // It is decided on: no link is hidden behind its words.
                links: LinkStyle::WrittenOut,
                ..page
            };
            indent_lines(markdown_lines(plan, room))
        }
    }
}
