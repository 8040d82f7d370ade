//! The world around the nodes: time, the network, what goes wrong, and the checkers.

use std::collections::BTreeMap;

use super::PlantedBug;
use super::faults::SimFigures;
use super::node::{SimAnswer, SimEntry, SimNode, SimRequest, SimStatement, SpaceHold};
use super::table::TableModel;
use crate::cluster::lease_table::{BootInstant, NodeId, SpaceId};
use crate::cluster::node_machine::{
    LEASE_TIMES, NodeInput, NodeMachine, NodeStanding, SpaceFinding,
};

pub(super) const NODES: usize = 3;
pub(super) const SPACES: i64 = 6;
/// Things go wrong until then.
pub(super) const FAULTS_MS: u64 = 45_000;
/// A statement that is lost is given up after this.
const TIMEOUT_MS: u64 = 2_000;
/// A packet may be so late.
const LATE_MS: u64 = 4_000;
/// From the end of the last fault until every space is served: the time after which a node that is gone may be judged, two
/// seconds, and what was sent into the void is given up first.
const SERVED_MS: u64 = LEASE_TIMES.ttl_ms + 2_000 + TIMEOUT_MS;
const END_MS: u64 = FAULTS_MS + SERVED_MS;

pub(super) enum SimEvent {
    /// A node, of a start, has something to do.
    Node(usize, u64, SimNodeEvent),
    /// A statement reaches the table, of a node that may be gone; its answer, if any, goes back.
    Arrive {
        sender: SimSender,
        statement: SimStatement,
        is_answered: bool,
    },
    /// A process starts.
    Start(usize),
    Fault,
    Client,
    TableUp,
}

/// Sender of a statement.
#[derive(Clone, Copy)]
pub(super) struct SimSender {
    index: usize,
    start: u64,
    id: NodeId,
}

pub(super) enum SimNodeEvent {
    Wake(u64),
    Answer(SimStatement, SimAnswer),
    Wanted(SpaceId),
    Unwanted(SpaceId),
    Ended(SpaceId),
    Write(SpaceHold),
    Speak(SpaceHold, SimEntry),
}

pub(super) struct SimMachine {
    /// Counts the processes that ran here.
    pub(super) start: u64,
    pub(super) node: Option<SimNode>,
    /// What its clock shows at the beginning.
    clock: u64,
    pub(super) paused_until: u64,
    /// A process runs here: its directory is locked, so there is never a second.
    pub(super) is_up: bool,
    /// Which of the timers counts: the last that was set.
    timer: u64,
    register_sent: BootInstant,
}

pub(super) struct LeaseWorld {
    random: u64,
    bug: PlantedBug,
    pub(super) now: u64,
    sent: u64,
    events: BTreeMap<(u64, u64), SimEvent>,
    pub(super) places: Vec<SimMachine>,
    pub(super) table: TableModel,
    pub(super) table_down_until: u64,
    /// What the database's clock is ahead.
    pub(super) skew: u64,
    pub(super) jumped_at: Option<u64>,
    /// The node that never starts again.
    pub(super) gone: Option<usize>,
    /// What is wanted next when all is quiet.
    pub(super) turn: u64,
    values: u64,
    heard: Vec<(SpaceId, SimEntry)>,
    /// By the kernel that said it: clients of one that was stopped hear what it had committed.
    last_heard: BTreeMap<(usize, SpaceHold), u64>,
    pub(super) figures: SimFigures,
}

impl LeaseWorld {
    pub(super) fn new(seed: u64, bug: PlantedBug) -> Self {
        let mut world = Self {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d,
            bug,
            now: 0,
            sent: 0,
            events: BTreeMap::new(),
            places: Vec::new(),
            table: TableModel::new(SPACES, bug),
            table_down_until: 0,
            skew: 100_000,
            jumped_at: None,
            gone: None,
            turn: 0,
            values: 0,
            heard: Vec::new(),
            last_heard: BTreeMap::new(),
            figures: SimFigures::default(),
        };
        for index in 0..NODES {
            let clock = world.below(1_000_000);
            world.places.push(SimMachine {
                start: 0,
                node: None,
                clock,
                paused_until: 0,
                is_up: false,
                timer: 0,
                register_sent: BootInstant(0),
            });
            let after = world.below(3_000);
            world.at(after, SimEvent::Start(index));
        }
        world.at(100, SimEvent::Client);
        world.at(5_000, SimEvent::Fault);
        world
    }

    pub(super) fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(super) fn draw_percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn at(&mut self, after: u64, event: SimEvent) {
        self.sent += 1;
        self.events.insert((self.now + after, self.sent), event);
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.now >= FAULTS_MS
    }

    fn table_now(&self) -> u64 {
        self.now + self.skew
    }

    fn clock(&self, index: usize) -> BootInstant {
        BootInstant(self.places[index].clock + self.now)
    }

    /// Runs to the end, or until a rule is broken.
    pub(super) fn run(mut self) -> Result<SimFigures, String> {
        while let Some(((at, _), event)) = self.events.pop_first() {
            if at > END_MS {
                break;
            }
            self.now = at;
            match event {
                SimEvent::Node(index, start, event) => self.run_node(index, start, event)?,
                SimEvent::Arrive { sender, statement, is_answered } => {
                    self.arrive(sender, statement, is_answered)?
                }
                SimEvent::Start(index) => self.register(index),
                SimEvent::Fault => self.inject_fault(),
                SimEvent::Client => self.ask_for_space(),
                SimEvent::TableUp => {}
            }
        }
        self.check_end()?;
        self.figures.heard = self.heard.len() as u64;
        self.figures.takeovers = self.table.takeovers;
        Ok(self.figures)
    }

    fn check_end(&self) -> Result<(), String> {
        for (space, entry) in &self.heard {
            if !self.table.has(*space, *entry) {
                let seq = entry.seq;
                return Err(format!("{seq} of {space} was heard and is not in the journal"));
            }
        }
        for space in 1..=SPACES {
            let nodes = self.places.iter().filter_map(|place| place.node.as_ref());
            let served =
                nodes.filter(|node| self.table.owner(space) == Some(node.id) && node.serves(space));
            if served.count() != 1 {
                return Err(format!("{space} is not served after {SERVED_MS} ms of quiet"));
            }
        }
        Ok(())
    }

    /// A process that is stopped does it when it goes on.
    fn run_node(&mut self, index: usize, start: u64, event: SimNodeEvent) -> Result<(), String> {
        let place = &self.places[index];
        if place.start != start {
            return Ok(()); // that process is dead
        }
        if place.paused_until > self.now {
            let wait = place.paused_until - self.now;
            self.at(wait, SimEvent::Node(index, start, event));
            return Ok(());
        }
        let now = self.clock(index);
        if let SimNodeEvent::Answer(SimStatement::Register, answer) = event {
            self.begin_node(index, &answer);
            return Ok(());
        }
        self.values += 1;
        let (value, bug) = (self.values, self.bug);
        let timer_set = self.places[index].timer;
        let Some(node) = self.places[index].node.as_mut() else {
            return Ok(()); // it is not registered yet
        };
        let was_trusted = node.machine.standing() == NodeStanding::Trusted;
        let wishes = match event {
            SimNodeEvent::Wake(timer) if timer != timer_set => return Ok(()), // another was set
            SimNodeEvent::Wake(_) => node.handle(NodeInput::Woke, now),
            SimNodeEvent::Answer(statement, answer) => node.take_answer(statement, answer, now),
            SimNodeEvent::Wanted(space) => node.handle(NodeInput::Wanted(space), now),
            SimNodeEvent::Unwanted(space) => node.handle(NodeInput::Unwanted(space), now),
            SimNodeEvent::Ended(space) => node.handle(NodeInput::Ended(space), now),
            SimNodeEvent::Write(hold) => {
                let mut wishes = node.write(hold, value, now);
                if bug == PlantedBug::SpeakUncommitted
                    && let Some(SimRequest::Send(SimStatement::Append { batch, .. })) =
                        wishes.first()
                {
                    let entry = batch.entry;
                    wishes.push(SimRequest::Speak { hold, entry });
                }
                wishes
            }
            SimNodeEvent::Speak(hold, entry) => return self.speak(index, hold, entry),
        };
        let standing = node.machine.standing();
        self.figures.silences += u64::from(was_trusted && standing == NodeStanding::Silent);
        self.grant(index, start, wishes)?;
        if standing == NodeStanding::Ended {
            // The process ends with an error, and is started again.
            self.kill(index);
            self.at(200, SimEvent::Start(index));
            return Ok(());
        }
        self.wake_later(index);
        Ok(())
    }

    fn register(&mut self, index: usize) {
        let sent = self.clock(index);
        self.places[index].start += 1;
        self.places[index].is_up = true;
        self.places[index].register_sent = sent;
        self.send(index, 0, SimStatement::Register);
    }

    pub(super) fn kill(&mut self, index: usize) {
        let place = &mut self.places[index];
        place.start += 1;
        place.is_up = false;
        place.node = None;
        place.paused_until = 0;
    }

    fn begin_node(&mut self, index: usize, answer: &SimAnswer) {
        let SimAnswer::Registered(id) = answer else {
            return self.register(index); // once more
        };
        let sent = self.places[index].register_sent;
        let machine = NodeMachine::registered(*id, sent, LEASE_TIMES);
        let first_hold = self.places[index].start * 1_000_000;
        self.places[index].node = Some(SimNode::new(*id, machine, first_hold));
        self.wake_later(index);
    }

    fn wake_later(&mut self, index: usize) {
        let now = self.clock(index);
        let start = self.places[index].start;
        let place = &mut self.places[index];
        place.timer += 1;
        let timer = place.timer;
        let wake = place.node.as_ref().and_then(|node| node.machine.next_wake());
        if let Some(wake) = wake {
            let after = wake.0.saturating_sub(now.0) + self.below(20);
            self.at(after, SimEvent::Node(index, start, SimNodeEvent::Wake(timer)));
        }
    }

    fn grant(&mut self, index: usize, start: u64, wishes: Vec<SimRequest>) -> Result<(), String> {
        for wish in wishes {
            let id = self.places[index].node.as_ref().map_or(0, |node| node.id);
            match wish {
                SimRequest::Send(statement) => self.send(index, id, statement),
                SimRequest::Speak { hold, entry } => {
                    let after = self.below(5);
                    let speak = SimNodeEvent::Speak(hold, entry);
                    self.at(after, SimEvent::Node(index, start, speak));
                }
                SimRequest::Write { hold, after_ms } => {
                    let after = after_ms + self.below(200);
                    self.at(after, SimEvent::Node(index, start, SimNodeEvent::Write(hold)));
                }
                SimRequest::End { space } => {
                    let after = self.below(50);
                    self.at(after, SimEvent::Node(index, start, SimNodeEvent::Ended(space)));
                }
                // A client that is let in reads at once.
                SimRequest::Told(space, SpaceFinding::Here) => {
                    let now = self.clock(index);
                    let node = self.places[index].node.as_ref();
                    if node.is_some_and(|node| node.machine.may_speak(now) && node.serves(space)) {
                        self.check_speech(index, space)?;
                    }
                }
                SimRequest::Told(..) => {}
            }
        }
        Ok(())
    }

    /// What is committed is said when the node may speak, and only by whoever has the space.
    fn speak(&mut self, index: usize, hold: SpaceHold, entry: SimEntry) -> Result<(), String> {
        let (space, seq) = (hold.space, entry.seq);
        let (now, start) = (self.clock(index), self.places[index].start);
        let node = self.places[index].node.as_ref();
        let Some(node) = node.filter(|node| node.serves_since(hold)) else {
            return Ok(()); // the space was dropped, and what it had to say with it
        };
        if !node.machine.may_speak(now) && self.bug != PlantedBug::SpeakUntrusted {
            let speak = SimNodeEvent::Speak(hold, entry);
            self.at(50, SimEvent::Node(index, start, speak));
            return Ok(());
        }
        self.check_speech(index, space)?;
        let last = self.last_heard.entry((index, hold)).or_default();
        if seq <= *last && self.bug == PlantedBug::None {
            return Err(format!("{seq} of {space} was heard after {last}"));
        }
        *last = seq;
        self.heard.push((space, entry));
        let after = 20 + self.below(300);
        self.at(after, SimEvent::Node(index, start, SimNodeEvent::Write(hold)));
        Ok(())
    }

    /// Nobody speaks for a space that another has taken, unless the database's clock has jumped just now.
    fn check_speech(&self, index: usize, space: SpaceId) -> Result<(), String> {
        let has_jumped = self.jumped_at.is_some_and(|at| at + 2 * LEASE_TIMES.ttl_ms > self.now);
        let id = self.places[index].node.as_ref().map(|node| node.id);
        let owner = self.table.owner(space);
        if owner == id || has_jumped {
            Ok(())
        } else {
            Err(format!("{id:?} spoke for {space}, which is {owner:?}'s, at {}", self.now))
        }
    }

    /// Sends a statement; it may be lost, or its answer, or come much later than anybody waits.
    fn send(&mut self, index: usize, id: NodeId, statement: SimStatement) {
        let start = self.places[index].start;
        let there = 1 + self.below(20);
        let (is_lost, is_late, is_unheard) = if self.is_quiet() {
            (false, false, false)
        } else {
            // The last late packet comes before it is quiet.
            (
                self.draw_percent(2),
                self.draw_percent(2) && self.now + LATE_MS < FAULTS_MS,
                self.draw_percent(2),
            )
        };
        if is_lost || is_late || is_unheard {
            self.figures.lost_answers += 1;
            let after = there + self.below(TIMEOUT_MS - 50);
            let unknown = SimNodeEvent::Answer(statement.clone(), SimAnswer::Unknown);
            self.at(after, SimEvent::Node(index, start, unknown));
        }
        if is_lost {
            return;
        }
        let there = if is_late {
            self.figures.late_packets += 1;
            there + self.below(LATE_MS - 50)
        } else {
            there
        };
        let is_answered = !is_late && !is_unheard;
        let sender = SimSender { index, start, id };
        let arrive = SimEvent::Arrive { sender, statement, is_answered };
        self.at(there, arrive);
    }

    fn arrive(
        &mut self,
        sender: SimSender,
        statement: SimStatement,
        is_answered: bool,
    ) -> Result<(), String> {
        let SimSender { index, start, id } = sender;
        let now = self.table_now();
        let answer = if self.now < self.table_down_until {
            SimAnswer::Unknown
        } else {
            self.table.observe(now);
            match &statement {
                SimStatement::Register if self.places[index].start != start => SimAnswer::Unknown,
                SimStatement::Register => {
                    SimAnswer::Registered(self.table.register(index as u64, now))
                }
                SimStatement::Lease { ask, .. } => SimAnswer::Lease(self.table.ask(id, ask, now)?),
                SimStatement::Boot(hold) => SimAnswer::Boot(self.table.boot(id, hold.space)),
                SimStatement::Append { hold, batch } => {
                    SimAnswer::Append(self.table.append(hold.space, *batch)?)
                }
                SimStatement::Renew { hold, epochs } => {
                    SimAnswer::Renewed(self.table.renew(id, hold.space, *epochs))
                }
                SimStatement::GiveBack { hold, epoch } => {
                    self.table.give_back(id, hold.space, *epoch);
                    SimAnswer::GivenBack
                }
            }
        };
        if is_answered {
            let back = 1 + self.below(20);
            let answered = SimNodeEvent::Answer(statement, answer);
            self.at(back, SimEvent::Node(index, start, answered));
        }
        Ok(())
    }
}
