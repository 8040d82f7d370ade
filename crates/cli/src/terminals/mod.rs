//! `greenroom terminals`: the terminals of a host, listed, opened and ended.
//!
//! Promises: what runs in a terminal never controls this one: what it shows is drawn, not passed on.

mod attach;
mod view;

use std::path::PathBuf;

use anyhow::bail;
use client::Live;
use client::terminals::{
    TerminalEntry, TerminalOwner, create_terminal, dispose_terminal, list_terminals,
};
use wire::ChannelUri;

use crate::exit::Exit;
use crate::output::print;
use crate::target::HostOptions;
use crate::terminal::escape_line;

/// List the terminals of the host, look at one and type in it, or end one
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom terminals                 list them
  greenroom terminals new             a shell on the host, here
  greenroom terminals attach 1        look at the first of the list, and type in it
  greenroom terminals kill 1          end it

A terminal goes on when you leave it, also when this program ends; it ends with its shell, with `kill`, or with the host. While you \
are in one, Ctrl-] leaves it. A command of an agent is yours while you are in its terminal; when you leave it is the agent's again.")]
pub(crate) struct TerminalsOptions {
    #[command(subcommand)]
    verb: Option<TerminalsVerb>,
    #[command(flatten)]
    host: HostOptions,
}

#[derive(Debug, clap::Subcommand)]
enum TerminalsVerb {
    /// List them
    List,
    /// Start a shell in a new terminal and open it
    New {
        /// Where it starts, on the host's machine [default: the current directory, or your home there if that is another machine]
        #[arg(long, value_name = "DIRECTORY")]
        directory: Option<PathBuf>,
    },
    /// Open a terminal: its number in the list, or its URI
    Attach { terminal: String },
    /// End a terminal and what runs in it
    Kill { terminal: String },
}

pub(crate) async fn run(options: TerminalsOptions) -> anyhow::Result<Exit> {
    let (live, updates) = options.host.live(&[ChannelUri::root()]).await?;
    match options.verb.unwrap_or(TerminalsVerb::List) {
        TerminalsVerb::List => print_list(&list_terminals(&live))?,
        TerminalsVerb::New { directory } => {
            // Another machine's directories are not ours.
            let is_here = options.host.named_host().is_none();
            let here = || std::env::current_dir().ok().filter(|_| is_here);
            let directory = directory.or_else(here);
            let uri = create_terminal(&live, directory.as_deref(), attach::inner_size()).await?;
            attach::run(&live, updates, &uri).await?;
        }
        TerminalsVerb::Attach { terminal } => {
            let uri = find(&live, &terminal)?;
            attach::run(&live, updates, &uri).await?;
        }
        TerminalsVerb::Kill { terminal } => {
            let uri = find(&live, &terminal)?;
            dispose_terminal(&live, &uri).await?;
            print("ended\n")?;
        }
    }
    live.close().await;
    Ok(Exit::Complete)
}

fn print_list(terminals: &[TerminalEntry]) -> anyhow::Result<()> {
    if terminals.is_empty() {
        print("There are no terminals; `greenroom terminals new` starts one.\n")?;
    }
    for line in list_lines(terminals) {
        print(&format!("{line}\n"))?;
    }
    Ok(())
}

/// The list, for people.
pub(crate) fn list_lines(terminals: &[TerminalEntry]) -> Vec<String> {
    let line = |(index, entry): (usize, &TerminalEntry)| {
        let state = match (entry.is_running, entry.held_by) {
            (false, _) => "ended",
            (true, TerminalOwner::Me) => "runs, yours",
            (true, TerminalOwner::Other) => "runs, held by another client",
            (true, TerminalOwner::Session) => "runs, of an agent",
        };
        let title = escape_line(&entry.title);
        format!("{:3}  {state:28}  {title}", index + 1)
    };
    terminals.iter().enumerate().map(line).collect()
}

/// The terminal that somebody means: by its number, or its URI.
fn find(live: &Live, name: &str) -> anyhow::Result<ChannelUri> {
    let terminals = list_terminals(live);
    match name.parse::<usize>() {
        Ok(number) => match terminals.get(number.wrapping_sub(1)) {
            Some(entry) => Ok(entry.uri.clone()),
            None => bail!(
                "there is no terminal {number}; `greenroom terminals` lists the {} there are",
                terminals.len()
            ),
        },
        Err(_) => ChannelUri::parse(name).map_err(|error| {
            anyhow::anyhow!("{name} is neither a number of the list nor a URI: {error}")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_says_who_types() {
        let entry = |title: &str, is_running, held_by| TerminalEntry {
            uri: ChannelUri::parse("ahp-terminal:/x").unwrap(),
            title: title.to_owned(),
            is_running,
            held_by,
        };
        let lines = list_lines(&[
            entry("make \u{1b}[31m", true, TerminalOwner::Session),
            entry("bash", false, TerminalOwner::Me),
        ]);
        assert!(lines[0].starts_with("  1  runs, of an agent") && !lines[0].contains('\u{1b}'));
        assert!(lines[1].contains("ended") && lines[1].ends_with("bash"));
    }
}
