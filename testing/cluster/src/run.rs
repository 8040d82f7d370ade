//! One run: nodes, spaces and clients are started, things go wrong for a while, then everything must agree.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use host::accounts::{AccountAdmin, NewToken, Role};
use host::cluster::ClusterAdmin;
use host::journal::PostgresSettings;
use postgres_server::PostgresServer;
use testkit::rng::SeededRng;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::checked_client::{CheckedClient, NodeUrls};
use crate::faults::{Cluster, Fault};
use crate::node_process::{NodeProcess, find_binary};
use crate::space_history::{ABSENCE_LONG, Absences, CurrentFault, SpaceHistory};

pub(crate) const NODES: usize = 3;
pub(crate) const DATABASE: &str = "greenroom";
/// How long clients may take to agree at the end.
const SETTLE: Duration = Duration::from_secs(60);

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct ChaosPlan {
    pub seed: u64,
    pub spaces: usize,
    /// Faults are made for so long; each kind once at least.
    pub time: Duration,
    /// The same, by how often each kind is made.
    pub rounds: usize,
    /// Only faults of this kind, by their word; else all.
    pub only: Option<&'static str>,
    /// Between two pieces of what a turn streams: many spaces on a small machine speak slowly.
    pub every_ms: u64,
}

impl Default for ChaosPlan {
    /// Each kind once, with a few spaces.
    fn default() -> Self {
        Self { seed: 1, spaces: 3, time: Duration::ZERO, rounds: 1, only: None, every_ms: 10 }
    }
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct ChaosReport {
    pub faults: usize,
    /// Actions that somebody heard.
    pub actions: usize,
    /// How often a client was told to begin anew: it came, and went, while nothing could be written.
    pub beginners: usize,
    /// How long clients were cut off, in order, by what had gone wrong.
    pub absences: BTreeMap<&'static str, Vec<Duration>>,
}

impl ChaosReport {
    pub(crate) fn new(
        faults: usize,
        actions: usize,
        beginners: usize,
        mut absences: Absences,
    ) -> Self {
        absences.values_mut().for_each(|times| times.sort_unstable());
        Self { faults, actions, beginners, absences }
    }

    /// The time within which this part of the absences of a kind ended.
    pub fn absence_at(&self, kind: &str, part: f64) -> Duration {
        let times = self.absences.get(kind).map(Vec::as_slice).unwrap_or_default();
        let last = times.len().saturating_sub(1);
        let index = (last as f64 * part).ceil() as usize;
        times.get(index).copied().unwrap_or_default()
    }

    /// The longest of all.
    pub fn longest_absence(&self) -> Duration {
        let all = self.absences.values().flatten();
        all.max().copied().unwrap_or_default()
    }

    /// A line for each kind.
    pub fn describe_absences(&self) -> String {
        let lines = self.absences.iter().map(|(kind, times)| {
            let at = |part| self.absence_at(kind, part).as_secs_f64();
            let (count, p50, p99, longest) = (times.len(), at(0.5), at(0.99), at(1.0));
            format!(
                "{kind:<18} {count:>5} cut off, back after p50 {p50:.2} s, p99 {p99:.2} s, longest {longest:.2} s\n"
            )
        });
        lines.collect()
    }
}

/// A space with its two clients at work.
pub(crate) struct BusySpace {
    name: String,
    token: String,
    history: Arc<SpaceHistory>,
    clients: Vec<JoinHandle<Result<CheckedClient>>>,
}

/// Runs a plan; `None` where PostgreSQL is not installed and not required.
pub async fn run(plan: ChaosPlan) -> Result<Option<ChaosReport>> {
    let Some(server) = PostgresServer::start()? else { return Ok(None) };
    let root = tempfile::tempdir()?;
    let report = run_over(plan, server, root.path()).await;
    let is_long = |report: &ChaosReport| report.longest_absence() > ABSENCE_LONG;
    if report.as_ref().map_or(true, is_long) {
        eprintln!("logs of the nodes are in {}", root.keep().display());
    }
    report.map(Some)
}

async fn run_over(plan: ChaosPlan, server: PostgresServer, root: &Path) -> Result<ChaosReport> {
    let mut rng = SeededRng::new(plan.seed);
    let binary = find_binary()?;
    let binaries = [binary.as_path(); NODES];
    let mut cluster = start(server, root, &binaries, plan.every_ms).await?;
    let (stop, stopped) = watch::channel(false);
    let mut spaces = Vec::new();
    for index in 0..plan.spaces {
        let space = start_space(&mut cluster, index, &mut rng, &stopped).await?;
        spaces.push(space);
    }
    let faults = make_faults(&mut cluster, plan, &mut rng, &spaces)
        .await
        .with_context(|| describe_nodes(&cluster))?;
    stop.send_replace(true);
    finish(&cluster, spaces, faults, &rng).await
}

/// Lets all clients agree, and says what came of it.
pub(crate) async fn finish(
    cluster: &Cluster,
    spaces: Vec<BusySpace>,
    faults: usize,
    rng: &SeededRng,
) -> Result<ChaosReport> {
    let (mut actions, mut beginners, mut absences) = (0, 0, Absences::new());
    for space in spaces {
        let (urls, history) = (cluster.urls.clone(), Arc::clone(&space.history));
        let settled = settle(space, &urls, rng.clone()).await;
        settled.with_context(|| describe_nodes(cluster))?;
        actions += history.count();
        beginners += history.beginners();
        for (kind, times) in history.absences() {
            absences.entry(kind).or_default().extend(times);
        }
    }
    Ok(ChaosReport::new(faults, actions, beginners, absences))
}

pub(crate) fn describe_nodes(cluster: &Cluster) -> String {
    let logs = cluster.nodes.iter().map(|node| format!("--- {}\n{}\n", node.name, node.log_end()));
    logs.collect()
}

/// Starts a node of each of these executables.
pub(crate) async fn start(
    server: PostgresServer,
    root: &Path,
    binaries: &[&Path],
    every_ms: u64,
) -> Result<Cluster> {
    server.sql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
    let mut nodes = Vec::new();
    for (name, binary) in ["a", "b", "c"].iter().zip(binaries) {
        let database = server.url(DATABASE);
        nodes.push(NodeProcess::start(root, name, binary, &database, every_ms).await?);
    }
    let admin = ClusterAdmin::connect(&settings(&server)).await?;
    let cluster = Cluster {
        server,
        nodes,
        spaces: Vec::new(),
        admin,
        urls: NodeUrls::default(),
        fault: CurrentFault::default(),
        histories: Vec::new(),
    };
    cluster.publish();
    Ok(cluster)
}

pub(crate) fn settings(server: &PostgresServer) -> PostgresSettings {
    PostgresSettings { journal_patience_ms: 10_000, ..PostgresSettings::new(server.url(DATABASE)) }
}

pub(crate) async fn start_space(
    cluster: &mut Cluster,
    index: usize,
    rng: &mut SeededRng,
    stopped: &watch::Receiver<bool>,
) -> Result<BusySpace> {
    let name = format!("team-{index}");
    let accounts = AccountAdmin::connect(&settings(&cluster.server)).await?;
    accounts.create_space(&name).await?;
    let new_token = NewToken {
        space: name.clone(),
        principal: "ann".to_owned(),
        role: Role::Member,
        seconds: None,
    };
    let token = accounts.issue_token(&new_token).await?.token.reveal();
    cluster.spaces.push(name.clone());
    let history = Arc::new(SpaceHistory::new(&cluster.fault, &name));
    cluster.histories.push(Arc::clone(&history));
    let mut opened = Vec::new();
    for writes in [true, false] {
        let who = if writes { "writer" } else { "reader" };
        let (own, history) = (SeededRng::new(rng.next_u64()), Arc::clone(&history));
        let mut client = CheckedClient::new(who, &token, &cluster.urls, own, history);
        client.open(writes).await.with_context(|| describe_nodes(cluster))?;
        opened.push((client, writes));
    }
    // Nobody acts before both have subscribed, so that both hear the same.
    let opened = opened.into_iter();
    let clients = opened
        .map(|(client, writes)| tokio::spawn(work(client, writes, stopped.clone())))
        .collect();
    Ok(BusySpace { name, token, history, clients })
}

/// Starts a turn whenever none runs, until it is told to stop; the last one ends.
async fn work(
    mut client: CheckedClient,
    writes: bool,
    stopped: watch::Receiver<bool>,
) -> Result<CheckedClient> {
    let mut turns = 0_u32;
    while !*stopped.borrow() {
        if writes && !client.has_turn()? {
            turns += 1;
            client.start_turn(&format!("turn-{turns}")).await?;
        }
        client.listen(Duration::from_millis(200)).await?;
    }
    let until = Instant::now() + SETTLE;
    // A turn may be on its way that nobody heard of yet.
    client.listen(Duration::from_secs(2)).await?;
    while client.has_turn()? {
        ensure!(Instant::now() < until, "{}: a turn does not end", client.name);
        client.listen(Duration::from_millis(200)).await?;
    }
    Ok(client)
}

async fn make_faults(
    cluster: &mut Cluster,
    plan: ChaosPlan,
    rng: &mut SeededRng,
    spaces: &[BusySpace],
) -> Result<usize> {
    let until = Instant::now() + plan.time;
    let (mut made, mut rounds) = (0, 0);
    loop {
        let faults = Fault::plan(rng, NODES, plan.spaces).into_iter();
        let is_meant = |fault: &Fault| plan.only.is_none_or(|kind| kind == fault.kind());
        for fault in faults.filter(is_meant) {
            let began = Instant::now();
            let suffered = cluster.suffer(fault).await;
            let ended = |space: &BusySpace| space.clients.iter().any(JoinHandle::is_finished);
            if spaces.iter().any(ended) {
                println!("a client ended during {fault:?}: {suffered:?}");
                return Ok(made); // something is wrong, and is said when it is settled
            }
            suffered.with_context(|| format!("{fault:?}"))?;
            println!("{fault:?} took {:?}", began.elapsed());
            made += 1;
            let actions = 1 + usize::try_from(rng.below(60))?;
            let progress = cluster.wait_for_progress(actions).await;
            if spaces.iter().any(ended) {
                return Ok(made); // something is wrong, and is said when it is settled
            }
            progress.with_context(|| format!("after {fault:?}"))?;
        }
        rounds += 1;
        ensure!(made > 0, "there is no fault of the kind {:?}", plan.only);
        if rounds >= plan.rounds && Instant::now() >= until {
            return Ok(made);
        }
    }
}

/// Everybody heard the same, nothing is missing, and a newcomer sees what they have.
async fn settle(space: BusySpace, urls: &NodeUrls, rng: SeededRng) -> Result<()> {
    let BusySpace { name, token, history, clients } = space;
    let mut ended = Vec::new();
    for client in clients {
        ended.push(client.await?.with_context(|| format!("in {name}"))?);
    }
    let until = Instant::now() + SETTLE;
    let heard = loop {
        let heard = history.seqs();
        if ended.iter().all(|client| client.has_heard(&heard)) {
            break heard;
        }
        if Instant::now() >= until {
            for client in &ended {
                let missing: Vec<u64> = client.missing(&heard).take(10).collect();
                if !missing.is_empty() {
                    bail!("{name}: {} never heard {missing:?}", client.name);
                }
            }
        }
        for client in &mut ended {
            client.listen(Duration::from_millis(200)).await?;
        }
    };
    ensure!(!heard.is_empty(), "{name}: nothing happened");
    let mut fresh = CheckedClient::new("fresh", &token, urls, rng, Arc::default());
    fresh.open(false).await?;
    let now = fresh.state()?;
    for client in &ended {
        ensure!(client.state()? == now, "{name}: {} has another state than the host", client.name);
    }
    Ok(())
}
