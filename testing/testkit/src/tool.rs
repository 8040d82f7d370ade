//! A tool call as a model makes it: announced, perhaps asked about, run, reported, perhaps reviewed.

use agent_api::{AgentEvent, ToolStart};
use serde_json::{Value, json};
use wire::published::state::ToolCallContributor;

use crate::script::{Question, Script, ScriptStep, ready_event};

/// A call to be made.
#[derive(Debug, Clone)]
pub struct Tool {
    name: String,
    input: String,
    asks: bool,
    /// More fields of `chat/toolCallReady`.
    fields: wire::Object,
    contributor: Option<ToolCallContributor>,
    chunks: Vec<String>,
    again: Option<String>,
    updates: Vec<Value>,
    result: Option<Value>,
    review: bool,
}

impl Tool {
    /// Runs without anybody being asked.
    pub fn running(name: &str, input: &str) -> Self {
        Self {
            name: name.to_owned(),
            input: input.to_owned(),
            asks: false,
            fields: wire::Object::new(),
            contributor: None,
            chunks: Vec::new(),
            again: None,
            updates: Vec::new(),
            result: None,
            review: false,
        }
    }

    /// Runs only if it is allowed.
    pub fn asking(name: &str, input: &str) -> Self {
        Self { asks: true, ..Self::running(name, input) }
    }

    /// Another field of its `chat/toolCallReady`.
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.to_owned(), value);
        self
    }

    pub fn editable(self) -> Self {
        self.with("editable", json!(true))
    }

    /// Offers these instead of yes and no: id and kind.
    pub fn offers(self, options: &[(&str, &str)]) -> Self {
        let option =
            |(id, kind): &(&str, &str)| json!({"id": id, "label": format!("{id}!"), "kind": kind});
        let options: Vec<Value> = options.iter().map(option).collect();
        self.with("options", json!(options))
    }

    pub fn contributed_by(mut self, contributor: Value) -> Self {
        let contributor = serde_json::from_value(contributor);
        self.contributor = Some(contributor.expect("a contributor"));
        self
    }

    /// Its input comes in pieces first.
    pub fn streamed(mut self, chunks: &[&str]) -> Self {
        self.chunks = chunks.iter().map(|chunk| (*chunk).to_owned()).collect();
        self
    }

    /// Asks again while it runs, with this message (H-192).
    pub fn asks_again(mut self, message: &str) -> Self {
        self.again = Some(message.to_owned());
        self
    }

    /// Shows this while it runs.
    pub fn shows(mut self, text: &str) -> Self {
        self.updates.push(json!([{"type": "text", "text": text}]));
        self
    }

    pub fn results_in(mut self, result: Value) -> Self {
        self.result = Some(result);
        self
    }

    /// Its result is not used before someone has allowed it (H-200).
    pub fn reviewed(mut self) -> Self {
        self.review = true;
        self
    }

    pub(crate) fn played_by(self, mut script: Script) -> Script {
        let call = script.number();
        let start = ToolStart {
            name: self.name.clone(),
            display_name: self.name.to_uppercase(),
            contributor: self.contributor.clone(),
            ..ToolStart::default()
        };
        script = script.emits(AgentEvent::ToolStarted { call, start: Box::new(start) });
        for text in &self.chunks {
            let text = text.clone();
            script = script.emits(AgentEvent::ToolInput { call, text });
        }
        let mut fields = self.fields.clone();
        fields.insert("invocationMessage".to_owned(), json!("runs"));
        fields.entry("toolInput").or_insert(json!(self.input));
        if !self.asks {
            fields.insert("confirmed".to_owned(), json!("not-needed"));
        }
        script = script.emits(ready_event(call, fields));
        if self.asks {
            script.branches(
                Question::Decision(call),
                |allowed| self.run(call, allowed),
                |denied| denied,
            )
        } else {
            self.run(call, script)
        }
    }

    fn run(&self, call: u64, mut script: Script) -> Script {
        let input = self.input.clone();
        if let Some(message) = &self.again {
            let mut fields = wire::Object::new();
            fields.insert("invocationMessage".to_owned(), json!(message));
            script = script.emits(ready_event(call, fields));
            let work = |script: Script| self.work(call, input, script);
            return script.branches(Question::Decision(call), work, |denied| denied);
        }
        self.work(call, input, script)
    }

    fn work(&self, call: u64, input: String, mut script: Script) -> Script {
        script = script.step(ScriptStep::Runs { call, input });
        for content in &self.updates {
            let content = content.as_array().cloned().unwrap_or_default();
            script = script.emits(AgentEvent::ToolContent { call, content });
        }
        script = script.step(ScriptStep::Reports {
            call,
            result: self.result.clone(),
            review: self.review,
        });
        if self.review { script.awaits(Question::Review(call)) } else { script }
    }
}
