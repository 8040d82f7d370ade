//! Checkers: what must be true when the world is quiet, whatever happened before. They know no test.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use host::journal::{Journal, JournalReader};
use kernel::{Effect, Input, Kernel, Output, PeerId, ReadFailed};
use serde_json::{Value, json};

use crate::client::{Client, ROOT};
use crate::mirror::Mirror;
use crate::script::Question;
use crate::world::World;
use crate::{blocks, derived_state};

/// Everything that is wrong, in words. Settles the world first.
pub fn violations(world: &mut World) -> Vec<String> {
    world.settle();
    let mut wrong = Vec::new();
    check_all_is_answered(world, &mut wrong);
    collect_violations(world, &mut wrong);
    world.drop_mirrors_of_gone_channels();
    let (host, listed) = read_all_channels(world);
    check_mirrors(world, &host, &mut wrong);
    check_memory(world, &host, &mut wrong);
    check_replay(world, &host, &mut wrong);
    check_runs(world, &host, &mut wrong);
    check_waiting_agents(world, &host, &mut wrong);
    check_content(world, &host, &mut wrong);
    wrong.extend(derived_state::errors(&host, &listed));
    wrong
}

impl World {
    /// Mirrors of channels that are gone: clients that do not watch their session are not notified (H-054).
    fn drop_mirrors_of_gone_channels(&mut self) {
        let ledger = &self.ledger;
        for client in &mut self.clients {
            let served = &client.served;
            let lives = |uri: &String| !ledger.is_gone(uri, served.get(uri).copied().unwrap_or(0));
            client.mirrors.retain(|uri, _| lives(uri));
        }
    }
}

/// Content that a state names has not been collected.
fn check_content(world: &World, host: &BTreeMap<String, Value>, wrong: &mut Vec<String>) {
    let stored: BTreeSet<wire::Digest> = world.blobs.digests().into_iter().collect();
    for (uri, state) in host {
        let named = wire::content::digests_in(state.to_string().as_bytes());
        for digest in named.difference(&stored) {
            wrong.push(format!("{uri} names {digest}, which is not stored"));
        }
    }
}

/// An agent waits only for a reply that some client or user can cause.
fn check_waiting_agents(world: &World, host: &BTreeMap<String, Value>, wrong: &mut Vec<String>) {
    for (run, question) in world.models.waiting() {
        if world.models.is_halted(run) {
            continue;
        }
        if let Question::Render(render) = question {
            let since = world.models.rendering.get(&(run, render)).copied();
            let due = since.map(|since| since.plus_ms(world.limits.transform_deadline_ms));
            if due.is_none_or(|due| due <= world.now) {
                wrong.push(format!("{run:?} waits for a render longer than the deadline"));
            }
            continue;
        }
        let Some(uri) = world.models.chat_of(run) else { continue };
        let asked = host.get(uri).is_some_and(|chat| blocks::waits_for(chat, question));
        if !asked {
            wrong
                .push(format!("{run:?} in {uri} waits for {question:?}, which no client is asked"));
        }
    }
}

/// Every request has its one response, every action its echo or its refusal (H-004, H-063, H-066).
fn check_all_is_answered(world: &World, wrong: &mut Vec<String>) {
    for client in world.clients.iter().filter(|client| client.link.is_some()) {
        for (id, pending) in &client.pending {
            wrong.push(format!("{}: `{}` ({id}) was never answered", client.id, pending.method));
        }
        if !client.ready {
            continue;
        }
        for (seq, (channel, served)) in &client.unconfirmed {
            if client.mirrors.contains_key(channel) && !world.ledger.is_gone(channel, *served) {
                wrong.push(format!(
                    "{}: action {seq} on {channel} was neither echoed nor refused",
                    client.id
                ));
            }
        }
    }
}

/// What clients and the ledger noticed on the way; and no refused action is in the journal.
fn collect_violations(world: &World, wrong: &mut Vec<String>) {
    wrong.extend(world.ledger.violations.iter().cloned());
    wrong.extend(world.models.violations.iter().cloned());
    for client in &world.clients {
        wrong.extend(client.violations.iter().cloned());
        for refusal in &client.refusals {
            let seq = refusal["origin"]["clientSeq"].as_i64().unwrap_or(0);
            if world.ledger.origins.contains(&(client.id.clone(), seq)) {
                wrong.push(format!("refused and recorded: {refusal}"));
            }
        }
    }
}

/// Every channel there is, as a client that joins now gets it.
pub fn host_states(world: &mut World) -> BTreeMap<String, Value> {
    read_all_channels(world).0
}

/// Every channel there is, and the list of sessions.
fn read_all_channels(world: &mut World) -> (BTreeMap<String, Value>, Vec<Value>) {
    let index = world.clients.len();
    world.clients.push(Client::new("checker", "1.0.0"));
    let peer = world.connect(index);
    let params = world.clients[index].initialize_params(&[ROOT.to_owned()]);
    let (_, text) = world.clients[index].request("initialize", params);
    world.send(index, text);
    let (list, text) = world.clients[index].request("listSessions", json!({"channel": ROOT}));
    world.send(index, text);
    world.settle();
    let listed = world.clients[index]
        .responses
        .get(&list)
        .cloned()
        .and_then(Result::ok)
        .unwrap_or(Value::Null);
    let listed = listed["items"].as_array().cloned().unwrap_or_default();
    let of = |item: &Value| item["resource"].as_str().unwrap_or("").to_owned();
    let mut channels: BTreeSet<String> = listed.iter().map(of).collect();
    channels.extend(world.unused_sessions());
    for client in &world.clients {
        channels.extend(client.mirrors.keys().cloned());
    }
    let mut watched = BTreeSet::from([ROOT.to_owned()]);
    // Sessions first: they list their chats.
    for _ in 0..2 {
        for channel in channels.difference(&watched) {
            let (_, text) = world.clients[index].request("subscribe", json!({"channel": channel}));
            world.send(index, text);
        }
        world.settle();
        watched.extend(channels.iter().cloned());
        for mirror in world.clients[index].mirrors.values() {
            if let Mirror::Session(session) = mirror {
                channels.extend(session.chats.iter().map(|chat| chat.resource.clone()));
            }
        }
    }
    let mirrors = world.clients[index].mirrors.iter();
    let states = mirrors.map(|(uri, mirror)| (uri.clone(), mirror.value())).collect();
    world.cut(peer, 0);
    world.settle();
    world.clients.pop();
    (states, listed)
}

/// Fields that no chat action carries (H-150), and the window, which is compared apart.
fn comparable(state: &Value, old_client: bool) -> Value {
    let mut state = state.clone();
    let Some(fields) = state.as_object_mut() else { return state };
    if fields.contains_key("turns") {
        for field in
            ["title", "changes", "interactivity", "origin", "_meta", "turns", "turnsNextCursor"]
        {
            fields.shift_remove(field);
        }
        if old_client {
            // The action that changes it came with 1.0, as it did itself: an older client does not read it.
            fields.shift_remove("movable");
        }
        if old_client && let Some(status) = fields.get("status").and_then(Value::as_u64) {
            // Clients of 0.9 receive nothing of a chat's read and archived flags (G-23).
            fields.insert("status".to_owned(), json!(status & 0b1_1111));
        }
    }
    state
}

/// Where a live mirror of a client differs from a fresh subscription, in words; settles the world first. Clients that are not
/// connected are left out. Unlike [`violations`] it may be asked at any time.
pub fn mirror_differences(world: &mut World) -> Vec<String> {
    world.settle();
    world.drop_mirrors_of_gone_channels();
    let (host, _) = read_all_channels(world);
    let mut wrong = Vec::new();
    check_mirrors(world, &host, &mut wrong);
    wrong
}

fn check_mirrors(world: &World, host: &BTreeMap<String, Value>, wrong: &mut Vec<String>) {
    let connected = |client: &&Client| client.ready && client.link.is_some();
    for client in world.clients.iter().filter(connected) {
        for (channel, mirror) in &client.mirrors {
            let Some(state) = host.get(channel) else {
                wrong.push(format!("{} watches {channel}, which is not there", client.id));
                continue;
            };
            let mut found = different_fields(state, &mirror.value(), client.is_old());
            for compared in client.replicas.iter().flat_map(|all| all.compare(channel, state)) {
                let fields =
                    different_fields(&compared.served, &compared.mirrored, client.is_old());
                let whose = compared.whose;
                found.extend(fields.into_iter().map(|why| format!("{whose}: {why}")));
            }
            let id = &client.id;
            wrong.extend(found.into_iter().map(|why| format!("{id}: {channel}: {why}")));
        }
    }
}

/// The fields in which a mirror differs from what is served now, one by one.
fn different_fields(served: &Value, mirrored: &Value, old_client: bool) -> Vec<String> {
    let (ours, theirs) = (comparable(served, old_client), comparable(mirrored, old_client));
    let fields = |state: &Value| -> BTreeSet<String> {
        let fields = state.as_object().into_iter().flatten();
        fields.map(|(name, _)| name.clone()).collect()
    };
    let names = fields(&ours).union(&fields(&theirs)).cloned().collect::<Vec<_>>();
    let mut different: Vec<String> = names
        .iter()
        .filter(|name| ours.get(name) != theirs.get(name))
        .map(|name| {
            let side =
                |state: &Value| state.get(name).map_or("absent".to_owned(), Value::to_string);
            format!("`{name}` is {}, mirrored {}", side(&ours), side(&theirs))
        })
        .collect();
    different.extend(different_turns(served, mirrored));
    different
}

/// A mirror holds the newest turns, and knows whether there are older ones (H-050).
fn different_turns(served: &Value, mirrored: &Value) -> Option<String> {
    let (all, some) = (served["turns"].as_array()?, mirrored["turns"].as_array()?);
    // A snapshot that did not fit holds the newest turns only: then the mirror may hold more of them.
    let cut = served.get("turnsNextCursor").is_some();
    if !(all.ends_with(some) || cut && some.ends_with(all)) {
        return Some(format!("`turns` are {}, mirrored {}", json!(all), json!(some)));
    }
    let cursor = mirrored.get("turnsNextCursor");
    let more = some.len() < all.len();
    (!cut && more != cursor.is_some()).then(|| {
        let (some, all) = (some.len(), all.len());
        format!("the cursor is {cursor:?} with {some} of {all} turns")
    })
}

/// What the kernel holds in memory is what it sends.
fn check_memory(world: &World, host: &BTreeMap<String, Value>, wrong: &mut Vec<String>) {
    for (channel, state) in host {
        let uri = wire::ChannelUri::parse(channel).expect("a channel URI");
        if let Some(memory) = world.kernel().state_of(&uri)
            && comparable(&memory, false) != comparable(state, false)
        {
            wrong.push(format!("memory and snapshot of {channel} differ:\n  {memory}\n  {state}"));
        }
    }
}

/// `replay(journal) == live`: a host that boots now has the same state.
fn check_replay(world: &World, host: &BTreeMap<String, Value>, wrong: &mut Vec<String>) {
    // A turn that runs now ends in an error when a host boots: its chat and session are left out.
    let runs = |state: &Value| {
        let chats = state["chats"].as_array().into_iter().flatten();
        let busy = |chat: &Value| chat["status"].as_u64().is_some_and(|status| status & 8 != 0);
        state.get("activeTurn").is_some() || chats.into_iter().any(busy)
    };
    let channels: Vec<String> =
        host.iter().filter(|(_, state)| !runs(state)).map(|(uri, _)| uri.clone()).collect();
    let replay = replay(world, &channels);
    for channel in channels {
        let (live, stored) = (&host[&channel], replay.get(&channel).unwrap_or(&Value::Null));
        if live != stored {
            wrong.push(format!(
                "the journal holds another {channel}:\n  live    {live}\n  journal {stored}"
            ));
        }
    }
}

/// Channels of a host that boots on the same journal and writes nothing.
fn replay(world: &World, channels: &[String]) -> BTreeMap<String, Value> {
    let mut memory = world.memory.clone();
    let boot = Journal::boot(&mut memory).expect("memory boots");
    let (mut kernel, output) =
        Kernel::boot(boot, world.facts.clone(), world.limits.clone(), world.now)
            .expect("the root is readable");
    let mut client = Client::new("replayer", "1.0.0");
    let peer = PeerId(u64::MAX);
    client.connected(peer);
    let mut texts = vec![client.request("initialize", client.initialize_params(&[])).1];
    texts.extend(
        channels.iter().map(|channel| client.request("subscribe", json!({"channel": channel})).1),
    );
    let mut queue = VecDeque::from([Input::Connected { peer, role: kernel::Role::Owner }]);
    for text in texts {
        let message = wire::rpc::decode(&text, 128).expect("a message");
        let inline = (&kernel::Limits::default()).into();
        let received = kernel::Received::new(message, text.len(), inline);
        queue.push_back(Input::Received { peer, received });
    }
    let mut take = |kernel: &mut Kernel, output: Output, queue: &mut VecDeque<Input>| {
        kernel.committed();
        for outgoing in output
            .frames
            .iter()
            .filter(|outgoing| outgoing.recipients.as_slice().iter().any(|to| to.peer == peer))
        {
            client.receive(
                serde_json::from_slice(&outgoing.frame.to_bytes()).expect("frames are JSON"),
            );
        }
        for effect in output.effects {
            if let Effect::Read { ticket, query } = effect {
                let answer = JournalReader::read(&mut memory, &query)
                    .map_err(|error| ReadFailed(error.to_string()));
                queue.push_back(Input::Read { ticket, answer });
            }
        }
    };
    take(&mut kernel, output, &mut queue);
    while let Some(input) = queue.pop_front() {
        let output = kernel.step(input, world.now);
        take(&mut kernel, output, &mut queue);
    }
    client.mirrors.iter().map(|(uri, mirror)| (uri.clone(), mirror.value())).collect()
}

/// No agent works where no turn runs, and no turn spins without an agent or a session still to come.
fn check_runs(world: &World, host: &BTreeMap<String, Value>, wrong: &mut Vec<String>) {
    let mut running = BTreeSet::new();
    for (run, chat) in world.kernel().running() {
        if !running.insert(chat.to_string()) {
            wrong.push(format!("two agents work in {chat}"));
        }
        if host.get(chat.as_str()).is_none_or(|state| state.get("activeTurn").is_none()) {
            wrong.push(format!("{run:?} works in {chat}, where no turn runs"));
        }
    }
    for (channel, state) in host.iter().filter(|(_, state)| state.get("activeTurn").is_some()) {
        let creating = host.values().any(|session| {
            session["lifecycle"] == "creating"
                && session["chats"]
                    .as_array()
                    .is_some_and(|chats| chats.iter().any(|c| c["resource"] == channel.as_str()))
        });
        if !running.contains(channel) && !creating {
            wrong
                .push(format!("the turn in {channel} has no agent: {}", state["activeTurn"]["id"])); // H-090
        }
    }
}
