//! One simulation: a world from a seed, a few hundred steps, and its outcome.

use std::collections::BTreeMap;

use agent_api::AgentReply;
use kernel::Limits;
use testkit::World;
use testkit::client::Client;
use testkit::rng::SeededRng;

/// How a simulation ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Stands for every byte the host sent.
    pub hash: u64,
    pub wrong: Vec<String>,
    /// How often each kind of action was recorded, and what agents did.
    pub happened: BTreeMap<String, u64>,
}

/// A simulation under way.
pub(crate) struct Simulation {
    pub world: World,
    pub rng: SeededRng,
    pub sessions: Vec<String>,
    pub turns: u64,
    /// How many of a hundred faults that could happen do.
    fault_percent: u64,
    /// Clients ask for parts of chats. Then the disk does not fail: which part one was shown while nothing could be
    /// written, a host that was killed cannot know.
    pub windows: bool,
    /// After every crash all mirrors are compared with what a new subscriber gets.
    compares_after_crashes: bool,
    /// What was wrong on the way.
    pub wrong: Vec<String>,
    /// Crashes after which the mirrors were compared.
    pub compared: u64,
    /// Decisions that were sent once, and may be sent again when it is too late.
    pub sent_decisions: Vec<(String, serde_json::Value)>,
}

/// Runs the simulation of a seed.
pub fn run(seed: u64, trace: bool) -> Outcome {
    let mut simulation = Simulation::new(seed, trace);
    simulation.open_sessions();
    let steps = 150 + simulation.rng.below(400);
    for _ in 0..steps {
        simulation.step();
    }
    let mut wrong = std::mem::take(&mut simulation.wrong);
    if wrong.is_empty() {
        wrong = simulation.recover_and_check();
    }
    if wrong.is_empty() && simulation.rng.percent(60) {
        wrong = simulation.restart_and_check();
    }
    let mut happened = simulation.world.ledger.kinds.clone();
    let models = &simulation.world.models;
    let replies = |wanted: fn(&AgentReply) -> bool| {
        let replies = models.replies.iter();
        replies.filter(|(_, reply)| wanted(reply)).count()
    };
    let is_noted = |reply: &AgentReply| *reply == AgentReply::ChatNoted;
    let is_told = |reply: &AgentReply| matches!(reply, AgentReply::SteeringWaits { .. });
    let runs = [
        ("(chat noted)", replies(is_noted)),
        ("(steering told)", replies(is_told)),
        ("(turns run)", models.asked.len()),
        ("(tools run)", models.executed.len()),
        ("(replies)", models.replies.len()),
    ];
    let compared = simulation.compared;
    for rendered in &models.rendered {
        let name = format!("(render: {})", rendered.transform.outcome_name());
        *happened.entry(name).or_default() += 1;
    }
    for (name, count) in runs {
        happened.insert(name.to_owned(), count as u64);
    }
    happened.insert("(mirrors compared after a crash)".to_owned(), compared);
    Outcome { hash: simulation.world.hash(), wrong, happened }
}

fn limits(rng: &mut SeededRng) -> Limits {
    let mut limits = Limits {
        // Clients that never answer must not hold up their own messages until after the checks.
        reverse_request_ms: 50,
        channel_idle_ms: 4_000,
        active_client_grace_ms: 3_000,
        open_turns: 2,
        page_turns: 2,
        empty_session_ttl_s: 120,
        sweep_ms: 5_000,
        journal_retry_ms: 500,
        inline_body_bytes: 30,
        inline_session_bytes: 90,
        blob_grace_s: 60,
        retention_disposed_s: 100,
        queued_messages_max: 3,
        worker_depth_max: 2,
        workers_max: 3,
        ..Limits::default()
    };
    if rng.percent(50) {
        limits.tail_bytes = usize::try_from(rng.below(4_000)).unwrap_or(0);
    }
    if rng.percent(30) {
        limits.retention_actions = 10 + rng.below(100);
    }
    if rng.percent(15) {
        limits.message_out_bytes = 8_000 + rng.index(20_000);
    }
    limits
}

impl Simulation {
    fn new(seed: u64, trace: bool) -> Self {
        let mut rng = SeededRng::new(seed);
        let limits = limits(&mut rng);
        let mut world = World::new(rng.next_u64(), limits);
        world.trace = trace;
        world.read_ms_max = *rng.pick(&[0, 0, 3, 40]).unwrap_or(&0);
        world.start_ms_max = *rng.pick(&[0, 5, 300]).unwrap_or(&0);
        // Other code that mirrors costs more than all the rest: a part of the simulations is enough.
        let replicas = rng.percent(20);
        for name in ["ann", "bob", "cem", "dee", "eli"].iter().take(2 + rng.index(4)) {
            let version = if rng.percent(30) { "0.9.0" } else { "1.0.0" };
            let client = Client::new(name, version);
            world.clients.push(if replicas { client.with_replicas() } else { client });
        }
        let names = ["ahp-session:/a", "scripted:/b", "x-own:/c"];
        let many = 1 + rng.index(names.len());
        let sessions = names.iter().take(many).map(|name| (*name).to_owned());
        let fault_percent = *rng.pick(&[3, 15, 50, 100]).unwrap_or(&100);
        let windows = rng.percent(50);
        let compares_after_crashes = rng.percent(60);
        Self {
            world,
            sessions: sessions.collect(),
            rng,
            turns: 0,
            fault_percent,
            windows,
            compares_after_crashes,
            wrong: Vec::new(),
            compared: 0,
            sent_decisions: Vec::new(),
        }
    }

    /// Sessions that are there, and clients that watch them, before anything goes wrong; in most simulations.
    fn open_sessions(&mut self) {
        if self.rng.percent(30) {
            return;
        }
        for client in 0..self.world.clients.len() {
            self.connect_client(client);
        }
        self.deliver_everything();
        for session in self.sessions.clone() {
            self.request(0, "createSession", serde_json::json!({"channel": session}));
        }
        self.deliver_everything();
        for client in 0..self.world.clients.len() {
            for session in self.sessions.clone() {
                for _ in 0..2 {
                    self.subscribe(client, &session, testkit::default_chat(&session));
                }
            }
        }
        self.deliver_everything();
    }

    fn step(&mut self) {
        match self.rng.below(1_000) {
            0..=419 => {
                let client = self.rng.index(self.world.clients.len());
                self.act_as_client(client);
            }
            420..=499 => self.deliver_some(true),
            500..=599 => {
                let most = 1 + self.rng.index(8);
                self.world.batch(most);
            }
            600..=679 => self.deliver_some(false),
            680..=879 => self.deliver_everything(),
            880..=899 => self.act_as_agent(),
            900..=969 => {
                let ms = match self.rng.below(120) {
                    0 => 150_000,
                    1..=5 => self.rng.below(8_000),
                    _ => self.rng.below(60),
                };
                self.world.advance_ms(ms);
            }
            _ if self.rng.percent(self.fault_percent) => self.inject_fault(),
            _ => {}
        }
        if self.rng.percent(8) {
            self.world.faults.mend_disk();
            self.world.faults.mend_reads();
        }
        if !self.world.is_up() && self.rng.percent(30) {
            self.world.start();
            if self.compares_after_crashes && self.wrong.is_empty() {
                self.compare_after_crash();
            }
        }
    }

    /// Everything that is on its way arrives, and what it causes with it.
    fn deliver_everything(&mut self) {
        let peers: Vec<_> = self.world.links.keys().copied().collect();
        for peer in &peers {
            while self.world.carry_to_host(*peer) {}
        }
        let most = 1 + self.rng.index(16);
        while self.world.batch(most) {}
        for peer in &peers {
            while self.world.carry_to_client(*peer) {}
        }
    }

    /// Some messages of one link move on.
    fn deliver_some(&mut self, to_host: bool) {
        let peers: Vec<_> = self.world.links.keys().copied().collect();
        let Some(peer) = self.rng.pick(&peers).copied() else { return };
        for _ in 0..1 + self.rng.below(12) {
            let moved = if to_host {
                self.world.carry_to_host(peer)
            } else {
                self.world.carry_to_client(peer)
            };
            if !moved {
                return;
            }
        }
    }
}
