//! Random scripts of models: text, questions, tools of their own and of clients, workers, and events in no order.

use agent_api::{AgentEvent, Worker};
use serde_json::json;
use testkit::{Script, Tool};
use wire::published::state::UsageInfo;

use crate::simulation::Simulation;

impl Simulation {
    /// The script of some later turn.
    pub(crate) fn random_script(&mut self) -> Script {
        self.random_script_at(0)
    }

    fn random_script_at(&mut self, depth: u64) -> Script {
        let mut script = Script::new();
        for _ in 0..self.rng.below(5) {
            script = match self.rng.below(22) {
                0 => script.thinks(["hm", "m"]),
                1 => script.stores_checkpoint("half way"),
                2 => script.emits(AgentEvent::Title(format!("title {}", self.rng.below(3)))),
                3 => {
                    let activity = self.rng.percent(50).then(|| "busy".to_owned());
                    script.emits(AgentEvent::Activity(activity))
                }
                4 => script.emits(AgentEvent::Usage(UsageInfo {
                    input_tokens: i64::try_from(self.rng.below(9)).ok(),
                    ..UsageInfo::default()
                })),
                5..=8 => script.calls(self.tool()),
                9 if self.rng.percent(30) => script.asks_for_number("how many?"),
                9 => script.asks_for_text("which?"),
                10 => {
                    let timeout_ms = 50 + self.rng.below(4_000);
                    script.calls_client("open", json!({"n": timeout_ms}), timeout_ms)
                }
                11 => script.steers().repeats(),
                12 if depth < 3 => {
                    let worker = self.worker();
                    let work = self.random_script_at(depth + 1);
                    let script = script.spawns_worker(worker, work);
                    if self.rng.percent(20) { script.unattended() } else { script }
                }
                13 if self.rng.percent(30) => self.nonsense(script),
                14 | 15 => {
                    let sections = ["tone", "environment_context", "safety", "unlisted"];
                    script.renders(sections.map(|id| (id, "as it was")))
                }
                16 => script.notes_chat(&format!("note {}", self.rng.below(3))),
                17 if self.rng.percent(50) => script.awaits_steering().takes_steering(),
                17 => script.awaits_steering().unattended(),
                18 if self.rng.percent(50) => script.withdraws_tool("shell", self.rng.below(90)),
                18 => script.withdraws_question("which?", self.rng.below(90)),
                _ => script.streams(["some ", "words ", "more"]),
            };
            if self.rng.percent(50) {
                script = script.waits_ms(self.rng.below(80));
            }
        }
        script = match self.rng.below(10) {
            0 => script.hangs(),
            1 => script.fails(false),
            2 | 3 => script.fails(true),
            _ => script.completes(),
        };
        if self.rng.percent(15) { script.ignores_stop() } else { script }
    }

    fn tool(&mut self) -> Tool {
        let input = format!("input {}", self.rng.below(1_000));
        let mut tool = if self.rng.percent(70) {
            Tool::asking("shell", &input)
        } else {
            Tool::running("shell", &input)
        };
        if self.rng.percent(30) {
            tool = tool.editable();
        }
        if self.rng.percent(20) {
            tool = tool.offers(&[("yes", "approve"), ("always", "approve"), ("no", "deny")]);
        }
        if self.rng.percent(20) {
            tool = tool.asks_again("really?");
        }
        if self.rng.percent(20) {
            tool = tool.reviewed();
        }
        if self.rng.percent(30) {
            tool = tool.shows("half").shows("whole");
        }
        if self.rng.percent(20) {
            tool = tool.streamed(&["in", "put"]);
        }
        tool
    }

    fn worker(&mut self) -> Worker {
        let modes = [None, Some("read-only"), Some("hidden"), Some("full")];
        let mode = self.rng.pick(&modes).copied().flatten();
        Worker {
            title: "worker".to_owned(),
            interactivity: mode.map(str::to_owned),
            agent_name: self.rng.percent(50).then(|| "w".to_owned()),
            task: "work".to_owned(),
            ..Worker::default()
        }
    }

    /// Events of calls in random order; none is awaited.
    fn nonsense(&mut self, mut script: Script) -> Script {
        for _ in 0..1 + self.rng.below(5) {
            let call = 900 + self.rng.below(2);
            let result = json!({"success": true, "pastTenseMessage": "did"});
            script = match self.rng.below(7) {
                0 => script.announces(call, "odd"),
                1 => script.readies(call, json!({"invocationMessage": "m"})),
                2 => {
                    script.readies(call, json!({"invocationMessage": "m", "confirmed": "setting"}))
                }
                3 => script.reports(call, result),
                6 => script.emits(AgentEvent::ConfirmationWithdrawn { call }),
                4 => script.emits(AgentEvent::ToolInput { call, text: "x".to_owned() }),
                _ => script.emits(AgentEvent::ToolContent {
                    call,
                    content: vec![json!({"type": "text", "text": "t"})],
                }),
            };
        }
        script
    }
}
