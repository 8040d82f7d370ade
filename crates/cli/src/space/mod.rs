//! `greenroom space`: the spaces of a database, who may use them, and what they take.
//!
//! Promises: works on the database itself, whether a host runs or not; a token is printed once; nothing is removed unasked.
//! Must not know: how spaces are stored.

mod copy;
pub(crate) mod database;
mod limits;
mod list;
mod make;
mod mount;
mod move_space;
mod token;

use std::path::PathBuf;

use clap::Subcommand;
use host::accounts::{AccountAdmin, AccountError};
use host::blobs::BlobSettings;
use host::cluster::{ClusterAdmin, ClusterAdminError};
use host::journal::PostgresSettings;

use crate::exit::Exit;

/// For how long a database that is away is waited for; somebody is looking at the terminal.
const PATIENCE_MS: u64 = 3_000;

/// Manage the spaces of a database: make them, give people tokens, see their load
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom space create team-a
  greenroom space token team-a --for ann --role owner
  greenroom space token team-a --for dashboard --role viewer --expires 90d
  greenroom space list team-a
  greenroom space revoke 3f9c01ab77de
  greenroom space move team-a b
  greenroom space copy team-a team-b
  greenroom space limits team-a --turns 4
  greenroom space mount team-a src
  greenroom space top

A space is one team's host: its own sessions, its own order, its own people. Spaces need a database: `postgres` in greenroom.toml, \
$GREENROOM_POSTGRES, --database-file or --database.")]
pub(crate) struct SpaceOptions {
    #[command(subcommand)]
    verb: SpaceVerb,
}

#[derive(Debug, Subcommand)]
enum SpaceVerb {
    Create(make::SpaceCreateOptions),
    List(list::SpaceListOptions),
    Token(token::IssueOptions),
    Revoke(token::RevokeTokenOptions),
    Remove(make::SpaceRemoveOptions),
    Move(move_space::SpaceMoveOptions),
    Copy(copy::SpaceCopyOptions),
    Limits(limits::SpaceLimitsOptions),
    Mount(mount::SpaceMountOptions),
    Top(list::TopOptions),
}

/// Where the spaces are.
#[derive(Debug, clap::Args)]
pub(crate) struct DatabaseOptions {
    /// The database: postgres://.. or `host=/run/postgresql dbname=..`, without a password [default: $GREENROOM_POSTGRES, else `postgres` in the settings]
    #[arg(long, value_name = "URL", conflicts_with = "database_file")]
    database: Option<String>,
    /// A file with the address of the database, for one with a password
    #[arg(long, value_name = "FILE")]
    database_file: Option<PathBuf>,
    /// Data directory with the settings [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

impl DatabaseOptions {
    async fn connect(&self) -> anyhow::Result<AccountAdmin> {
        Ok(AccountAdmin::connect(&self.settings()?).await?)
    }

    /// The same, for what an operator does with nodes.
    pub(crate) async fn connect_to_nodes(&self) -> anyhow::Result<ClusterAdmin> {
        let connected = ClusterAdmin::connect(&self.settings()?).await;
        connected.map_err(|error| match error {
            ClusterAdminError::Database(error) => AccountError::from(error).into(),
            other => other.into(),
        })
    }

    /// Where large bodies lie, if not in the database.
    fn blobs(&self) -> anyhow::Result<Option<BlobSettings>> {
        database::find_blobs(self.data.as_deref())
    }

    pub(crate) fn settings(&self) -> anyhow::Result<PostgresSettings> {
        let url = match &self.database {
            Some(url) => {
                database::check_argument("--database", url)?;
                url.clone()
            }
            None => database::find_address(self.database_file.as_deref(), self.data.as_deref())?,
        };
        Ok(PostgresSettings { journal_patience_ms: PATIENCE_MS, ..PostgresSettings::new(url) })
    }
}

pub(crate) async fn run(options: SpaceOptions) -> anyhow::Result<Exit> {
    match options.verb {
        SpaceVerb::Create(options) => make::create(&options).await,
        SpaceVerb::List(options) => list::list(&options).await,
        SpaceVerb::Token(options) => token::issue(&options).await,
        SpaceVerb::Revoke(options) => token::revoke(&options).await,
        SpaceVerb::Remove(options) => make::remove(&options).await,
        SpaceVerb::Move(options) => move_space::run(&options).await,
        SpaceVerb::Copy(options) => copy::run(&options).await,
        SpaceVerb::Limits(options) => limits::run(&options).await,
        SpaceVerb::Mount(options) => mount::run(&options).await,
        SpaceVerb::Top(options) => list::top(&options).await,
    }
}
