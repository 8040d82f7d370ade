//! What agents say between turns: models that come and go, settings that are and are not there, titles.

#![allow(clippy::expect_used, reason = "a simulation that cannot go on ends")]

use kernel::{Input, SessionChange, SessionNews};
use serde_json::{Value, json};
use wire::ChannelUri;

use crate::simulation::Simulation;

/// A model that the agent has now and then.
const MODEL: &str = "now and then";

impl Simulation {
    pub(crate) fn act_as_agent(&mut self) {
        if !self.world.is_up() {
            return; // there is nobody to say it, and nobody to hear it
        }
        if self.rng.percent(30) {
            return self.change_models();
        }
        let Some(session) = self.rng.pick(&self.sessions).cloned() else {
            return; // there is always one
        };
        let change = match self.rng.below(3) {
            0 => SessionChange::Title(format!("by the agent {}", self.rng.below(3))),
            1 => SessionChange::Setting { name: "none".to_owned(), value: Value::Null },
            _ => {
                let values = [json!("instant"), json!("typing"), json!("never"), json!(7)];
                SessionChange::Setting {
                    name: "pace".to_owned(),
                    value: self.rng.pick(&values).cloned().unwrap_or_default(),
                }
            }
        };
        let provider = if self.rng.percent(90) { "scripted" } else { "single" };
        let session = ChannelUri::parse(&session).expect("a session has a URI");
        self.world.input(Input::News(SessionNews {
            provider: provider.to_owned(),
            session,
            change,
        }));
    }

    fn change_models(&mut self) {
        let agent = &mut self.world.facts.agents[0];
        let models = agent.info["models"].as_array_mut();
        let models = models.expect("an agent has models");
        match models.iter().position(|model| model["id"] == MODEL) {
            Some(index) => drop(models.remove(index)),
            None => models.push(json!({"id": MODEL, "name": MODEL, "provider": "scripted"})),
        }
        let changed = Box::new(agent.clone());
        self.world.input(Input::AgentChanged(changed));
    }
}
