//! What clients do to a session's annotations: every action there is, some on threads that are not there.

use serde_json::{Value, json};

use crate::simulation::Simulation;

pub(crate) fn annotations_of(session: &str) -> String {
    format!("{session}/annotations")
}

impl Simulation {
    pub(crate) fn annotate(&mut self, client: usize, session: &str) {
        let (thread, on) = (format!("a{}", self.rng.below(3)), self.rng.percent(50));
        let entry =
            |number: u64| json!({"id": format!("e{number}"), "text": format!("says {number}")});
        let number = self.rng.below(3);
        let action = match self.rng.below(5) {
            0 => {
                let entries: Vec<Value> = (0..=number).map(entry).collect();
                let origin = json!({"session": session});
                let annotation = json!({"id": thread, "origin": origin, "resource": "file:///f", "resolved": on, "entries": entries});
                json!({"type": "annotations/set", "annotation": annotation})
            }
            1 => json!({"type": "annotations/updated", "annotationId": thread, "resolved": on}),
            2 => json!({"type": "annotations/removed", "annotationId": thread}),
            3 => {
                json!({"type": "annotations/entrySet", "annotationId": thread, "entry": entry(number)})
            }
            _ => {
                json!({"type": "annotations/entryRemoved", "annotationId": thread, "entryId": format!("e{number}")})
            }
        };
        self.dispatch(client, &annotations_of(session), action);
    }
}
