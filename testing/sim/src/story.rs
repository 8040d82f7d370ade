//! One story: a world from a seed, a few hundred steps, and how it ends.

use std::collections::BTreeMap;

use kernel::Limits;
use testkit::World;
use testkit::chance::Chance;
use testkit::client::Client;

/// How a story ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ending {
    /// Stands for every byte the host spoke.
    pub hash: u64,
    pub wrong: Vec<String>,
    /// How often each kind of action was recorded, and what agents did.
    pub happened: BTreeMap<String, u64>,
}

/// A story being told.
pub(crate) struct Story {
    pub world: World,
    pub chance: Chance,
    pub sessions: Vec<String>,
    pub turns: u64,
    /// How many of a hundred mishaps that could happen do.
    storm: u64,
    /// Clients ask for parts of chats. Then the disk does not fail: which part one was shown while nothing could be
    /// written, a host that was killed cannot know.
    pub windows: bool,
    /// Decisions that were sent once, and may be sent again when it is too late.
    pub said: Vec<(String, serde_json::Value)>,
}

/// Tells the story of a seed.
pub fn tell(seed: u64, aloud: bool) -> Ending {
    let mut story = Story::new(seed, aloud);
    story.opens();
    let steps = 150 + story.chance.below(400);
    for _ in 0..steps {
        story.step();
    }
    let mut wrong = story.heals();
    if wrong.is_empty() && story.chance.percent(60) {
        wrong = story.survives_one_more_restart();
    }
    let mut happened = story.world.ledger.kinds.clone();
    let models = &story.world.models;
    let runs = [
        ("(turns run)", models.asked.len()),
        ("(tools run)", models.executed.len()),
        ("(replies)", models.heard.len()),
    ];
    for rendered in &models.rendered {
        let name = format!("(render: {})", rendered.transform.word());
        *happened.entry(name).or_default() += 1;
    }
    for (name, count) in runs {
        happened.insert(name.to_owned(), count as u64);
    }
    Ending {
        hash: story.world.hash(),
        wrong,
        happened,
    }
}

fn limits(chance: &mut Chance) -> Limits {
    let mut limits = Limits {
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
    if chance.percent(50) {
        limits.tail_bytes = usize::try_from(chance.below(4_000)).unwrap_or(0);
    }
    if chance.percent(30) {
        limits.retention_actions = 10 + chance.below(100);
    }
    if chance.percent(15) {
        limits.message_out_bytes = 8_000 + chance.index(20_000);
    }
    limits
}

impl Story {
    fn new(seed: u64, aloud: bool) -> Self {
        let mut chance = Chance::new(seed);
        let limits = limits(&mut chance);
        let mut world = World::new(chance.roll(), limits);
        world.trace = aloud;
        world.read_ms_max = *chance.pick(&[0, 0, 3, 40]).unwrap_or(&0);
        world.start_ms_max = *chance.pick(&[0, 5, 300]).unwrap_or(&0);
        for name in ["ann", "bob", "cem", "dee", "eli"]
            .iter()
            .take(2 + chance.index(4))
        {
            let version = if chance.percent(30) { "0.9.0" } else { "1.0.0" };
            world.clients.push(Client::new(name, version));
        }
        let names = ["ahp-session:/a", "scripted:/b", "x-own:/c"];
        let many = 1 + chance.index(names.len());
        let sessions = names.iter().take(many).map(|name| (*name).to_owned());
        let storm = *chance.pick(&[3, 15, 50, 100]).unwrap_or(&100);
        let windows = chance.percent(50);
        Self {
            world,
            sessions: sessions.collect(),
            chance,
            turns: 0,
            storm,
            windows,
            said: Vec::new(),
        }
    }

    /// Sessions that are there, and people who look at them, before anything goes wrong; in most stories.
    fn opens(&mut self) {
        if self.chance.percent(30) {
            return;
        }
        for client in 0..self.world.clients.len() {
            self.arrives(client);
        }
        self.breathe();
        for session in self.sessions.clone() {
            self.asks(0, "createSession", serde_json::json!({"channel": session}));
        }
        self.breathe();
        for client in 0..self.world.clients.len() {
            for session in self.sessions.clone() {
                for _ in 0..2 {
                    self.subscribes(client, &session, testkit::default_chat(&session));
                }
            }
        }
        self.breathe();
    }

    fn step(&mut self) {
        match self.chance.below(1_000) {
            0..=419 => {
                let client = self.chance.index(self.world.clients.len());
                self.client_does_something(client);
            }
            420..=499 => self.carry(true),
            500..=599 => {
                let most = 1 + self.chance.index(8);
                self.world.batch(most);
            }
            600..=679 => self.carry(false),
            680..=879 => self.breathe(),
            880..=969 => {
                let ms = match self.chance.below(120) {
                    0 => 150_000,
                    1..=5 => self.chance.below(8_000),
                    _ => self.chance.below(60),
                };
                self.world.advance_ms(ms);
            }
            _ if self.chance.percent(self.storm) => self.mishap(),
            _ => {}
        }
        if self.chance.percent(8) {
            self.world.faults.mend_disk();
            self.world.faults.mend_reads();
        }
        if !self.world.is_up() && self.chance.percent(30) {
            self.world.start();
        }
    }

    /// Everything that is on its way arrives, and what it causes with it.
    fn breathe(&mut self) {
        let peers: Vec<_> = self.world.links.keys().copied().collect();
        for peer in &peers {
            while self.world.carry_to_host(*peer) {}
        }
        let most = 1 + self.chance.index(16);
        while self.world.batch(most) {}
        for peer in &peers {
            while self.world.carry_to_client(*peer) {}
        }
    }

    /// Some messages of one link move on.
    fn carry(&mut self, to_host: bool) {
        let peers: Vec<_> = self.world.links.keys().copied().collect();
        let Some(peer) = self.chance.pick(&peers).copied() else {
            return;
        };
        for _ in 0..1 + self.chance.below(12) {
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
