//! `greenroom agents`: lists the external agents, and which directories they may be started in.
//!
//! Promises: nothing is run to list an agent. What is shown of files and agents cannot control the terminal.
//! Must not know: how an agent is talked to.

mod list;
mod token;
mod trust;

pub(crate) use list::list_agents;

use crate::exit::Exit;
use crate::models::ConfigFileOptions;

/// List the agents that are installed, and trust directories for them
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  greenroom agents                       which are here, and how to install the others
  greenroom chat --agent claude          talk to one of them
  greenroom agents --log claude          what it printed last, if it does not work
  greenroom agents trust .               let agents be started in this directory
  greenroom agents trust                 list the directories
  greenroom agents trust --revoke .
  greenroom agents token RESOURCE        give a token that an agent or an MCP server needs

An agent is offered where its command is on the PATH of the host, or where greenroom.toml has an [[agents]] table for it; a host that \
runs takes changes of that when it is restarted. Files of a directory can make an agent run commands without asking: that is why it \
starts only in directories that you trust, and asks otherwise. A new file of that kind asks again.

Exit codes: 0 done, 1 the settings or the answers cannot be read or written, 2 wrong usage."
)]
pub(crate) struct AgentsOptions {
    #[command(subcommand)]
    verb: Option<AgentsVerb>,
    #[command(flatten)]
    list: list::AgentListOptions,
}

#[derive(Debug, clap::Subcommand)]
enum AgentsVerb {
    List(list::AgentListOptions),
    Trust(trust::TrustOptions),
    Token(token::TokenOptions),
}

pub(crate) async fn run(options: AgentsOptions) -> anyhow::Result<Exit> {
    match options.verb {
        None => list::run(&options.list).await,
        Some(AgentsVerb::List(list)) => list::run(&list).await,
        Some(AgentsVerb::Trust(trust)) => trust::run(&trust),
        Some(AgentsVerb::Token(token)) => token::run(&token).await,
    }
}
