//! What the node's state machine does about spaces that fail here, and about work that could not be taken at once.

use super::lease_table::{
    BootInstant, FoundLease, HeartbeatRow, LeaseAnswer, LeaseAsk, PeerNode, TakenLease,
};
use super::node_machine::{LEASE_TIMES, NodeCommand, NodeInput, NodeMachine, SpaceFinding};

const ME: i64 = 1;
const SPACE: i64 = 7;
const LEASE: TakenLease = TakenLease { epoch: 3, batch: 9 };

/// A machine and its clock.
struct TestMachine {
    machine: NodeMachine,
    now: u64,
}

impl TestMachine {
    /// One that has looked for work that nobody does.
    fn new() -> Self {
        let mut node = Self::started();
        assert_eq!(node.beat(&[]), [list_work()]);
        let nothing = LeaseAnswer::Work(Vec::new());
        assert_eq!(node.answer(LIST, nothing), []);
        node
    }

    fn started() -> Self {
        Self { machine: NodeMachine::registered(ME, BootInstant(0), LEASE_TIMES), now: 0 }
    }

    fn tell(&mut self, input: NodeInput) -> Vec<NodeCommand> {
        self.machine.handle(input, BootInstant(self.now))
    }

    fn answer(&mut self, ask: LeaseAsk, answer: LeaseAnswer) -> Vec<NodeCommand> {
        let sent = BootInstant(self.now);
        self.tell(NodeInput::Answered { ask, sent, answer })
    }

    /// The next heartbeat, answered with who is gone.
    fn beat(&mut self, expired: &[i64]) -> Vec<NodeCommand> {
        self.beat_taken(expired, 0)
    }

    /// The same, and how often something was taken from the node.
    fn beat_taken(&mut self, expired: &[i64], taken: i64) -> Vec<NodeCommand> {
        self.now += LEASE_TIMES.beat_ms;
        let asked = self.tell(NodeInput::Woke);
        assert_eq!(asked, [NodeCommand::Ask(LeaseAsk::Heartbeat)]);
        let row = HeartbeatRow { taken, expired: expired.to_vec(), living: vec![1] };
        let mut todo = self.answer(LeaseAsk::Heartbeat, LeaseAnswer::Heartbeat(Some(row)));
        todo.retain(|command| *command != NodeCommand::Stand);
        todo
    }

    fn find(&mut self, alive: Option<i64>) -> Vec<NodeCommand> {
        let alive = alive.map(|id| PeerNode {
            id,
            name: "b".to_owned(),
            address: String::new(),
            fingerprint: Vec::new(),
        });
        let holder = alive.as_ref().map(|node| node.id);
        let found = LeaseAnswer::Found(Some(FoundLease { holder, alive, offering: None }));
        self.answer(LeaseAsk::Find { space: SPACE }, found)
    }

    /// What is asked a pause after something was answered, and not before.
    fn after_pause(&mut self, answered: Vec<NodeCommand>, ms: u64) -> Vec<NodeCommand> {
        if ms == 0 {
            return answered;
        }
        assert_eq!(answered, []);
        self.now += ms - 1;
        assert_eq!(self.tell(NodeInput::Woke), []);
        self.now += 1;
        assert_eq!(self.machine.next_wake(), Some(BootInstant(self.now)));
        self.tell(NodeInput::Woke)
    }

    /// Takes and loads the space after it was wanted.
    fn load(&mut self) {
        let take = LeaseAsk::Take { space: SPACE, seen: None };
        assert_eq!(self.find(None), [NodeCommand::Ask(take.clone())]);
        let loading = self.answer(take, LeaseAnswer::Taken(Some(LEASE)));
        assert_eq!(loading, [NodeCommand::Load(SPACE, LEASE)]);
        let told = self.tell(NodeInput::Loaded(SPACE));
        assert_eq!(told, [NodeCommand::Tell(SPACE, SpaceFinding::Here)]);
    }
}

const LIST: LeaseAsk = LeaseAsk::ListWork { limit: 50 };

fn list_work() -> NodeCommand {
    NodeCommand::Ask(LIST)
}

fn find() -> NodeCommand {
    NodeCommand::Ask(LeaseAsk::Find { space: SPACE })
}

#[test]
fn a_space_that_failed_is_loaded_anew_though_nobody_wants_it() {
    let mut node = TestMachine::new();
    assert_eq!(node.tell(NodeInput::Wanted(SPACE)), [find()]);
    node.load();
    assert_eq!(node.tell(NodeInput::Failed(SPACE)), []);
    assert_eq!(node.beat(&[]), [find()]);
    // The database does not answer: with the next heartbeat it is tried again.
    for pause in [0, 50, 100] {
        let again = node.answer(LeaseAsk::Find { space: SPACE }, LeaseAnswer::Unknown);
        assert_eq!(node.after_pause(again, pause), [find()]);
    }
    let given_up = node.answer(LeaseAsk::Find { space: SPACE }, LeaseAnswer::Unknown);
    let nobody = NodeCommand::Tell(SPACE, SpaceFinding::Unavailable);
    assert_eq!(given_up, [nobody]);
    assert_eq!(node.beat(&[]), [list_work(), find()]);
    node.load();
    assert_eq!(node.beat(&[]), [], "it is here");
}

#[test]
fn a_space_that_failed_here_and_is_elsewhere_is_let_alone() {
    let mut node = TestMachine::new();
    node.tell(NodeInput::Wanted(SPACE));
    node.load();
    node.tell(NodeInput::Failed(SPACE));
    assert_eq!(node.beat(&[]), [find()]);
    let told = node.find(Some(2));
    assert!(matches!(told.as_slice(), [NodeCommand::Tell(SPACE, SpaceFinding::At(_))]));
    assert_eq!(node.beat(&[]), []);
}

#[test]
fn work_of_a_dead_node_that_could_not_be_taken_is_looked_for_again() {
    let mut node = TestMachine::new();
    assert_eq!(node.beat(&[9]), [list_work()]);
    let take = LeaseAsk::Take { space: SPACE, seen: Some(9) };
    let work = LeaseAnswer::Work(vec![(SPACE, Some(9))]);
    let taking = node.answer(LIST, work);
    assert_eq!(taking, [NodeCommand::Ask(take.clone())]);
    assert_eq!(node.beat(&[9]), [], "it is being dealt with");
    // This node was not well for long enough to judge.
    assert_eq!(node.answer(take.clone(), LeaseAnswer::Taken(None)), [find()]);
    for pause in [50, 100, 0] {
        let found =
            LeaseAnswer::Found(Some(FoundLease { holder: Some(9), alive: None, offering: None }));
        let again = node.answer(LeaseAsk::Find { space: SPACE }, found);
        assert_eq!(again, [NodeCommand::Ask(take.clone())]);
        let refused = node.answer(take.clone(), LeaseAnswer::Taken(None));
        match pause {
            0 => assert_eq!(refused, [NodeCommand::Tell(SPACE, SpaceFinding::Unavailable)]),
            _ => assert_eq!(node.after_pause(refused, pause), [find()]),
        }
    }
    assert_eq!(node.beat(&[9]), [list_work()]);
}

#[test]
fn work_that_nobody_has_is_looked_for_at_the_start_and_after_a_leap() {
    let mut node = TestMachine::started();
    assert_eq!(node.beat(&[]), [list_work()]);
    // The database does not answer: with the next heartbeat it is asked again.
    assert_eq!(node.answer(LIST, LeaseAnswer::Unknown), []);
    assert_eq!(node.beat(&[]), [list_work()]);
    let take = LeaseAsk::Take { space: SPACE, seen: None };
    let work = LeaseAnswer::Work(vec![(SPACE, None)]);
    let taking = node.answer(LIST, work);
    assert_eq!(taking, [NodeCommand::Ask(take.clone())]);
    let loading = node.answer(take.clone(), LeaseAnswer::Taken(Some(LEASE)));
    assert_eq!(loading, [NodeCommand::Load(SPACE, LEASE)]);
    node.tell(NodeInput::Loaded(SPACE));
    assert_eq!(node.beat(&[]), [], "there is nothing new");
    // A leap: the node holds nothing any more, and neither does anybody else.
    let list_owned = NodeCommand::Ask(LeaseAsk::ListOwned);
    assert_eq!(node.beat_taken(&[], 1), [list_owned]);
    let dropped = node.answer(LeaseAsk::ListOwned, LeaseAnswer::Owned(Vec::new()));
    assert_eq!(dropped, [NodeCommand::Drop(SPACE)]);
    // While it is being ended it is not taken, and not forgotten.
    let work = || LeaseAnswer::Work(vec![(SPACE, None)]);
    assert_eq!(node.beat_taken(&[], 1), [list_work()]);
    assert_eq!(node.answer(LIST, work()), []);
    node.tell(NodeInput::Ended(SPACE));
    assert_eq!(node.beat_taken(&[], 1), [list_work()]);
    assert_eq!(node.answer(LIST, work()), [NodeCommand::Ask(take)]);
}

#[test]
fn whoever_waits_for_a_space_that_is_lost_while_it_is_loaded_is_told() {
    let mut node = TestMachine::new();
    assert_eq!(node.tell(NodeInput::Wanted(SPACE)), [find()]);
    let take = LeaseAsk::Take { space: SPACE, seen: None };
    node.find(None);
    node.answer(take, LeaseAnswer::Taken(Some(LEASE)));
    node.beat_taken(&[], 1);
    let lost = node.answer(LeaseAsk::ListOwned, LeaseAnswer::Owned(Vec::new()));
    let nobody = NodeCommand::Tell(SPACE, SpaceFinding::Unavailable);
    assert_eq!(lost, [NodeCommand::Drop(SPACE), nobody]);
    // Who comes now waits until it has ended.
    assert_eq!(node.tell(NodeInput::Wanted(SPACE)), []);
    assert_eq!(node.tell(NodeInput::Loaded(SPACE)), []);
    assert_eq!(node.tell(NodeInput::Ended(SPACE)), [find()]);
}

#[test]
fn a_space_that_fails_again_and_again_is_loaded_less_and_less_often() {
    let mut node = TestMachine::new();
    let fail = |node: &mut TestMachine| {
        let take = LeaseAsk::Take { space: SPACE, seen: None };
        assert_eq!(node.find(None), [NodeCommand::Ask(take.clone())]);
        node.answer(take, LeaseAnswer::Taken(Some(LEASE)));
        node.tell(NodeInput::Failed(SPACE))
    };
    let nobody = || [NodeCommand::Tell(SPACE, SpaceFinding::Unavailable)];
    assert_eq!(node.tell(NodeInput::Wanted(SPACE)), [find()]);
    assert_eq!(fail(&mut node), nobody());
    // Heartbeats are 2 s apart: it is tried with the first, the second, and then every time after twice as many.
    for beats in [1, 1, 2, 4, 8, 16, 30, 30] {
        for _ in 1..beats {
            assert_eq!(node.beat(&[]), []);
        }
        assert_eq!(node.beat(&[]), [find()]);
        assert_eq!(fail(&mut node), nobody());
        if beats > 2 {
            assert_eq!(node.tell(NodeInput::Wanted(SPACE)), nobody(), "not yet");
        }
    }
    node.beat(&[]);
    node.beat(&[]);
    node.beat(&[]);
    assert_eq!(node.tell(NodeInput::Wanted(SPACE)), [find()], "somebody waits");
    node.load();
    assert_eq!(node.tell(NodeInput::Failed(SPACE)), []);
    assert_eq!(node.tell(NodeInput::Wanted(SPACE)), [find()], "it was here");
}

#[test]
fn free_work_is_looked_for_when_a_node_has_left() {
    let mut node = TestMachine::new();
    let mut beat_with = |living: &[i64]| {
        node.now += LEASE_TIMES.beat_ms;
        node.tell(NodeInput::Woke);
        let row = HeartbeatRow { taken: 0, expired: Vec::new(), living: living.to_vec() };
        let mut todo = node.answer(LeaseAsk::Heartbeat, LeaseAnswer::Heartbeat(Some(row)));
        todo.retain(|command| *command != NodeCommand::Stand);
        todo
    };
    assert_eq!(beat_with(&[ME, 2]), [], "another began");
    assert_eq!(beat_with(&[ME, 2]), []);
    assert_eq!(beat_with(&[ME]), [list_work()], "it has left");
}

#[test]
fn a_full_list_of_work_is_asked_for_again_until_it_stays_the_same() {
    let mut node = TestMachine::new();
    let full = || LeaseAnswer::Work((100..150).map(|space| (space, Some(9))).collect());
    assert_eq!(node.beat(&[9]), [list_work()]);
    assert_eq!(node.answer(LIST, full()).len(), 50);
    assert_eq!(node.beat(&[9]), [list_work()], "there may be more");
    assert_eq!(node.answer(LIST, full()), [], "all are dealt with");
    // They cannot be started, and are given back.
    for space in 100..150 {
        let seen = Some(9);
        let taken = LeaseAnswer::Taken(Some(LEASE));
        node.answer(LeaseAsk::Take { space, seen }, taken);
        node.tell(NodeInput::Ended(space));
    }
    assert_eq!(node.beat(&[9]), [list_work()]);
    assert_eq!(node.answer(LIST, full()).len(), 50, "once more");
    assert_eq!(node.beat(&[9]), []);
}
