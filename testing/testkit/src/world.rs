//! The world around the kernel: plays the host's kernel task, step by step, in virtual time.
//!
//! Promises: write, send, act, in this order; the same calls with the same seed give the same bytes.
//! Must not know: what a test wants to prove.

mod kernel_task;
mod time;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use agent_api::{AgentError, AgentReply};
use host::blobs::{Blobs, MemoryBlobs};
use host::complete::Completer;
use host::journal::{Faults, Faulty, Journal, JournalReader, Memory};
use kernel::{
    Answer, Batch, CloseReason, Effect, FetchTask, FetchedContent, HostFacts, Input, Kernel,
    Limits, MessageCheck, ModelChange, ModelsChanged, PeerId, Query, ReadFailed, RunId, WorkFailed,
};
use serde_json::Value;
use wire::Timestamp;

use crate::agents_heard::AgentsHeard;
use crate::client::Client;
use crate::connections::{Connections, StoredClient};
use crate::ledger::Ledger;
use crate::link::Link;
use crate::model::Models;
use crate::rng::SeededRng;

/// Where a host can die within one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    BeforeWrite,
    BeforeSend,
    BeforeAct,
    /// Bodies are stored, and nothing is recorded yet.
    AfterCompose,
}

/// What a host does when its frames have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterFrames {
    Act,
    Die,
}

/// What comes due at a moment.
#[derive(Debug, Clone)]
enum Due {
    Timer(kernel::Timer),
    Input(Input),
    ModelStep(RunId),
}

/// Everything outside the kernel.
pub struct World {
    pub now: Timestamp,
    pub kernel: Option<Kernel>,
    pub limits: Limits,
    pub facts: HostFacts,
    pub memory: Memory,
    pub faults: Faults,
    pub blobs: MemoryBlobs,
    completer: Completer,
    journal: Box<dyn Journal>,
    reader: Box<dyn JournalReader>,
    pub(crate) queue: VecDeque<Input>,
    agenda: BTreeMap<(Timestamp, u64), Due>,
    agenda_set: u64,
    pub links: BTreeMap<PeerId, Link>,
    pub(crate) next_peer: u64,
    pub clients: Vec<Client>,
    pub models: Models,
    /// What surveys of customizations find.
    pub customizations: Vec<serde_json::Value>,
    pub files: crate::files_asked::FilesAsked,
    /// Why worktrees of sessions would be kept.
    pub worktree_kept: Option<String>,
    /// What agents were told and asked outside of turns.
    pub agents_heard: AgentsHeard,
    /// What the next sessions' starts end in; `Ok` if none is queued.
    pub starts: VecDeque<Result<(), AgentError>>,
    /// Longest a read, and the start of a session, takes.
    pub read_ms_max: u64,
    pub start_ms_max: u64,
    pub batch_max: usize,
    pub kill_at: Option<Kill>,
    pub rng: SeededRng,
    pub ledger: Ledger,
    pub(crate) connections: Connections,
    /// Questions to the journal so far.
    pub reads: Vec<kernel::Query>,
    pub closed: Vec<(usize, CloseReason)>,
    /// Windows of the frames each client got on its present link.
    pub windows: BTreeMap<usize, Vec<u32>>,
    hash: u64,
    pub trace: bool,
}

/// When every simulated world begins.
pub const START_TIME: Timestamp = Timestamp(1_790_000_000_000);

impl World {
    pub fn new(seed: u64, limits: Limits) -> Self {
        let memory = Memory::new();
        let (journal, faults) = Faulty::new(Box::new(memory.clone()));
        let reader = journal.reader().expect("memory reads");
        let mut world = Self {
            now: START_TIME,
            kernel: None,
            limits,
            facts: crate::facts::host_facts(),
            memory,
            faults,
            blobs: MemoryBlobs::new(),
            completer: Completer::default(),
            journal: Box::new(journal),
            reader,
            queue: VecDeque::new(),
            agenda: BTreeMap::new(),
            agenda_set: 0,
            links: BTreeMap::new(),
            next_peer: 0,
            clients: Vec::new(),
            models: Models::default(),
            customizations: Vec::new(),
            files: Default::default(),
            worktree_kept: None,
            agents_heard: AgentsHeard::default(),
            starts: VecDeque::new(),
            read_ms_max: 0,
            start_ms_max: 0,
            batch_max: 64,
            kill_at: None,
            rng: SeededRng::new(seed),
            ledger: Ledger::default(),
            connections: Connections::default(),
            reads: Vec::new(),
            closed: Vec::new(),
            windows: BTreeMap::new(),
            hash: 0xcbf2_9ce4_8422_2325,
            trace: false,
        };
        world.start();
        world
    }

    pub fn log(&self, line: impl FnOnce() -> String) {
        if self.trace {
            println!("[{}] {}", self.now.0 - START_TIME.0, line());
        }
    }

    /// A number that stands for every byte the host ever sent.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn is_up(&self) -> bool {
        self.kernel.is_some()
    }

    pub fn kernel(&self) -> &Kernel {
        self.kernel.as_ref().expect("the host is up")
    }

    /// Boots a host on what the journal holds.
    pub fn start(&mut self) {
        self.log(|| "host starts".to_owned());
        let journal = Faulty::with(Box::new(self.memory.clone()), self.faults.clone());
        self.reader = journal.reader().expect("memory reads");
        self.journal = Box::new(journal);
        let boot = self.journal.boot().expect("memory boots");
        let (kernel, output) =
            Kernel::boot(boot, self.facts.clone(), self.limits.clone(), self.now)
                .expect("the root is readable");
        self.kernel = Some(kernel);
        self.release(vec![output]);
    }

    /// The process is gone, at once; what was on the wire may still arrive.
    pub fn kill(&mut self) {
        self.log(|| "host dies".to_owned());
        self.kernel = None;
        self.connections.lose_all();
        self.kill_at = None;
        self.queue.clear();
        self.agenda.clear();
        self.models.die();
        self.files.watches.clear();
        let links = std::mem::take(&mut self.links);
        for (_, link) in links {
            self.clients[link.client].lost();
        }
    }

    /// The disk is in order again; faults that were still to come do not.
    pub fn mend(&mut self) {
        self.faults.mend_disk();
        self.faults.mend_reads();
        self.blobs.mend_disk();
        let mut elsewhere = Faulty::with(Box::new(Memory::new()), self.faults.clone());
        for _ in 0..1_000 {
            let _ = elsewhere.append(&Batch::default()); // takes one fault each
        }
    }

    /// The sessions that the journal holds and nobody used: the list may lack them (G-28).
    pub(crate) fn unused_sessions(&self) -> Vec<String> {
        let query = Query::EmptySessions { created_before: Timestamp(i64::MAX), limit: u32::MAX };
        let answer = self.memory.clone().read(&query).expect("memory reads");
        match answer {
            Answer::EmptySessions(empty) => empty.due.iter().map(ToString::to_string).collect(),
            other => panic!("sessions were asked for: {other:?}"),
        }
    }

    /// What the journal holds of a client.
    pub(crate) fn stored_client(&self, client_id: &str) -> StoredClient {
        let client_id = client_id.to_owned();
        let answer = self.memory.clone().read(&Query::Client { client_id });
        match answer.expect("memory reads") {
            Answer::Client(client) => client,
            other => panic!("a client was asked for: {other:?}"),
        }
    }

    fn hash_frame(&mut self, peer: u64, bytes: &[u8]) {
        for byte in peer.to_le_bytes().iter().chain(bytes) {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn at(&mut self, at: Timestamp, due: Due) {
        self.agenda_set += 1;
        self.agenda.insert((at, self.agenda_set), due);
    }

    fn within(&mut self, ms_max: u64, input: Input) {
        let delay = self.rng.below(ms_max + 1);
        if ms_max == 0 {
            self.queue.push_back(input);
        } else {
            self.at(self.now.plus_ms(delay), Due::Input(input));
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table")]
    fn act(&mut self, effect: Effect) {
        if self.kernel.is_none() {
            return; // it died of the effect before
        }
        self.log(|| format!("effect {effect:?}").chars().take(200).collect());
        match effect {
            Effect::Read { ticket, query } => {
                // Read at once, delivered later: an answer may be old when it arrives.
                let answer =
                    self.reader.read(&query).map_err(|error| ReadFailed(error.to_string()));
                self.reads.push(query);
                self.within(self.read_ms_max, Input::Read { ticket, answer });
            }
            Effect::Complete { ticket, complete } => {
                let completed = Ok(host::complete::completions(
                    &self.completer,
                    *complete,
                    Vec::new(),         // nor did clients bring anything
                    Default::default(), // agents here have no commands
                ));
                self.within(self.read_ms_max, Input::Completed { ticket, completed });
            }
            Effect::ChangeModels { ticket, change } => {
                let changed = self.change_models(*change);
                self.within(self.read_ms_max, Input::ModelsChanged { ticket, changed });
            }
            Effect::Fetch { ticket, fetch } => {
                let fetched = self.fetch(&fetch);
                self.within(self.read_ms_max, Input::Fetched { ticket, fetched });
            }
            Effect::StoreBodies { ticket, bodies } => {
                let stored = host::blobs::store_bodies(&self.blobs, bodies, self.now);
                if self.dies_at(Kill::AfterCompose) {
                    return;
                }
                self.within(self.read_ms_max, Input::BodiesStored { ticket, stored });
            }
            Effect::Compose { ticket, compose } => {
                let names = host::compose::KnownNames::default();
                let composed =
                    host::compose::compose_and_store(&self.blobs, &names, *compose, self.now);
                if self.dies_at(Kill::AfterCompose) {
                    return;
                }
                self.within(self.read_ms_max, Input::Composed { ticket, composed });
            }
            Effect::CheckMessage { ticket, check } => {
                let checked = self.check_message(*check);
                self.within(self.read_ms_max, Input::MessageChecked { ticket, checked });
            }
            Effect::StartSession { session, .. } => {
                let result = self.starts.pop_front().unwrap_or(Ok(()));
                self.within(self.start_ms_max, Input::SessionStarted { session, result });
            }
            Effect::Survey(survey) => {
                let session = survey.session;
                let found = self.customizations.clone();
                self.within(self.read_ms_max, Input::Surveyed { session, found });
            }
            Effect::ListSettingValues { ticket, question } => {
                let values = Ok(self.agents_heard.tell_values(question));
                self.within(self.read_ms_max, Input::SettingValues { ticket, values });
            }
            Effect::OperateChangeset { ticket, .. } => {
                let outcome = Ok(serde_json::json!({}));
                self.within(self.read_ms_max, Input::ChangesetOperated { ticket, outcome });
            }
            Effect::UseFiles { ticket, task } => {
                let used = self.files.use_files(&task);
                self.within(self.read_ms_max, Input::FilesUsed { ticket, used });
            }
            Effect::CheckWorktree { ticket, .. } => {
                let checked =
                    Input::WorktreeChecked { ticket, kept_because: self.worktree_kept.clone() };
                self.within(self.read_ms_max, checked);
            }
            Effect::BeginWatch { ticket, task } => {
                let begun = self.files.begin_watch(&task);
                self.within(self.read_ms_max, Input::WatchBegun { ticket, begun });
            }
            other => self.act_at_once(other),
        }
    }

    /// What is not answered, or answered at once.
    fn act_at_once(&mut self, effect: Effect) {
        match effect {
            Effect::RunTurn(turn) => {
                self.ledger.runs(turn.chat.as_str());
                let run = turn.run;
                self.models.begin(*turn);
                self.at(self.now, Due::ModelStep(run));
            }
            Effect::StopTurn { run } => self.models.stop(run),
            Effect::Reply { run, reply } => self.reply(run, reply),
            Effect::WakeAt { timer, at } => self.at(at, Due::Timer(timer)),
            Effect::Close { peer, why } => self.begin_close(peer, why),
            Effect::Pause { peer } => self.set_paused(peer, true),
            Effect::Resume { peer } => self.set_paused(peer, false),
            Effect::Probe => {
                let writable = self.journal.probe().is_ok();
                self.queue.push_back(Input::Probed { writable });
            }
            Effect::Collect { buckets, before } => self.collect(buckets, before),
            Effect::RecordRender { rendered, .. } => {
                self.models.recorded_render = Some(*rendered);
            }
            Effect::SettingsChanged { session, values, .. } => {
                self.agents_heard.hear_settings(&session, values)
            }
            Effect::Authenticate(brought) => self.agents_heard.tokens.push(brought),
            Effect::ForgetTokens { principal } => self.agents_heard.forgotten.push(principal),
            Effect::UnloadChat { chat } => self.agents_heard.unloaded.push(chat.to_string()),
            Effect::RequestMcp(request) => self.agents_heard.mcp_requests.push(request),
            Effect::TitleChanged { title, .. } => self.agents_heard.titles.push(title),
            // Models leave nothing running.
            Effect::Terminal { terminal, act } => {
                self.agents_heard.terminal_acts.push((terminal.to_string(), act));
            }
            Effect::EndChat { chat } => self.agents_heard.ended.push(chat.to_string()),
            Effect::Configure { .. } | Effect::Forget { .. } | Effect::ClientAnswered { .. } => {}
            // Models change no files.
            Effect::ComputeChangeset(_) | Effect::RemoveWorktree(_) | Effect::CallNamed { .. } => {}
            Effect::EndWatch { watch } => self.files.end_watch(&watch),
            Effect::Read { .. }
            | Effect::Complete { .. }
            | Effect::ChangeModels { .. }
            | Effect::Fetch { .. }
            | Effect::StoreBodies { .. }
            | Effect::Compose { .. }
            | Effect::CheckMessage { .. }
            | Effect::StartSession { .. }
            | Effect::Survey(_)
            | Effect::OperateChangeset { .. }
            | Effect::UseFiles { .. }
            | Effect::BeginWatch { .. }
            | Effect::CheckWorktree { .. }
            | Effect::ListSettingValues { .. } => unreachable!("these are answered later"),
        }
    }

    fn begin_close(&mut self, peer: PeerId, why: CloseReason) {
        if let Some(link) = self.links.get_mut(&peer) {
            link.closing = Some(why);
        }
    }

    /// A host that has agents of a kind has the model from now on; what is not a model it refuses.
    fn change_models(&mut self, change: ModelChange) -> Result<Box<ModelsChanged>, WorkFailed> {
        let added = match change {
            ModelChange::Add(model) => {
                let id = model.get("id").and_then(Value::as_str);
                let id = id.ok_or_else(|| WorkFailed("a model has an id".to_owned()))?;
                let info = &mut self.facts.agents[0].info["models"];
                let models = info.as_array_mut().expect("a list");
                models.push(serde_json::json!({"id": id, "name": id, "provider": "scripted"}));
                serde_json::json!({"provider": "scripted", "model": id})
            }
            ModelChange::Reload => serde_json::json!({"provider": "scripted"}),
        };
        Ok(Box::new(ModelsChanged { agents: self.facts.agents.clone(), answer: added }))
    }

    /// No agent here has models: a message is checked as scripts see it.
    fn check_message(&self, check: MessageCheck) -> Result<Value, WorkFailed> {
        let context = host::message_check::CheckContext {
            known: &host::compose::KnownNames::default(),
            confinement: None,
            blobs: &self.blobs,
            entities: &host::entities::NoEntities,
            documents: &host::DocumentReader::default(),
            now: self.now,
        };
        host::message_check::check_message(check, &context, |_| None)
    }

    fn fetch(&mut self, fetch: &FetchTask) -> Result<FetchedContent, WorkFailed> {
        let digest = fetch.digest;
        let content_type = match self.reader.read(&Query::ContentType { digest }) {
            Ok(Answer::ContentType(content_type)) => content_type,
            Ok(_) | Err(_) => None,
        };
        host::blobs::fetch(&self.blobs, fetch, content_type)
            .map_err(|error| WorkFailed(error.to_string()))
    }

    fn collect(&mut self, buckets: RangeInclusive<u8>, before: Timestamp) {
        let aged = self.blobs.list_older_than(buckets, before).expect("memory reads");
        for digest in self.journal.find_unreferenced(&aged).unwrap_or_default() {
            self.blobs.remove(&digest, before).expect("memory writes");
        }
    }

    fn reply(&mut self, run: RunId, reply: AgentReply) {
        if let Some(chat) = self.models.chat_of(run) {
            self.ledger.replied(chat, &reply);
        }
        if self.models.deliver_reply(run, reply) {
            self.at(self.now, Due::ModelStep(run));
        }
    }

    fn set_paused(&mut self, peer: PeerId, paused: bool) {
        if let Some(link) = self.links.get_mut(&peer) {
            link.paused = paused;
        }
    }

    pub fn input(&mut self, input: Input) {
        self.queue.push_back(input);
    }
}
