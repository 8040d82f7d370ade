//! Two versions on one database: spaces go back and forth between an older executable and this one, with clients that check.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use postgres_server::PostgresServer;
use testkit::rng::SeededRng;
use tokio::sync::watch;

use crate::faults::{Cluster, Fault};
use crate::node_process::find_binary;
use crate::run::{ChaosReport, describe_nodes, finish, start, start_space};

/// How often each space changes its version.
const ROUNDS: usize = 4;
/// Between two pieces of what a turn streams.
const EVERY_MS: u64 = 10;
const OLD: usize = 0;
const NEW: usize = 1;

/// Moves spaces between a node of an older version and one of this; `None` where PostgreSQL is not installed and not required.
pub async fn upgrade(older: &Path, spaces_max: usize) -> Result<Option<ChaosReport>> {
    let Some(server) = PostgresServer::start()? else { return Ok(None) };
    let root = tempfile::tempdir()?;
    let mut rng = SeededRng::new(1);
    let newer = find_binary()?;
    // The older one makes the tables.
    let mut cluster = start(server, root.path(), &[older, &newer], EVERY_MS).await?;
    let (stop, stopped) = watch::channel(false);
    let mut spaces = Vec::new();
    for index in 0..spaces_max {
        spaces.push(start_space(&mut cluster, index, &mut rng, &stopped).await?);
    }
    let moved = go_back_and_forth(&mut cluster, spaces_max).await;
    let moves = moved.with_context(|| describe_nodes(&cluster))?;
    stop.send_replace(true);
    Ok(Some(finish(&cluster, spaces, moves, &rng).await?))
}

async fn go_back_and_forth(cluster: &mut Cluster, spaces: usize) -> Result<usize> {
    let mut moves = 0;
    for round in 0..ROUNDS {
        for space in 0..spaces {
            let node = match (round + space) % 2 {
                0 => OLD,
                _ => NEW,
            };
            cluster.suffer(Fault::Move { space, node }).await?;
            cluster.wait_until_placed(space, node).await?;
            cluster.wait_for_progress(1).await?;
            moves += 1;
        }
    }
    // The older one is replaced: everything goes on with the new one.
    cluster.suffer(Fault::Drain { node: OLD }).await?;
    cluster.wait_for_progress(1).await?;
    ensure!(moves == ROUNDS * spaces, "every space changed its version");
    Ok(moves)
}
