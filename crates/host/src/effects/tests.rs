//! Turns that wait in the middle, driven by a script; the test is the kernel.

use std::time::Duration;

use agent_api::{AgentEvent, ToolResult};
use agents::scripted::Locale;
use agents::{Script, ScriptedAgent};
use serde_json::json;
use tokio::sync::mpsc;
use wire::published::state::{ChatInputResponseKind, ContentRef};

use super::*;
use crate::blobs::MemoryBlobs;
use crate::clock::Clock;
use crate::cluster::Tenure;
use crate::journal::Memory;

pub(super) struct TestHost {
    pub(super) effects: Effects,
    blobs: MemoryBlobs,
    pub(super) arrivals: mpsc::Receiver<QueuedInput>,
}

impl TestHost {
    fn with_script(steps: serde_json::Value) -> Self {
        let script = json!({"scenes": [{"steps": steps}]}).to_string();
        let agent = ScriptedAgent::with_locale(Script::parse(&script).unwrap(), Locale::English);
        Self::with_agent(Arc::new(agent))
    }

    pub(super) fn with_agent(agent: Arc<dyn Agent>) -> Self {
        let (sender, arrivals) = mpsc::channel(64);
        let (journal, _) = JournalHandle::start(Box::new(Memory::new())).unwrap();
        let streams = StreamBatcher::new(Duration::ZERO);
        let blobs = MemoryBlobs::new();
        let store = Arc::new(blobs.clone());
        let bodies = Bodies::new(store, Clock::start(), &kernel::Limits::default());
        Self {
            effects: Effects::new(
                sender,
                journal,
                bodies,
                SpaceAgents::for_test(vec![agent]),
                streams,
                Box::new(EffectTools::new),
            ),
            blobs,
            arrivals,
        }
    }

    fn start_turn(&mut self, run: RunId) {
        self.effects.run_turn(Self::turn(run, "scripted"));
    }

    pub(super) fn turn(run: RunId, provider: &str) -> TurnRun {
        TurnRun {
            switched_off: Default::default(),
            turn_id: "t".to_owned(),
            budget_turn: (kernel::ChannelId(1), "t".to_owned()),
            compact: None,
            reaches_model: true,
            composed: None,
            restore: None,
            run,
            provider: provider.to_owned(),
            session: ChannelUri::parse("ahp-session:/s").unwrap(),
            chat: ChannelUri::parse("ahp-chat:/c").unwrap(),
            session_id: kernel::ChannelId(1),
            message: json!({"text": "go"}).into(),
            custom_agent: None,
            author: None,
            principal: None,
            config: wire::Object::new(),
            working_directories: Vec::new(),
            resume: None,
            brief: None,
            history: kernel::HistoryAt::default(),
            said: Vec::new(),
            usage: None,
            untitled: false,
            chat_notes: None,
            last_turn_id: None,
            refusals: None,
        }
    }

    /// The next event of a run, checkpoints left out.
    pub(super) async fn next_event(&mut self) -> (RunId, AgentEvent) {
        loop {
            let (run, event) = match self.arrivals.recv().await {
                Some(QueuedInput::Agent { run, event, .. }) => (run, *event),
                other => match other.and_then(QueuedInput::into_input) {
                    Some(Input::Agent { run, event }) => (run, event),
                    _ => unreachable!("only agents send inputs here"),
                },
            };
            if !matches!(event, AgentEvent::Checkpoint(_)) {
                return (run, event);
            }
        }
    }
}

fn steered(text: &str) -> AgentReply {
    AgentReply::Steered { message_id: None, steer: 0, message: Some(json!({"text": text})) }
}

#[tokio::test]
async fn a_reply_reaches_the_run_it_is_for_and_no_other() {
    let mut host = TestHost::with_script(json!([{"steer": true}, {"notify": "{{steering}}"}]));
    let (one, two) = (RunId(1), RunId(2));
    host.start_turn(one);
    host.start_turn(two);
    for _ in 0..2 {
        let (_, event) = host.next_event().await;
        assert_eq!(event, AgentEvent::SteerPoint { steer: 0 });
    }
    for (run, text) in [(two, "second"), (one, "first")] {
        host.effects.reply(run, steered(text));
        let text = text.to_owned();
        assert_eq!(host.next_event().await, (run, AgentEvent::Notice { text }));
        assert_eq!(host.next_event().await, (run, AgentEvent::Completed));
    }
}

#[tokio::test]
async fn a_reply_for_a_run_that_is_gone_is_dropped() {
    let mut host = TestHost::with_script(json!([{"steer": true}, {"notify": "{{steering}}"}]));
    let (gone, next) = (RunId(1), RunId(2));
    host.start_turn(gone);
    host.next_event().await;
    host.effects.stop_turn(gone);
    host.effects.reply(gone, steered("late"));
    host.effects.reply(RunId(7), steered("never was"));
    host.start_turn(next);
    let (run, event) = host.next_event().await;
    assert_eq!((run, event), (next, AgentEvent::SteerPoint { steer: 0 }));
    host.effects.reply(next, steered("in time"));
    let text = "in time".to_owned();
    assert_eq!(host.next_event().await, (next, AgentEvent::Notice { text }));
    // It waits no more: a second reply is nobody's.
    host.effects.reply(next, steered("twice"));
    assert_eq!(host.next_event().await, (next, AgentEvent::Completed));
}

#[tokio::test]
async fn tool_calls_questions_and_workers_reach_the_kernel() {
    let mut host = TestHost::with_script(json!([
        {"tool": {"name": "read", "display": "Read", "updates": [[]]}},
        {"spawn": {"title": "Look", "agent": "looker", "steps": []}},
        {"ask": {"message": "Well?"}},
        {"notify": "{{last}}"},
    ]));
    let run = RunId(1);
    host.start_turn(run);
    let mut log = String::new();
    for _ in 0..5 {
        log.push_str(&format!("{:?}\n", host.next_event().await.1));
    }
    let result = ToolResult::new(true, "Looked");
    host.effects.reply(run, AgentReply::ToolEnded { call: 1 << 32, result });
    log.push_str(&format!("{:?}\n", host.next_event().await.1));
    host.effects.reply(
        run,
        AgentReply::Answered {
            ask: 2 << 32,
            response: ChatInputResponseKind::Decline,
            answers: wire::Object::new(),
            answered_by: None,
        },
    );
    log.push_str(&format!("{:?}\n", host.next_event().await.1));
    expect_test::expect![[r#"
        ToolStarted { call: 0, start: ToolStart { name: "read", display_name: "Read", intention: None, executor: Agent, contributor: None, meta: None, began: None } }
        ToolReady { call: 0, ready: ToolReady { invocation_message: Plain("Read"), tool_input: Some(Inline("{}")), confirmed: Some(NotNeeded), confirmation_title: None, edits: [], editable: false, options: [], extra: {} } }
        ToolContent { call: 0, content: [] }
        ToolCompleted { call: 0, result: ToolResult({"success": Bool(true), "pastTenseMessage": String("Read: done"), "content": Array [Object {"type": String("text"), "text": String("{}")}]}), review: false }
        Spawned { call: 4294967296, worker: Worker { title: "Look", interactivity: None, agent_name: Some("looker"), task: "Look", model: None, brief: b"{\"place\":\"scenes[0].steps[1].spawn.steps\",\"steps\":[]}" } }
        InputRequested { ask: 8589934592, request: InputRequest { message: Some("Well?"), url: None, questions: [] } }
        Notice { text: "{\"response\":\"decline\"}" }
    "#]].assert_eq(&log);
}

fn printing(text: &str) -> serde_json::Value {
    let content = json!([{"type": "text", "text": text}]);
    // It grows as it runs.
    let updates =
        [70_000, 80_000, 90_000].map(|length| json!([{"type": "text", "text": &text[..length]}]));
    json!([
        {"tool": {"name": "print", "updates": updates, "result": {"content": content}}},
        {"content_ref": {"text": text, "type": "text/x-own"}},
    ])
}

impl TestHost {
    /// The contents of a call while it ran, its result, and what came after it.
    async fn run_print(&mut self) -> (Vec<serde_json::Value>, serde_json::Value, AgentEvent) {
        self.start_turn(RunId(1));
        let mut shown = Vec::new();
        loop {
            match self.next_event().await.1 {
                AgentEvent::ToolContent { content, .. } => shown.push(json!(content)),
                AgentEvent::ToolCompleted { result, .. } => {
                    let result = serde_json::Value::Object(result.into_object());
                    return (shown, result, self.next_event().await.1);
                }
                _ => {}
            }
        }
    }
}

// G-32
#[tokio::test]
async fn what_an_agent_prints_is_kept_once_and_not_while_it_grows() {
    let long = "0123456789".repeat(10_000);
    let mut host = TestHost::with_script(printing(&long));
    let (shown, result, after) = host.run_print().await;
    assert_eq!(shown.len(), 3);
    for content in shown {
        let length = content.to_string().len();
        assert!((8_000..9_000).contains(&length), "{length}");
    }
    let digest = crate::blobs::digest_of(long.as_bytes());
    assert_eq!(host.blobs.digests(), [digest]);
    let reference = json!({"type": "resource", "uri": digest.uri(), "contentType": "text/plain", "sizeHint": 100_000});
    let preview = json!({"type": "text", "text": &long[..4_096]});
    assert_eq!(result["content"], json!([preview, reference]));
    let content = ContentRef {
        uri: digest.uri(),
        size_hint: Some(100_000),
        content_type: Some("text/x-own".to_owned()),
        nonce: None,
    };
    assert_eq!(after, AgentEvent::ContentRef(content));
}

// G-15
#[tokio::test]
async fn what_cannot_be_kept_is_said_and_the_turn_goes_on() {
    let long = "0123456789".repeat(10_000);
    let mut host = TestHost::with_script(printing(&long));
    host.blobs.break_disk();
    let (_, result, after) = host.run_print().await;
    assert_eq!(result["content"][0]["text"], &long[..4_096]);
    let lost = result["content"][1]["text"].as_str().unwrap();
    assert!(lost.contains("100000 bytes are lost"), "{lost}");
    assert!(matches!(after, AgentEvent::Notice { text } if text.contains("are lost")));
    assert_eq!(host.next_event().await.1, AgentEvent::Completed);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_accepted_while_the_node_is_silent_or_once_the_space_is_lost() {
    let mut host = TestHost::with_script(json!([{"notify": "done"}]));
    let tenure = Tenure::of_silent_node();
    host.effects.tools_mut().services.tenure = Some(tenure.clone());
    host.start_turn(RunId(1));
    let soon = Duration::from_secs(60);
    let heard = tokio::time::timeout(soon, host.next_event()).await;
    assert!(heard.is_err(), "the agent waits: {heard:?}");
    tenure.restore_trust();
    let text = "done".to_owned();
    let notice = AgentEvent::Notice { text };
    assert_eq!(host.next_event().await, (RunId(1), notice.clone()));
    assert_eq!(host.next_event().await.1, AgentEvent::Completed);
    tenure.lose();
    host.start_turn(RunId(2));
    // How the turn ended is said to a kernel that is gone; what the agent had to say is not.
    let (run, last) = host.next_event().await;
    assert_eq!(run, RunId(2));
    assert_ne!(last, notice);
}
