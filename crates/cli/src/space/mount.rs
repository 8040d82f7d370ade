//! `greenroom space mount`: the directory that a space works in, by the label that nodes offer it under.

use serde_json::json;

use super::DatabaseOptions;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::terminal::escape_line;

/// Show or set the mount that a space works in
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom space mount team-a
  greenroom space mount team-a src
  greenroom space mount team-a --none

A mount is a directory that nodes offer under a label: [[mounts]] in their settings, `greenroom node list` shows them. The sessions of \
a space that names one work there, and its turns run on nodes that offer it. While none of them is alive, any node serves the space \
for reading and refuses turns. Setting it has the space loaded anew: clients connect again, and turns that run end as errors that \
can be resumed.")]
pub(super) struct SpaceMountOptions {
    /// The space
    name: String,
    /// The label
    #[arg(conflicts_with = "none")]
    label: Option<String>,
    /// Remove the label: the space works where the settings of its node say
    #[arg(long)]
    none: bool,
    #[command(flatten)]
    database: DatabaseOptions,
}

pub(super) async fn run(options: &SpaceMountOptions) -> anyhow::Result<Exit> {
    let name = &options.name;
    let admin = options.database.connect_to_nodes().await?;
    if options.label.is_some() || options.none {
        admin.name_mount(name, options.label.as_deref()).await?;
    }
    let label = admin.mount_of(name).await?;
    let nodes = admin.nodes().await?;
    let offering: Vec<&str> = nodes
        .iter()
        .filter(|node| {
            let mut mounts = node.mounts.iter();
            node.expires_in > 0.0 && mounts.any(|mount| Some(&mount.label) == label.as_ref())
        })
        .map(|node| node.name.as_str())
        .collect();
    if options.database.json {
        print_json(&json!({"name": name, "mount": label, "nodes": offering}))?;
        return Ok(Exit::Complete);
    }
    let name = escape_line(name);
    let Some(label) = label else {
        print(&format!("{name} names no mount: it works where the settings of its node say.\n"))?;
        return Ok(Exit::Complete);
    };
    let offered = if offering.is_empty() {
        "no node that is alive offers it, so that turns are refused; put it into [[mounts]] of one"
            .to_owned()
    } else {
        format!("offered by {}", escape_line(&offering.join(", ")))
    };
    print(&format!("{name} works in `{label}`: {offered}.\n"))?;
    Ok(Exit::Complete)
}
