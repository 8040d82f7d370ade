//! `greenroom space move`: a space goes to a node that an operator names.

use std::time::Duration;

use anyhow::bail;
use serde_json::json;
use tokio::time::{Instant, interval};

use super::DatabaseOptions;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::terminal::escape_line;

const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Move a space to a node
#[derive(Debug, clap::Args)]
pub(super) struct SpaceMoveOptions {
    /// The space, as `greenroom space list` shows it
    name: String,
    /// The node, as `greenroom node list` shows it
    node: String,
    /// How long to wait for it, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// Running turns may end first, for as long as the node that has the space lets them.
pub(super) async fn run(options: &SpaceMoveOptions) -> anyhow::Result<Exit> {
    let SpaceMoveOptions { name, node, .. } = options;
    let admin = options.database.connect_to_nodes().await?;
    admin.move_space(name, node).await?;
    let until = Instant::now() + Duration::from_secs(options.timeout);
    let mut look = interval(LOOK_EVERY);
    loop {
        look.tick().await;
        let place = admin.place_of(name).await?;
        if place.as_deref() == Some(node) {
            if options.database.json {
                print_json(&json!({"name": name, "node": node}))?
            } else {
                print(&format!("{} is served by {}.\n", escape_line(name), escape_line(node)))?
            }
            return Ok(Exit::Complete);
        }
        if Instant::now() >= until {
            let holder = place.as_deref().unwrap_or("nobody");
            bail!(
                "{name} is still served by {holder}; is {node} alive? Look with `greenroom node list`"
            );
        }
    }
}
