//! An agent's plan: AHP has none, so it is shown as one call that runs as long as the turn.

use agent_api::{AgentEvent, ToolReady, ToolResult, ToolStart};
use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};
use wire::meta;

use super::MapperStep;
use super::content::text_block;
use crate::acp::label::label;

const ENTRIES_MAX: usize = 200;

const NAME: &str = "plan";

pub(super) struct PlanCall {
    pub(super) number: u64,
    pub(super) text: String,
}

pub(super) fn start(call: u64, steps: &mut Vec<MapperStep>) {
    let mut fields = wire::Object::new();
    fields.insert(meta::TOOL_KIND.to_owned(), json!("plan"));
    let start = Box::new(ToolStart {
        name: NAME.to_owned(),
        display_name: "Plan".to_owned(),
        meta: Some(fields.clone()),
        ..ToolStart::default()
    });
    let mut ready = ToolReady::confirmed("Plan", String::new());
    ready.tool_input = None;
    ready.extra.insert("_meta".to_owned(), Value::Object(fields));
    let ready = Box::new(ready);
    steps.push(MapperStep::Send(AgentEvent::ToolStarted { call, start }));
    steps.push(MapperStep::Send(AgentEvent::ToolReady { call, ready }));
}

impl PlanCall {
    pub(super) fn complete(self) -> MapperStep {
        let result = ToolResult::new(true, "Planned").with_content(vec![text_block(&self.text)]);
        MapperStep::Send(AgentEvent::ToolCompleted { call: self.number, result, review: false })
    }
}

/// A task list.
pub(super) fn to_markdown(plan: &acp::Plan) -> String {
    let mut lines: Vec<String> = plan.entries.iter().take(ENTRIES_MAX).map(to_line).collect();
    let more = plan.entries.len().saturating_sub(ENTRIES_MAX);
    if more > 0 {
        lines.push(format!("- and {more} more"));
    }
    lines.join("\n")
}

fn to_line(entry: &acp::PlanEntry) -> String {
    let text = label(&entry.content, 500);
    match entry.status {
        acp::PlanEntryStatus::Completed => format!("- [x] {text}"),
        acp::PlanEntryStatus::InProgress => format!("- [ ] {text} (in progress)"),
        _ => format!("- [ ] {text}"),
    }
}
