//! `greenroom database`: the tables that nodes share.
//!
//! Promises: makes what is missing and changes nothing that is there.
//! Must not know: what is in the tables.

use clap::Subcommand;
use host::accounts::AccountError;
use host::journal::PostgresNode;
use serde_json::json;

use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::space::DatabaseOptions;

/// Make the tables of a database, and say who may use them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  createuser greenroom_admin && createuser greenroom_node
  createdb -O greenroom_admin greenroom
  greenroom database prepare --database 'host=/run/postgresql user=greenroom_admin dbname=greenroom'

A node makes the tables itself where its role may. With two roles it need not: greenroom_admin owns the tables, and prepares them \
before the first start and before a new version; greenroom_node reads and writes their rows, and is the role of nodes.")]
pub(crate) struct DatabaseVerbOptions {
    #[command(subcommand)]
    verb: DatabaseVerb,
}

#[derive(Debug, Subcommand)]
enum DatabaseVerb {
    Prepare(PrepareOptions),
}

/// Make the tables that are missing, and give their rows to the role greenroom_node, if there is one
#[derive(Debug, clap::Args)]
struct PrepareOptions {
    #[command(flatten)]
    database: DatabaseOptions,
}

pub(crate) async fn run(options: DatabaseVerbOptions) -> anyhow::Result<Exit> {
    let DatabaseVerb::Prepare(options) = options.verb;
    let prepared = PostgresNode::prepare(&options.database.settings()?).await;
    prepared.map_err(AccountError::from)?;
    if options.database.json {
        print_json(&json!({"prepared": true}))?
    } else {
        print("The tables are ready for this version.\n")?
    }
    Ok(Exit::Complete)
}
