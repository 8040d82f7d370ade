//! The model: plays one script per turn. Scripts are queued; a turn without one gets a short answer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agent_api::{AgentEvent, AgentReply, Section};
use bytes::Bytes;
use kernel::{Rendered, RunId, TurnRun};
use serde_json::{Value, json};
use wire::Timestamp;

use crate::script::{Question, Script, ScriptStep, completed_event, is_yes};

/// A script that is being played.
#[derive(Debug)]
struct Playing {
    script: Script,
    /// Replies it has not listened to yet.
    inbox: VecDeque<AgentReply>,
    awaits_reply: bool,
    /// Inputs as they were allowed.
    inputs: BTreeMap<u64, String>,
    /// The last reply it got.
    last_reply: Option<AgentReply>,
    /// The steering message that it was last told of.
    told_steering: Option<String>,
}

/// A tool that did its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub run: RunId,
    pub call: u64,
    pub input: String,
}

/// What becomes of a beat.
#[derive(Debug)]
pub enum Played {
    Emits(AgentEvent),
    Waits(u64),
    Executes(Execution),
    /// Silent until it gets a reply, or for good.
    Silent,
}

/// All scripts, waiting and playing.
#[derive(Debug, Default)]
pub struct Models {
    pub next: VecDeque<Script>,
    playing: BTreeMap<RunId, Playing>,
    /// Scripts of workers to come, by their brief.
    workers: BTreeMap<Bytes, Script>,
    /// Every turn the host ever asked for, in order.
    pub asked: Vec<TurnRun>,
    pub stopped: Vec<RunId>,
    /// Replies that waiting runs got.
    pub replies: Vec<(RunId, AgentReply)>,
    /// Every tool that ran, in order.
    pub executed: Vec<Execution>,
    /// Questions that are out, and runs that were stopped, in the life of the present process.
    open: BTreeSet<(RunId, Question)>,
    halted: BTreeSet<RunId>,
    /// Questions that were taken back.
    withdrawn: BTreeSet<(RunId, Question)>,
    spawned: u64,
    /// The last render that was recorded, until its run is answered; and the last one of each run.
    pub recorded_render: Option<Rendered>,
    pub renders: BTreeMap<RunId, Rendered>,
    /// All renders that runs were answered with, in order.
    pub rendered: Vec<Rendered>,
    /// When renders were begun that run in the present process.
    pub rendering: BTreeMap<(RunId, u64), Timestamp>,
    pub violations: Vec<String>,
}

impl Models {
    pub fn begin(&mut self, run: TurnRun) {
        let worker = run.brief.as_ref().and_then(|brief| self.workers.remove(brief));
        let mut script = worker
            .or_else(|| self.next.pop_front())
            .unwrap_or_else(|| Script::new().streams(["ok"]));
        if !script.ends() {
            script = script.completes();
        }
        let playing = Playing {
            script,
            inbox: VecDeque::new(),
            awaits_reply: false,
            inputs: BTreeMap::new(),
            last_reply: None,
            told_steering: None,
        };
        self.playing.insert(run.run, playing);
        self.asked.push(run);
    }

    /// The process that played them is gone.
    pub fn die(&mut self) {
        self.playing.clear();
        self.open.clear();
        self.halted.clear();
        self.withdrawn.clear();
        self.rendering.clear();
    }

    pub fn stop(&mut self, run: RunId) {
        self.stopped.push(run);
        self.halted.insert(run);
        self.open.retain(|(asked, _)| *asked != run);
        if self.playing.get(&run).is_some_and(|playing| !playing.script.ignores_stop) {
            self.playing.remove(&run);
        }
    }

    /// A reply for a run. Whether it goes on now.
    pub fn deliver_reply(&mut self, run: RunId, reply: AgentReply) -> bool {
        let question = Question::answered_by(&reply);
        // "Nothing to steer by" has no record, so a batch that fails beside it does not take it back.
        let empty = matches!(
            reply,
            AgentReply::Steered { message: None, .. }
                | AgentReply::Settings { .. }
                | AgentReply::ClientTools { .. }
                | AgentReply::Rendered { .. }
        );
        if self.halted.contains(&run) && !empty {
            self.violations.push(format!("{run:?} was stopped and gets {reply:?}"));
        } else if !self.open.remove(&(run, question))
            && !self.withdrawn.remove(&(run, question))
            && !self.halted.contains(&run)
        {
            self.violations.push(format!("{run:?} gets a reply it did not ask for: {reply:?}"));
        }
        if let AgentReply::Rendered { sections, .. } = &reply {
            self.record_render(run, sections);
        }
        self.replies.push((run, reply.clone()));
        let Some(playing) = self.playing.get_mut(&run) else { return false };
        playing.inbox.push_back(reply);
        std::mem::take(&mut playing.awaits_reply)
    }

    /// A render is recorded right before its run is answered, and says the same.
    fn record_render(&mut self, run: RunId, sections: &[Section]) {
        let recorded = self.recorded_render.take();
        // Its run is told besides which of them are restricted.
        let words = |sections: &[Section]| -> Vec<_> {
            let words = sections.iter();
            words.map(|section| (section.id.clone(), section.content.clone())).collect()
        };
        match recorded.filter(|rendered| words(&rendered.after()) == words(sections)) {
            Some(rendered) => {
                self.rendered.push(rendered.clone());
                self.renders.insert(run, rendered);
            }
            None => self.violations.push(format!("{run:?}: a render was not recorded")),
        }
    }

    /// The chat a run of the present process works in.
    pub fn chat_of(&self, run: RunId) -> Option<&str> {
        let asked = self.asked.iter().rev().find(|asked| asked.run == run);
        asked.map(|asked| asked.chat.as_str())
    }

    /// Whether a run was stopped.
    pub fn is_halted(&self, run: RunId) -> bool {
        self.halted.contains(&run)
    }

    /// Runs that wait for a reply, and for which.
    pub fn waiting(&self) -> impl Iterator<Item = (RunId, Question)> {
        self.playing.iter().filter_map(|(run, playing)| match playing.script.steps.front() {
            Some(ScriptStep::Awaits { to, .. }) if playing.awaits_reply => Some((*run, *to)),
            _ => None,
        })
    }

    /// The next beat of a run, if it plays on.
    pub fn play(&mut self, run: RunId) -> Played {
        let Some(playing) = self.playing.get_mut(&run) else { return Played::Silent };
        let Some(beat) = playing.script.steps.pop_front() else {
            self.playing.remove(&run);
            return Played::Silent;
        };
        match beat {
            ScriptStep::Emits(event) => self.emits(run, event),
            ScriptStep::Waits(ms) => Played::Waits(ms),
            ScriptStep::Awaits { to, yes, no } => self.await_reply(run, to, yes, no),
            ScriptStep::Runs { call, input } => {
                let input = playing.inputs.get(&call).cloned().unwrap_or(input);
                playing.inputs.insert(call, input.clone());
                let execution = Execution { run, call, input };
                if !self.halted.contains(&run) {
                    self.executed.push(execution.clone());
                }
                Played::Executes(execution)
            }
            ScriptStep::Reports { call, result, review } => {
                let input = playing.inputs.get(&call).cloned().unwrap_or_default();
                let result = result.unwrap_or_else(|| ran_with(&input));
                self.emits(run, completed_event(call, result, review))
            }
            ScriptStep::Spawns { call, mut worker, script } => {
                self.spawned += 1;
                worker.brief = Bytes::from(format!("brief {}", self.spawned));
                self.workers.insert(worker.brief.clone(), *script);
                self.emits(run, AgentEvent::Spawned { call, worker: Box::new(worker) })
            }
            ScriptStep::Repeats { part } => {
                let text = playing
                    .last_reply
                    .as_ref()
                    .map(|last_reply| words(last_reply, self.renders.get(&run)))
                    .unwrap_or_default();
                self.emits(run, AgentEvent::Text { part, text })
            }
            ScriptStep::TakesSteering => {
                let pending_id =
                    playing.told_steering.take().expect("a script takes what it was told of");
                self.emits(run, AgentEvent::SteeringTaken { pending_id })
            }
            ScriptStep::Hangs => {
                self.playing.remove(&run);
                Played::Silent
            }
        }
    }

    fn emits(&mut self, run: RunId, event: AgentEvent) -> Played {
        if let Some(question) = Question::asked_by(&event)
            && !self.halted.contains(&run)
        {
            self.open.insert((run, question));
        }
        // It does not wait any more.
        match &event {
            AgentEvent::ToolCompleted { call, .. } => {
                self.open.remove(&(run, Question::Decision(*call)));
            }
            AgentEvent::ConfirmationWithdrawn { call } => {
                self.withdraw(run, Question::Decision(*call));
            }
            AgentEvent::QuestionWithdrawn { ask } => self.withdraw(run, Question::Answer(*ask)),
            _ => {}
        }
        let over = matches!(event, AgentEvent::Completed | AgentEvent::Failed(_));
        let ignores_stop =
            self.playing.get(&run).is_some_and(|playing| playing.script.ignores_stop);
        if over && !ignores_stop {
            self.playing.remove(&run);
        }
        Played::Emits(event)
    }

    /// A run does not wait for a reply any more; one that is on its way may still come.
    fn withdraw(&mut self, run: RunId, question: Question) {
        if self.open.remove(&(run, question)) {
            self.withdrawn.insert((run, question));
        }
    }

    fn await_reply(
        &mut self,
        run: RunId,
        to: Question,
        yes: VecDeque<ScriptStep>,
        no: VecDeque<ScriptStep>,
    ) -> Played {
        let Some(playing) = self.playing.get_mut(&run) else { return Played::Silent };
        let answer = playing.inbox.iter().position(|reply| Question::answered_by(reply) == to);
        let Some(reply) = answer.and_then(|at| playing.inbox.remove(at)) else {
            playing.awaits_reply = true;
            playing.script.steps.push_front(ScriptStep::Awaits { to, yes, no });
            return Played::Silent;
        };
        if let AgentReply::ToolDecided { call, input: Some(input), .. } = &reply {
            playing.inputs.insert(*call, input.clone());
        }
        if let AgentReply::SteeringWaits { pending_id, .. } = &reply {
            playing.told_steering = Some(pending_id.clone());
        }
        let mut branch = if is_yes(&reply) { yes } else { no };
        branch.append(&mut playing.script.steps);
        playing.script.steps = branch;
        playing.last_reply = Some(reply);
        Played::Waits(0)
    }
}

/// A result with the input the tool ran with.
fn ran_with(input: &str) -> Value {
    json!({"success": true, "pastTenseMessage": "ran", "content": [{"type": "text", "text": input}]})
}

/// A reply as a model would put it.
fn words(reply: &AgentReply, render: Option<&Rendered>) -> String {
    match reply {
        AgentReply::ToolDecided { approved, .. } => format!("decided {approved}"),
        AgentReply::ResultDecided { approved, .. } => format!("reviewed {approved}"),
        AgentReply::ToolEnded { result, .. } => {
            let first = result.content().first();
            let text = first.and_then(|block| block["text"].as_str());
            format!("ended {} {}", result.success(), text.unwrap_or(""))
        }
        AgentReply::Answered { response, answers, .. } => {
            let response = json!(response);
            let response = response.as_str().unwrap_or("");
            format!("answered {response} {}", json!(answers))
        }
        AgentReply::Steered { message, .. } => match message {
            Some(message) => format!("steered {}", message["text"].as_str().unwrap_or("")),
            None => "not steered".to_owned(),
        },
        AgentReply::SteeringWaits { message, .. } => {
            format!("waiting {}", message["text"].as_str().unwrap_or(""))
        }
        AgentReply::ChatNoted => "noted".to_owned(),
        AgentReply::Settings { values, .. } => format!("settings {}", json!(values)),
        AgentReply::ClientTools { tools, .. } => {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            format!("tools {}", names.join(" "))
        }
        AgentReply::Rendered { sections, .. } => {
            let sections: Vec<String> = sections
                .iter()
                .map(|section| format!("{}={}", section.id, section.content))
                .collect();
            let outcome = render.map_or("", |render| render.transform.outcome_name());
            format!("[{}] {outcome}", sections.join(" "))
        }
    }
}
