//! `greenroom sessions`: lists, searches and changes the sessions of a host.
//!
//! Promises: changes go through the host that runs; where none does, through one in this process, under the same lock.

mod change;
mod import;
mod list;
mod search;

use clap::Subcommand;

use crate::exit::Exit;
use crate::target::HostOptions;

/// List the sessions of a host, the newest first; search and change them
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  greenroom sessions
  greenroom sessions --json | jq '.[].resource'
  greenroom sessions search parser 'off by one'
  greenroom sessions rename 3f2a 'Parser work'
  greenroom sessions delete 3f2a --yes
  greenroom export 3f2a > backup.jsonl; greenroom sessions import backup.jsonl

A session is named by its URI, by the beginning or the end of its id, or by its title."
)]
pub(crate) struct SessionsOptions {
    #[command(subcommand)]
    verb: Option<SessionsVerb>,
    #[command(flatten)]
    list: list::ListOptions,
}

#[derive(Debug, Subcommand)]
enum SessionsVerb {
    Search(search::SessionSearchOptions),
    Rename(change::RenameOptions),
    Archive(change::ArchiveOptions),
    Delete(change::DeleteOptions),
    Import(import::ImportOptions),
    Compact(change::CompactOptions),
}

pub(crate) async fn run(options: SessionsOptions) -> anyhow::Result<Exit> {
    match options.verb {
        None => list::run(options.list).await,
        Some(SessionsVerb::Search(options)) => search::run(&options),
        Some(SessionsVerb::Rename(options)) => change::rename(options).await,
        Some(SessionsVerb::Archive(options)) => change::archive(options).await,
        Some(SessionsVerb::Delete(options)) => change::delete(options).await,
        Some(SessionsVerb::Import(options)) => import::run(options).await,
        Some(SessionsVerb::Compact(options)) => change::compact(&options),
    }
}

/// The data directory of a verb that reads it; a host elsewhere has another.
fn local_data(host: &HostOptions) -> anyhow::Result<std::path::PathBuf> {
    anyhow::ensure!(
        host.named_host().is_none(),
        "this reads the data directory: run it on the machine of the host, without --host"
    );
    host.data_directory()
}
