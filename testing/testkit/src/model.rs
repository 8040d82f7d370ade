//! The model: plays one script per turn. Scripts are queued; a turn without one gets a short answer.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use kernel::{AgentFailure, AgentReply, RunId, TextKind, TurnEvent, TurnRun};

/// One thing a model does.
#[derive(Debug, Clone)]
pub enum Beat {
    Says(TurnEvent),
    Waits(u64),
    /// Goes silent for good.
    Hangs,
}

/// What a turn's model does, beat by beat.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub beats: VecDeque<Beat>,
    /// Goes on talking after it was stopped: nobody may hear it.
    pub deaf: bool,
    parts: u64,
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn says(mut self, event: TurnEvent) -> Self {
        self.beats.push_back(Beat::Says(event));
        self
    }

    fn writes<'a>(mut self, kind: TextKind, chunks: impl IntoIterator<Item = &'a str>) -> Self {
        self.parts += 1;
        let part = self.parts;
        self = self.says(TurnEvent::PartOpened { part, kind });
        for text in chunks {
            self = self.says(TurnEvent::Text {
                part,
                text: text.to_owned(),
            });
        }
        self
    }

    pub fn streams<'a>(self, chunks: impl IntoIterator<Item = &'a str>) -> Self {
        self.writes(TextKind::Markdown, chunks)
    }

    pub fn thinks<'a>(self, chunks: impl IntoIterator<Item = &'a str>) -> Self {
        self.writes(TextKind::Reasoning, chunks)
    }

    pub fn keeps(self, checkpoint: &'static str) -> Self {
        self.says(TurnEvent::Checkpoint(Bytes::from_static(
            checkpoint.as_bytes(),
        )))
    }

    pub fn waits_ms(mut self, ms: u64) -> Self {
        self.beats.push_back(Beat::Waits(ms));
        self
    }

    pub fn hangs(mut self) -> Self {
        self.beats.push_back(Beat::Hangs);
        self
    }

    pub fn completes(self) -> Self {
        self.says(TurnEvent::Completed)
    }

    pub fn fails(self, resumable: bool) -> Self {
        let failure = AgentFailure {
            error_type: "modelFailed".to_owned(),
            message: "the model gave up".to_owned(),
            resumable,
        };
        self.says(TurnEvent::Failed(failure))
    }

    pub fn deaf(mut self) -> Self {
        self.deaf = true;
        self
    }

    fn ends(&self) -> bool {
        self.beats.iter().any(|beat| {
            matches!(
                beat,
                Beat::Hangs | Beat::Says(TurnEvent::Completed | TurnEvent::Failed(_))
            )
        })
    }
}

/// All scripts, waiting and playing.
#[derive(Debug, Default)]
pub struct Models {
    pub next: VecDeque<Script>,
    pub playing: BTreeMap<RunId, Script>,
    /// Every turn the host ever asked for, in order.
    pub asked: Vec<TurnRun>,
    pub stopped: Vec<RunId>,
    /// What runs were told while they waited.
    pub heard: Vec<(RunId, AgentReply)>,
}

impl Models {
    pub fn begin(&mut self, run: TurnRun) {
        let mut script = self
            .next
            .pop_front()
            .unwrap_or_else(|| Script::new().streams(["ok"]));
        if !script.ends() {
            script = script.completes();
        }
        self.playing.insert(run.run, script);
        self.asked.push(run);
    }

    pub fn stop(&mut self, run: RunId) {
        self.stopped.push(run);
        if self.playing.get(&run).is_some_and(|script| !script.deaf) {
            self.playing.remove(&run);
        }
    }

    /// The next beat of a run, if it plays on.
    pub fn beat(&mut self, run: RunId) -> Option<Beat> {
        let beat = self.playing.get_mut(&run)?.beats.pop_front();
        if !matches!(beat, Some(Beat::Says(_) | Beat::Waits(_))) {
            self.playing.remove(&run);
        }
        beat
    }
}
