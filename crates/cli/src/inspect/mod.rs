//! `greenroom inspect`: the messages of a chat and what the model was sent of them, read from the data directory; no host is
//! needed, and one may run.
//!
//! Promises: nothing it shows ever travels over the protocol; records are printed as they were stored.

pub(crate) mod prompt;
mod turns;

use std::path::PathBuf;

use client::endpoint;

use crate::archive::find_session;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::session_name::SessionName;

/// Show the messages of a chat and what the model was sent of them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom inspect scripted:/0190...
  greenroom inspect ahp-chat://default/... --turn t7 --json
  greenroom inspect scripted:/0190... --prompt
  greenroom inspect ahp-chat://default/... --prompt --last 1 --json | jq '.[0].sections'

Reads the data directory: no host has to run, and one that does is not disturbed. The newest 50 renders of each chat are \
stored there, for whoever may read that directory and nobody else.")]
pub(crate) struct InspectOptions {
    /// The chat; or a session (its URI, a part of its id, or its title), for all of its chats
    #[arg(value_name = "CHAT")]
    name: SessionName,
    /// The system prompt of the last renders, section by section, before and after a client rewrote it
    #[arg(long, conflicts_with = "turn")]
    prompt: bool,
    /// Only this turn
    #[arg(long, value_name = "ID")]
    turn: Option<String>,
    /// How many renders of each chat to show
    #[arg(long, value_name = "N", default_value_t = 3)]
    last: usize,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    /// Data directory [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(crate) fn run(options: &InspectOptions) -> anyhow::Result<Exit> {
    let data = endpoint::data_directory(options.data.as_deref())?;
    let (archive, session) = find_session(&data, &options.name)?;
    if !options.prompt {
        let turns = turns::turns_of(&archive, &session, options.turn.as_deref())?;
        match options.json {
            true => print_json(&turns::to_json(&turns))?,
            false => print(&turns::to_text(&turns))?,
        }
        return Ok(Exit::Complete);
    }
    let renders = prompt::renders_of(&archive, &session, options.last)?;
    match options.json {
        true => print_json(&prompt::to_json(&renders))?,
        false => print(&prompt::to_text(&renders))?,
    }
    Ok(Exit::Complete)
}
