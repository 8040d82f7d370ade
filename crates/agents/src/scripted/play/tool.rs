//! The steps that call a tool. A denied call is over: it is not completed, and the scene goes on.

use agent_api::{AgentEvent, AgentReply, ToolReady, ToolResult, ToolStart};
use serde_json::{Value, json};

use super::super::shape::ShapedValue;
use super::super::step::{ClientToolStep, Confirm, ConfirmationPrompt, ScriptedOutcome, ToolStep};
use super::{ScenePlayer, SceneStop, insert_some, unexpected_reply};
use wire::Object;
use wire::published::common::StringOrMarkdown;
use wire::published::state::{ToolCallConfirmationReason, ToolInput};

/// A call with everything in it substituted, before any event is sent: no call is left half played.
struct PlayedCall {
    number: u64,
    name: String,
    display: String,
    /// What it does and what it did, where the script does not say: a display name speaks for itself.
    intent: String,
    outcome: String,
    chunks: Vec<String>,
    /// What it runs with; a user may have edited it.
    input: String,
    /// What is shown when someone is asked.
    confirmation: ToolReady,
    reconfirm: Option<StringOrMarkdown>,
    updates: Vec<Vec<Value>>,
    result: Option<ToolResult>,
    /// The decision, for `{{last}}`.
    approved: bool,
    selected_option: Option<Value>,
    suggestion: Option<Value>,
}

impl ScenePlayer<'_> {
    pub(super) async fn call_tool(&mut self, tool: &ToolStep) -> Result<(), SceneStop> {
        let mut call = self.call(tool)?;
        let number = call.number;
        let start = ToolStart {
            name: call.name.clone(),
            display_name: call.display.clone(),
            ..ToolStart::default()
        };
        self.send(AgentEvent::ToolStarted { call: number, start: Box::new(start) }).await?;
        for (n, chunk) in std::mem::take(&mut call.chunks).into_iter().enumerate() {
            self.pause_before_chunk(n).await;
            self.send(AgentEvent::ToolInput { call: number, text: chunk }).await?;
        }
        let intent = StringOrMarkdown::from(call.intent.clone());
        match tool.confirm {
            Confirm::Auto => {
                let ready = Box::new(ToolReady {
                    confirmed: Some(ToolCallConfirmationReason::NotNeeded),
                    ..call.ready(intent)
                });
                let call = number;
                self.send(AgentEvent::ToolReady { call, ready }).await?;
            }
            Confirm::Ask => self.confirm(&mut call, intent).await?,
        }
        if call.approved {
            self.run(&mut call, tool.confirm_result).await?;
        }
        self.set_last(call.last());
        Ok(())
    }

    /// From the first output to the result. A call that is denied on the way ends there.
    async fn run(&self, call: &mut PlayedCall, review: bool) -> Result<(), SceneStop> {
        let number = call.number;
        for content in std::mem::take(&mut call.updates) {
            self.send(AgentEvent::ToolContent { call: number, content }).await?;
        }
        if let Some(message) = call.reconfirm.take() {
            self.confirm(call, message).await?;
            if !call.approved {
                return Ok(());
            }
        }
        let result = call.result.get_or_insert_with(|| {
            let text = json!({"type": "text", "text": call.input});
            ToolResult::new(true, call.outcome.clone()).with_content(vec![text])
        });
        let completed = AgentEvent::ToolCompleted { call: number, result: result.clone(), review };
        if !review {
            return self.send(completed).await;
        }
        match self.ask(completed).await? {
            AgentReply::ResultDecided { approved, .. } => {
                call.approved = approved;
                Ok(())
            }
            reply => Err(unexpected_reply(&reply)),
        }
    }

    /// Asks whether the call may run, or go on.
    async fn confirm(
        &self,
        call: &mut PlayedCall,
        message: StringOrMarkdown,
    ) -> Result<(), SceneStop> {
        let ready = ToolReady {
            invocation_message: message,
            tool_input: Some(ToolInput::Inline(call.input.clone())),
            ..call.confirmation.clone()
        };
        let asked = AgentEvent::ToolReady { call: call.number, ready: Box::new(ready) };
        match self.ask(asked).await? {
            AgentReply::ToolDecided { approved, input, selected_option, suggestion, .. } => {
                call.approved = approved;
                call.input = input.unwrap_or_else(|| std::mem::take(&mut call.input));
                call.selected_option = selected_option.or_else(|| call.selected_option.take());
                call.suggestion = suggestion;
                Ok(())
            }
            reply => Err(unexpected_reply(&reply)),
        }
    }

    fn call(&self, tool: &ToolStep) -> Result<PlayedCall, SceneStop> {
        let name = self.scope.substitute(&tool.name);
        let display = tool.display.as_ref().map(|text| self.scope.substitute(text));
        let (intent, outcome) = match &display {
            Some(display) => (display.clone(), self.words.done(display)),
            None => (self.words.run(&name), self.words.ran(&name)),
        };
        let display = display.unwrap_or_else(|| name.clone());
        let chunks: Vec<String> =
            tool.input_chunks.iter().map(|chunk| self.scope.substitute(chunk)).collect();
        let input = match &tool.input {
            None if !chunks.is_empty() => chunks.concat(),
            None => "{}".to_owned(),
            Some(input) => Value::Object(self.scope.substitute_fields(input)).to_string(),
        };
        let updates = tool.updates.iter().enumerate();
        let updates = updates.map(|(n, update)| self.values(update, &format!("tool.updates[{n}]")));
        let result = tool.result.as_ref();
        Ok(PlayedCall {
            number: self.part_number(0),
            confirmation: self.confirmation(&tool.confirmation)?,
            reconfirm: self.markdown(tool.reconfirm.as_ref(), "tool.reconfirm")?,
            updates: updates.collect::<Result<_, _>>()?,
            result: result.map(|result| self.result(result, &display, &outcome)).transpose()?,
            name,
            display,
            intent,
            outcome,
            chunks,
            input,
            approved: true,
            selected_option: None,
            suggestion: None,
        })
    }

    fn confirmation(&self, confirmation: &ConfirmationPrompt) -> Result<ToolReady, SceneStop> {
        let options = if confirmation.options.is_empty() {
            vec![
                json!({"id": "approve", "label": self.words.approve, "kind": "approve"}),
                json!({"id": "deny", "label": self.words.deny, "kind": "deny"}),
            ]
        } else {
            self.values(&confirmation.options, "tool.options")?
        };
        Ok(ToolReady {
            confirmation_title: self.markdown(confirmation.title.as_ref(), "tool.title")?,
            edits: self.values(&confirmation.edits, "tool.edits")?,
            editable: confirmation.editable,
            options,
            ..ToolReady::default()
        })
    }

    /// A `ToolCallResult` (H-208).
    fn result(
        &self,
        outcome: &ScriptedOutcome,
        display: &str,
        done: &str,
    ) -> Result<ToolResult, SceneStop> {
        let message =
            self.markdown(outcome.message.as_ref(), "tool.result.message")?.unwrap_or_else(|| {
                if outcome.success { done.into() } else { self.words.failed(display).into() }
            });
        let mut result = ToolResult::new(outcome.success, message);
        if let Some(content) = &outcome.content {
            result = result.with_content(self.values(content, "tool.result.content")?);
        }
        if let Some(structured) = &outcome.structured {
            let structured = self.scope.substitute_fields(structured);
            result = result.with_structured_content(structured);
        }
        if let Some(error) = &outcome.error {
            result = result.with_error(self.scope.substitute_in(error));
        }
        Ok(result)
    }

    pub(super) async fn call_client_tool(
        &mut self,
        tool: &ClientToolStep,
    ) -> Result<(), SceneStop> {
        let input = self.scope.substitute_fields(&tool.input);
        let text = Value::Object(input.clone()).to_string();
        let asked = AgentEvent::ClientTool {
            call: self.part_number(0),
            name: self.scope.substitute(&tool.name),
            input: Value::Object(input),
            timeout_ms: self.number(&tool.timeout_ms, "client_tool.timeout_ms")?,
        };
        let mut last = Object::new();
        match self.ask(asked).await? {
            AgentReply::ToolEnded { result, .. } => {
                last.insert("approved".to_owned(), json!(true));
                last.insert("input".to_owned(), json!(text));
                insert_some(&mut last, "success", result.get("success").cloned());
                insert_some(&mut last, "content", result.get("content").cloned());
            }
            // A client may deny what it was to run itself (H-199).
            AgentReply::ToolDecided { approved: false, suggestion, .. } => {
                last.insert("approved".to_owned(), json!(false));
                last.insert("input".to_owned(), json!(text));
                insert_some(&mut last, "suggestion", suggestion);
            }
            reply => return Err(unexpected_reply(&reply)),
        }
        self.set_last(last);
        Ok(())
    }

    fn markdown(
        &self,
        shaped: Option<&ShapedValue>,
        field: &str,
    ) -> Result<Option<StringOrMarkdown>, SceneStop> {
        let markdown = shaped.map(|shaped| shaped.markdown(&self.scope));
        markdown.transpose().map_err(|what| self.play_error(field, &what))
    }

    pub(super) fn values(
        &self,
        shaped: &[ShapedValue],
        field: &str,
    ) -> Result<Vec<Value>, SceneStop> {
        let values = shaped.iter().enumerate().map(|(n, shaped)| {
            let location = format!("{field}[{n}]");
            shaped.value(&self.scope).map_err(|what| self.play_error(&location, &what))
        });
        values.collect()
    }
}

impl PlayedCall {
    /// The fields of `chat/toolCallReady` that every call has.
    fn ready(&self, message: StringOrMarkdown) -> ToolReady {
        ToolReady::unconfirmed(message, self.input.clone())
    }

    /// The value of `{{last}}` (G-03). It has nothing of a denied result (H-200).
    fn last(self) -> Object {
        let result = self.result.filter(|_| self.approved);
        let field = |key: &str| result.as_ref().and_then(|result| result.get(key)).cloned();
        let mut last = Object::new();
        last.insert("approved".to_owned(), json!(self.approved));
        last.insert("input".to_owned(), json!(self.input));
        insert_some(&mut last, "selectedOption", self.selected_option);
        insert_some(&mut last, "suggestion", self.suggestion);
        insert_some(&mut last, "success", field("success"));
        insert_some(&mut last, "content", field("content"));
        last
    }
}
