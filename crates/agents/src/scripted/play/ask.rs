//! The steps that wait for a user: a question, and a point where steering is taken.

use agent_api::{AgentEvent, AgentReply, InputRequest};
use serde_json::{Value, json};

use super::super::step::Ask;
use super::{ScenePlayer, SceneStop, insert_some, unexpected_reply};
use wire::Object;

impl ScenePlayer<'_> {
    pub(super) async fn ask_user(&mut self, ask: &Ask) -> Result<(), SceneStop> {
        let substituted = |text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| self.scope.substitute(text))
        };
        let request = InputRequest {
            message: substituted(&ask.message),
            url: substituted(&ask.url),
            questions: self.values(&ask.questions, "ask.questions")?,
        };
        let ask = self.part_number(0);
        match self.ask(AgentEvent::InputRequested { ask, request }).await? {
            AgentReply::Answered { response, answers, .. } => {
                let mut last = Object::new();
                insert_some(&mut last, "response", Some(json!(response)));
                let answers = (!answers.is_empty()).then_some(Value::Object(answers));
                insert_some(&mut last, "answers", answers);
                self.set_last(last);
                Ok(())
            }
            reply => Err(unexpected_reply(&reply)),
        }
    }

    /// Where nothing waits, `{{steering}}` stays what it was.
    pub(super) async fn take_steering(&mut self) -> Result<(), SceneStop> {
        let steer = self.part_number(0);
        match self.ask(AgentEvent::SteerPoint { steer }).await? {
            AgentReply::Steered { message, .. } => {
                if let Some(message) = message {
                    let text = message["text"].as_str().unwrap_or("");
                    self.scope.steering = text.to_owned();
                }
                Ok(())
            }
            reply => Err(unexpected_reply(&reply)),
        }
    }
}
