//! The connection under virtual time, with seeds: an agent that answers late, asks, takes questions back, replays, cancels and dies at any
//! point, and chats that prompt, answer, cancel and go on. `ACP_SEEDS` says how many runs, `ACP_SEED` repeats one.
//!
//! Checked: every question of the agent is answered exactly once; no prompt is sent while one is in flight; nothing of a replay, and nothing
//! of another prompt, is heard; everything comes to an end.

use std::collections::{BTreeMap, BTreeSet};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::time::{Instant, sleep_until};

use super::*;

const LIMIT: Duration = Duration::from_secs(600);
const CHATS: u64 = 3;
const PROMPTS: u64 = 4;

/// A sequence that a seed decides.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    async fn pause(&mut self) {
        // Never none: what is on its way arrives before. An update names no prompt, so one that came after the next prompt was sent
        // would be taken for its own.
        let pause = Duration::from_millis(1 + self.roll(40));
        sleep_until(Instant::now() + pause).await;
    }
}

struct IgnoreUpdates;

impl SessionListener for IgnoreUpdates {
    fn on_update(&self, _: &acp::SessionUpdate, _: bool) {}
}

/// What the agent has seen of the other side.
#[derive(Default)]
struct AgentLedger {
    asked: BTreeSet<u64>,
    answered: BTreeMap<u64, u64>,
    prompted: BTreeSet<String>,
    is_cut: bool,
}

type Locked<T> = Arc<Mutex<T>>;

/// The agent's end of the pipes.
#[derive(Clone)]
struct FakeAgent {
    output: Arc<tokio::sync::Mutex<DuplexStream>>,
    ledger: Locked<AgentLedger>,
    cancelled: Locked<BTreeSet<String>>,
    last_question: Arc<std::sync::atomic::AtomicU64>,
}

impl FakeAgent {
    /// Writes a line in pieces. Nobody reads any more once the pipe is cut.
    async fn say(&self, dice: &mut Dice, line: Value) {
        let line = format!("{line}\n");
        let cut = dice.roll(line.len() as u64) as usize;
        let (first, second) = line.as_bytes().split_at(cut);
        let mut output = self.output.lock().await;
        let _ = output.write_all(first).await;
        tokio::task::yield_now().await;
        let _ = output.write_all(second).await;
    }

    async fn update(&self, dice: &mut Dice, session: &str, text: &str) {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": session, "update": update});
        let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        self.say(dice, line).await;
    }

    async fn ask(&self, dice: &mut Dice, session: &str) {
        let id = self.last_question.fetch_add(1, Ordering::SeqCst);
        self.ledger.lock().asked.insert(id);
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
        let params = json!({"sessionId": session, "toolCall": {"toolCallId": format!("c{id}")}, "options": options});
        let line = json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params});
        self.say(dice, line).await;
        if dice.roll(4) == 0 {
            dice.pause().await;
            let line = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
            self.say(dice, line).await;
        }
    }

    /// Works on a prompt: says, asks, and answers it at some time.
    async fn play(self, mut dice: Dice, id: Value, session: String, number: String) {
        for _ in 0..dice.roll(5) {
            dice.pause().await;
            match dice.roll(3) {
                0 => self.ask(&mut dice, &session).await,
                _ => self.update(&mut dice, &session, &format!("live {session} {number};")).await,
            }
        }
        dice.pause().await;
        let is_cancelled = self.cancelled.lock().remove(&session);
        let reason = if is_cancelled { "cancelled" } else { "end_turn" };
        self.ledger.lock().prompted.remove(&session);
        let line = json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": reason}});
        self.say(&mut dice, line).await;
        // Too late for anybody.
        self.update(&mut dice, &session, "old;").await;
    }

    async fn receive(&self, dice: &mut Dice, frame: &Value) {
        let params = &frame["params"];
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        match frame["method"].as_str() {
            Some("session/load") => {
                self.update(dice, &session, "old;").await;
                let line = json!({"jsonrpc": "2.0", "id": frame["id"], "result": {}});
                self.say(dice, line).await;
                self.update(dice, &session, "old;").await;
            }
            Some("session/prompt") => {
                let is_free = self.ledger.lock().prompted.insert(session.clone());
                assert!(is_free, "a prompt while one is in flight");
                let number = params["prompt"][0]["text"].as_str().unwrap().to_owned();
                let of_play = Dice(dice.roll(u64::MAX));
                let (agent, id) = (self.clone(), frame["id"].clone());
                tokio::spawn(agent.play(of_play, id, session, number));
            }
            Some("session/cancel") => drop(self.cancelled.lock().insert(session)),
            Some(other) => panic!("{other}"),
            None => {
                let id = frame["id"].as_u64().unwrap();
                *self.ledger.lock().answered.entry(id).or_default() += 1;
            }
        }
    }

    /// Reads until the end, or until the pipes are cut.
    async fn run(self, mut dice: Dice, input: DuplexStream, cut_after: Option<u64>) {
        let mut lines = BufReader::new(input).lines();
        let mut count = 0;
        while let Ok(Some(line)) = lines.next_line().await {
            let frame: Value = serde_json::from_str(&line).unwrap();
            self.receive(&mut dice, &frame).await;
            count += 1;
            if cut_after == Some(count) {
                self.ledger.lock().is_cut = true;
                let _ = self.output.lock().await.shutdown().await;
                return;
            }
        }
    }
}

/// A connection over pipes of memory: when the agent's output ends, it has ended.
fn connect(dice: &mut Dice) -> (AcpConnection, Locked<AgentLedger>) {
    let (stdin, agent_input) = tokio::io::duplex(256);
    let (agent_output, stdout) = tokio::io::duplex(256);
    let tail = StderrTail::new(Vec::new());
    let shared = SharedConnection::new(Writer::start(stdin), tail.clone());
    let reading = reader::read(Arc::clone(&shared), LineReader::new(stdout, 1 << 20));
    let ending = Arc::clone(&shared);
    tokio::spawn(async move {
        reading.await;
        supervise::announce(&ending, ConnectionEnd::new(EndKind::Exited, None, &tail));
    });
    let ledger = Locked::<AgentLedger>::default();
    let agent = FakeAgent {
        output: Arc::new(tokio::sync::Mutex::new(agent_output)),
        ledger: Arc::clone(&ledger),
        cancelled: Locked::default(),
        last_question: Arc::default(),
    };
    let cut_after = (dice.roll(3) == 0).then(|| 1 + dice.roll(30));
    tokio::spawn(agent.run(Dice(dice.roll(u64::MAX)), agent_input, cut_after));
    (AcpConnection::of(shared), ledger)
}

/// One prompt, to its answer, to a cancel, or to the end of the connection. Whether there is more to do.
async fn prompt(
    connection: &AcpConnection,
    inbox: &Arc<SessionInbox>,
    number: u64,
    dice: &mut Dice,
) -> bool {
    let prompt = json!([{"type": "text", "text": number.to_string()}]);
    if connection.prompt(inbox, &prompt).await.is_err() {
        return false;
    }
    let gives_up =
        (dice.roll(3) == 0).then(|| Instant::now() + Duration::from_millis(dice.roll(100)));
    loop {
        let never = Instant::now() + LIMIT;
        let item = tokio::select! {
            item = inbox.next() => item,
            () = sleep_until(gives_up.unwrap_or(never)) => break,
        };
        match item {
            InboxItem::Update(update) => {
                let told = serde_json::to_value(*update).unwrap();
                let text = told["content"]["text"].as_str().unwrap();
                let expected = format!("live {} {number};", inbox.session);
                assert_eq!(text.replace(&expected, ""), "", "of another prompt, or of a replay");
            }
            InboxItem::Asked(question) => {
                dice.pause().await;
                let yes = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
                connection.answer(&question.id, &Ok(yes));
            }
            InboxItem::Withdrawn(_) | InboxItem::QuestionsRefused => {}
            InboxItem::PromptEnded(_) => break,
            InboxItem::Ended(_) => return false,
        }
    }
    connection.end_turn(inbox);
    inbox.wait_until_free().await;
    true
}

async fn chat(connection: AcpConnection, session: String, mut dice: Dice) {
    let inbox = connection.listen(&session, Arc::new(IgnoreUpdates));
    let params = json!({"sessionId": session});
    if connection.request::<Value>("session/load", &params, LIMIT).await.is_err() {
        return; // it died before
    }
    let quiet = (Duration::from_millis(300), Duration::from_secs(5));
    inbox.wait_for_quiet(quiet.0, quiet.1).await;
    for number in 0..PROMPTS {
        if !prompt(&connection, &inbox, number, &mut dice).await {
            return;
        }
        dice.pause().await;
    }
}

async fn run(seed: u64) {
    let mut dice = Dice(seed);
    let (connection, ledger) = connect(&mut dice);
    let chats: Vec<_> = (0..CHATS)
        .map(|number| {
            let of_chat = Dice(dice.roll(u64::MAX));
            tokio::spawn(chat(connection.clone(), format!("s{number}"), of_chat))
        })
        .collect();
    for chat in chats {
        tokio::time::timeout(LIMIT, chat).await.expect("everything ends").expect("nothing panics");
    }
    // What is on its way arrives.
    sleep_until(Instant::now() + Duration::from_secs(10)).await;
    let ledger = ledger.lock();
    assert!(ledger.answered.values().all(|times| *times == 1), "{:?}", ledger.answered);
    if !ledger.is_cut {
        let answered: BTreeSet<u64> = ledger.answered.keys().copied().collect();
        assert_eq!(answered, ledger.asked, "every question is answered");
        assert!(ledger.prompted.is_empty(), "{:?}", ledger.prompted);
    }
}

#[test]
fn any_order_of_words_comes_to_the_same() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = match number("ACP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ACP_SEEDS").unwrap_or(200),
    };
    for seed in seeds {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let running = std::panic::AssertUnwindSafe(|| runtime.unwrap().block_on(run(seed)));
        let ran = std::panic::catch_unwind(running);
        assert!(ran.is_ok(), "ACP_SEED={seed}");
    }
}
