//! The steps that wait for a user: a question, and a point where steering is taken.

use serde_json::Value;

use super::super::step::Ask;
use super::{Stage, Stop, out_of_place, put};
use crate::event::{AgentEvent, AgentReply};
use wire::Object;

impl Stage<'_> {
    pub(super) async fn question(&mut self, ask: &Ask) -> Result<(), Stop> {
        let said = |text: &Option<String>| {
            let text = text.as_ref().map(|text| self.scope.substitute(text));
            text.map(Value::String)
        };
        let mut request = Object::new();
        put(&mut request, "message", said(&ask.message));
        put(&mut request, "url", said(&ask.url));
        if !ask.questions.is_empty() {
            let questions = self.values(&ask.questions, "ask.questions")?;
            request.insert("questions".to_owned(), Value::Array(questions));
        }
        let ask = self.part(0);
        match self.ask(AgentEvent::Asked { ask, request }).await? {
            AgentReply::Answered {
                response, answers, ..
            } => {
                let mut last = Object::new();
                put(&mut last, "response", Some(Value::String(response)));
                let answers = (!answers.is_empty()).then_some(Value::Object(answers));
                put(&mut last, "answers", answers);
                self.answered(last);
                Ok(())
            }
            reply => Err(out_of_place(&reply)),
        }
    }

    /// Where nothing waits, `{{steering}}` stays what it was.
    pub(super) async fn steer(&mut self) -> Result<(), Stop> {
        let steer = self.part(0);
        match self.ask(AgentEvent::SteerPoint { steer }).await? {
            AgentReply::Steered { message, .. } => {
                if let Some(message) = message {
                    let text = message["text"].as_str().unwrap_or("");
                    self.scope.steering = text.to_owned();
                }
                Ok(())
            }
            reply => Err(out_of_place(&reply)),
        }
    }
}
