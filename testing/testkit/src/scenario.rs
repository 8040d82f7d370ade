//! The language of stories: who is there, what they do, what the model says, what goes wrong, and that all agree.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use host::journal::Faults;
use kernel::Limits;
use serde_json::{Value, json};

use crate::checker;
use crate::client::Client;
use crate::published_types;
use crate::scenario_client::ScenarioClient;
use crate::script::Script;
use crate::tool::Tool;
use crate::world::{Kill, World};

/// One test. It ends in agreement: what [`Scenario::all_agree`] asserts is asserted when it is dropped, too.
pub struct Scenario {
    world: Rc<RefCell<World>>,
    ends_unchecked: bool,
}

impl Default for Scenario {
    fn default() -> Self {
        Self::new()
    }
}

impl Scenario {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// A host with other limits.
    pub fn with(change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits::default();
        change(&mut limits);
        Self { world: Rc::new(RefCell::new(World::new(1, limits))), ends_unchecked: false }
    }

    /// Starts a host to which `ann` is connected.
    pub fn with_client() -> (Self, ScenarioClient) {
        Self::new().and_client()
    }

    /// Starts a host on which `ann` has opened a chat.
    pub fn with_chat() -> (Self, ScenarioClient) {
        Self::new().and_chat()
    }

    /// Starts a host on which `ann` has opened a chat that `bob` joined.
    pub fn with_shared_chat() -> (Self, ScenarioClient, ScenarioClient) {
        Self::new().and_shared_chat()
    }

    /// Connects `ann`.
    pub fn and_client(mut self) -> (Self, ScenarioClient) {
        let ann = self.client("ann").arrives();
        (self, ann)
    }

    /// Lets `ann` open a chat.
    pub fn and_chat(mut self) -> (Self, ScenarioClient) {
        let ann = self.client("ann").opens_chat();
        (self, ann)
    }

    /// Lets `ann` open a chat that `bob` joins.
    pub fn and_shared_chat(self) -> (Self, ScenarioClient, ScenarioClient) {
        let (mut scenario, ann) = self.and_chat();
        let bob = scenario.client("bob").joins(&ann);
        (scenario, ann, bob)
    }

    pub fn world(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    pub fn look(&self) -> Ref<'_, World> {
        self.world.borrow()
    }

    /// A client of the current protocol, not connected yet.
    pub fn client(&mut self, name: &str) -> ScenarioClient {
        self.client_of(name, "1.0.0")
    }

    pub fn client_of(&mut self, name: &str, version: &str) -> ScenarioClient {
        let mut world = self.world.borrow_mut();
        let index = world.clients.len();
        world.clients.push(Client::new(name, version).with_replicas());
        ScenarioClient::new(Rc::clone(&self.world), index)
    }

    /// What the model does in the next turn that has no script yet.
    pub fn model(&mut self) -> ModelTalk<'_> {
        ModelTalk { scenario: self, script: Script::new() }
    }

    pub fn settles(&mut self) {
        self.world().settle();
    }

    /// Time passes and all that comes with it happens.
    pub fn advances_ms(&mut self, ms: u64) {
        self.world().advance_ms(ms);
        self.settles();
    }

    /// Time passes in steps, so that timers that set timers all get their turn.
    pub fn advances_in_steps(&mut self, ms: u64, step_ms: u64) {
        let mut passed = 0;
        while passed < ms {
            self.advances_ms(step_ms.min(ms - passed));
            passed += step_ms;
        }
    }

    pub fn host_is_killed(&mut self) {
        self.world().kill();
    }

    /// The host will die at this point of the next batch that writes.
    pub fn host_dies_at(&mut self, point: Kill) {
        self.world().kill_at = Some(point);
    }

    pub fn host_restarts(&mut self) {
        if self.look().is_up() {
            self.host_is_killed();
        }
        self.world().start();
        self.settles();
    }

    /// Restarts the host; these clients reconnect, one after the other.
    pub fn host_restarts_for<const N: usize>(&mut self, clients: [&ScenarioClient; N]) {
        self.host_restarts();
        for client in clients {
            client.reconnects();
        }
    }

    /// Inputs of the tools that really ran, in order.
    pub fn executed(&self) -> Vec<String> {
        let world = self.look();
        let executed = world.models.executed.iter();
        executed.map(|execution| execution.input.clone()).collect()
    }

    /// Texts of the messages that agents were given, in order.
    pub fn asked(&self) -> Vec<String> {
        let world = self.look();
        let text = |run: &kernel::TurnRun| run.message["text"].as_str().unwrap_or("").to_owned();
        world.models.asked.iter().map(text).collect()
    }

    pub fn faults(&self) -> Faults {
        self.look().faults.clone()
    }

    /// Reads take up to this long from now on.
    pub fn reads_take_ms(&mut self, ms: u64) {
        self.world().read_ms_max = ms;
    }

    pub fn sessions_take_ms(&mut self, ms: u64) {
        self.world().start_ms_max = ms;
    }

    /// The host's state of a channel, as a new client gets it.
    pub fn state(&mut self, channel: &str) -> Value {
        let mut world = self.world();
        checker::host_states(&mut world).get(channel).cloned().unwrap_or(Value::Null)
    }

    /// The test ends where not all can agree: a client was refused, or the host is dead.
    pub fn ends_unchecked(&mut self) {
        self.ends_unchecked = true;
    }

    /// Every mirror == host == replayed journal, published clients can decode all that was sent, and nothing happened that must
    /// not.
    #[track_caller]
    pub fn all_agree(&mut self) {
        let mut wrong = checker::violations(&mut self.world());
        let world = self.look();
        wrong.extend(world.clients.iter().flat_map(published_types::errors));
        drop(world);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

impl Drop for Scenario {
    fn drop(&mut self) {
        if !self.ends_unchecked && !std::thread::panicking() {
            self.all_agree();
        }
    }
}

/// Writes a script, and hands it to the model when the sentence ends.
pub struct ModelTalk<'a> {
    scenario: &'a mut Scenario,
    script: Script,
}

impl ModelTalk<'_> {
    fn with(mut self, change: impl FnOnce(Script) -> Script) -> Self {
        self.script = change(std::mem::take(&mut self.script));
        self
    }

    pub fn streams<'a>(self, chunks: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|script| script.streams(chunks))
    }

    pub fn thinks<'a>(self, chunks: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|script| script.thinks(chunks))
    }

    pub fn emits(self, event: agent_api::AgentEvent) -> Self {
        self.with(|script| script.emits(event))
    }

    pub fn stores_checkpoint(self, checkpoint: &'static str) -> Self {
        self.with(|script| script.stores_checkpoint(checkpoint))
    }

    pub fn waits_ms(self, ms: u64) -> Self {
        self.with(|script| script.waits_ms(ms))
    }

    pub fn hangs(self) -> Self {
        self.with(Script::hangs)
    }

    pub fn fails(self) -> Self {
        self.with(|script| script.fails(false))
    }

    pub fn fails_resumably(self) -> Self {
        self.with(|script| script.fails(true))
    }

    pub fn talks_on_after_stop(self) -> Self {
        self.with(Script::ignores_stop)
    }

    pub fn calls(self, tool: Tool) -> Self {
        self.with(|script| script.calls(tool))
    }

    pub fn runs_tool(self, name: &str, input: &str) -> Self {
        self.with(|script| script.runs_tool(name, input))
    }

    pub fn asks_tool(self, name: &str, input: &str) -> Self {
        self.with(|script| script.asks_tool(name, input))
    }

    /// Calls a client's tool and waits half a minute at most.
    pub fn calls_client(self, name: &str) -> Self {
        self.with(|script| script.calls_client(name, json!({"path": "a"}), 30_000))
    }

    pub fn asks(self, request: Value) -> Self {
        self.with(|script| script.asks(request))
    }

    pub fn asks_for_text(self, question: &str) -> Self {
        self.with(|script| script.asks_for_text(question))
    }

    pub fn steers(self) -> Self {
        self.with(Script::steers)
    }

    pub fn spawns(self, title: &str, script: Script) -> Self {
        self.with(|own| own.spawns(title, script))
    }

    /// Renders a prompt of these sections and says what came of it.
    pub fn renders<'a>(self, sections: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.with(|script| script.renders(sections))
    }

    /// Sends the last reply it got as text.
    pub fn repeats(self) -> Self {
        self.with(Script::repeats)
    }

    pub fn announces(self, call: u64, name: &str) -> Self {
        self.with(|script| script.announces(call, name))
    }

    pub fn readies(self, call: u64, fields: Value) -> Self {
        self.with(|script| script.readies(call, fields))
    }

    pub fn reports(self, call: u64, result: Value) -> Self {
        self.with(|script| script.reports(call, result))
    }

    /// Whatever a script can do.
    pub fn plays(self, change: impl FnOnce(Script) -> Script) -> Self {
        self.with(change)
    }
}

impl Drop for ModelTalk<'_> {
    fn drop(&mut self) {
        let script = std::mem::take(&mut self.script);
        self.scenario.world().models.next.push_back(script);
    }
}
