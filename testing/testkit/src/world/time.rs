//! Virtual time: what comes due, and how long until nothing moves.

use agent_api::AgentEvent;
use kernel::bodies::{detach_from_event, fill_event};
use kernel::{Input, RunId};
use wire::Timestamp;

use super::{Due, World};
use crate::model::Played;

impl World {
    /// Everything that is due by now goes to the kernel or to a model.
    pub fn take_due(&mut self) -> bool {
        let mut any = false;
        while let Some(entry) = self.agenda.first_entry()
            && entry.key().0 <= self.now
        {
            any = true;
            match entry.remove() {
                Due::Timer(timer) => self.queue.push_back(Input::Woke(timer)),
                Due::Input(input) => self.queue.push_back(input),
                Due::ModelStep(run) => self.play_model_step(run),
            }
        }
        any
    }

    fn play_model_step(&mut self, run: RunId) {
        match self.models.play(run) {
            Played::Emits(mut event) => {
                let bodies = detach_from_event(&mut event, self.limits.inline_result_bytes);
                if !bodies.is_empty() {
                    let pointers = bodies.iter().map(|body| body.pointer.clone()).collect();
                    let stored = host::blobs::store_bodies(&self.blobs, bodies, self.now);
                    fill_event(&mut event, pointers, stored.map_err(|failed| failed.to_string()));
                }
                if let AgentEvent::Render { render, .. } = &event {
                    self.models.rendering.insert((run, *render), self.now);
                }
                self.queue.push_back(Input::Agent { run, event });
                self.at(self.now, Due::ModelStep(run));
            }
            Played::Executes(execution) => {
                self.log(|| format!("{execution:?}"));
                if let Some(chat) = self.models.chat_of(run).filter(|_| !self.models.is_halted(run))
                {
                    self.ledger.executes(chat);
                }
                self.at(self.now, Due::ModelStep(run));
            }
            Played::Waits(ms) => self.at(self.now.plus_ms(ms), Due::ModelStep(run)),
            Played::Silent => {}
        }
    }

    pub fn advance_ms(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.take_due();
    }

    /// When the next thing happens that is no timer of the kernel's.
    fn next_work(&self) -> Option<Timestamp> {
        let works = |due: &Due| !matches!(due, Due::Timer(_));
        self.agenda.iter().find(|(_, due)| works(due)).map(|((at, _), _)| *at)
    }

    /// Until nothing moves any more, waiting for reads, starts and models, but not for timers.
    pub fn settle(&mut self) {
        for _ in 0..1_000_000 {
            let mut moved = self.take_due();
            for peer in self.links.keys().copied().collect::<Vec<_>>() {
                while self.carry_to_host(peer) {
                    moved = true;
                }
            }
            while self.batch(self.batch_max) {
                moved = true;
            }
            for peer in self.links.keys().copied().collect::<Vec<_>>() {
                while self.carry_to_client(peer) {
                    moved = true;
                }
            }
            if moved {
                continue;
            }
            match self.next_work() {
                Some(at) => self.now = self.now.max(at),
                None => return,
            }
        }
        panic!("the world does not come to rest");
    }
}
