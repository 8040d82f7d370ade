//! `greenroom node`: the nodes on a database, and having one give its spaces away.
//!
//! Promises: works on the database itself; `drain` returns when the node serves no space that others could, or says which are left.
//! Must not know: how nodes find out what is wanted of them.

use std::time::Duration;

use anyhow::bail;
use clap::Subcommand;
use host::cluster::{ListedNode, NodeFingerprint};
use serde_json::{Value, json};
use tokio::time::{Instant, interval};

use crate::exit::Exit;
use crate::format::format_table;
use crate::output::{print, print_json};
use crate::space::DatabaseOptions;
use crate::terminal::escape_line;

/// Between two looks at what an order has done.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// List the nodes of a cluster; make one give its spaces to the others
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom node list
  greenroom node list --json | jq '.[] | select(.alive) | .name'
  greenroom node drain b

A node is a host on a database that others serve too. To replace one: drain it, stop it, start the new version.")]
pub(crate) struct NodeOptions {
    #[command(subcommand)]
    verb: NodeVerb,
}

#[derive(Debug, Subcommand)]
enum NodeVerb {
    List(NodeListOptions),
    Drain(DrainOptions),
}

/// Show the nodes, which of them are alive, and how many spaces each serves
#[derive(Debug, clap::Args)]
struct NodeListOptions {
    #[command(flatten)]
    database: DatabaseOptions,
}

/// Make a node give its spaces to others and take no more
#[derive(Debug, clap::Args)]
struct DrainOptions {
    /// As `greenroom node list` shows it
    name: String,
    /// How long to wait for it, in seconds; it goes on draining afterwards
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    #[command(flatten)]
    database: DatabaseOptions,
}

pub(crate) async fn run(options: NodeOptions) -> anyhow::Result<Exit> {
    match options.verb {
        NodeVerb::List(options) => list(&options).await,
        NodeVerb::Drain(options) => drain(&options).await,
    }
}

async fn list(options: &NodeListOptions) -> anyhow::Result<Exit> {
    let admin = options.database.connect_to_nodes().await?;
    let nodes = admin.nodes().await?;
    if options.database.json {
        print_json(&nodes.iter().map(to_json).collect::<Value>())?;
        return Ok(Exit::Complete);
    }
    if nodes.is_empty() {
        print("No node has served this database lately.\n")?;
        return Ok(Exit::Complete);
    }
    let header = ["node", "address", "state", "spaces", "heartbeat", "mounts"];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(nodes.iter().map(|node| {
        let heartbeat = if node.expires_in > 0.0 {
            format!("expires in {:.1} s", node.expires_in)
        } else {
            format!("expired {:.0} s ago", -node.expires_in)
        };
        [
            escape_line(&node.name),
            escape_line(&node.address),
            state_of(node).to_owned(),
            node.spaces.to_string(),
            heartbeat,
            escape_line(&list_mounts(node)),
        ]
    }));
    print(&format_table(&rows))?;
    Ok(Exit::Complete)
}

fn list_mounts(node: &ListedNode) -> String {
    let labels = node.mounts.iter().map(|mount| mount.label.as_str());
    labels.collect::<Vec<_>>().join(" ")
}

fn state_of(node: &ListedNode) -> &'static str {
    match (node.expires_in > 0.0, node.is_draining) {
        (true, false) => "alive",
        (true, true) => "draining",
        (false, _) => "gone",
    }
}

fn to_json(node: &ListedNode) -> Value {
    let fingerprint = NodeFingerprint::from_bytes(&node.fingerprint);
    json!({
        "id": node.id,
        "name": node.name,
        "address": node.address,
        "fingerprint": fingerprint.map(|it| it.to_string()),
        "alive": node.expires_in > 0.0,
        "draining": node.is_draining,
        "spaces": node.spaces,
        "format": node.format,
        "mounts": node.mounts.iter().map(|mount| json!({"label": mount.label, "path": mount.path})).collect::<Value>(),
        "expiresInMs": (node.expires_in * 1_000.0) as i64,
    })
}

async fn drain(options: &DrainOptions) -> anyhow::Result<Exit> {
    let admin = options.database.connect_to_nodes().await?;
    admin.drain(&options.name).await?;
    let takes_spaces = |node: &ListedNode| {
        node.name != options.name
            && node.expires_in > 0.0
            && !node.is_draining
            && !node.address.is_empty()
    };
    if !admin.nodes().await?.iter().any(takes_spaces) {
        eprintln!(
            "No other node takes spaces: whoever comes is refused until one is started. To end the draining, start {} again.",
            escape_line(&options.name)
        );
    }
    let until = Instant::now() + Duration::from_secs(options.timeout);
    let mut look = interval(LOOK_EVERY);
    loop {
        look.tick().await;
        let nodes = admin.nodes().await?;
        let is_it = |node: &&ListedNode| node.name == options.name && node.expires_in > 0.0;
        // Those of its own settings stay as long as it runs.
        let left = nodes.iter().find(is_it).map_or(0, |node| node.movable_spaces);
        if left == 0 {
            if options.database.json {
                print_json(&json!({"name": options.name, "spaces": 0}))?
            } else {
                print(&format!(
                    "{} no longer serves a space that another node could take. It can be stopped.\n",
                    escape_line(&options.name)
                ))?
            }
            return Ok(Exit::Complete);
        }
        if Instant::now() >= until {
            bail!(
                "{left} spaces are still on {}; it goes on draining, look with `greenroom node list`",
                options.name
            );
        }
    }
}
