//! Many spaces on three nodes, most of them at rest: what a node takes for them, in memory, threads and statements, and how long
//! clients wait to get in.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use client::{Connection, Events, HostTarget};
use host::accounts::{AccountAdmin, NewToken, Role};
use postgres_server::PostgresServer;
use tokio::time::interval;

use crate::faults::{Cluster, LOOK_EVERY};
use crate::idle_statements::AskedStatements;
use crate::node_process::{NodeUse, find_binary};
use crate::run::{DATABASE, NODES, describe_nodes, settings, start};

/// No turn is started.
const EVERY_MS: u64 = 1_000;
/// A client comes in as soon as its space is loaded.
const CONNECT_MAX: Duration = Duration::from_secs(60);

/// How many there are.
#[derive(Debug, Clone, Copy)]
pub struct ManySpacesPlan {
    pub spaces: usize,
    /// Of those have a client.
    pub with_clients: usize,
    /// Of the others had one for a moment, and stay loaded.
    pub visited: usize,
    /// For so long statements are counted while nobody does anything; zero: they are not.
    pub quiet: Duration,
}

/// What the nodes take, each in its order.
#[derive(Debug, Clone)]
pub struct ManySpacesReport {
    /// With their own spaces alone.
    pub before: Vec<NodeUse>,
    /// With clients in spaces of others.
    pub with_clients: Vec<NodeUse>,
    /// When the clients are gone, and the spaces still loaded.
    pub idle: Vec<NodeUse>,
    pub loaded: usize,
    /// How long each client took to come in, one after the other, in order.
    pub connecting: Vec<Duration>,
    /// A minute: those of nodes without spaces of others, and what was more with spaces at rest.
    pub statements: Option<(f64, f64)>,
}

impl ManySpacesReport {
    /// Bytes of memory that a space takes that is loaded and at rest.
    pub fn bytes_per_idle_space(&self) -> u64 {
        let sum = |uses: &[NodeUse]| uses.iter().map(|it| it.memory_bytes).sum::<u64>();
        let grown = sum(&self.idle).saturating_sub(sum(&self.before));
        grown / (self.loaded.max(1) as u64)
    }

    /// The time within which this part of the clients was in.
    fn connecting_at(&self, part: f64) -> Duration {
        let last = self.connecting.len().saturating_sub(1);
        let index = (last as f64 * part).ceil() as usize;
        self.connecting.get(index).copied().unwrap_or_default()
    }

    /// A line for each node.
    pub fn describe(&self) -> String {
        let ms = |part| self.connecting_at(part).as_secs_f64() * 1_000.0;
        let mut lines = format!(
            "{} spaces loaded; {:.1} KiB for each at rest; {} clients in after {:.1} s: p50 {:.0} ms, p99 {:.0} ms, longest {:.0} ms\n",
            self.loaded,
            self.bytes_per_idle_space() as f64 / 1024.0,
            self.connecting.len(),
            self.connecting.iter().sum::<Duration>().as_secs_f64(),
            ms(0.5),
            ms(0.99),
            ms(1.0)
        );
        if let Some((usual, more)) = self.statements {
            lines += &format!(
                "statements a minute: {usual:.0} of the nodes themselves, {more:.0} for spaces at rest\n"
            );
        }
        let nodes = self.before.iter().zip(&self.with_clients).zip(&self.idle);
        for (index, ((before, busy), idle)) in nodes.enumerate() {
            let mib = |it: &NodeUse| it.memory_bytes as f64 / f64::from(1 << 20);
            lines += &format!(
                "node {index}: {:.1} MiB and {} threads before, {:.1} MiB and {} with clients, {:.1} MiB and {} at rest\n",
                mib(before),
                before.threads,
                mib(busy),
                busy.threads,
                mib(idle),
                idle.threads
            );
        }
        lines
    }
}

/// Runs a plan; `None` where PostgreSQL is not installed and not required.
pub async fn many_spaces(plan: ManySpacesPlan) -> Result<Option<ManySpacesReport>> {
    let Some(mut server) = PostgresServer::start()? else { return Ok(None) };
    if !plan.quiet.is_zero() {
        server.count_statements()?;
    }
    let root = tempfile::tempdir()?;
    let binary = find_binary()?;
    let binaries: [&Path; NODES] = [binary.as_path(); NODES];
    let cluster = start(server, root.path(), &binaries, EVERY_MS).await?;
    let report = measure(&cluster, plan).await;
    report.with_context(|| describe_nodes(&cluster)).map(Some)
}

async fn measure(cluster: &Cluster, plan: ManySpacesPlan) -> Result<ManySpacesReport> {
    let mut tokens = make_spaces(cluster, plan).await?;
    let visited = tokens.split_off(plan.with_clients);
    let usual = count_usual(cluster, plan).await?;
    let before = measure_nodes(cluster)?;
    for (index, token) in visited.iter().enumerate() {
        drop(connect(cluster, index, token).await?);
    }
    let (mut clients, mut connecting) = (Vec::new(), Vec::new());
    for (index, token) in tokens.iter().enumerate() {
        let began = Instant::now();
        clients.push(connect(cluster, index, token).await?);
        connecting.push(began.elapsed());
    }
    connecting.sort_unstable();
    let with_clients = measure_nodes(cluster)?;
    let loaded = count_held(cluster)?;
    let all = plan.with_clients + plan.visited;
    ensure!(loaded >= all, "{loaded} spaces are loaded");
    // Before it is told that there are clients, that there are none means nothing.
    wait_until_busy(cluster, plan.with_clients.min(NODES)).await?;
    drop(clients);
    wait_until_busy(cluster, 0).await?;
    let statements = match &usual {
        None => None,
        Some(usual) => {
            AskedStatements::settle(&cluster.server, usual).await?;
            let asked = AskedStatements::count(&cluster.server, plan.quiet).await?;
            Some((usual.per_minute(), asked.excess_per_minute(usual)))
        }
    };
    let idle = measure_nodes(cluster)?;
    ensure!(count_held(cluster)? == loaded, "they are still loaded");
    Ok(ManySpacesReport {
        before,
        with_clients,
        idle,
        loaded: loaded - NODES,
        connecting,
        statements,
    })
}

/// What nodes ask that have only spaces of their own; nothing if it is not to be counted.
async fn count_usual(cluster: &Cluster, plan: ManySpacesPlan) -> Result<Option<AskedStatements>> {
    if plan.quiet.is_zero() {
        return Ok(None);
    }
    let make = "CREATE EXTENSION pg_stat_statements";
    cluster.server.sql(DATABASE, make)?;
    let asked = AskedStatements::count(&cluster.server, plan.quiet).await?;
    Ok(Some(asked))
}

/// The tokens of those that get a client.
async fn make_spaces(cluster: &Cluster, plan: ManySpacesPlan) -> Result<Vec<String>> {
    let admin = AccountAdmin::connect(&settings(&cluster.server)).await?;
    let sql = format!(
        "INSERT INTO greenroom.space (name) SELECT 'team-' || n FROM generate_series(1, {}) AS n",
        plan.spaces
    );
    cluster.server.sql(DATABASE, &sql)?;
    let mut tokens = Vec::new();
    for n in 1..=plan.with_clients + plan.visited {
        let new_token = NewToken {
            space: format!("team-{n}"),
            principal: "ann".to_owned(),
            role: Role::Member,
            seconds: None,
        };
        tokens.push(admin.issue_token(&new_token).await?.token.reveal());
    }
    Ok(tokens)
}

/// Each node gets as many as the others, none of them relayed.
async fn connect(cluster: &Cluster, index: usize, token: &str) -> Result<(Connection, Events)> {
    let node = cluster.nodes.get(index % NODES).context("a node")?;
    let target = HostTarget { url: node.url.clone(), token: Some(token.to_owned()) };
    let until = Instant::now() + CONNECT_MAX;
    let mut again = interval(LOOK_EVERY);
    loop {
        again.tick().await;
        let connecting = async {
            let (connection, events) = Connection::connect(&target).await?;
            connection.initialize("ann", &[]).await?;
            Ok::<_, client::ClientError>((connection, events))
        };
        match connecting.await {
            Ok(connected) => return Ok(connected),
            // A node that loads many, on a machine that others use, says so.
            Err(error) if Instant::now() >= until => return Err(error.into()),
            Err(_) => {}
        }
    }
}

fn measure_nodes(cluster: &Cluster) -> Result<Vec<NodeUse>> {
    cluster.nodes.iter().map(|node| node.measure()).collect()
}

fn count_held(cluster: &Cluster) -> Result<usize> {
    let sql = "SELECT count(*) FROM greenroom.lease WHERE node IS NOT NULL";
    Ok(cluster.server.sql(DATABASE, sql)?.parse()?)
}

/// Waits until so many nodes have told that they have clients, and the others that they have none.
async fn wait_until_busy(cluster: &Cluster, nodes: usize) -> Result<()> {
    let until = Instant::now() + CONNECT_MAX;
    let sql = "SELECT count(*) FROM greenroom.node WHERE busiest <> '[]'";
    let mut look = interval(LOOK_EVERY);
    loop {
        look.tick().await;
        let busy: usize = cluster.server.sql(DATABASE, sql)?.parse()?;
        if busy == nodes {
            return Ok(());
        }
        ensure!(Instant::now() < until, "{busy} nodes have clients, not {nodes}");
    }
}
