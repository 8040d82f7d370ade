//! What an agent means to do, as a list with boxes: what is done, what it works on, what is left.
//!
//! Promises: nothing in a list controls the terminal or passes for another entry. Long lists are folded around what is worked on.
//! Must not know: terminals, which list is the newest.

use serde_json::Value;
use wire::Object;

use super::{INDENT, hanging, title};
use crate::chat::line::{Line, Style};
use crate::terminal::escape_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepStatus {
    Done,
    /// It is being worked on.
    Current,
    Open,
}

struct PlanStep<'a> {
    text: &'a str,
    status: StepStatus,
}

/// Whether a call writes down a plan.
pub(crate) fn is_plan(call: &Object) -> bool {
    let meta = call.get("_meta");
    let is_kind = meta.is_some_and(|meta| meta[wire::meta::TOOL_KIND] == "plan");
    is_kind || call.get("toolName").is_some_and(|name| name == "todo")
}

/// Whether a call has written down a plan that can be shown as one.
pub(crate) fn is_written_plan(call: &Object) -> bool {
    let has_succeeded = call.get("success") == Some(&Value::Bool(true));
    is_plan(call) && has_succeeded && steps_of(call).next().is_some()
}

/// Whether something of it is left to do.
pub(crate) fn is_open_plan(call: &Object) -> bool {
    steps_of(call).any(|step| step.status != StepStatus::Done)
}

fn steps_of(call: &Object) -> impl Iterator<Item = PlanStep<'_>> {
    let items = call
        .get("structuredContent")
        .map(|content| &content["items"])
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    items.filter_map(|item| {
        let status = match item["status"].as_str()? {
            "completed" => StepStatus::Done,
            "in_progress" => StepStatus::Current,
            _ => StepStatus::Open,
        };
        let text = item["text"].as_str()?;
        Some(PlanStep { text, status })
    })
}

/// The plan in one line: how far it is, and what is worked on.
pub(crate) fn plan_summary(call: &Object, width: usize) -> Line {
    let line = Line::new(Style::Good, "✓ ").then(Style::Plain, title(call, "completed"));
    let current = steps_of(call).find(|step| step.status == StepStatus::Current);
    let line = match current {
        Some(step) => line.then(Style::Dim, format!(" · {}", escape_line(step.text.trim()))),
        None => line,
    };
    line.clip(width)
}

/// The steps with their boxes, no more than `steps_max` of them: those around the one that is worked on.
pub(crate) fn plan_lines(call: &Object, width: usize, steps_max: usize) -> Vec<Line> {
    let steps: Vec<PlanStep<'_>> = steps_of(call).collect();
    let first_open = steps.iter().position(|step| step.status != StepStatus::Done);
    let current = steps.iter().position(|step| step.status == StepStatus::Current);
    let middle = current.or(first_open).unwrap_or(0);
    // One that is done above it says where one is.
    let last_first = steps.len().saturating_sub(steps_max);
    let first = middle.saturating_sub(1).min(last_first);
    let end = first.saturating_add(steps_max).min(steps.len());
    let mut lines = Vec::new();
    if first > 0 {
        lines.push(fold(&format!("{first} above")));
    }
    for step in steps.iter().take(end).skip(first) {
        let (sign, style) = match step.status {
            StepStatus::Done => ("[x]", Style::Dim),
            StepStatus::Current => ("[>]", Style::Bold),
            StepStatus::Open => ("[ ]", Style::Plain),
        };
        let text = format!("{sign} {}", escape_line(step.text.trim()));
        lines.extend(hanging(&text, style, width));
    }
    if end < steps.len() {
        lines.push(fold(&format!("{} more", steps.len() - end)));
    }
    lines
}

fn fold(what: &str) -> Line {
    Line::new(Style::Dim, format!("{}… {what}", " ".repeat(INDENT)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(statuses: &[&str]) -> Object {
        let items: Vec<Value> = statuses
            .iter()
            .enumerate()
            .map(|(n, status)| json!({"text": format!("step {n}\u{1b}\nx"), "status": status}))
            .collect();
        let call = json!({"status": "completed", "success": true, "_meta": {"toolKind": "plan"},
            "pastTenseMessage": "Plan: 1 of 3 done", "structuredContent": {"items": items}});
        call.as_object().unwrap().clone()
    }

    fn texts(call: &Object, steps_max: usize) -> Vec<String> {
        plan_lines(call, 40, steps_max).iter().map(Line::text).collect()
    }

    #[test]
    fn steps_have_boxes_and_what_is_worked_on_is_marked() {
        let call = plan(&["completed", "in_progress", "pending"]);
        assert!(is_written_plan(&call) && is_open_plan(&call));
        assert_eq!(
            texts(&call, 50),
            ["  [x] step 0\\x1b\\nx", "  [>] step 1\\x1b\\nx", "  [ ] step 2\\x1b\\nx"]
        );
        assert_eq!(plan_summary(&call, 60).text(), "✓ Plan: 1 of 3 done · step 1\\x1b\\nx");
        assert!(!is_open_plan(&plan(&["completed"])));
        assert!(!is_written_plan(&plan(&[])));
        assert!(!is_written_plan(
            json!({"structuredContent": {"items": [{"text": "a", "status": "b"}]}})
                .as_object()
                .unwrap()
        ));
    }

    #[test]
    fn a_long_list_is_folded_around_what_is_worked_on() {
        let mut statuses = ["completed"; 10].to_vec();
        statuses.push("in_progress");
        statuses.extend(["pending"; 10]);
        let shown = texts(&plan(&statuses), 4);
        assert_eq!(shown[0], "  … 9 above");
        assert!(shown[1].starts_with("  [x] step 9") && shown[2].starts_with("  [>] step 10"));
        assert_eq!(shown.last().unwrap(), "  … 8 more");
        assert_eq!(shown.len(), 6);
    }
}
