//! What models do: talk, ask, call tools of their own and of clients, start workers, and talk nonsense.

use agent_api::{AgentEvent, Worker};
use serde_json::json;
use testkit::{Script, Tool};
use wire::published::state::UsageInfo;

use crate::story::Story;

impl Story {
    /// What the model will do in some turn to come.
    pub(crate) fn mood(&mut self) -> Script {
        self.mood_at(0)
    }

    fn mood_at(&mut self, depth: u64) -> Script {
        let mut script = Script::new();
        for _ in 0..self.chance.below(5) {
            script = match self.chance.below(18) {
                0 => script.thinks(["hm", "m"]),
                1 => script.keeps("half way"),
                2 => script.says(AgentEvent::Title(format!("title {}", self.chance.below(3)))),
                3 => {
                    let activity = self.chance.percent(50).then(|| "busy".to_owned());
                    script.says(AgentEvent::Activity(activity))
                }
                4 => script.says(AgentEvent::Usage(UsageInfo {
                    input_tokens: i64::try_from(self.chance.below(9)).ok(),
                    ..UsageInfo::default()
                })),
                5..=8 => script.calls(self.tool()),
                9 => script.asks_for_text("which?"),
                10 => {
                    let timeout_ms = 50 + self.chance.below(4_000);
                    script.calls_client("open", json!({"n": timeout_ms}), timeout_ms)
                }
                11 => script.steers().repeats(),
                12 if depth < 3 => {
                    let worker = self.worker();
                    let work = self.mood_at(depth + 1);
                    let script = script.spawns_worker(worker, work);
                    if self.chance.percent(20) {
                        script.unattended()
                    } else {
                        script
                    }
                }
                13 if self.chance.percent(30) => self.nonsense(script),
                14 | 15 => {
                    let sections = ["tone", "environment_context", "safety", "unlisted"];
                    script.renders(sections.map(|id| (id, "as it was")))
                }
                _ => script.streams(["some ", "words ", "more"]),
            };
            if self.chance.percent(50) {
                script = script.waits_ms(self.chance.below(80));
            }
        }
        script = match self.chance.below(10) {
            0 => script.hangs(),
            1 => script.fails(false),
            2 | 3 => script.fails(true),
            _ => script.completes(),
        };
        if self.chance.percent(15) {
            script.deaf()
        } else {
            script
        }
    }

    fn tool(&mut self) -> Tool {
        let input = format!("input {}", self.chance.below(1_000));
        let mut tool = if self.chance.percent(70) {
            Tool::asking("shell", &input)
        } else {
            Tool::running("shell", &input)
        };
        if self.chance.percent(30) {
            tool = tool.editable();
        }
        if self.chance.percent(20) {
            tool = tool.offers(&[("yes", "approve"), ("always", "approve"), ("no", "deny")]);
        }
        if self.chance.percent(20) {
            tool = tool.asks_again("really?");
        }
        if self.chance.percent(20) {
            tool = tool.reviewed();
        }
        if self.chance.percent(30) {
            tool = tool.shows("half").shows("whole");
        }
        if self.chance.percent(20) {
            tool = tool.streamed(&["in", "put"]);
        }
        tool
    }

    fn worker(&mut self) -> Worker {
        let modes = [None, Some("read-only"), Some("hidden"), Some("full")];
        let mode = self.chance.pick(&modes).copied().flatten();
        Worker {
            title: "worker".to_owned(),
            interactivity: mode.map(str::to_owned),
            agent_name: self.chance.percent(50).then(|| "w".to_owned()),
            task: "work".to_owned(),
            ..Worker::default()
        }
    }

    /// Words about calls in no order at all; nobody waits for them.
    fn nonsense(&mut self, mut script: Script) -> Script {
        for _ in 0..1 + self.chance.below(5) {
            let call = 900 + self.chance.below(2);
            let result = json!({"success": true, "pastTenseMessage": "did"});
            script = match self.chance.below(6) {
                0 => script.announces(call, "odd"),
                1 => script.readies(call, json!({"invocationMessage": "m"})),
                2 => script.readies(
                    call,
                    json!({"invocationMessage": "m", "confirmed": "setting"}),
                ),
                3 => script.reports(call, result),
                4 => script.says(AgentEvent::ToolInput {
                    call,
                    text: "x".to_owned(),
                }),
                _ => script.says(AgentEvent::ToolContent {
                    call,
                    content: vec![json!({"type": "text", "text": "t"})],
                }),
            };
        }
        script
    }
}
